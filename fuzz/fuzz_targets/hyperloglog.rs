//! Arbitrary bytes as a HyperLogLog.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_hyperloglog(data));
