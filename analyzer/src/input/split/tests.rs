//! Values and broken stretches, each read in steps of every size.

use super::*;

/// A reader that gives `step` bytes at a time, to put every boundary everywhere.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn pieces(text: &str, step: usize) -> Vec<String> {
    let mut splitter = Splitter::new(Slow(text.as_bytes(), step));
    let mut found = Vec::new();
    while let Some(piece) = splitter.next_piece().unwrap() {
        match piece {
            Piece::Value { bytes, byte, line } => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let valid = serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
                if valid || !splitter.reject() {
                    found.push(format!(
                        "{line}:{byte} {text}{}",
                        if valid { "" } else { " invalid" }
                    ));
                }
            }
            Piece::Broken {
                code, byte, line, ..
            } => found.push(format!("{line}:{byte} {}", code.name())),
        }
    }
    found
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    for step in [1, 2, 3, 7, 4096] {
        assert_eq!(pieces(text, step), expected, "step {step} of {text:?}");
    }
}

#[test]
fn lines_pretty_objects_and_arrays_are_values() {
    check(
        "{\"a\":1}\n{\"b\":2}\r\n",
        &["1:0 {\"a\":1}", "2:8 {\"b\":2}"],
    );
    check(
        "{\n \"a\": {\n  \"b\": []\n }\n}\n{}",
        &["1:0 {\n \"a\": {\n  \"b\": []\n }\n}", "6:25 {}"],
    );
    check(
        "[\n{\"a\":1},\n{\"b\":2}]",
        &["2:2 {\"a\":1}", "3:11 {\"b\":2}"],
    );
    check("{\"a\":1}{\"b\":2}", &["1:0 {\"a\":1}", "1:7 {\"b\":2}"]);
}

#[test]
fn brackets_and_quotes_inside_strings_do_not_count() {
    check(
        "{\"a\":\"}{\\\"\\\\\"}\n{}",
        &["1:0 {\"a\":\"}{\\\"\\\\\"}", "2:15 {}"],
    );
}

#[test]
fn a_nested_object_may_start_a_line_behind_a_comma() {
    check("{\"a\":[\n{},\n{}]}", &["1:0 {\"a\":[\n{},\n{}]}"]);
}

#[test]
fn a_cut_line_costs_itself_only() {
    check(
        "{\"a\":{\"b\":1\n{\"c\":2}\n",
        &["1:0 truncated_record", "2:12 {\"c\":2}"],
    );
    check(
        "{\"a\":\"b\n{\"c\":2}\n",
        &["1:0 truncated_record", "2:8 {\"c\":2}"],
    );
    check(
        "{\"a\":[1,\n{\"c\":2}\n",
        &["1:0 truncated_record", "2:9 {\"c\":2}"],
    );
    check(
        "{\"a\":[1,\n{\"c\":2}\n]}\n{\"d\":3}",
        &["1:0 {\"a\":[1,\n{\"c\":2}\n]}", "4:20 {\"d\":3}"],
    );
    check(
        "{\"c\":2}\n{\"a\":",
        &["1:0 {\"c\":2}", "2:8 truncated_record"],
    );
}

#[test]
fn a_cut_line_that_its_successor_closes_costs_itself_only() {
    check(
        "{\"a\":[{\"b\":1,\n{\"c\":2}}]}\n{\"d\":3}",
        &[
            "1:0 truncated_record",
            "2:14 {\"c\":2}",
            "2:21 garbage",
            "3:25 {\"d\":3}",
        ],
    );
}

#[test]
fn a_cut_pretty_object_takes_its_own_lines_with_it() {
    check(
        "{\n \"a\": \"x\n \"k\": {\n  }\n}\n{\"b\":1}",
        &["1:0 truncated_record", "6:25 {\"b\":1}"],
    );
}

#[test]
fn garbage_nul_bytes_and_byte_order_marks_are_named() {
    check("hello {\n{\"a\":1}", &["1:0 garbage", "2:8 {\"a\":1}"]);
    check(
        "{\"a\":1}\n\0\0\0{\"b\":2}\n",
        &["1:0 {\"a\":1}", "2:8 nul_bytes", "2:11 {\"b\":2}"],
    );
    check("{\"a\":1}\n{\"b\0\0\0", &["1:0 {\"a\":1}", "2:8 nul_bytes"]);
    check(
        "\u{feff}{\"a\":1}",
        &["1:0 byte_order_mark", "1:3 {\"a\":1}"],
    );
    check(" \r\n\t", &[]);
    check("", &[]);
}

#[test]
fn a_closed_value_that_is_no_json_is_the_readers_to_judge() {
    check("{\"a\":}\n{}", &["1:0 {\"a\":} invalid", "2:7 {}"]);
}

/// The whole lines that are offered before a piece is asked for.
fn lines_offered(text: &[u8]) -> Vec<(String, u64, u64)> {
    let mut splitter = Splitter::over(text.to_vec(), 0, 1);
    let mut found = Vec::new();
    loop {
        let line = splitter.whole_line();
        if let Some((line, byte, number)) = line {
            found.push((String::from_utf8_lossy(line).into_owned(), byte, number));
            splitter.pass_line();
        } else if splitter.next_piece().unwrap().is_none() {
            return found;
        }
    }
}

#[test]
fn every_line_that_is_a_value_is_offered_whole() {
    let line = |text: &str, byte, line| (text.to_owned(), byte, line);
    // From the first of a file to the last without an end.
    assert_eq!(
        lines_offered(b"{\"a\":1}\r\n\n{\"b\":2}\n{}"),
        [
            line("{\"a\":1}", 0, 1),
            line("{\"b\":2}", 10, 3),
            line("{}", 18, 4)
        ]
    );
    // Behind a byte order mark, and behind a value that was read in pieces.
    assert_eq!(lines_offered(b"\xef\xbb\xbf{}\n"), [line("{}", 3, 1)]);
    assert_eq!(lines_offered(b"{\"a\":\n1}\n{}\n"), [line("{}", 9, 3)]);
    // Not from within an array, whose elements are read one after the other.
    assert_eq!(lines_offered(b"[\n{},\n{}\n]"), []);
    assert_eq!(lines_offered(b"{} {}\n{\"a"), [line("{} {}", 0, 1)]);
}

#[test]
fn a_line_that_was_offered_and_not_taken_is_read_in_pieces() {
    let mut splitter = Splitter::over(b"{} {}\n{}".to_vec(), 0, 1);
    assert!(splitter.whole_line().is_some());
    let mut places = Vec::new();
    while let Some(Piece::Value { byte, line, .. }) = splitter.next_piece().unwrap() {
        places.push((byte, line));
    }
    assert_eq!(places, [(0, 1), (3, 1), (6, 2)]);
}
