//! Problems: what was wrong with the input, counted by code.
//!
//! A problem is not an error: the record is left out or kept with a mark, the
//! rest is read, and every report carries the counts. Only `--strict` turns
//! problems into an exit code. Memory is bounded: one example for each code.

use std::collections::BTreeMap;

/// What went wrong, in a word that scripts can rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The file has no bytes, or nothing but white space.
    EmptyFile,
    /// The file starts with a byte order mark; it is skipped.
    ByteOrderMark,
    /// Bytes that are not JSON at all.
    Garbage,
    /// A run of NUL bytes, as a crash leaves them.
    NulBytes,
    /// A record that was cut off.
    TruncatedRecord,
    /// A closed record that is not valid JSON, or has a field of the wrong type.
    InvalidRecord,
    /// A record larger than the reader holds.
    OversizedRecord,
    /// Valid JSON of no known kind.
    UnknownRecord,
    /// `{}`, as some exporters write for a span they could not print.
    EmptyRecord,
    /// Compressed data that ends early or is damaged.
    DamagedCompression,
    /// A span whose trace id or span id is missing, zero or not hexadecimal.
    InvalidId,
    /// A span without a usable start or end.
    InvalidTime,
    /// A span that ends before it starts.
    EndBeforeStart,
    /// An attribute whose value does not fit its declared type.
    InvalidAttribute,
    /// The same span twice, in the same words; counted once.
    DuplicateSpan,
    /// The same span id with different contents; the first in time is kept.
    ConflictingSpan,
    /// A span whose parent is in none of the files.
    OrphanSpan,
    /// Spans that are each other's ancestors.
    ParentCycle,
    /// A process says that it dropped spans.
    DroppedSpans,
    /// A process's trace has no final line: it was killed or is still running.
    TraceNotClosed,
    /// A process was handed trace context or a spawn stamp that it did not believe.
    ContextRejected,
    /// A trace of another major version of the contract.
    ForeignVersion,
    /// A phase profile that breaks a bound of its format.
    InvalidProfile,
    /// Two profiles of one channel or session that differ; one is kept.
    ConflictingProfile,
    /// A stage that leaves its window by more than the clock quantum.
    StageOutsideWindow,
    /// Two client records for one run.
    ConflictingClient,
    /// Ids in base64, where the format demands hexadecimal; they are read.
    Base64Id,
    /// A 64-bit trace id, which may be the cut half of a 128-bit one.
    ShortTraceId,
    /// Keys in snake case, where the format demands camel case; they are read.
    SnakeCaseKeys,
    /// Nanoseconds since the epoch as a JSON number: whoever wrote or passed them
    /// on as a double has rounded them to 256 ns.
    TimeAsNumber,
    /// A count that is negative; it is ignored.
    InvalidCount,
    /// Several roots in one trace: no run of its own, or several.
    SeveralRoots,
    /// Spans of two processes that fit into each other only if their clocks differ.
    ClockOffset,
    /// A span of the same process that leaves the one it is said to be within.
    ImpossibleNesting,
}

impl Code {
    /// The code as it stands in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::EmptyFile => "empty_file",
            Self::ByteOrderMark => "byte_order_mark",
            Self::Garbage => "garbage",
            Self::NulBytes => "nul_bytes",
            Self::TruncatedRecord => "truncated_record",
            Self::InvalidRecord => "invalid_record",
            Self::OversizedRecord => "oversized_record",
            Self::UnknownRecord => "unknown_record",
            Self::EmptyRecord => "empty_record",
            Self::DamagedCompression => "damaged_compression",
            Self::InvalidId => "invalid_id",
            Self::InvalidTime => "invalid_time",
            Self::EndBeforeStart => "end_before_start",
            Self::InvalidAttribute => "invalid_attribute",
            Self::DuplicateSpan => "duplicate_span",
            Self::ConflictingSpan => "conflicting_span",
            Self::OrphanSpan => "orphan_span",
            Self::ParentCycle => "parent_cycle",
            Self::DroppedSpans => "dropped_spans",
            Self::TraceNotClosed => "trace_not_closed",
            Self::ContextRejected => "context_rejected",
            Self::ForeignVersion => "foreign_version",
            Self::InvalidProfile => "invalid_profile",
            Self::ConflictingProfile => "conflicting_profile",
            Self::StageOutsideWindow => "stage_outside_window",
            Self::ConflictingClient => "conflicting_client",
            Self::Base64Id => "base64_id",
            Self::ShortTraceId => "short_trace_id",
            Self::SnakeCaseKeys => "snake_case_keys",
            Self::TimeAsNumber => "time_as_number",
            Self::InvalidCount => "invalid_count",
            Self::SeveralRoots => "several_roots",
            Self::ClockOffset => "clock_offset",
            Self::ImpossibleNesting => "impossible_nesting",
        }
    }
}

