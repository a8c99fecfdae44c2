//! Arbitrary bytes as a listpack.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_listpack(data));
