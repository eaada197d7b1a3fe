//! Error rates of the verdicts, measured: a seeded simulation of whole
//! experiments whose true effect lies exactly at the margin.
//!
//! A run takes common noise of its pair's time and noise of its own; orders are
//! balanced in random blocks of four pairs, as `measure pair` makes them. AR(1)
//! noise runs along the runs of the experiment in their order of time. Bounds are
//! those of the procedure's description plus three standard errors of the
//! simulation. 20,000 experiments for each noise and size; the seed of each is in
//! its row.

use std::thread;

use coldpath_analyzer::gate::rule::{Kind, Verdict, decide};
use coldpath_analyzer::stats::paired::{Ranks, paired_shift};
use coldpath_analyzer::stats::power::{Power, detectable};
use coldpath_analyzer::stats::quantile_change::{Places, quantile_change};
use coldpath_analyzer::stats::signed_rank::Tail;

const REPEATS: u32 = 20_000;
/// True effect and margin of superiority; in units of the noise's deviation it
/// is one half.
const EFFECT: f64 = -10.0;
/// True effect and margin of non-inferiority.
const ALLOWED: f64 = 5.0;

/// xoshiro256++ (Blackman and Vigna 2019), seeded by `SplitMix64`.
struct Random([u64; 4]);

impl Random {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self([next(), next(), next(), next()])
    }

    fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let found = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        found
    }

    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[derive(Clone, Copy, Debug)]
enum Noise {
    Normal,
    /// Student's t with three degrees of freedom.
    T3,
    /// Log-normal, σ = 0.8: skewness 3.7.
    Skewed,
    /// Autoregressive along the runs, φ as given.
    Ar(f64),
}

impl Noise {
    fn independent(self) -> bool {
        !matches!(self, Self::Ar(_))
    }

    /// One draw with a spread of about 1; `last` is the one before.
    fn draw(self, random: &mut Random, last: &mut f64) -> f64 {
        match self {
            Self::Normal => random.normal(),
            Self::T3 => {
                let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                random.normal() / (squares / 3.0).sqrt()
            }
            Self::Skewed => (0.8 * random.normal()).exp(),
            Self::Ar(phi) => {
                *last = phi * *last + (1.0 - phi * phi).sqrt() * random.normal();
                *last
            }
        }
    }
}

/// One experiment: (control, candidate) of each pair, the candidate shifted.
fn experiment(noise: Noise, n: usize, effect: f64, random: &mut Random) -> Vec<(f64, f64)> {
    let mut last = random.normal();
    let mut pairs = Vec::with_capacity(n);
    let mut orders = Vec::new();
    for _ in 0..n {
        if orders.is_empty() {
            // Two of each order in a random sequence.
            orders = vec![true, true, false, false];
            for at in (1..4).rev() {
                orders.swap(
                    at,
                    usize::try_from(random.bits() % (at as u64 + 1)).unwrap(),
                );
            }
        }
        let control_first = orders.pop().unwrap();
        let common = if noise.independent() {
            15.0 * random.normal()
        } else {
            0.0
        };
        let mut run = || common + 20.0 * noise.draw(random, &mut last);
        let (first, second) = (run(), run());
        let (control, candidate) = if control_first {
            (first, second)
        } else {
            (second, first)
        };
        pairs.push((control, candidate + effect));
    }
    pairs
}

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    superior: u32,
    not_superior: u32,
    no_worse: u32,
    worse: u32,
    covered: u32,
    /// The same for P50 and P95 as non-inferiority at the margin.
    p50_no_worse: u32,
    p95_no_worse: u32,
    /// Identical arms that passed superiority at the minimum detectable effect.
    placebo_superior: u32,
}

impl std::ops::Add for Counts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            superior: self.superior + other.superior,
            not_superior: self.not_superior + other.not_superior,
            no_worse: self.no_worse + other.no_worse,
            worse: self.worse + other.worse,
            covered: self.covered + other.covered,
            p50_no_worse: self.p50_no_worse + other.p50_no_worse,
            p95_no_worse: self.p95_no_worse + other.p95_no_worse,
            placebo_superior: self.placebo_superior + other.placebo_superior,
        }
    }
}

