//! The value of a valid DUMP payload stays the same after it is written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_persist::fuzzing::fuzz_dump(data));
