//! Who is let in: host, origin, token, in that order. Pure.
//!
//! On a loopback listener the host check keeps web pages out that point a name of
//! their own at this machine (DNS rebinding); the origin check keeps out pages
//! that say where they come from.

use super::{Answer, Head};
use std::fmt;

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
    /// Whether the listener is bound to a loopback address.
    pub(crate) loopback: bool,
    pub(crate) token: Option<Token>,
    /// Whether `/health` needs the token too.
    pub(crate) require_auth: bool,
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

/// Names by which a loopback listener may be called.
const LOOPBACK_NAMES: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "host.docker.internal"];

/// Decides over one request to a listener on `port`.
pub(crate) fn admit<'a>(head: &Head<'a>, access: &Access, port: u16) -> Admission<'a> {
    let allow_origin = match head.origin {
        None => None,
        // A page that this listener itself serves is no stranger.
        Some(origin) if access.loopback && is_self_origin(origin, port) => None,
        Some(origin) if access.allows(origin) => Some(origin),
        Some(_) => {
            return Admission::Refused(
                Answer::error(403, "Request denied by CORS policy", None)
                    .with_header("Vary", "Origin"),
            );
        }
    };
    if access.loopback && !head.host.is_some_and(|host| is_loopback_host(host, port)) {
        return Admission::Refused(Answer::error(403, "Invalid Host header", None));
    }
    if head.method == "OPTIONS" && head.origin.is_some() {
        // Without the origin in the answer no browser would go on.
        return Admission::Refused(Answer::preflight().for_origin(allow_origin));
    }
    let open_health = head.route() == "/health" && access.loopback && !access.require_auth;
    if !open_health && !access.is_authorized(head.authorization) {
        return Admission::Refused(Answer::error(401, "Unauthorized", None));
    }
    Admission::Admitted { allow_origin }
}

impl Access {
    fn allows(&self, origin: &str) -> bool {
        self.allowed_origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin))
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

fn is_self_origin(origin: &str, port: u16) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        origin
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && is_loopback_host(&origin[scheme.len()..], port)
    })
}

fn is_loopback_host(host: &str, port: u16) -> bool {
    LOOPBACK_NAMES.iter().any(|name| {
        let Some(start) = host.get(..name.len()) else {
            return false;
        };
        start.eq_ignore_ascii_case(name)
            && match host[name.len()..].strip_prefix(':') {
                Some(text) => text.parse() == Ok(port),
                // Browsers leave out the port that the scheme implies.
                None => host.len() == name.len() && matches!(port, 80 | 443),
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(token: Option<&str>) -> Access {
        Access {
            loopback: true,
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
        assert!(is_loopback_host("localhost", 80) && !is_loopback_host("localhost", 8080));
    }

    #[test]
    fn a_public_listener_takes_any_host() {
        let access = Access {
            loopback: false,
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
