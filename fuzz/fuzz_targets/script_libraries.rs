//! Arbitrary bytes as JSON, MessagePack, packed structs and their formats.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_script::fuzzing::fuzz_libraries(data));
