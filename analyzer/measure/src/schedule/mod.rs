//! What is run in which order, fixed before the first run.
//!
//! A *set* holds the arms that are compared with each other; a *block* holds every
//! arm of one set once. With two arms a block is a pair, and the orders AB and BA
//! are a seeded permutation with two of each in every four blocks: over the whole
//! experiment neither arm has the better place, and the order is not the strict
//! alternation that a periodic disturbance can follow. With more arms every block
//! is an independent random permutation. The blocks of several sets are dealt out
//! evenly over the whole schedule, each by lot inside its share of it. Warm-up
//! blocks come first and are marked. Pure: no clock, no I/O.

mod rng;

pub use rng::SplitMix64;

/// Blocks that hold AB and BA equally often.
const BALANCED_BLOCKS: usize = 4;

/// One run of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Position in the schedule, from 0, warm-ups included.
    pub index: usize,
    /// Block, from 0, warm-up blocks included.
    pub block: usize,
    /// Index of the arm.
    pub arm: usize,
    /// Where in its block the run stands.
    pub place: Place,
    /// Whether the run is a warm-up and out of every statistic.
    pub phase: Phase,
}

/// Where in its block a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The only run of its block.
    Alone,
    /// In a pair whose first arm runs first.
    Ab,
    /// In a pair whose second arm runs first.
    Ba,
    /// The n-th of more than two, from 0.
    Nth(usize),
}

/// Whether a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Made first and kept out of every statistic by a rule fixed beforehand.
    Warmup,
    /// Measured.
    Measured,
}

/// The size of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of arms, at least 1.
    pub arms: usize,
    /// Warm-up blocks.
    pub warmups: usize,
    /// Measured blocks: the runs that each arm gets.
    pub runs: usize,
}

/// A block before it has its place.
struct Block {
    /// Index of the first arm of its set.
    first: usize,
    order: Vec<usize>,
    phase: Phase,
    /// Where it stands in the schedule, 0 to 1.
    key: f64,
}

/// Lays out the blocks of all sets, whose arms follow each other; the same seed
/// and sizes give the same order.
#[must_use]
pub fn lay_out(sets: &[Size], seed: u64) -> Vec<Slot> {
    let mut rng = SplitMix64::new(seed);
    let mut warmups = Vec::new();
    let mut measured = Vec::new();
    let mut first = 0;
    for set in sets {
        for (blocks, phase, into) in [
            (set.warmups, Phase::Warmup, &mut warmups),
            (set.runs, Phase::Measured, &mut measured),
        ] {
            let orders = block_orders(set.arms, blocks, &mut rng);
            into.extend(orders.into_iter().map(|order| Block {
                first,
                order,
                phase,
                key: 0.0,
            }));
        }
        first += set.arms;
    }
    if sets.len() > 1 {
        deal_out(&mut warmups, &mut rng);
        deal_out(&mut measured, &mut rng);
    }
    let mut slots = Vec::new();
    for (
        block,
        Block {
            first,
            order,
            phase,
            ..
        },
    ) in warmups.iter().chain(&measured).enumerate()
    {
        for (nth, &arm) in order.iter().enumerate() {
            slots.push(Slot {
                index: slots.len(),
                block,
                arm: first + arm,
                place: place(order, nth),
                phase: *phase,
            });
        }
    }
    slots
}

/// Gives the n-th of m blocks of a set a place by lot in the n-th m-th part of the
/// schedule, and sorts by it; a set's own blocks keep their order.
fn deal_out(blocks: &mut [Block], rng: &mut SplitMix64) {
    let mut done = 0;
    while let Some(first) = blocks.get(done).map(|block| block.first) {
        let own = blocks[done..]
            .iter()
            .take_while(|block| block.first == first)
            .count();
        for nth in 0..own {
            // 53 bits, as many as a float has.
            let lot = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            blocks[done + nth].key = (nth as f64 + lot) / own as f64;
        }
        done += own;
    }
    blocks.sort_by(|a, b| a.key.total_cmp(&b.key));
}

impl Place {
    /// Value of `coldpath.run.pair.order`: `ab`, `ba`, or the place from 0; none
    /// for a run without neighbours.
    #[must_use]
    pub fn name(self) -> Option<String> {
        match self {
            Self::Alone => None,
            Self::Ab => Some("ab".to_owned()),
            Self::Ba => Some("ba".to_owned()),
            Self::Nth(nth) => Some(nth.to_string()),
        }
    }
}

fn place(order: &[usize], nth: usize) -> Place {
    match order {
        [_] => Place::Alone,
        [0, 1] => Place::Ab,
        [_, _] => Place::Ba,
        _ => Place::Nth(nth),
    }
}

fn block_orders(arms: usize, blocks: usize, rng: &mut SplitMix64) -> Vec<Vec<usize>> {
    if arms == 2 {
        return pair_orders(blocks, rng);
    }
    (0..blocks)
        .map(|_| {
            let mut order: Vec<usize> = (0..arms).collect();
            rng.shuffle(&mut order);
            order
        })
        .collect()
}

/// AB and BA in equal number, shuffled within every four pairs. The last group
/// may be shorter; an odd one gets its extra order by lot.
fn pair_orders(pairs: usize, rng: &mut SplitMix64) -> Vec<Vec<usize>> {
    let mut orders = Vec::with_capacity(pairs);
    while orders.len() < pairs {
        let length = BALANCED_BLOCKS.min(pairs - orders.len());
        let first = rng.below(2);
        let mut group: Vec<Vec<usize>> = (0..length)
            .map(|nth| {
                let leader = (nth + first) % 2;
                vec![leader, 1 - leader]
            })
            .collect();
        rng.shuffle(&mut group);
        orders.append(&mut group);
    }
    orders
}

#[cfg(test)]
mod tests;
