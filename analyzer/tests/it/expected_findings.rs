//! Findings of the twelve cold captures against those that a separate script
//! computes from the raw records (`goldens/expected_findings.py`).

use serde_json::Value;

use crate::support::{fixture, named, report};

/// Whether a value of the report is the expected one at the expected one's digits.
fn agrees(found: &Value, expected: &Value) -> bool {
    let (Some(number), Some(wanted)) = (found.as_f64(), expected.as_f64()) else {
        return found == expected;
    };
    let digits = expected
        .to_string()
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    // Shares are printed with one decimal of a percent, times in milliseconds.
    let digits = if expected.is_f64() { digits.max(3) } else { 0 };
    let scale = 10f64.powi(i32::try_from(digits).unwrap());
    ((number * scale).round() - (wanted * scale).round()).abs() < 0.5
}

#[test]
fn the_cold_captures_give_the_findings_that_the_script_says() {
    let expected: Value =
        serde_json::from_str(include_str!("../goldens/expected-findings.json")).unwrap();
    let report = report([fixture("qwen-serve-0.24.4/cold")]);
    let findings = report["findings"].as_array().unwrap();
    for one in expected["findings"].as_array().unwrap() {
        let found = findings.iter().find(|found| found["code"] == one["code"]);
        let found = found.unwrap_or_else(|| panic!("no finding {}", one["code"]));
        for (key, value) in one["values"].as_object().unwrap() {
            assert!(
                agrees(&found["values"][key], value),
                "{} of {}: {} is not {value}",
                key,
                one["code"],
                found["values"][key]
            );
        }
    }
    for code in expected["absent"].as_array().unwrap() {
        assert!(
            findings.iter().all(|found| found["code"] != *code),
            "{code}"
        );
    }
    let request = named(&report["windows"], "request");
    for (stage, share) in expected["variance_share"].as_object().unwrap() {
        let found = if stage == "unattributed" {
            &request["unattributed"]
        } else {
            named(&request["stages"], stage)
        };
        assert!(agrees(&found["variance_share"], share), "{stage}");
    }
}

#[test]
fn every_finding_of_the_script_is_all_but_one_that_there_is() {
    let expected: Value =
        serde_json::from_str(include_str!("../goldens/expected-findings.json")).unwrap();
    let report = report([fixture("qwen-serve-0.24.4/cold")]);
    let listed = expected["findings"].as_array().unwrap();
    let others = report["findings"].as_array().unwrap().iter();
    let others: Vec<_> = others
        .map(|found| &found["code"])
        .filter(|code| listed.iter().all(|one| one["code"] != **code))
        .collect();
    // Where phases without start times lie is this program's own rule.
    assert_eq!(others, [&Value::from("explaining_phase")]);
}
