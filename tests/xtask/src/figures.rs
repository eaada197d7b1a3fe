//! Figures of a JSON report of `analyze`, read behind words of it.
//!
//! The keys of a report stand in a stated order, so that a figure is found by the
//! words before it; this crate has no parser. Computes nothing.

/// An estimate with its interval, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) middle: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What stands behind the last of some words, each looked for behind the one before.
pub(crate) fn behind<'t>(text: &'t str, words: &[&str]) -> Option<&'t str> {
    words
        .iter()
        .try_fold(text, |text, word| Some(text.split_once(word)?.1))
}

/// The number at the start of a text.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|char: char| !(char.is_ascii_digit() || "+-.eE".contains(char)))
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The first shift with its interval in a text.
pub(crate) fn shift(text: &str) -> Option<Range> {
    let text = behind(text, &["\"shift\""])?;
    let of = |key: &str| number(behind(text, &[key])?);
    Some(Range {
        middle: of("\"estimate\":")?,
        low: of("\"low\":")?,
        high: of("\"high\":")?,
    })
}

/// The shift of a metric from one cohort to another, whichever of them the report
/// takes as the control.
pub(crate) fn shift_between(report: &str, metric: &str, from: &str, to: &str) -> Option<Range> {
    let [metric, from, to] = [metric, from, to].map(|text| format!("\"{text}\""));
    let mut rest = behind(report, &["\"comparisons\": ["])?;
    loop {
        rest = behind(rest, &["\"kind\": \"metric\"", "\"metric\": "])?;
        let [control, candidate] = ["\"control\": ", "\"candidate\": "]
            .map(|key| behind(rest, &[key]).unwrap_or_default());
        let is = |control_is: &str, candidate_is: &str| {
            control.starts_with(control_is) && candidate.starts_with(candidate_is)
        };
        if !rest.starts_with(&metric) {
            continue;
        }
        if is(&from, &to) {
            return shift(rest);
        }
        if is(&to, &from) {
            let Range { middle, low, high } = shift(rest)?;
            return Some(Range {
                middle: -middle,
                low: -high,
                high: -low,
            });
        }
    }
}

/// A figure and the interval that stands under two keys of a prediction.
pub(crate) fn prediction(
    report: &str,
    cohort: &str,
    metric: &str,
    figure: &str,
    interval: &str,
) -> Option<Range> {
    let own = [
        "\"dependency\": [",
        &format!("\"cohort\": \"{cohort}\""),
        "\"predictions\"",
        &format!("\"name\": \"{metric}\""),
    ];
    let own = behind(report, &own)?;
    let (low, rest) = behind(own, &[&format!("\"{interval}\": [")])?.split_once(',')?;
    Some(Range {
        middle: number(behind(own, &[&format!("\"{figure}\":")])?)?,
        low: number(low)?,
        high: number(rest)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
  "comparisons": [
    { "kind": "metric", "metric": "health", "unit": "ms", "control": "a", "candidate": "b",
      "shift": { "estimate": 9.0, "low": 1.0, "high": 10.0 } },
    { "kind": "metric", "metric": "total", "unit": "ms", "control": "a", "candidate": "c",
      "shift": { "estimate": 7.0, "low": 6.0, "high": 8.5 } },
    { "kind": "metric", "metric": "total", "unit": "ms", "control": "a", "candidate": "b",
      "shift": { "estimate": -5.25, "low": -6.5, "high": 4.5 } }
  ],
  "dependency": [ { "cohort": "b", "predictions": [
      { "name": "total", "predicted_p50": 2.5, "predicted_ci": [ 2.25, 3.5 ] } ] } ]
}"#;

    #[test]
    fn a_shift_is_found_by_its_cohorts_in_either_direction() {
        let check = |from, to, expected: Option<[f64; 3]>| {
            let found = shift_between(REPORT, "total", from, to);
            let found = found.map(|one| [one.middle, one.low, one.high]);
            assert_eq!(found, expected, "{from} {to}");
        };
        check("a", "b", Some([-5.25, -6.5, 4.5]));
        check("b", "a", Some([5.25, -4.5, 6.5]));
        check("a", "c", Some([7.0, 6.0, 8.5]));
        check("b", "c", None);
    }

    #[test]
    fn a_prediction_is_that_of_its_cohort_and_metric() {
        let found = prediction(REPORT, "b", "total", "predicted_p50", "predicted_ci");
        let expected = Range {
            middle: 2.5,
            low: 2.25,
            high: 3.5,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(prediction(REPORT, "a", "total", "p50", "ci"), None);
    }
}
