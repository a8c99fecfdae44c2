use super::*;
use crate::random::Random;

#[track_caller]
fn check(pattern: &[u8], text: &[u8], want: bool) {
    let got = matches(pattern, text, Case::Matters);
    assert_eq!(got, want, "{:?} on {:?}", pattern.escape_ascii(), text.escape_ascii());
}
