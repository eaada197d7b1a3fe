//! See `coldpath_analyzer::fuzzing::jaeger`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_analyzer::fuzzing::jaeger(bytes));
