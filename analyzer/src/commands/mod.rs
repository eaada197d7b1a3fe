//! The verbs that compare two arms: arguments in, document out, exit code back.
//! Files are read here and nowhere below; nothing is computed here.

mod args;
mod read;
mod verbs;

pub(crate) use verbs::{NAMES, run};
