//! HTTP as both loops see it: the head of a request, who is let in, fixed answers.
//!
//! Pure: no sockets here. The bootstrap loop and the later server decide with the
//! same [`admit`], so that a request cannot be let in by one and refused by the other.

mod admit;
mod answer;
mod head;

pub(crate) use admit::{ANY_ORIGIN, Access, Admission, Token, admit};
pub(crate) use answer::Answer;
pub(crate) use head::{Head, HeadError, Scanned, scan};

/// Largest request head, bytes: what Node's parser allowed for years, and one
/// buffer that a silent or hostile peer can make the bootstrap loop hold.
pub(crate) const HEAD_MAX_BYTES: usize = 8 * 1024;
/// Most header fields of a request.
pub(crate) const HEADERS_MAX: usize = 64;
