//! Compares the hash table with a map, while a scan continues during all changes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_table(data));
