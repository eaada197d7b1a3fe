//! Models: what the spans of one kind of daemon mean, as data.
//!
//! [`schema`] is the shape of a model file, [`builtin`] the models that come
//! with the program, [`lens`] a dataset seen through a model. No stage name
//! stands in code.

pub mod builtin;
pub mod lens;
pub mod schema;
