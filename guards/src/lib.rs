//! Proves from the release binary what is not on a program's start path.
//!
//! A policy names start paths and what must not be on them. Four layers of
//! evidence answer, each found, absent or inconclusive: the feature-accurate
//! closure of packages, what the linker was given, what is in the binary, and
//! what can be reached in it. Reading, judging and rendering stay apart; nothing
//! here runs the program that it judges.

pub mod app;
mod binary;
mod check;
mod cli;
mod closure;
mod evidence;
pub mod exit;
mod explain;
mod finding;
#[doc(hidden)]
pub mod fuzzing;
mod layer;
mod linked;
mod packages;
mod policy;
mod present;
mod reachable;
mod report;
mod threads;
