//! Client records: one JSON object with what a client measured in one run.
//!
//! Numbers are kept as the text they were written in, under dotted paths
//! (`rss_at_listener.total_kib`, `session_ids.0`), so that an epoch time in milliseconds keeps its
//! nanoseconds. Which path means what is the model's matter.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::batch::Batch;
use super::lenient::{Head, Pairs};
use super::record::parse;

/// Objects nested deeper than this are not entered; client records have two levels.
const DEPTH_MAX: usize = 4;

/// Items of a list beyond this are not kept; a client asks for a handful of
/// sessions at once.
const LIST_MAX: usize = 64;

/// A record with more values is none: client records have about fifty.
const VALUES_MAX: usize = 16_384;

/// Nor is one with longer paths: theirs have some tens of bytes, and each value of
/// a list repeats that of the list.
const PATH_MAX_BYTES: usize = 1024;

/// One client record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRecord {
    values: BTreeMap<String, String>,
}

impl ClientRecord {
    /// The scalar at a dotted path: a number or `true`/`false` as it was
    /// written, text without its quotes.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&str> {
        self.values.get(path).map(String::as_str)
    }

    /// All scalars by path.
    #[must_use]
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }
}

/// Reads one client record.
///
/// Of a key that is there twice the last value counts.
///
/// # Errors
/// The parser's reason, or that there are more than [`VALUES_MAX`] values or a
/// path is longer than [`PATH_MAX_BYTES`].
pub fn read(bytes: &[u8], batch: &mut Batch) -> Result<(), String> {
    let mut values = BTreeMap::new();
    let mut open = vec![(String::new(), parse::<&RawValue>(bytes)?, 0)];
    while let Some((path, raw, depth)) = open.pop() {
        if values.len() + open.len() > VALUES_MAX {
            return Err(format!("a client record of more than {VALUES_MAX} values"));
        }
        if path.len() > PATH_MAX_BYTES {
            return Err(format!(
                "a client record with a path of more than {PATH_MAX_BYTES} bytes"
            ));
        }
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') if depth < DEPTH_MAX => {
                let Pairs::<&RawValue>(fields) = parse(text.as_bytes())?;
                let fields: BTreeMap<_, _> = fields.into_iter().collect();
                for (key, field) in fields {
                    let path = if path.is_empty() {
                        key.into_owned()
                    } else {
                        format!("{path}.{key}")
                    };
                    open.push((path, field, depth + 1));
                }
            }
            Some(b'[') if depth < DEPTH_MAX => {
                let Head::<&RawValue, LIST_MAX>(items) = parse(text.as_bytes())?;
                for (place, item) in items.into_iter().enumerate() {
                    open.push((format!("{path}.{place}"), item, depth + 1));
                }
            }
            Some(b'{' | b'[' | b'n') | None => {}
            Some(b'"') => {
                values.insert(path, parse::<String>(text.as_bytes())?);
            }
            Some(_) => {
                values.insert(path, text.to_owned());
            }
        }
    }
    batch.clients.push(ClientRecord { values });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read_one(text: &str) -> Result<ClientRecord, String> {
        let mut batch = Batch::default();
        read(text.as_bytes(), &mut batch)?;
        Ok(batch.clients.remove(0))
    }

    #[test]
    fn scalars_stand_under_their_paths_as_they_were_written() {
        let text = r#"{"a":{"b":[1.50,"x",null,{"c":true}]},"d":1,"d":2}"#;
        let record = read_one(text).unwrap();
        let values: Vec<_> = record
            .values()
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        let expected = [
            ("a.b.0", "1.50"),
            ("a.b.1", "x"),
            ("a.b.3.c", "true"),
            ("d", "2"),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn of_a_list_the_first_items_are_kept_and_of_an_object_so_many() {
        let list = |items: usize| format!("{{\"l\":[{}0]}}", "0,".repeat(items - 1));
        for items in [LIST_MAX, LIST_MAX + 1, 100_000] {
            assert_eq!(read_one(&list(items)).unwrap().values().len(), LIST_MAX);
        }
        let object = |fields: usize| {
            let fields: Vec<_> = (0..fields).map(|k| format!("\"{k}\":0")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert_eq!(
            read_one(&object(VALUES_MAX)).unwrap().values().len(),
            VALUES_MAX
        );
        let reason = "a client record of more than 16384 values";
        assert_eq!(read_one(&object(VALUES_MAX + 2)), Err(reason.to_owned()));
        let named = |bytes: usize| format!("{{\"{}\":[1,2]}}", "k".repeat(bytes));
        assert_eq!(read_one(&named(1000)).unwrap().values().len(), 2);
        let reason = "a client record with a path of more than 1024 bytes";
        assert_eq!(read_one(&named(1025)), Err(reason.to_owned()));
    }
}
