//! Requests that arrive in pieces decode to the same requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_resp::fuzzing::request(data));
