//! The page cache state of a program's own files, before a run: evicted if so
//! asked, and read.
//!
//! Eviction is `posix_fadvise(DONTNEED)`, which leaves pages that are mapped or
//! dirty; what was reached is therefore read afterwards, by `fincore` of
//! util-linux, because the standard ways to ask need a memory map. Outside of
//! every timed window.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is done to the target's files before each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCache {
    /// Nothing; their state is read.
    AsIs,
    /// They are evicted, and their state is read.
    EvictTarget,
}

impl PageCache {
    /// Name on the command line and in the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsIs => "as-is",
            Self::EvictTarget => "evict-target",
        }
    }
}

/// Asks the kernel to forget the clean pages of these files. One that cannot be
/// opened is left alone; the reading afterwards tells.
pub fn evict(files: &[PathBuf]) {
    for path in files {
        if let Ok(file) = std::fs::File::open(path) {
            let whole = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            // Advice that is not taken shows in the reading.
            let _ = whole;
        }
    }
}

/// Share of the files' bytes that are in the page cache, 0 to 1.
///
/// # Errors
/// There is no `fincore`, or it says something else.
pub fn cached_share(files: &[PathBuf]) -> Result<f64, String> {
    if files.is_empty() {
        return Err("no file of the target is known".to_owned());
    }
    let output = Command::new(fincore()?)
        .args(["--bytes", "--noheadings", "--raw", "--output", "RES,SIZE"])
        .args(files)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("fincore: {error}"))?;
    share(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| "fincore said nothing that is understood".to_owned())
}

/// An absolute path: a bare name would make the standard library fork.
fn fincore() -> Result<&'static Path, String> {
    ["/usr/bin/fincore", "/bin/fincore"]
        .into_iter()
        .map(Path::new)
        .find(|path| path.exists())
        .ok_or_else(|| "no fincore (util-linux) on this host".to_owned())
}

/// Lines of resident and whole bytes. Residency is counted in whole pages, so a
/// file's is cut at its size.
fn share(text: &str) -> Option<f64> {
    let (mut resident, mut size) = (0_u64, 0_u64);
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let here: u64 = fields.next()?.parse().ok()?;
        let whole: u64 = fields.next()?.parse().ok()?;
        resident = resident.saturating_add(here.min(whole));
        size = size.saturating_add(whole);
    }
    (size > 0).then(|| resident as f64 / size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_over_all_files_and_pages_do_not_exceed_a_file() {
        assert_eq!(share("4096 100\n0 300\n"), Some(0.25));
        assert_eq!(share("8192 16384\n"), Some(0.5));
        assert_eq!(share(""), None);
        assert_eq!(share("x 1\n"), None);
        assert_eq!(share("0 0\n"), None);
    }
}
