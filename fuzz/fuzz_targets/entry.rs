//! One entry, changed in every way, against its plain description.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_structures::fuzzing::fuzz_entry(data));
