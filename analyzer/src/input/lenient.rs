//! Values that senders write in several ways: ids, 64-bit numbers, texts, nulls.
//!
//! Each type reads every form that was met and keeps what it could not read as
//! a mark, so that one bad field does not cost the record.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::room;

/// Text that borrows from the input unless it held escapes.
#[derive(Clone, Debug, Default)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }
        }
        deserializer.deserialize_any(V).map(Text)
    }
}

/// A hexadecimal id of `N` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Id<const N: usize> {
    /// Absent, null, empty or all zeros.
    #[default]
    Missing,
    /// A usable id.
    Valid([u8; N]),
    /// A usable id that was written in base64.
    Base64([u8; N]),
    /// Half as many digits as there should be, the lower half of the id.
    Short([u8; N]),
    /// Anything else.
    Invalid,
}

impl<const N: usize> Id<N> {
    /// Reads hexadecimal text of either case.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::Missing;
        }
        let digits = text.as_bytes();
        if digits.len() == N.div_ceil(3) * 4 && digits.len() != 2 * N {
            return from_base64(digits).map_or(Self::Invalid, Self::Base64);
        }
        // Only trace ids were ever cut in half: 64-bit ids of older tracers.
        if N == 16 && digits.len() == N {
            let mut whole = [b'0'; 32];
            whole[16..].copy_from_slice(digits);
            return match std::str::from_utf8(&whole).map(Self::parse) {
                Ok(Self::Valid(bytes)) => Self::Short(bytes),
                Ok(other) => other,
                Err(_) => Self::Invalid,
            };
        }
        if digits.len() != 2 * N {
            return Self::Invalid;
        }
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            match (nibble(pair[0]), nibble(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => return Self::Invalid,
            }
        }
        if bytes == [0; N] {
            Self::Missing
        } else {
            Self::Valid(bytes)
        }
    }
}

impl<const N: usize> Id<N> {
    /// The bytes of a usable id, however it was written.
    #[must_use]
    pub fn bytes(self) -> Option<[u8; N]> {
        match self {
            Self::Valid(bytes) | Self::Base64(bytes) | Self::Short(bytes) => Some(bytes),
            Self::Missing | Self::Invalid => None,
        }
    }
}

/// Padded base64 of either alphabet; `None` unless it is exactly `N` bytes, not all zero.
fn from_base64<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let padding = (3 - N % 3) % 3;
    let (digits, tail) = text.split_at_checked(text.len().checked_sub(padding)?)?;
    if tail.iter().any(|byte| *byte != b'=') {
        return None;
    }
    let mut bytes = [0; N];
    let (mut bits, mut held, mut next) = (0u32, 0, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(sextet(*digit)?);
        held += 6;
        if held >= 8 {
            held -= 8;
            *bytes.get_mut(next)? = u8::try_from(bits >> held & 0xff).ok()?;
            next += 1;
        }
    }
    (next == N && bytes != [0; N]).then_some(bytes)
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl<'de, const N: usize> Deserialize<'de> for Id<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Null => Ok(Self::Missing),
            Scalar::Text(text) => Ok(Self::parse(&text)),
            _ => Ok(Self::Invalid),
        }
    }
}

/// Any JSON value, of which lists and maps are only told apart.
#[derive(Clone, Debug, Default)]
pub enum Scalar<'a> {
    /// `null`, or absent.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A non-negative integer.
    Unsigned(u64),
    /// A negative integer.
    Signed(i64),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// `{"low":…,"high":…}`, a 64-bit integer of JavaScript libraries.
    Long(u64),
    /// A list or another map.
    Nested,
}

