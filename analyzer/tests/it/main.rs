//! Tests of `analyze` from outside: files in, report out. Expectations come
//! from hand calculation and from scripts that share no code with the crate.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test reports"
)]

mod support;

mod bad_input;
mod calibration;
mod chrome;
mod chrome_rules;
mod cli;
mod cohorts;
mod coldpath;
mod compare;
mod expected_findings;
mod findings;
mod formats;
mod fuzz_corpus;
mod gate;
mod html;
mod injection;
mod known_bad;
mod many_stages;
mod order;
mod output;
mod partition;
mod planted;
mod qwen_cold;
mod scenarios;
mod schema;
mod stats;
mod what_if;
