//! A configuration file that is taken survives being written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_config::fuzzing::config_file(data));
