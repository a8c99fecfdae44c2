//! An RDB file, whatever its checksum says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_persist::fuzzing::fuzz_file(data));
