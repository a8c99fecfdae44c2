//! Applies all kinds of changes to one entry, and compares it with a simple model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_entry(data));
