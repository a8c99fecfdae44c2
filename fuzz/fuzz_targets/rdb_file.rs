//! Arbitrary bytes as an RDB file. The checksum is not verified.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_persist::fuzzing::fuzz_file(data));
