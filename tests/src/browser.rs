//! Checks in a real browser: scripts of `tests/browser` that drive Chromium.
//!
//! Where the browser or a viewer is missing a check is passed over with a loud line,
//! unless `COLDPATH_NEED_BROWSER` is set, as it is where everything is installed.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit code of a script that could not check.
const SKIPPED: i32 = 77;

/// What the script of this name in `tests/browser` printed, given `arguments`;
/// `None` when it could not check and need not.
///
/// # Panics
/// The check failed, or could not be made where it must; the script's words are in
/// the message.
#[track_caller]
pub fn in_browser<A: AsRef<OsStr>>(script: &str, arguments: &[A]) -> Option<String> {
    let output = Command::new("python3")
        // Nothing is left beside the sources.
        .arg("-B")
        .arg(folder().join(script))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    let needed = std::env::var_os("COLDPATH_NEED_BROWSER").is_some();
    if output.status.code() == Some(SKIPPED) && !needed {
        // The harness keeps what macros print of tests that pass; this is to be seen.
        let line = format!("{script}: {errors}");
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("stderr is open");
        return None;
    }
    assert!(
        output.status.success(),
        "{script} ({}): {errors}",
        output.status
    );
    Some(String::from_utf8(output.stdout).expect("a check prints UTF-8"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("browser")
}
