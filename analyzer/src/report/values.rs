//! Values as reports print them: amounts in their unit, objects whose keys keep
//! their order, ratios without the last bits of a float.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::units::Nanos;

/// A value in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A time, printed in milliseconds.
    Time(Nanos),
    /// A size in bytes.
    Bytes(i64),
    /// A part of the whole in millionths, printed as 0..=1.
    Ratio(i64),
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Time(nanos) => nanos.serialize(serializer),
            Self::Bytes(bytes) => serializer.serialize_i64(*bytes),
            Self::Ratio(millionths) => serializer.serialize_f64(*millionths as f64 / 1e6),
        }
    }
}

/// Pairs in a stated order, printed as a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered<V>(pub Vec<(String, V)>);

impl<V: Serialize> Serialize for Ordered<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A ratio rounded to a millionth, so that the last bits of a float do not show.
#[must_use]
pub fn millionth(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    // Minus zero would print as `-0.0`.
    if rounded == 0.0 { 0.0 } else { rounded }
}
