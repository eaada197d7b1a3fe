//! What else could explain a slow run: the state of the host around it.
//!
//! Rates are taken over the timed window (spawn to the end of the first session,
//! or to the stop). Figures of the program's own tree are *mediators*: the arm
//! itself causes them, so they can say how a run was slow and never excuse it;
//! their names begin with `tree.`. What cannot be had is absent with a reason.

use super::tree::Tree;
use coldpath_trace_format::emit::MonoNanos;
use std::time::Duration;

/// Fewest ticks, summed over processors, for which a share of ticks is given:
/// below, one tick is more than one percent.
const TICKS_MIN: u64 = 100;

/// One covariate of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariate {
    /// Name below `coldpath.host.`.
    pub name: &'static str,
    /// Its value, or why there is none.
    pub value: Result<Value, String>,
}

/// A covariate's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A finite ratio or mean.
    Float(f64),
    /// A count.
    Count(u64),
}

/// Share of the window in which some task of the host waited for a processor, 0 to 1.
pub const CPU_PRESSURE: &str = "cpu_pressure";
/// One-minute load average before the run.
pub const LOAD: &str = "loadavg_1m";
/// Mean frequency of the processors before the run, kHz.
pub const FREQUENCY: &str = "cpu_khz";
/// Share of the processors' time over the whole run that the hypervisor took, 0 to 1.
pub const STEAL: &str = "steal_share";
/// Share of the target's own files in the page cache before the run, 0 to 1.
pub const CACHED: &str = "target_cached_share";
/// Mediator: time the tree's threads waited for a processor ÷ window; may exceed 1.
pub const RUN_QUEUE: &str = "tree.runq_ratio";
/// Mediator: major faults of the tree up to the end of the window.
pub const MAJOR_FAULTS: &str = "tree.major_faults";
/// Mediator: bytes that the tree read from storage up to the end of the window.
pub const READ_BYTES: &str = "tree.read_bytes";

/// The host just before a run.
#[derive(Clone, Debug)]
pub struct Before {
    pressure_us: Result<u64, String>,
    ticks: Result<Ticks, String>,
    load: Result<f64, String>,
    khz: Result<f64, String>,
}

/// The host and the tree at the end of the timed window.
#[derive(Clone, Debug)]
pub struct AtClose {
    at: MonoNanos,
    pressure_us: Result<u64, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    total: u64,
    steal: u64,
}

impl Before {
    /// Reads the host.
    #[must_use]
    pub fn read() -> Self {
        Self {
            load: read("/proc/loadavg", parse_load),
            khz: read_frequency(),
            ticks: read("/proc/stat", parse_ticks),
            pressure_us: read("/proc/pressure/cpu", parse_pressure),
        }
    }
}

impl AtClose {
    /// Reads the host.
    #[must_use]
    pub fn read() -> Self {
        Self {
            at: MonoNanos::now(),
            pressure_us: read("/proc/pressure/cpu", parse_pressure),
        }
    }
}

/// The covariates of a run that was spawned at `spawned`; to be called when the
/// program has ended. `close` is absent where the run never got there.
#[must_use]
pub fn of_run(
    before: &Before,
    spawned: MonoNanos,
    close: Option<(&AtClose, &Tree)>,
) -> Vec<Covariate> {
    let mut list = vec![
        Covariate {
            name: LOAD,
            value: before.load.clone().map(Value::Float),
        },
        Covariate {
            name: FREQUENCY,
            value: before.khz.clone().map(Value::Float),
        },
        Covariate {
            name: STEAL,
            value: steal(&before.ticks, &read("/proc/stat", parse_ticks)),
        },
    ];
    let no_window = || Err("the run ended inside its window".to_owned());
    let (pressure, run_queue, faults, bytes) = match close {
        None => (no_window(), no_window(), no_window(), no_window()),
        Some((close, tree)) => {
            let window = close.at.since(spawned);
            (
                pressure_share(&before.pressure_us, &close.pressure_us, window),
                run_queue(tree, window),
                Ok(Value::Count(
                    tree.processes.iter().map(|one| one.major_faults).sum(),
                )),
                sum(tree, |one| one.read_bytes.clone()).map(Value::Count),
            )
        }
    };
    for (name, value) in [
        (CPU_PRESSURE, pressure),
        (RUN_QUEUE, run_queue),
        (MAJOR_FAULTS, faults),
        (READ_BYTES, bytes),
    ] {
        list.push(Covariate { name, value });
    }
    list
}

