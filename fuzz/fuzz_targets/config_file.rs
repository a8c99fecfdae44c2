//! A valid configuration file stays the same after it is written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_config::fuzzing::config_file(data));
