//! How a program is driven: a list of steps, as data.
//!
//! A driver says what is awaited and asked in which order; [`crate::run`] carries
//! it out and owns every clock reading. The one driver here speaks the v1 HTTP
//! contract of a daemon that prints where it listens; further ones are further
//! lists, not further code.

pub mod http;
pub mod ready;

use crate::arm::StopAt;
use coldpath_trace_format::spans;
use std::ops::RangeInclusive;
use std::path::Path;

/// What is done with a started program, in order, before it is stopped.
#[derive(Clone, Debug)]
pub struct Driver {
    /// Name in the manifest.
    pub name: &'static str,
    /// Text in a line of stdout after which `HOST:PORT` stands.
    pub ready_marker: &'static str,
    /// The steps; the program is stopped after the last one.
    pub steps: Vec<Step>,
}

/// One step of a driver.
#[derive(Clone, Debug)]
pub enum Step {
    /// Read stdout until the ready line is complete.
    AwaitListener,
    /// Read the RSS of the listening program.
    ReadListenerRss,
    /// Send a request on a connection of its own and read the whole response.
    Request(RequestStep),
    /// The start that is being explained is over: read the covariates, and the
    /// memory of the process tree with its first session.
    CloseWindow,
}

/// A request and what makes its answer a success.
#[derive(Clone, Debug)]
pub struct RequestStep {
    /// Name of the span.
    pub span: &'static str,
    /// Whether the request is what the user's action waits for.
    pub part: Part,
    /// Method.
    pub method: &'static str,
    /// Path, with its query.
    pub path: &'static str,
    /// JSON body.
    pub body: Option<String>,
    /// Value of `coldpath.session.temperature`.
    pub temperature: Option<&'static str>,
    /// Status codes that are a success.
    pub expect: RangeInclusive<u16>,
    /// What the body must hold.
    pub answer: Answer,
}

/// Where a request stands in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Directly under `run`.
    Run,
    /// Under `client.action`, which begins and ends with it.
    Action,
}

/// What the body of a successful answer must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Anything.
    Any,
    /// A JSON object with a non-empty string `sessionId`.
    Session,
}

/// The v1 HTTP contract: ready line, `/health`, a cold session, a warm session.
#[must_use]
pub fn http_v1(workspace: &Path, stop_at: StopAt) -> Driver {
    let mut steps = vec![Step::AwaitListener, Step::ReadListenerRss];
    if stop_at != StopAt::Ready {
        steps.push(Step::Request(health()));
    }
    if stop_at == StopAt::Session {
        steps.push(Step::Request(session(workspace, "cold", Part::Action)));
    }
    steps.push(Step::CloseWindow);
    if stop_at == StopAt::Session {
        steps.push(Step::Request(session(workspace, "warm", Part::Run)));
    }
    Driver {
        name: "http",
        ready_marker: "listening on http://",
        steps,
    }
}

fn health() -> RequestStep {
    RequestStep {
        span: spans::CLIENT_HEALTH,
        part: Part::Run,
        method: "GET",
        path: "/health",
        body: None,
        temperature: None,
        expect: 200..=200,
        answer: Answer::Any,
    }
}

fn session(workspace: &Path, temperature: &'static str, part: Part) -> RequestStep {
    let body = serde_json::json!({
        "cwd": workspace.to_string_lossy(),
        "sessionScope": "thread",
    });
    RequestStep {
        span: spans::CLIENT_SESSION,
        part,
        method: "POST",
        path: "/session",
        body: Some(body.to_string()),
        temperature: Some(temperature),
        expect: 200..=201,
        answer: Answer::Session,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stop_at: StopAt, expected: &[&str]) {
        let driver = http_v1(Path::new("/w"), stop_at);
        let names: Vec<String> = driver
            .steps
            .iter()
            .map(|step| match step {
                Step::AwaitListener => "listener".to_owned(),
                Step::ReadListenerRss => "rss".to_owned(),
                Step::Request(request) => format!("{} {}", request.method, request.path),
                Step::CloseWindow => "close".to_owned(),
            })
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_stop_cuts_the_steps_behind_it_but_not_the_closing_of_the_window() {
        check(StopAt::Ready, &["listener", "rss", "close"]);
        check(StopAt::Health, &["listener", "rss", "GET /health", "close"]);
        check(
            StopAt::Session,
            &[
                "listener",
                "rss",
                "GET /health",
                "POST /session",
                "close",
                "POST /session",
            ],
        );
    }
}
