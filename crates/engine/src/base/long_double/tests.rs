//! Sums recorded from a real server on x86-64 (`sums.txt`), and numbers of every size.
//!
//! A line of the file is `number|increment|answer`. The answer is the sum, `invalid` for "not a
//! valid float", `infinite` for "NaN or Infinity", or `#length:hash` of a long sum. The hash is
//! 64-bit FNV-1a.

use super::*;

fn sum(number: &str, increment: &str) -> String {
    let parse = |text: &str| LongDouble::parse(text.as_bytes());
    let (Some(number), Some(increment)) = (parse(number), parse(increment)) else {
        return "invalid".to_owned();
    };
    let Some(sum) = number.plus(increment) else { return "infinite".to_owned() };
    let text = sum.to_text();
    if text.len() <= 80 {
        return text;
    }
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("#{}:{hash:016x}", text.len())
}

#[test]
fn sums_agree_with_a_real_server_to_the_last_digit() {
    let mut count = 0;
    for line in include_str!("sums.txt").lines() {
        let [number, increment, want] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("three fields: {line}");
        };
        assert_eq!(sum(number, increment), want, "{number} + {increment}");
        count += 1;
    }
    assert!(count >= 2_000);
}

#[test]
fn halves_round_to_even_at_the_last_bit() {
    // 2^64 + 1 is halfway between two numbers with 64-bit significands.
    assert_eq!(sum("18446744073709551617", "0"), "18446744073709551616");
    assert_eq!(sum("18446744073709551619", "0"), "18446744073709551620");
    assert_eq!(sum("18446744073709551616", "1"), "18446744073709551616");
    assert_eq!(sum("18446744073709551616", "1.0000001"), "18446744073709551618");
}

#[test]
fn the_smallest_numbers_keep_fewer_bits() {
    let parse = |text: &str| LongDouble::parse(text.as_bytes());
    let smallest = LongDouble::Finite { negative: false, significand: 1, exponent: EXPONENT_MIN };
    // Half of the smallest number is a tie, which rounds to zero, and zero is rejected.
    assert_eq!(parse("0x1p-16445"), Some(smallest));
    assert_eq!(parse("0x1p-16446"), None);
    assert_eq!(parse("0x1.8p-16446"), Some(smallest));
    assert_eq!(parse("3.7e-4951"), Some(smallest));
    assert_eq!(parse("0x.ffffffffffffffffp16384"), parse("0xffffffffffffffffp16320"));
    assert_eq!(parse("0x1p16384"), None);
}

#[test]
fn long_texts_are_rejected_and_hostile_exponents_cost_nothing() {
    let digits = "7".repeat(TEXT_BYTES_MAX);
    assert_eq!(LongDouble::parse(digits.as_bytes()), None); // 5,119 digits are more than 1.2e4932
    let fraction = format!(".{}", "7".repeat(TEXT_BYTES_MAX - 1));
    assert!(LongDouble::parse(fraction.as_bytes()).is_some());
    assert_eq!(LongDouble::parse(format!("{fraction}7").as_bytes()), None);
    assert_eq!(LongDouble::parse(b"1e999999999999999999999999"), None);
    assert_eq!(LongDouble::parse(b"0e999999999999999999999999"), Some(LongDouble::ZERO));
}

#[test]
fn seconds_become_milliseconds_rounded_up() {
    let ms = |text: &str| LongDouble::parse(text.as_bytes()).unwrap().thousandfold_ceil();
    for (seconds, want) in [
        ("0", Some(0)),
        ("0.001", Some(1)),
        ("0.0011", Some(2)),
        ("1e-9", Some(1)),
        ("-1e-9", Some(0)),
        ("-0.0015", Some(-1)),
        ("1.5", Some(1500)),
        ("9223372036854775", Some(9_223_372_036_854_775_000)),
        ("9223372036854776", None),
        ("1e300", None),
        ("inf", None),
    ] {
        assert_eq!(ms(seconds), want, "{seconds}");
    }
}
