//! A delay that an arm injects at a stage, so that the analyzer can say how much
//! of it reaches the total. Only the wish and its text; who waits is the program,
//! built with fault points, or the stdio shim.

use crate::scenario::parse_duration;
use coldpath_trace_format::emit::inject;
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

/// One delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Name of the span or phase that is held up.
    pub stage: String,
    /// For how long.
    pub delay: Duration,
}

/// A text that is no injection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no injection\nhint: STAGE=+DELAY, as in `agent.phase.settings_load=+5ms`; units are us, ms and s"
)]
pub struct BadInjection(pub String);

impl FromStr for Injection {
    type Err = BadInjection;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadInjection(text.to_owned());
        let (stage, delay) = text.split_once("=+").ok_or_else(bad)?;
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._".contains(&byte);
        if !(1..=64).contains(&stage.len()) || !stage.bytes().all(allowed) {
            return Err(bad());
        }
        Ok(Self {
            stage: stage.to_owned(),
            delay: parse_duration(delay).ok_or_else(bad)?,
        })
    }
}

impl Injection {
    /// Nanoseconds of the delay.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The value of `COLDPATH_INJECT` that asks for all of them.
#[must_use]
pub fn environment(injections: &[Injection]) -> String {
    let mut text = String::new();
    for one in injections {
        if !text.is_empty() {
            text.push(';');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{}={}", one.stage, one.nanos());
    }
    text
}

/// Those of `injections` that no line of `stderr` says were made, in the program's own
/// words or in those of its agent, which a daemon passes on behind `coldpathd: [agent PID] `.
#[must_use]
pub fn unmade<'i>(injections: &'i [Injection], stderr: &str) -> Vec<&'i str> {
    let made = |stage: &str| {
        stderr
            .lines()
            .any(|line| of_agent(line).strip_prefix(inject::SIGN) == Some(stage))
    };
    injections
        .iter()
        .map(|one| one.stage.as_str())
        .filter(|stage| !made(stage))
        .collect()
}

/// What an agent said in a line of `coldpathd`; any other line as it is. A daemon without
/// fault points does not know the sign, and logs it as whatever else its agent says.
fn of_agent(line: &str) -> &str {
    line.strip_prefix("coldpathd: [agent ")
        .and_then(|rest| rest.split_once("] "))
        .filter(|(pid, _)| pid.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(line, |(_, said)| said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_injection_is_a_stage_and_a_delay() {
        let one: Injection = "agent.phase.settings_load=+5ms".parse().unwrap();
        assert_eq!(one.stage, "agent.phase.settings_load");
        assert_eq!(one.nanos(), 5_000_000);
        let two: Injection = "session.new=+40us".parse().unwrap();
        assert_eq!(
            environment(&[one, two]),
            "agent.phase.settings_load=5000000;session.new=40000"
        );
        for text in [
            "", "x", "x=5ms", "=+5ms", "x=+", "x=+5", "X y=+5ms", "a;b=+1ms",
        ] {
            let parsed = text.parse::<Injection>();
            if text == "x=+5" {
                assert!(parsed.is_ok(), "a bare number is milliseconds");
            } else {
                assert!(parsed.is_err(), "{text}");
            }
        }
    }

    #[test]
    fn what_the_program_did_not_say_was_not_made() {
        let wanted: Vec<Injection> = ["a.b=+1ms", "a=+1ms"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(unmade(&wanted, "noise\ninjected a.b\n"), ["a"]);
        assert_eq!(unmade(&wanted, "injected a\ninjected a.b"), [""; 0]);
        assert_eq!(unmade(&wanted, " injected a\n"), ["a.b", "a"]);
    }

    #[test]
    fn what_a_daemon_passes_on_of_its_agent_was_made() {
        let wanted: Vec<Injection> = vec!["a=+1ms".parse().unwrap()];
        let passed_on = "coldpathd: [agent 25066] injected a\ncoldpathd: stopping\n";
        assert_eq!(unmade(&wanted, passed_on), [""; 0]);
        for other in [
            "coldpathd: [agent 25066] injected a.b",
            "coldpathd: [agent 25066] not injected a",
            "coldpathd: [agent x] injected a",
            "coldpathd: injected a",
        ] {
            assert_eq!(unmade(&wanted, other), ["a"], "{other}");
        }
    }
}
