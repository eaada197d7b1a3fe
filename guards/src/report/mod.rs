//! Reports: a value in, text out. Nothing is judged here.

mod human;
mod json;

pub(crate) use human::write_human;
pub(crate) use json::write_json;
