//! A file of commands, whole or not: what is before a fault is kept as it was.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_persist::fuzzing::fuzz_aof(data));
