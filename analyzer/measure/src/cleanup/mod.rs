//! Everything that was started is ended.
//!
//! Each run carries a random token in its environment, which its descendants
//! inherit. [`sweep`] finds and ends the processes of a token and what is below
//! them; `measure` does so after each run, with the orphans that are left to it
//! ([`heirs`]), and [`watchdog`] does when `measure` itself is gone. No process is
//! ever chosen by its name or by an id that was not checked.

pub mod heirs;
pub mod note;
pub mod sweep;
pub mod token;
pub mod watchdog;
