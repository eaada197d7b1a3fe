//! What is run in which order, fixed before the first run.
//!
//! A *block* holds every arm once. With two arms a block is a pair, and the
//! orders AB and BA are a seeded permutation with two of each in every four
//! blocks: over the whole experiment neither arm has the better place, and the
//! order is not the strict alternation that a periodic disturbance can follow.
//! With more arms every block is an independent random permutation. Warm-up
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

/// How many blocks of how many arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of arms, at least 1.
    pub arms: usize,
    /// Warm-up blocks.
    pub warmups: usize,
    /// Measured blocks: the runs that each arm gets.
    pub runs: usize,
}

/// Lays out `warmups + runs` blocks; the same seed and size give the same order.
#[must_use]
pub fn lay_out(size: Size, seed: u64) -> Vec<Slot> {
    let mut rng = SplitMix64::new(seed);
    let mut orders = block_orders(size.arms, size.warmups, &mut rng);
    orders.extend(block_orders(size.arms, size.runs, &mut rng));
    let mut slots = Vec::with_capacity(orders.len() * size.arms);
    for (block, order) in orders.iter().enumerate() {
        for (nth, &arm) in order.iter().enumerate() {
            slots.push(Slot {
                index: slots.len(),
                block,
                arm,
                place: place(order, nth),
                phase: if block < size.warmups {
                    Phase::Warmup
                } else {
                    Phase::Measured
                },
            });
        }
    }
    slots
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
