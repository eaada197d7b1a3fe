//! What an experiment ran on, for its manifest.

use crate::units::Bytes;

/// This host, as far as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescription {
    /// Model of the first processor.
    pub cpu_model: Option<String>,
    /// Processors that this process may run on.
    pub cores: Option<usize>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Memory.
    pub memory: Option<Bytes>,
    /// Random id of this boot.
    pub boot_id: Option<String>,
}

impl HostDescription {
    /// Reads it.
    #[must_use]
    pub fn read() -> Self {
        let file = |path: &str| std::fs::read_to_string(path).ok();
        Self {
            cpu_model: file("/proc/cpuinfo").and_then(|text| cpu_model(&text)),
            cores: std::thread::available_parallelism()
                .ok()
                .map(std::num::NonZero::get),
            kernel: file("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            memory: file("/proc/meminfo").and_then(|text| memory(&text)),
            boot_id: file("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'))
        .map(|(_, model)| model.trim().to_owned())
}

fn memory(meminfo: &str) -> Option<Bytes> {
    let rest = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Bytes::from_kib(kib))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_and_memory_are_read_from_the_kernel_s_text() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2.60GHz\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("Some CPU @ 2.60GHz"));
        assert_eq!(cpu_model("Hardware : x\n"), None);
        let meminfo = "MemTotal:        4026532 kB\nMemFree: 1 kB\n";
        assert_eq!(memory(meminfo).map(Bytes::get), Some(4_123_168_768));
    }
}
