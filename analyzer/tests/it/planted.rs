//! Thirty cold starts with planted statistics (`fixtures/planted/make.py`, which
//! shares no code with this crate and checks itself): every figure comes back.

use serde_json::Value;

use crate::support::{fixture, named, report};

fn planted() -> Value {
    report([fixture("planted")])
}

/// A figure rounded half up to `digits` decimals, as a text.
#[track_caller]
fn rounded(value: &Value, scale: f64, digits: usize) -> String {
    let value = value.as_f64().unwrap() * scale;
    format!("{value:.digits$}")
}

#[test]
fn all_runs_are_complete_and_their_profiles_joined() {
    let report = planted();
    let runs = &report["runs"];
    assert_eq!(
        (&runs["complete"], &runs["traced"]),
        (&30.into(), &30.into())
    );
    assert_eq!(runs["profile_joins"]["joined"], runs["profile_joins"]["of"]);
    assert_eq!(runs["profile_joins"]["of"], 50);
    assert_eq!(report["input"]["problems"], serde_json::json!([]));
}

#[test]
fn stages_have_the_planted_medians_and_tails() {
    let report = planted();
    let request = named(&report["windows"], "request");
    let channel = named(&report["windows"], "channel");
    for (window, stage, p50, p95) in [
        (request, "runtime.wait", "173.0", "192.2"),
        (request, "channel.wait", "997.1", "1040.4"),
        (request, "session.new", "62.0", "65.9"),
        (channel, "channel.initialize", "1006.5", "1050.1"),
    ] {
        let found = named(&window["stages"], stage);
        assert_eq!(rounded(&found["p50"], 1.0, 1), p50, "{stage}");
        assert_eq!(rounded(&found["p95"], 1.0, 1), p95, "{stage}");
    }
    let rest = &request["unattributed"];
    assert_eq!(rounded(&rest["p50"], 1.0, 1), "20.4");
    assert_eq!(rounded(&rest["p95"], 1.0, 1), "21.9");
    let session = named(&report["windows"], "agent.session_start");
    let setup = named(&session["stages"], "config_setup");
    assert_eq!(rounded(&setup["p50"], 1.0, 1), "51.0");
    // The same from its own window, which the session profile divides.
    let setup = named(&report["windows"], "agent.config_setup");
    assert_eq!(rounded(&setup["total"]["p50"], 1.0, 1), "51.0");
    assert_eq!(setup["n"], 30);
    // The script gives `system_instruction` 0.3 of 51.0.
    let inside = named(&setup["stages"], "system_instruction");
    assert_eq!(rounded(&inside["p50"], 1.0, 1), "15.3");
}

#[test]
fn shares_and_correlation_are_the_planted_ones() {
    let report = planted();
    let request = named(&report["windows"], "request");
    let wait = named(&request["stages"], "channel.wait");
    assert_eq!(rounded(&wait["share_p50"], 100.0, 2), "79.49");
    assert_eq!(rounded(&wait["correlation"]["pearson"], 1.0, 3), "0.916");
    // Fisher's interval of r = 0.916, n = 30, from the formula by hand.
    assert_eq!(
        rounded(&wait["correlation"]["pearson_ci"][0], 1.0, 3),
        "0.829"
    );
    assert_eq!(
        rounded(&wait["correlation"]["pearson_ci"][1], 1.0, 3),
        "0.960"
    );
    let loading = named(&report["groups"], "module_loading");
    assert_eq!(rounded(&loading["share_p50"], 100.0, 1), "67.3");
}
