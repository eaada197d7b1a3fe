//! See `coldpath_guards::fuzzing::names`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_guards::fuzzing::names(bytes));
