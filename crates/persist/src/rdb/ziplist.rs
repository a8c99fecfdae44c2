//! Ziplist: the compact list of RDB versions before 10. Read only.
//!
//! ```text
//!  bytes: u32   last entry's offset: u32   count: u16 (65535 = many)   entries   0xFF
//!  entry: length of the previous entry (1 byte, or 0xFE and u32)   encoding   string or integer
//! ```
//! Encodings (lengths are big-endian, integers little-endian): `00` (6 bits), `01` (14 bits), and
//! `10` (the next 4 bytes) are lengths of strings. C0, D0, E0, F0, FE are integers of 16, 32, 64,
//! 24 and 8 bits. F1 to FD are the numbers 0 to 12.

use super::strings::Strings;

const HEADER: usize = 10;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The content of an entry.
enum ZiplistItem<'a> {
    Str(&'a [u8]),
    Int(i64),
}

/// Appends the elements of a ziplist to `out`. O(bytes).
///
/// # Errors
/// Returns the first rule of the format that is violated.
pub(super) fn read(bytes: &[u8], out: &mut Strings) -> Result<(), &'static str> {
    let (tail, count) = header(bytes).ok_or("a ziplist's header does not match its size")?;
    let body = &bytes[..bytes.len() - 1];
    let (mut at, mut before, mut entries) = (HEADER, 0, 0usize);
    while let Some(&first) = body.get(at..).and_then(<[u8]>::first) {
        if first == END {
            return Err("a ziplist ends before its last byte");
        }
        let entry = &body[at..];
        let (said, skip) = previous_len(entry).ok_or("a ziplist entry is cut off")?;
        if said != before {
            return Err("a ziplist entry has a wrong length for the previous entry");
        }
        let (content, len) =
            entry.get(skip..).and_then(content).ok_or("a ziplist entry is cut off")?;
        match content {
            ZiplistItem::Str(text) => out.push(text),
            ZiplistItem::Int(number) => out.push(itoa::Buffer::new().format(number).as_bytes()),
        }
        before = skip + len;
        at += before;
        entries += 1;
    }
    if tail != at - before {
        return Err("a ziplist's last entry is not where its header says");
    }
    if count != COUNT_UNKNOWN && usize::from(count) != entries {
        return Err("a ziplist's count is wrong");
    }
    Ok(())
}

/// Returns the offset of the last entry and the count, if the length is right and the last byte is
/// the end mark.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let (total, rest) = bytes.split_first_chunk::<4>()?;
    let (tail, rest) = rest.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let fits = u32::from_le_bytes(*total) as usize == bytes.len() && rest.last() == Some(&END);
    fits.then_some((u32::from_le_bytes(*tail) as usize, u16::from_le_bytes(*count)))
}

fn previous_len(entry: &[u8]) -> Option<(usize, usize)> {
    match *entry {
        [0xfe, a, b, c, d, ..] => Some((u32::from_le_bytes([a, b, c, d]) as usize, 5)),
        [0xfe, ..] | [] => None,
        [len, ..] => Some((usize::from(len), 1)),
    }
}

fn content(bytes: &[u8]) -> Option<(ZiplistItem<'_>, usize)> {
    let text = |head: usize, len: usize| {
        let end = head.checked_add(len)?;
        Some((ZiplistItem::Str(bytes.get(head..end)?), end))
    };
    let int = |number: i64, len| Some((ZiplistItem::Int(number), len));
    match *bytes {
        [len @ 0..=0x3f, ..] => text(1, usize::from(len)),
        [high @ 0x40..=0x7f, low, ..] => {
            text(2, usize::from(u16::from_be_bytes([high & 0x3f, low])))
        }
        [0x80..=0xbf, a, b, c, d, ..] => text(5, u32::from_be_bytes([a, b, c, d]) as usize),
        [0xc0, a, b, ..] => int(i64::from(i16::from_le_bytes([a, b])), 3),
        [0xd0, a, b, c, d, ..] => int(i64::from(i32::from_le_bytes([a, b, c, d])), 5),
        [0xe0, a, b, c, d, e, f, g, h, ..] => int(i64::from_le_bytes([a, b, c, d, e, f, g, h]), 9),
        // Shift down from the upper end, to extend the sign.
        [0xf0, a, b, c, ..] => int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8), 4),
        [0xfe, a, ..] => int(i64::from(i8::from_le_bytes([a])), 2),
        [small @ 0xf1..=0xfd, ..] => int(i64::from(small) - 0xf1, 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a ziplist of raw entries (encoding and content) with correct lengths.
    fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
        let mut body = vec![];
        let (mut before, mut tail) = (0, HEADER);
        for entry in entries {
            tail = HEADER + body.len();
            let start = body.len();
            if before < 254 {
                body.push(before as u8);
            } else {
                body.push(0xfe);
                body.extend((before as u32).to_le_bytes());
            }
            body.extend_from_slice(entry);
            before = body.len() - start;
        }
        let mut bytes = ((HEADER + body.len() + 1) as u32).to_le_bytes().to_vec();
        bytes.extend((tail as u32).to_le_bytes());
        bytes.extend((entries.len() as u16).to_le_bytes());
        bytes.extend(body);
        bytes.push(END);
        bytes
    }

    fn elements(bytes: &[u8]) -> Result<Vec<String>, &'static str> {
        let mut out = Strings::new();
        read(bytes, &mut out)?;
        Ok(out.iter().map(|e| String::from_utf8_lossy(e).into_owned()).collect())
    }

    #[test]
    fn all_encodings_are_read() {
        let long = [&b"\x41\x2c"[..], &[b'x'; 300]].concat();
        let bytes = ziplist(&[
            b"\x02hi",
            &long,
            b"\x80\x00\x00\x00\x01y",
            b"\xc0\xff\x7f",
            b"\xd0\x00\x00\x00\x80",
            b"\xe0\xff\xff\xff\xff\xff\xff\xff\x7f",
            b"\xf0\x00\x00\x80",
            b"\xfe\x80",
            b"\xf1",
            b"\xfd",
            b"\x00",
        ]);
        assert_eq!(
            elements(&bytes).unwrap(),
            [
                "hi",
                &"x".repeat(300),
                "y",
                "32767",
                "-2147483648",
                "9223372036854775807",
                "-8388608",
                "-128",
                "0",
                "12",
                "",
            ]
        );
        assert_eq!(elements(&ziplist(&[])).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn broken_ziplists_are_rejected() {
        let good = ziplist(&[b"\x02hi", b"\xf5", b"\x03abc"]);
        assert!(elements(&good).is_ok());
        for cut in 0..good.len() {
            assert!(elements(&good[..cut]).is_err());
        }
        // Every byte except those of the text matters: another value breaks a rule or changes an
        // element.
        let read = elements(&good).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_ne!(elements(&bad).as_ref(), Ok(&read), "byte {at}");
        }
        let mut longer = good.clone();
        longer[10 + 1] = 0x3f;
        assert_eq!(elements(&longer), Err("a ziplist entry is cut off"));
    }
}
