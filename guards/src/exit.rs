//! Exit codes of `guard`. One place, so that scripts and tests agree on them.
//!
//! A violation outranks what could not be judged: it is certain, the other is not.

/// Every layer that the policy asks for answers, and nothing denied was found.
pub const OK: u8 = 0;
/// Something denied was found, or an exemption of the policy no longer holds.
pub const VIOLATED: u8 = 1;
/// Wrong usage, a policy that is not one, or an input that cannot be read.
pub const USAGE: u8 = 2;
/// A layer cannot answer: stripped without a signal, a missing root, unlike twins.
pub const CANNOT_JUDGE: u8 = 3;
/// A defect of this program.
pub const INTERNAL: u8 = 4;