fn simulate(noise: Noise, n: usize, seed: u64, repeats: u32) -> Counts {
    let mut random = Random::new(seed);
    let ranks = Ranks::new(n);
    let (median, tail) = (Places::new(n, 0.5), Places::new(n, 0.95));
    // The noise of a difference: 20 · √2, less where neighbours are alike.
    let spread = match noise {
        Noise::Normal => 20.0 * 2f64.sqrt(),
        Noise::T3 => 20.0 * 2f64.sqrt() * 1.6,
        Noise::Skewed => 20.0 * 2f64.sqrt() * 1.2,
        Noise::Ar(phi) => 20.0 * (2.0 * (1.0 - phi)).sqrt(),
    };
    let visible = detectable(
        spread / (n as f64).sqrt(),
        Tail::TwoAndAHalf,
        Power::NinetyFive,
    );
    let mut counts = Counts::default();
    for _ in 0..repeats {
        let pairs = experiment(noise, n, 0.0, &mut random);
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
        // The shift moves with its sample, so that one draw serves all margins.
        let none = paired_shift(&differences, ranks).unwrap();
        let shifted = |by: f64| {
            let move_ends = |(low, high): (f64, f64)| (low + by, high + by);
            coldpath_analyzer::stats::paired::Estimate {
                value: none.value + by,
                two_sided: none.two_sided.map(move_ends),
                one_sided: none.one_sided.map(move_ends),
            }
        };
        let (gain, loss) = (shifted(EFFECT), shifted(ALLOWED));
        let superior = decide(Kind::Superiority, -EFFECT, &gain);
        counts.superior += u32::from(superior == Verdict::Pass);
        counts.not_superior += u32::from(superior == Verdict::Fail);
        let no_worse = decide(Kind::NonInferiority, ALLOWED, &loss);
        counts.no_worse += u32::from(no_worse == Verdict::Pass);
        counts.worse += u32::from(no_worse == Verdict::Fail);
        let (low, high) = none.two_sided.unwrap();
        counts.covered += u32::from(low <= 0.0 && 0.0 <= high);
        let placebo = decide(Kind::Superiority, visible, &none);
        counts.placebo_superior += u32::from(placebo == Verdict::Pass);
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(a, b)| (*a, b + ALLOWED)).unzip();
        let passes = |places| {
            let found = quantile_change(&a, &b, places).unwrap();
            u32::from(decide(Kind::NonInferiority, ALLOWED, &found) == Verdict::Pass)
        };
        counts.p50_no_worse += passes(median);
        counts.p95_no_worse += passes(tail);
    }
    counts
}

/// A rate, its bound, and three standard errors of the simulation.
#[track_caller]
fn within(what: &str, count: u32, bound: f64) {
    let n = f64::from(REPEATS);
    let rate = f64::from(count) / n;
    let slack = 3.0 * (bound * (1.0 - bound) / n).sqrt();
    assert!(
        rate <= bound + slack,
        "{what}: {rate:.4} > {bound} + {slack:.4}"
    );
}

fn check(noise: Noise, n: usize, seed: u64) {
    let half = REPEATS / 2;
    let counts = thread::scope(|scope| {
        let other = scope.spawn(move || simulate(noise, n, seed + 1, half));
        simulate(noise, n, seed, half) + other.join().unwrap()
    });
    let name = |what: &str| format!("{what}, {noise:?}, n = {n}, seed {seed}");
    let (two, one) = if noise.independent() {
        (0.025, 0.05)
    } else {
        (0.035, 0.065)
    };
    within(&name("false PASS of superiority"), counts.superior, two);
    within(&name("false FAIL of superiority"), counts.not_superior, two);
    within(&name("false PASS of non-inferiority"), counts.no_worse, one);
    within(&name("false FAIL of non-inferiority"), counts.worse, one);
    within(&name("false PASS on P50"), counts.p50_no_worse, one);
    within(&name("false PASS on P95"), counts.p95_no_worse, one);
    let coverage = f64::from(counts.covered) / f64::from(REPEATS);
    assert!(
        (0.93..=0.97).contains(&coverage),
        "{}: {coverage}",
        name("coverage")
    );
    assert_eq!(
        counts.placebo_superior,
        0,
        "{}",
        name("identical arms pass superiority")
    );
}

#[test]
fn normal_noise_keeps_the_error_rates() {
    for (n, seed) in [(12, 1012), (30, 1030), (60, 1060)] {
        check(Noise::Normal, n, seed);
    }
}

#[test]
fn heavy_tails_keep_the_error_rates() {
    for (n, seed) in [(12, 2012), (30, 2030), (60, 2060)] {
        check(Noise::T3, n, seed);
    }
}

#[test]
fn skewed_noise_keeps_the_error_rates() {
    for (n, seed) in [(12, 3012), (30, 3030), (60, 3060)] {
        check(Noise::Skewed, n, seed);
    }
}

#[test]
fn autocorrelated_noise_keeps_the_error_rates() {
    for (n, seed) in [(12, 4012), (30, 4030), (60, 4060)] {
        check(Noise::Ar(0.3), n, seed);
        check(Noise::Ar(0.6), n, seed + 500);
    }
}
