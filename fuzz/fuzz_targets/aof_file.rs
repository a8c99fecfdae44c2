//! A file of commands, complete or damaged: the data before an error is kept unchanged.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_persist::fuzzing::fuzz_aof(data));
