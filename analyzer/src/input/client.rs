//! Client records: one JSON object with what a client measured in one run.
//!
//! Numbers are kept as the text they were written in, under dotted paths
//! (`rss_at_listener.total_kib`, `session_ids.0`), so that an epoch time in milliseconds keeps its
//! nanoseconds. Which path means what is the model's matter.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::batch::Batch;
use super::record::parse;

/// Objects nested deeper than this are not entered; client records have two levels.
const DEPTH_MAX: usize = 4;

/// Items of a list beyond this are not kept; a client asks for a handful of
/// sessions at once.
const LIST_MAX: usize = 64;

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
/// # Errors
/// The parser's reason.
pub fn read(bytes: &[u8], batch: &mut Batch) -> Result<(), String> {
    let mut values = BTreeMap::new();
    let mut open = vec![(String::new(), parse::<&RawValue>(bytes)?, 0)];
    while let Some((path, raw, depth)) = open.pop() {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') if depth < DEPTH_MAX => {
                let fields: BTreeMap<String, &RawValue> = parse(text.as_bytes())?;
                for (key, field) in fields {
                    let path = if path.is_empty() {
                        key
                    } else {
                        format!("{path}.{key}")
                    };
                    open.push((path, field, depth + 1));
                }
            }
            Some(b'[') if depth < DEPTH_MAX => {
                let items: Vec<&RawValue> = parse(text.as_bytes())?;
                for (place, item) in items.into_iter().take(LIST_MAX).enumerate() {
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
