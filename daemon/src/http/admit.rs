//! Who is let in: host, origin, token, in that order. Pure.
//!
//! On a loopback listener the host check keeps web pages out that point a name of
//! their own at this machine (DNS rebinding); the origin check keeps out pages
//! that say where they come from.

use super::{Answer, Head};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A bearer token; never printed, compared in constant time.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for taking it out of what an agent writes.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Looks at every byte of the offer whatever it holds, so that the time says
    /// nothing about how much of it is right; only the length shows.
    fn matches(&self, offer: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), offer.as_bytes());
        let differs = theirs.iter().enumerate().fold(0, |differs, (at, byte)| {
            differs | (byte ^ ours[at % ours.len()])
        });
        differs == 0 && ours.len() == theirs.len()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Rules of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The address that the listener is bound to.
    pub(crate) ip: IpAddr,
    pub(crate) token: Option<Token>,
    /// Whether `/health` needs the token too.
    pub(crate) require_auth: bool,
    /// Origins as browsers write them, or `*` for every one.
    pub(crate) allowed_origins: Vec<String>,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission<'a> {
    /// It may go on; an origin is to be echoed to the browser.
    Admitted { allow_origin: Option<&'a str> },
    /// It is answered with this and starts nothing.
    Refused(Answer),
}

/// The origin that stands for all of them.
pub(crate) const ANY_ORIGIN: &str = "*";

/// Names by which every loopback listener may be called, beside its own address.
const LOOPBACK_NAMES: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "host.docker.internal"];

/// Decides over one request to a listener on `port`.
pub(crate) fn admit<'a>(head: &Head<'a>, access: &Access, port: u16) -> Admission<'a> {
    if let Some(name) = head.repeated {
        // Two readers of it could believe two different values (RFC 9112, section
        // 3.2, of Host; the others decide as much).
        let message = format!("`{name}` is sent more than once");
        return Admission::Refused(Answer::error(400, &message, Some("repeated_field")));
    }
    let address = SocketAddr::new(access.ip, port);
    let allow_origin = match head.origin {
        None => None,
        // A page that this listener itself serves is no stranger.
        Some(origin) if access.is_loopback() && is_self_origin(origin, address) => None,
        Some(origin) if access.allows(origin) => Some(origin),
        Some(_) => {
            return Admission::Refused(
                Answer::error(403, "Request denied by CORS policy", None)
                    .with_header("Vary", "Origin"),
            );
        }
    };
    // From here on the page may read why it is refused.
    let refuse = |status, message| {
        Admission::Refused(Answer::error(status, message, None).for_origin(allow_origin))
    };
    if access.is_loopback()
        && !head
            .host
            .is_some_and(|host| is_loopback_host(host, address))
    {
        return refuse(403, "Invalid Host header");
    }
    if head.method == "OPTIONS" && head.origin.is_some() {
        // Without the origin in the answer no browser would go on.
        return Admission::Refused(Answer::preflight().for_origin(allow_origin));
    }
    let open_health = head.is_health() && access.is_loopback() && !access.require_auth;
    if !open_health && !access.is_authorized(head.authorization) {
        return refuse(401, "Unauthorized");
    }
    Admission::Admitted { allow_origin }
}

impl Access {
    /// Whether only this machine can reach the listener.
    pub(crate) fn is_loopback(&self) -> bool {
        self.ip.is_loopback()
    }

    fn allows(&self, origin: &str) -> bool {
        self.allowed_origins
            .iter()
            .any(|allowed| allowed == ANY_ORIGIN || allowed.eq_ignore_ascii_case(origin))
    }

    fn is_authorized(&self, authorization: Option<&str>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let offer = authorization.and_then(|value| {
            let (scheme, offer) = value.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then_some(offer.trim())
        });
        offer.is_some_and(|offer| token.matches(offer))
    }
}

fn is_self_origin(origin: &str, address: SocketAddr) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        origin
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && is_loopback_host(&origin[scheme.len()..], address)
    })
}

fn is_loopback_host(host: &str, address: SocketAddr) -> bool {
    LOOPBACK_NAMES
        .iter()
        .any(|name| is_host(host, name, address.port()))
        || is_host(host, &literal(address.ip()), address.port())
}

