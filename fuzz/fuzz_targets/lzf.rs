//! Arbitrary bytes as an LZF block.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_lzf(data));
