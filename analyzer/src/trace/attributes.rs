//! Attributes in little memory: a key and a value in sixteen bytes, of which
//! large inputs hold millions.

use std::hash::{Hash, Hasher};

use super::names::Symbol;
use super::span::Value;

/// What the bits of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Text,
    Int,
    Double,
    Bool,
    Other,
}

/// A key and its value. The halves of 64 bits need no alignment of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Packed {
    key: Symbol,
    low: u32,
    high: u32,
    kind: Kind,
}

impl Packed {
    fn new(key: Symbol, value: Value) -> Self {
        let (kind, bits) = match value {
            Value::Text(text) => (Kind::Text, u64::from(text.number())),
            Value::Int(value) => (Kind::Int, value.cast_unsigned()),
            Value::Double(value) => (Kind::Double, value.to_bits()),
            Value::Bool(value) => (Kind::Bool, u64::from(value)),
            Value::Other => (Kind::Other, 0),
        };
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
        Self {
            key,
            low: half(bits),
            high: half(bits >> 32),
            kind,
        }
    }

    fn value(self) -> Value {
        let bits = u64::from(self.high) << 32 | u64::from(self.low);
        match self.kind {
            Kind::Text => Symbol::numbered(self.low).map_or(Value::Other, Value::Text),
            Kind::Int => Value::Int(bits.cast_signed()),
            Kind::Double => Value::Double(f64::from_bits(bits)),
            Kind::Bool => Value::Bool(bits != 0),
            Kind::Other => Value::Other,
        }
    }
}

/// Attributes in the order of the source; of equal keys the first counts.
/// Equal are those with the same bits: a value that is no number is itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Box<[Packed]>);

impl Attributes {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: Symbol) -> Option<Value> {
        let found = self.0.iter().find(|packed| packed.key == key);
        found.map(|packed| packed.value())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, Value)> {
        self.0.iter().map(|packed| (packed.key, packed.value()))
    }

    /// Replaces symbols by those of another collection, which `texts` has by
    /// their places.
    pub fn retell(&mut self, texts: &[Symbol]) {
        for packed in &mut self.0 {
            let value = match packed.value() {
                Value::Text(text) => Value::Text(texts[text.place()]),
                other => other,
            };
            *packed = Packed::new(texts[packed.key.place()], value);
        }
    }
}

impl Hash for Attributes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal bits are equal words; no need to tell the kinds apart.
        for packed in &self.0 {
            state.write_u64(u64::from(packed.key.number()) << 32 | u64::from(packed.low));
            state.write_u32(packed.high);
        }
    }
}

impl FromIterator<(Symbol, Value)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (Symbol, Value)>>(pairs: I) -> Self {
        let packed = pairs
            .into_iter()
            .map(|(key, value)| Packed::new(key, value));
        Self(packed.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::*;

    #[test]
    fn a_value_comes_out_as_it_went_in() {
        let mut names = Names::default();
        let key = names.intern("key");
        let values = [
            Value::Text(names.intern("text")),
            Value::Int(i64::MIN),
            Value::Int(-1),
            Value::Double(-0.1),
            Value::Double(f64::INFINITY),
            Value::Bool(true),
            Value::Other,
        ];
        for value in values {
            let kept: Attributes = [(key, value)].into_iter().collect();
            assert_eq!(kept.get(key), Some(value));
        }
    }

    #[test]
    fn an_attribute_takes_sixteen_bytes() {
        assert_eq!(size_of::<Packed>(), 16);
    }

    #[test]
    fn of_equal_keys_the_first_counts() {
        let mut names = Names::default();
        let key = names.intern("key");
        let pairs = [(key, Value::Int(1)), (key, Value::Int(2))];
        let kept: Attributes = pairs.into_iter().collect();
        assert_eq!(kept.get(key), Some(Value::Int(1)));
    }
}
