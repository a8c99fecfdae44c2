//! Replies that arrive in pieces decode to the same replies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brisk_resp::fuzzing::reply(data));