impl Scalar<'_> {
    /// A 64-bit unsigned integer written as number, decimal text or long.
    /// A number with an exponent is taken when it is whole.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(value) | Self::Long(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
            Self::Double(value) if value.fract() == 0.0 && (0.0..1.8e19).contains(value) => {
                Some(*value as u64)
            }
            _ => None,
        }
    }

    /// A 64-bit signed integer written as number or decimal text.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Signed(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 9.2e18 =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "checked to be whole and in range"
                )]
                Some(*value as i64)
            }
            other => other.as_u64().and_then(|value| i64::try_from(value).ok()),
        }
    }

    /// A float written as number or text, `NaN` and infinities included.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Unsigned(value) => Some(*value as f64),
            Self::Signed(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Bool(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Unsigned(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Signed(value))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Double(value))
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nested)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut low, mut high, mut other) = (None, None, false);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.0.as_ref() {
                "low" => low = map.next_value::<i64>().ok(),
                "high" => high = map.next_value::<i64>().ok(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    other |= key.0 != "unsigned";
                }
            }
        }
        // Both halves are 32 bits that some writers print signed.
        let half = |value: i64| u64::from_le_bytes(value.to_le_bytes()) & 0xffff_ffff;
        match (low, high, other) {
            (Some(low), Some(high), false) => Ok(Scalar::Long(half(high) << 32 | half(low))),
            _ => Ok(Scalar::Nested),
        }
    }
}

/// A list whose `null` means empty.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct L<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for L<T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    room::take(size_of::<T>()).map_err(A::Error::custom)?;
                    elements.push(element);
                }
                Ok(elements)
            }
        }
        deserializer.deserialize_any(L(PhantomData)).map(Self)
    }
}

/// The first `N` elements of a list; the others are passed over.
#[derive(Debug)]
pub struct Head<T, const N: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Head<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct H<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for H<T, N> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() < N {
                    let Some(element) = list.next_element()? else {
                        return Ok(elements);
                    };
                    elements.push(element);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(elements)
            }
        }
        deserializer
            .deserialize_seq(H::<T, N>(PhantomData))
            .map(Self)
    }
}

/// A JSON object as pairs in source order.
#[derive(Debug)]
pub struct Pairs<'a, V>(pub Vec<(Cow<'a, str>, V)>);

impl<V> Default for Pairs<'_, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Pairs<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct P<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for P<V> {
            type Value = Vec<(Cow<'de, str>, V)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Text(key)) = map.next_key()? {
                    let pair = (key, map.next_value()?);
                    room::take(size_of_val(&pair)).map_err(A::Error::custom)?;
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_any(P(PhantomData)).map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hex_of_either_case_and_zero_is_missing() {
        assert_eq!(Id::<2>::parse("aB01"), Id::Valid([0xab, 1]));
        assert_eq!(Id::<2>::parse("0000"), Id::Missing);
        assert_eq!(Id::<2>::parse(""), Id::Missing);
        assert_eq!(Id::<2>::parse("ab0"), Id::Invalid);
        assert_eq!(Id::<2>::parse("zz01"), Id::Invalid);
        assert_eq!(
            Id::<16>::parse("00000000000000ff"),
            Id::Short([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff])
        );
    }

    #[test]
    fn ids_in_base64_are_read_as_such() {
        // From Python: base64.b64encode(bytes(range(1, 9))).
        assert_eq!(
            Id::<8>::parse("AQIDBAUGBwg="),
            Id::Base64([1, 2, 3, 4, 5, 6, 7, 8])
        );
        assert_eq!(
            Id::<16>::parse("AQIDBAUGBwgJCgsMDQ4PEA=="),
            Id::Base64([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
        );
        assert_eq!(Id::<8>::parse("AQIDBAUGBwgJ"), Id::Invalid);
        assert_eq!(Id::<8>::parse("AAAAAAAAAAA="), Id::Invalid);
    }

    #[track_caller]
    fn u64_of(json: &str) -> Option<u64> {
        serde_json::from_str::<Scalar<'_>>(json).unwrap().as_u64()
    }

    #[test]
    fn nanoseconds_are_read_from_text_number_and_long() {
        assert_eq!(
            u64_of("\"1784300003641194302\""),
            Some(1_784_300_003_641_194_302)
        );
        assert_eq!(
            u64_of("1784300003641194302"),
            Some(1_784_300_003_641_194_302)
        );
        assert_eq!(
            u64_of("{\"low\":-1,\"high\":1,\"unsigned\":true}"),
            Some(0x1_ffff_ffff)
        );
        assert_eq!(u64_of("-1"), None);
        assert_eq!(u64_of("1.5"), None);
        assert_eq!(u64_of("{\"low\":1}"), None);
    }
}