/// An address as it stands in a Host field.
fn literal(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn is_host(host: &str, name: &str, port: u16) -> bool {
    let Some(start) = host.get(..name.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(name)
        && match host[name.len()..].strip_prefix(':') {
            Some(text) => text.parse() == Ok(port),
            // Browsers leave out the port that the scheme implies.
            None => host.len() == name.len() && matches!(port, 80 | 443),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn access(token: Option<&str>) -> Access {
        Access {
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            token: token.map(|text| Token::new(text.to_owned())),
            require_auth: false,
            allowed_origins: vec!["http://app.test:3000".to_owned()],
        }
    }

    fn head<'a>(path: &'a str, host: Option<&'a str>) -> Head<'a> {
        Head {
            method: "GET",
            path,
            host,
            ..Head::default()
        }
    }

    #[track_caller]
    fn check(head: &Head<'_>, access: &Access, status: u16) {
        let found = match admit(head, access, 4170) {
            Admission::Admitted { .. } => 200,
            Admission::Refused(answer) => answer.status(),
        };
        assert_eq!(found, status, "{head:?}");
    }

    #[test]
    fn a_loopback_listener_is_called_by_its_own_names_only() {
        for host in [
            "localhost:4170",
            "127.0.0.1:4170",
            "[::1]:4170",
            "LOCALHOST:4170",
            "host.docker.internal:4170",
        ] {
            check(&head("/x", Some(host)), &access(None), 200);
        }
        for host in [
            "evil.example",
            "localhost",
            "localhost:4171",
            "127.0.0.1.evil.example:4170",
            "localhost:4170:4170",
            "",
            "[::1",
            "é",
        ] {
            check(&head("/x", Some(host)), &access(None), 403);
        }
        check(&head("/health", None), &access(None), 403);
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        assert!(is_loopback_host("localhost", at(80)) && !is_loopback_host("localhost", at(8080)));
    }

    #[test]
    fn a_loopback_listener_answers_to_its_own_address() {
        let second = Access {
            ip: "127.0.0.2".parse().unwrap(),
            ..access(None)
        };
        check(&head("/x", Some("127.0.0.2:4170")), &second, 200);
        check(&head("/x", Some("127.0.0.3:4170")), &second, 403);
        check(&head("/x", Some("127.0.0.2:4170")), &access(None), 403);
    }

    #[test]
    fn a_field_that_stands_twice_is_refused_before_anything_else() {
        for name in ["Host", "Origin", "Authorization"] {
            let repeated = Head {
                repeated: Some(name),
                ..head("/health", Some("localhost:4170"))
            };
            check(&repeated, &access(None), 400);
        }
    }

    #[test]
    fn every_origin_is_allowed_by_a_star_and_the_token_still_asked_for() {
        let open = Access {
            allowed_origins: vec![ANY_ORIGIN.to_owned()],
            ..access(Some("t"))
        };
        let page = Head {
            origin: Some("http://any.example"),
            authorization: Some("Bearer t"),
            ..head("/x", Some("localhost:4170"))
        };
        check(&page, &open, 200);
        let page = Head {
            authorization: None,
            ..page
        };
        check(&page, &open, 401);
    }

    #[test]
    fn an_allowed_page_may_read_why_it_is_refused() {
        let page = Head {
            origin: Some("http://app.test:3000"),
            ..head("/x", Some("localhost:4170"))
        };
        let elsewhere = Head {
            host: Some("evil.example"),
            ..page
        };
        for head in [page, elsewhere] {
            let Admission::Refused(answer) = admit(&head, &access(Some("t")), 4170) else {
                panic!("{head:?}");
            };
            let (_, headers, _) = answer.into_parts();
            let origin = "http://app.test:3000".to_owned();
            assert!(
                headers.contains(&("Access-Control-Allow-Origin", origin)),
                "{headers:?}"
            );
        }
    }

    #[test]
    fn a_public_listener_takes_any_host() {
        let access = Access {
            ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            ..access(Some("t"))
        };
        let head = Head {
            authorization: Some("Bearer t"),
            ..head("/x", Some("daemon.example"))
        };
        check(&head, &access, 200);
        // Health is open on loopback only.
        check(
            &Head {
                authorization: None,
                ..head
            },
            &access,
            401,
        );
        check(
            &Head {
                authorization: None,
                path: "/health",
                ..head
            },
            &access,
            401,
        );
    }

    #[test]
    fn a_foreign_origin_is_refused_and_an_allowed_one_is_echoed() {
        let host = Some("localhost:4170");
        for origin in ["http://evil.example", "null", "http://app.test:3001"] {
            check(
                &Head {
                    origin: Some(origin),
                    ..head("/health", host)
                },
                &access(None),
                403,
            );
        }
        check(
            &Head {
                origin: Some("http://127.0.0.1:4170"),
                ..head("/x", host)
            },
            &access(None),
            200,
        );
        let allowed = Head {
            origin: Some("http://APP.test:3000"),
            ..head("/x", host)
        };
        assert_eq!(
            admit(&allowed, &access(None), 4170),
            Admission::Admitted {
                allow_origin: Some("http://APP.test:3000")
            }
        );
        let preflight = Head {
            method: "OPTIONS",
            ..allowed
        };
        check(&preflight, &access(Some("t")), 204);
        let Admission::Refused(answer) = admit(&preflight, &access(None), 4170) else {
            panic!("a preflight is answered here");
        };
        let (_, headers, _) = answer.into_parts();
        let echoed = (
            "Access-Control-Allow-Origin",
            "http://APP.test:3000".to_owned(),
        );
        assert!(headers.contains(&echoed), "{headers:?}");
    }

    #[test]
    fn the_token_is_needed_everywhere_but_on_a_loopback_health() {
        let host = Some("localhost:4170");
        check(&head("/health", host), &access(Some("secret")), 200);
        check(&head("/health/", host), &access(Some("secret")), 200);
        check(
            &head("/health", host),
            &Access {
                require_auth: true,
                ..access(Some("secret"))
            },
            401,
        );
        for (method, status) in [("HEAD", 200), ("POST", 401), ("PUT", 401), ("OPTIONS", 401)] {
            let head = Head {
                method,
                ..head("/health", host)
            };
            check(&head, &access(Some("secret")), status);
        }
        for (authorization, status) in [
            ("Bearer secret", 200),
            ("bearer  secret", 200),
            ("Bearer secre", 401),
            ("Bearer secretsecret", 401),
            ("Bearer ", 401),
            ("Basic secret", 401),
            ("secret", 401),
        ] {
            let head = Head {
                authorization: Some(authorization),
                ..head("/capabilities", host)
            };
            check(&head, &access(Some("secret")), status);
        }
        check(&head("/capabilities", host), &access(Some("secret")), 401);
    }
}
