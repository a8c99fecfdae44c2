//! Zipmap: the small hash of RDB versions before 4. Read only.
//!
//! ```text
//!  count: u8 (254 = many)   { length  field  length  free: u8  value  free bytes }   0xFF
//! ```
//! A length is one byte below 254, or 254 and a little-endian `u32`.

use super::strings::Strings;

const END: u8 = 0xff;
const BIG: u8 = 0xfe;

/// Appends alternating fields and values to `out`. O(bytes).
///
/// # Errors
/// Returns the first rule of the format that is violated.
pub(super) fn read(bytes: &[u8], out: &mut Strings) -> Result<(), &'static str> {
    let (&count, mut rest) = bytes.split_first().ok_or("a zipmap has no bytes")?;
    let before = out.len();
    while rest.first().is_some_and(|&byte| byte != END) {
        rest = pair(rest, out).ok_or("a zipmap entry is cut off")?;
    }
    if rest != [END] {
        return Err("a zipmap's end marker is not its last byte");
    }
    let pairs = (out.len() - before) / 2;
    if count < BIG && usize::from(count) != pairs {
        return Err("a zipmap's count is wrong");
    }
    if pairs == 0 {
        return Err("a zipmap has no fields");
    }
    Ok(())
}

fn pair<'a>(bytes: &'a [u8], out: &mut Strings) -> Option<&'a [u8]> {
    let (len, rest) = length(bytes)?;
    let (field, rest) = rest.split_at_checked(len)?;
    let (len, rest) = length(rest)?;
    let (&free, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(len)?;
    out.push(field);
    out.push(value);
    rest.get(usize::from(free)..)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [BIG, a, b, c, d, rest @ ..] => Some((u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)),
        [BIG | END, ..] | [] => None,
        [len, rest @ ..] => Some((usize::from(*len), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_values_are_read_and_free_bytes_skipped() {
        let mut out = Strings::new();
        read(b"\x02\x01a\x02\x01xy?\xfe\x01\x00\x00\x00b\x00\x00\xff", &mut out).unwrap();
        assert_eq!(out.iter().collect::<Vec<_>>(), [&b"a"[..], b"xy", b"b", b""]);
    }

    #[test]
    fn broken_zipmaps_are_rejected() {
        for bad in [
            &b""[..],
            b"\x01",
            b"\x01\x01a\x01\x00x",
            b"\x02\x01a\x01\x00x\xff",
            b"\x01\x01a\x09\x00x\xff",
            b"\x01\x01a\x01\x09x\xff",
            b"\x01\x01a\x01\x00x\xff\xff",
            b"\x01\xff",
            b"\x01\xfe\x01\xff",
        ] {
            assert!(read(bad, &mut Strings::new()).is_err(), "{bad:?}");
        }
    }
}
