//! From the first clock reading to the hand-over of a bound, serving listener.
//!
//! Nothing here knows telemetry, an async runtime, the store or an agent: what
//! began is kept as instants in a [`BootRecord`] and told later.

mod answers;
mod bind;
mod connection;
mod record;
mod serve;

pub(crate) use bind::{Bound, announce, bind};
pub(crate) use connection::{Pending, SILENCE_MIN, Unsent};
pub(crate) use record::{
    BootRecord, BootTold, HealthRecord, HealthRequest, RequestRecord, Trigger, parse_parent,
};
pub(crate) use serve::serve;
