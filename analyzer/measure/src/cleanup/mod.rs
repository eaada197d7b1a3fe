//! Everything that was started is ended.
//!
//! Each run carries a random token in its environment, which its descendants
//! inherit. [`sweep`] finds and ends the processes of a token; `measure` does so
//! after each run, and [`watchdog`] does when `measure` itself is gone. No
//! process is ever chosen by its name or by an id that was not checked.

pub mod sweep;
pub mod token;
pub mod watchdog;
