//! Bytes that claim to be a HyperLogLog.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_hyperloglog(data));
