//! The hash table against a map, with a scan running through all changes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_table(data));
