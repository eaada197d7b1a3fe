//! Models: what the spans of one kind of daemon mean, as data.
//!
//! [`schema`] is the shape of a model file with its rules in [`chain_rules`],
//! [`window_rules`] and [`metric_rules`], [`builtin`] the models that come
//! with the program, [`lens`] a dataset seen through a model. No stage name
//! stands in code.

pub mod builtin;
pub mod by_kind;
pub mod chain_rules;
pub mod lens;
pub mod matches;
pub mod metric_rules;
pub mod schema;
pub mod window_rules;
