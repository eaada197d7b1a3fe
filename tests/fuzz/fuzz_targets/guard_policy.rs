//! See `coldpath_guards::fuzzing::policy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldpath_guards::fuzzing::policy(bytes));
