//! Statistics against values of numpy and scipy (`goldens/make_stats.py`).

use coldpath_analyzer::stats::correlation::correlate;
use coldpath_analyzer::stats::hodges_lehmann::shift;
use coldpath_analyzer::stats::order_interval::{OrderInterval, order_interval};
use coldpath_analyzer::stats::quantile::{Definition, quantile, sorted};
use coldpath_analyzer::stats::variance::variance_share;
use coldpath_analyzer::stats::within::{holm, within};
use serde_json::Value;

fn goldens(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../goldens/stats.json")).unwrap();
    all[name]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![all[name].clone()])
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect()
}

#[track_caller]
fn close(found: f64, expected: &Value, what: &str) {
    let expected = expected.as_f64().unwrap();
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{what}: {found} is not {expected}"
    );
}

#[test]
fn quantiles_are_numpys() {
    for golden in goldens("quantiles") {
        let (x, p) = (
            sorted(&numbers(&golden["x"])),
            golden["p"].as_f64().unwrap(),
        );
        close(
            quantile(&x, p, Definition::Type7).unwrap(),
            &golden["type7"],
            "type 7",
        );
        close(
            quantile(&x, p, Definition::NearestRank).unwrap(),
            &golden["nearest_rank"],
            "nearest rank",
        );
    }
}

#[test]
fn correlations_and_slopes_are_scipys() {
    for golden in goldens("correlations") {
        let pairs: Vec<_> = numbers(&golden["x"])
            .into_iter()
            .zip(numbers(&golden["y"]))
            .collect();
        let found = correlate(&pairs).unwrap();
        close(found.pearson, &golden["pearson"], "pearson");
        close(found.pearson_ci.unwrap().0, &golden["low"], "lower end");
        close(found.pearson_ci.unwrap().1, &golden["high"], "upper end");
        close(found.spearman, &golden["spearman"], "spearman");
        close(found.slope, &golden["slope"], "slope");
    }
}

#[test]
fn order_statistics_are_those_of_the_binomial_distribution() {
    for golden in goldens("order_intervals") {
        let n = usize::try_from(golden["n"].as_u64().unwrap()).unwrap();
        let found = match order_interval(n, golden["p"].as_f64().unwrap()) {
            OrderInterval::Between { low, high } => (Value::from(low), Value::from(high)),
            OrderInterval::NeedsN(_) => (Value::Null, Value::Null),
        };
        assert_eq!(
            found,
            (golden["low"].clone(), golden["high"].clone()),
            "{golden}"
        );
    }
}

#[test]
fn hodges_lehmann_shifts_are_the_brute_force_ones() {
    for golden in goldens("hodges_lehmann") {
        let found = shift(&numbers(&golden["d"])).unwrap();
        close(found.estimate, &golden["estimate"], "estimate");
        match found.interval {
            None => assert_eq!(golden["low"], Value::Null),
            Some((low, high)) => {
                close(low, &golden["low"], "lower end");
                close(high, &golden["high"], "upper end");
            }
        }
    }
}

#[test]
fn variance_shares_are_numpys() {
    let golden = &goldens("variance_shares")[0];
    let parts: Vec<Vec<f64>> = golden["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(numbers)
        .collect();
    let total: Vec<f64> = (0..parts[0].len())
        .map(|run| parts.iter().map(|part| part[run]).sum())
        .collect();
    for (part, share) in parts.iter().zip(golden["shares"].as_array().unwrap()) {
        close(variance_share(part, &total).unwrap(), share, "share");
    }
}

#[test]
fn correlations_within_groups_are_partial_correlations() {
    for golden in goldens("within") {
        for case in golden["cases"].as_array().unwrap() {
            let groups = numbers(&case["groups"]);
            let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
            let values: Vec<(usize, f64, f64)> = groups
                .iter()
                .zip(x.iter().zip(&y))
                .map(|(group, (x, y))| (group.to_string().parse().unwrap(), *x, *y))
                .collect();
            let found = within(&values).unwrap();
            close(found.pearson, &case["pearson"], "r");
            close(found.p, &case["p"], "p");
        }
        let adjusted = holm(&numbers(&golden["raw"]));
        for (found, expected) in adjusted.iter().zip(golden["holm"].as_array().unwrap()) {
            close(*found, expected, "Holm");
        }
    }
}
