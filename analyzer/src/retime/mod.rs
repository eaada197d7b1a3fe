//! What a run's end would be if a stage took another time.
//!
//! [`graph`] says what must end before each activity may begin or go on, from
//! the spans of one run and the model alone; [`replay`] runs that forward with
//! other lengths; [`change`] is what is asked for (`STAGE=-50%`); [`drag`] and
//! [`slack`] are how much a stage adds to the end and how much it may grow
//! without moving it. [`activities`] reads a run into activities, [`lane`] and
//! [`causes`] are the two halves of building a graph, [`names`] finds the stages
//! that are asked for. Pure: nothing here reads a
//! clock or a file, and no span is moved but in the replay.
//!
//! The graph knows order and waiting. It does not know processors, locks or
//! caches that two stages share, nor work that a stage does in the background.

pub mod activities;
mod causes;
pub mod change;
pub mod drag;
pub mod graph;
mod lane;
pub mod names;
pub mod replay;
pub mod slack;
mod waits;

#[cfg(test)]
mod tests;
