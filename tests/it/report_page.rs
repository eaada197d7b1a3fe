//! The page of `analyze --format html` in a real browser.

use coldpath_tests::{Request, Sandbox, in_browser, programs};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes the page of `input` to `page`.
#[track_caller]
fn write_page(input: &Path, page: &Path) {
    let output = Command::new(programs().path("analyze"))
        .args(["--format", "html", "-o"])
        .arg(page)
        .arg(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn pages_stand_alone_and_fit_any_screen() {
    let sandbox = Sandbox::new();
    let daemon = sandbox.daemon().traced().start();
    daemon.get("/health").expect_status(200);
    daemon.ask(&Request::session("thread")).expect_status(200);
    daemon.stop_cleanly();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let inputs = [
        ("captures", root.join("fixtures/qwen-serve-0.24.4/cold")),
        ("pairs", root.join("fixtures/findings/pairs")),
        ("own", sandbox.trace_dir()),
    ];
    let pages = inputs.map(|(name, input)| {
        let page = sandbox.path(&format!("{name}.html"));
        write_page(&input, &page);
        page
    });
    if let Some(printed) = in_browser::<PathBuf>("report.py", &pages) {
        assert_eq!(printed.lines().count(), 3, "{printed}");
    }
}
