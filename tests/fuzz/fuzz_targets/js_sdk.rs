//! See `coldpath_analyzer::fuzzing::js_sdk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_analyzer::fuzzing::js_sdk(bytes));