fn read<T>(path: &str, parse: fn(&str) -> Option<T>) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    parse(&text).ok_or_else(|| format!("{path}: not understood"))
}

fn read_frequency() -> Result<f64, String> {
    let none = || "no cpufreq on this host".to_owned();
    let mut readings = Vec::new();
    for entry in std::fs::read_dir("/sys/devices/system/cpu").map_err(|_| none())? {
        let Ok(entry) = entry else { continue };
        let path = entry.path().join("cpufreq/scaling_cur_freq");
        let khz = std::fs::read_to_string(path).ok();
        readings.extend(khz.and_then(|text| text.trim().parse::<f64>().ok()));
    }
    if readings.is_empty() {
        return Err(none());
    }
    Ok(readings.iter().sum::<f64>() / readings.len() as f64)
}

fn parse_load(text: &str) -> Option<f64> {
    let load: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    load.is_finite().then_some(load)
}

/// `total` of the `some` line, microseconds.
fn parse_pressure(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Sums the first eight columns of the `cpu` line; guest time is inside user time.
fn parse_ticks(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let columns: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    Some(Ticks {
        total: columns.iter().sum(),
        steal: *columns.get(7)?,
    })
}

fn steal(before: &Result<Ticks, String>, after: &Result<Ticks, String>) -> Result<Value, String> {
    let (before, after) = (before.as_ref()?, after.as_ref()?);
    let total = after.total.saturating_sub(before.total);
    if total < TICKS_MIN {
        return Err(format!("the run lasted {total} ticks, under {TICKS_MIN}"));
    }
    let steal = after.steal.saturating_sub(before.steal);
    Ok(Value::Float(steal as f64 / total as f64))
}

fn pressure_share(
    before: &Result<u64, String>,
    after: &Result<u64, String>,
    window: Duration,
) -> Result<Value, String> {
    let waited = after.as_ref()?.saturating_sub(*before.as_ref()?);
    ratio(Duration::from_micros(waited), window)
}

fn run_queue(tree: &Tree, window: Duration) -> Result<Value, String> {
    let waited = sum(tree, |one| one.run_queue_ns.clone())?;
    ratio(Duration::from_nanos(waited), window)
}

fn ratio(part: Duration, window: Duration) -> Result<Value, String> {
    if window.is_zero() {
        return Err("the window is empty".to_owned());
    }
    Ok(Value::Float(part.as_secs_f64() / window.as_secs_f64()))
}

fn sum(
    tree: &Tree,
    figure: impl Fn(&super::tree::TreeProcess) -> Result<u64, String>,
) -> Result<u64, String> {
    tree.processes.iter().map(figure).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_texts_are_read() {
        assert_eq!(parse_load("0.07 0.17 0.11 1/84 9489\n"), Some(0.07));
        let pressure = "some avg10=0.14 avg60=0.48 avg300=0.81 total=11805089\n\
                        full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_pressure(pressure), Some(11_805_089));
        assert_eq!(parse_pressure("full total=7\n"), None);
        let stat = "cpu  10 20 30 400 5 6 7 8 900 900\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let expected = Ticks {
            total: 486,
            steal: 8,
        };
        assert_eq!(parse_ticks(stat), Some(expected));
        assert_eq!(parse_ticks("cpu  1 2 3\n"), None);
    }

    #[test]
    fn a_share_of_few_ticks_is_not_given() {
        let before = Ok(Ticks {
            total: 1_000,
            steal: 10,
        });
        let after = |total, steal| Ok(Ticks { total, steal });
        assert_eq!(
            steal(&before, &after(1_099, 11)),
            Err("the run lasted 99 ticks, under 100".to_owned())
        );
        assert_eq!(steal(&before, &after(1_200, 60)), Ok(Value::Float(0.25)));
        let refused = Err("/proc/stat: denied".to_owned());
        assert_eq!(
            steal(&refused, &after(1_200, 60)),
            Err("/proc/stat: denied".to_owned())
        );
    }

    #[test]
    fn pressure_is_a_share_of_the_window() {
        let window = Duration::from_millis(2);
        assert_eq!(
            pressure_share(&Ok(1_000), &Ok(1_500), window),
            Ok(Value::Float(0.25))
        );
        assert!(pressure_share(&Ok(0), &Ok(1), Duration::ZERO).is_err());
    }
}
