//! See `coldpath_guards::fuzzing::object`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_guards::fuzzing::object(bytes));
