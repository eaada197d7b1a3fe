//! The README tells the truth: its sample report is what the program prints.

use coldpath_tests::programs;
use std::process::Command;

const README: &str = include_str!("../../README.md");

#[test]
fn the_sample_report_is_what_analyze_prints_for_the_bundled_captures() {
    let (_, after) = README
        .split_once("<!-- report:begin -->\n```text\n")
        .expect("the block begins");
    let (sample, _) = after
        .split_once("```\n<!-- report:end -->")
        .expect("the block ends");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new(programs().path("analyze"))
        .arg("fixtures/qwen-serve-0.24.4/cold")
        .current_dir(root)
        .output()
        .expect("analyze runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).expect("the report is UTF-8");
    assert!(
        printed.starts_with(sample),
        "README.md shows\n{sample}\nanalyze prints\n{printed}"
    );
}
