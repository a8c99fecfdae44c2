//! Arbitrary bytes as an integer set, and operations on it compared with a tree.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_intset(data));
