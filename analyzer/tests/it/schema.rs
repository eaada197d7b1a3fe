//! Reports against `docs/report-schema.json`, by a small checker of the schema
//! words that it uses. An unknown word in the schema is an error of the test.

use serde_json::{Map, Value};

use crate::support::{fixture, report};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/report-schema.json")).unwrap()
}

/// Words that say something to people only.
const NOTES: [&str; 5] = ["$schema", "$defs", "title", "description", "minItems"];

#[track_caller]
pub(crate) fn check(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    for (word, rule) in schema.as_object().unwrap() {
        let holds = match word.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().trim_start_matches("#/$defs/");
                check(root, &root["$defs"][name], value, path)?;
                true
            }
            "type" => one_or_many(rule).any(|name| is_a(value, name)),
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "anyOf" => rule
                .as_array()
                .unwrap()
                .iter()
                .any(|one| check(root, one, value, path).is_ok()),
            "required" => value.as_object().is_none_or(|map| {
                rule.as_array()
                    .unwrap()
                    .iter()
                    .all(|key| map.contains_key(key.as_str().unwrap()))
            }),
            "properties" => {
                for (key, inner) in value.as_object().unwrap_or(&Map::new()) {
                    if let Some(rule) = rule.get(key) {
                        check(root, rule, inner, &format!("{path}/{key}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties");
                for (key, inner) in value.as_object().unwrap_or(&Map::new()) {
                    let declared = known.is_some_and(|known| known.get(key).is_some());
                    match rule {
                        Value::Bool(false) if !declared => {
                            return Err(format!("{path}/{key} is not in the schema"));
                        }
                        Value::Object(_) => check(root, rule, inner, &format!("{path}/{key}"))?,
                        _ => {}
                    }
                }
                true
            }
            "items" => {
                for (index, inner) in value.as_array().unwrap_or(&Vec::new()).iter().enumerate() {
                    check(root, rule, inner, &format!("{path}/{index}"))?;
                }
                true
            }
            "maxItems" => value
                .as_array()
                .is_none_or(|list| list.len() as u64 == rule.as_u64().unwrap()),
            note => {
                assert!(NOTES.contains(&note), "the checker does not know `{note}`");
                true
            }
        };
        if !holds {
            return Err(format!("{path}: {value} breaks {word} {rule}"));
        }
    }
    Ok(())
}

fn one_or_many(rule: &Value) -> impl Iterator<Item = &str> {
    let many = rule
        .as_array()
        .map_or_else(|| vec![rule], |list| list.iter().collect());
    many.into_iter().map(|name| name.as_str().unwrap())
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type {other}"),
    }
}

#[test]
fn every_report_is_what_the_schema_says() {
    let schema = schema();
    let mut inputs = vec![
        fixture("qwen-serve-0.24.4/cold"),
        fixture("coldpath/valid/one-run"),
    ];
    for folder in ["coldpath/valid", "coldpath/invalid"] {
        let files = std::fs::read_dir(fixture(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        inputs.extend(files.filter(|path| path.is_file()));
    }
    for input in inputs {
        let found = check(&schema, &schema, &report([&input]), "");
        assert_eq!(found, Ok(()), "{}", input.display());
    }
}

#[test]
fn predictions_are_what_the_schema_says() {
    let schema = schema();
    for (input, change) in [
        (fixture("qwen-serve-0.24.4/cold"), "acp_import=-50%"),
        (fixture("coldpath/valid/one-run"), "channel.spawn=0"),
    ] {
        let input = input.to_str().unwrap();
        let found = report(["--drag", "--what-if", change, input]);
        let dependency = &found["dependency"][0];
        assert!(!dependency["stages"].as_array().unwrap().is_empty());
        assert!(!dependency["predictions"].as_array().unwrap().is_empty());
        assert_eq!(check(&schema, &schema, &found, ""), Ok(()), "{input}");
    }
}

#[test]
fn the_checker_refuses_what_the_schema_forbids() {
    let schema = schema();
    let good = report([fixture("coldpath/valid/one-run")]);
    let mut extra = good.clone();
    extra["runs"]["extra"] = 1.into();
    assert!(
        check(&schema, &schema, &extra, "")
            .unwrap_err()
            .contains("/runs/extra")
    );
    let mut text = good.clone();
    text["metrics"][0]["p50"] = "1".into();
    assert!(
        check(&schema, &schema, &text, "")
            .unwrap_err()
            .contains("/metrics/0/p50")
    );
    let mut missing = good;
    missing.as_object_mut().unwrap().remove("findings");
    assert!(check(&schema, &schema, &missing, "").is_err());
}