/// Where in the input something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index of the file in the order in which the files were read.
    pub file: u32,
    /// Offset of the record in the decompressed bytes, from 0.
    pub byte: u64,
    /// Line of the record, from 1.
    pub line: u64,
}

/// All problems of one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// How many times the code was met.
    pub count: u64,
    /// Reason of the first one by place; for problems without a place, the
    /// alphabetically first, so that the order of reading does not show.
    pub message: String,
    /// Place of the first one, where it has one.
    pub first: Option<Place>,
}

/// Longer messages are cut: they are kept, compared and printed for each problem,
/// and names in them may have any length.
const MESSAGE_MAX_CHARS: usize = 400;

/// Problems counted by code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    tallies: BTreeMap<Code, Tally>,
}

impl Problems {
    /// Counts one problem.
    pub fn add(&mut self, code: Code, place: Option<Place>, message: impl Into<String>) {
        let mut message = message.into();
        shorten(&mut message);
        let new = Tally {
            count: 1,
            message,
            first: place,
        };
        self.merge_one(code, new);
    }

    /// Adds another collection to this one.
    pub fn merge(&mut self, other: Self) {
        for (code, tally) in other.tallies {
            self.merge_one(code, tally);
        }
    }

    /// Codes with their counts, in the order of [`Code`].
    pub fn iter(&self) -> impl Iterator<Item = (Code, &Tally)> {
        self.tallies.iter().map(|(code, tally)| (*code, tally))
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tallies.is_empty()
    }

    /// How many problems of `code` there are.
    #[must_use]
    pub fn count(&self, code: Code) -> u64 {
        self.tallies.get(&code).map_or(0, |tally| tally.count)
    }

    fn merge_one(&mut self, code: Code, new: Tally) {
        let Some(old) = self.tallies.get_mut(&code) else {
            self.tallies.insert(code, new);
            return;
        };
        old.count += new.count;
        // A placed example beats one without; among equals the smaller key wins.
        let is_better = {
            let key = |tally: &'_ Tally| (tally.first.is_none(), tally.first);
            (key(&new), &new.message) < (key(old), &old.message)
        };
        if is_better {
            old.first = new.first;
            old.message = new.message;
        }
    }
}

/// Cuts a message that a name from the input made long.
fn shorten(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_MAX_CHARS) {
        message.truncate(end);
        message.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_and_the_least_one_is_kept() {
        let mut problems = Problems::default();
        problems.add(Code::InvalidId, None, "ü".repeat(MESSAGE_MAX_CHARS + 1));
        problems.add(Code::InvalidId, None, "ü".repeat(MESSAGE_MAX_CHARS));
        let tally = problems.iter().next().unwrap().1.clone();
        assert_eq!(
            (tally.count, tally.message),
            (2, "ü".repeat(MESSAGE_MAX_CHARS))
        );
        let mut problems = Problems::default();
        problems.add(Code::InvalidId, None, "x".repeat(1_000_000));
        let tally = problems.iter().next().unwrap().1;
        assert_eq!(tally.message, "x".repeat(MESSAGE_MAX_CHARS) + "…");
    }
}
