//! See `coldpath_analyzer::fuzzing::records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_analyzer::fuzzing::records(bytes));
