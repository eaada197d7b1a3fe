//! See `coldpath_analyzer::fuzzing::otlp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_analyzer::fuzzing::otlp(bytes));
