//! LZF: fast compression of small blocks, as used for RDB strings and inner list nodes.
//!
//! A block is a sequence of instructions, each of which begins with a control byte:
//! ```text
//!  000lllll                     copy the next l + 1 bytes (1 to 32)
//!  lllooooo oooooooo            repeat l + 2 bytes (3 to 8) from o + 1 bytes back in the output
//!  111ooooo llllllll oooooooo   the same with l + 9 bytes (9 to 264)
//! ```
//! `o` has 13 bits, high ones first. A repetition may overlap its own output. A block does not
//! contain the length of its content, so that length is stored separately.
//!
//! Decompression does not trust the block. Before it allocates much memory, it adds up the output
//! of all instructions and compares the sum with the expected length.

use crate::malformed::Malformed;
use std::ops::Range;

/// Maximum number of bytes that one instruction copies.
const LITERAL_MAX: usize = 1 << 5;
/// Maximum number of bytes that one instruction repeats.
const REPEAT_MAX: usize = 264;
/// Maximum distance that a repetition reaches back.
const DISTANCE_MAX: usize = 1 << 13;
/// After each of this many bytes without a repetition, the search skips one more byte per step. Content that cannot be
/// compressed takes less than half the time.
const SEARCHED_BYTES: usize = 1 << 6;
/// The maximum number of bytes that are skipped at once, so that repeats are found again after a long part without any.
const STEP_MAX: usize = 64;

/// Compresses `input`, appends the result to `out`, and returns its length in bytes. Returns
/// `None`, with `out` unchanged, if the result would exceed `len_max` bytes or `input` has 4 GiB or
/// more. O(input).
pub fn compress(input: &[u8], len_max: usize, out: &mut Vec<u8>) -> Option<usize> {
    u32::try_from(input.len()).ok()?;
    // As many slots as a repetition can reach, but not many more than there are bytes, because all
    // slots are cleared first.
    match input.len() {
        0..=256 => compress_with::<8>(&mut [0; 1 << 8], input, len_max, out),
        257..=1024 => compress_with::<10>(&mut [0; 1 << 10], input, len_max, out),
        1025..=8192 => compress_with::<12>(&mut [0; 1 << 12], input, len_max, out),
        _ => compress_with::<13>(&mut [0; 1 << 13], input, len_max, out),
    }
}

/// `places` stores where a sequence of three bytes was last seen. It is indexed by a `LOG`-bit hash
/// of the bytes and contains the low bits of the offset. An offset is verified before use, so stale
/// values are harmless.
fn compress_with<const LOG: u32>(
    places: &mut [u16],
    input: &[u8],
    len_max: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    const { assert!(DISTANCE_MAX < 1 << 16, "distances are known from the low bits of places") };
    let start = out.len();
    // A whole instruction may be written before the limit is checked.
    out.reserve(len_max.min(input.len()) + LITERAL_MAX + 4);
    let (mut at, mut copied) = (0, 0);
    while let Some(three) = three_at(input, at) {
        let place = &mut places[slot::<LOG>(three)];
        let distance = usize::from((at as u16).wrapping_sub(*place));
        *place = at as u16;
        let is_near = (1..=DISTANCE_MAX.min(at)).contains(&distance);
        if !is_near || three_at(input, at - distance) != Some(three) {
            at += (1 + (at - copied) / SEARCHED_BYTES).min(STEP_MAX);
            continue;
        }
        copy_few(input, copied..at, out);
        let len = 3 + same(&input[at - distance + 3..], &input[at + 3..], REPEAT_MAX - 3);
        repeat(distance, len, out);
        if out.len() - start > len_max {
            out.truncate(start);
            return None;
        }
        at += len;
        copied = at;
        // Store only the last skipped offsets; storing all of them would cost more than the
        // additional matches are worth.
        for passed in [at - 2, at - 1] {
            if let Some(three) = three_at(input, passed) {
                places[slot::<LOG>(three)] = passed as u16;
            }
        }
    }
    copy(&input[copied..], out);
    let len = out.len() - start;
    if len > len_max {
        out.truncate(start);
        return None;
    }
    Some(len)
}

/// Returns the three bytes at `at` as a number; `None` unless one more byte follows.
#[inline]
fn three_at(input: &[u8], at: usize) -> Option<u32> {
    let four = input.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four) & 0x00ff_ffff)
}

/// Returns the slot for the offset of three bytes.
#[inline]
fn slot<const LOG: u32>(three: u32) -> usize {
    (three.wrapping_mul(0x9e37_79b1) >> (32 - LOG)) as usize
}

/// Returns the length of the common prefix, up to `most`.
#[inline]
fn same(one: &[u8], two: &[u8], most: usize) -> usize {
    let len = one.len().min(two.len()).min(most);
    let (one, two) = (&one[..len], &two[..len]);
    let words = one.as_chunks::<8>().0.iter().zip(two.as_chunks::<8>().0);
    let mut equal = 0;
    for (one, two) in words {
        let difference = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*two);
        if difference != 0 {
            return equal + difference.trailing_zeros() as usize / 8;
        }
        equal += 8;
    }
    equal + one[equal..].iter().zip(&two[equal..]).take_while(|(one, two)| one == two).count()
}

/// Writes instructions that copy a part of the input, usually a short one.
#[inline]
fn copy_few(input: &[u8], part: Range<usize>, out: &mut Vec<u8>) {
    let len = part.len();
    match input[part.start..].first_chunk::<8>() {
        _ if len == 0 => {}
        Some(&[a, b, c, d, e, f, g, h]) if len <= 8 => {
            // Copying eight bytes is faster than determining how many there are to copy.
            let end = out.len() + 1 + len;
            out.extend_from_slice(&[len as u8 - 1, a, b, c, d, e, f, g, h]);
            out.truncate(end);
        }
        _ => copy(&input[part], out),
    }
}

/// Writes instructions that copy `literal`.
fn copy(literal: &[u8], out: &mut Vec<u8>) {
    for run in literal.chunks(LITERAL_MAX) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

/// Writes the instruction that repeats `len` bytes from `distance` bytes back.
fn repeat(distance: usize, len: usize, out: &mut Vec<u8>) {
    let [high, low] = (distance as u16 - 1).to_be_bytes();
    if len < 9 {
        out.extend_from_slice(&[(len as u8 - 2) << 5 | high, low]);
    } else {
        out.extend_from_slice(&[0xe0 | high, (len - 9) as u8, low]);
    }
}

/// A single instruction of a block.
enum Instruction {
    /// Copy this many bytes of the input.
    Copy(usize),
    Repeat {
        distance: usize,
        len: usize,
    },
}

/// Returns the instruction at the start of `rest`, and its length without the bytes that it copies.
#[inline]
fn instruction(rest: &[u8]) -> Option<(Instruction, usize)> {
    let distance = |high: u8, low: u8| usize::from(u16::from_be_bytes([high & 0x1f, low])) + 1;
    Some(match *rest {
        [control @ 0..=0x1f, ..] => (Instruction::Copy(usize::from(control) + 1), 1),
        [control @ 0x20..=0xdf, low, ..] => {
            let len = usize::from(control >> 5) + 2;
            (Instruction::Repeat { distance: distance(control, low), len }, 2)
        }
        [control @ 0xe0..=0xff, len, low, ..] => {
            let len = usize::from(len) + 9;
            (Instruction::Repeat { distance: distance(control, low), len }, 3)
        }
        _ => return None,
    })
}

/// Checks that `block` is well-formed and that its content has `len` bytes. O(block); allocates
/// nothing.
///
/// # Errors
/// Returns the first instruction that is cut off, reaches before the start, or writes too much.
pub fn validate(block: &[u8], len: usize) -> Result<(), Malformed> {
    let (mut at, mut written) = (0, 0usize);
    let fail = |offset, what| Err(Malformed { offset, what });
    while at < block.len() {
        match instruction(&block[at..]) {
            Some((Instruction::Copy(count), head)) => {
                if count > block.len() - at - head {
                    return fail(at, "an LZF copy is cut off");
                }
                at += head + count;
                written += count;
            }
            Some((Instruction::Repeat { distance, len }, head)) => {
                if distance > written {
                    return fail(at, "an LZF repetition reaches before the start");
                }
                at += head;
                written += len;
            }
            None => return fail(at, "an LZF instruction is cut off"),
        }
        if written > len {
            return fail(at, "an LZF block has more content than announced");
        }
    }
    if written == len { Ok(()) } else { fail(at, "an LZF block has less content than announced") }
}

/// If the claimed content is at most this many times the block's size, memory is allocated without
/// validating the block first.
pub(crate) const TRUSTED_FACTOR: usize = 8;

/// Decompresses `block` and appends the `len` bytes of its content to `out`. O(len). Allocates at
/// most eight times the block's size, unless the block is well-formed and has that length.
///
/// # Errors
/// Returns the same errors as [`validate`]; `out` is then unchanged.
pub fn decompress(block: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if len / TRUSTED_FACTOR > block.len() {
        validate(block, len)?;
    }
    if out.is_empty() {
        out.reserve_exact(len);
    }
    let start = out.len();
    out.resize(start + len, 0);
    if expand(block, &mut out[start..]).is_none() {
        out.truncate(start);
        // Validation finds the fault.
        validate(block, len)?;
        return Err(Malformed { offset: 0, what: "an LZF block cannot be expanded" });
    }
    Ok(())
}

/// Decompresses `block` into the first `len` bytes of `room`. Otherwise like [`decompress`]. If
/// `room` is reused for several blocks, it takes the memory of the longest content.
///
/// # Errors
/// Returns the same errors as [`validate`].
pub fn decompress_in<'r>(
    block: &[u8],
    len: usize,
    room: &'r mut Vec<u8>,
) -> Result<&'r [u8], Malformed> {
    if room.len() < len {
        room.clear();
        decompress(block, len, room)?;
    } else if expand(block, &mut room[..len]).is_none() {
        validate(block, len)?;
        return Err(Malformed { offset: 0, what: "an LZF block cannot be expanded" });
    }
    Ok(&room[..len])
}

/// Writes the content of `block`; `None` if the block is malformed or its content has a different
/// length.
fn expand(block: &[u8], out: &mut [u8]) -> Option<()> {
    let (mut at, mut written) = (0, 0);
    while at < block.len() {
        let (step, head) = instruction(&block[at..])?;
        at += head;
        match step {
            Instruction::Copy(count) => {
                copy_out(&block[at..], out.get_mut(written..)?, count)?;
                at += count;
                written += count;
            }
            Instruction::Repeat { distance, len } => {
                repeat_out(out, written, distance, len)?;
                written += len;
            }
        }
    }
    (written == out.len()).then_some(())
}

/// Copies the first `len` bytes of `from`, at most [`LITERAL_MAX`]. If there is room, always copies
/// [`LITERAL_MAX`] bytes: the next instructions overwrite the excess.
#[inline]
fn copy_out(from: &[u8], to: &mut [u8], len: usize) -> Option<()> {
    match (from.first_chunk::<LITERAL_MAX>(), to.first_chunk_mut::<LITERAL_MAX>()) {
        (Some(from), Some(to)) => *to = *from,
        _ => to.get_mut(..len)?.copy_from_slice(from.get(..len)?),
    }
    Some(())
}

/// Repeats, at `out[at..]`, the `len` bytes that begin `distance` bytes earlier. May write excess
/// bytes, like [`copy_out`].
#[inline]
fn repeat_out(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(distance)?;
    if (distance >= 16 && len <= 16 && copy_within::<16>(out, from, at))
        || (distance >= 8 && len <= 8 && copy_within::<8>(out, from, at))
    {
        return Some(());
    }
    out.get(at..at + len)?;
    // An overlapping repetition doubles the available bytes with each round.
    let mut done = 0;
    while done < len {
        let part = (len - done).min(distance + done);
        out.copy_within(from..from + part, at + done);
        done += part;
    }
    Some(())
}

/// Copies `N` bytes that do not overlap; false if there is no room for them.
#[inline]
fn copy_within<const N: usize>(out: &mut [u8], from: usize, to: usize) -> bool {
    let (before, output) = out.split_at_mut(to.min(out.len()));
    match (before.get(from..).and_then(<[u8]>::first_chunk::<N>), output.first_chunk_mut::<N>()) {
        (Some(from), Some(to)) => {
            *to = *from;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(content: &[u8]) -> usize {
        let mut block = b"before".to_vec();
        let len = compress(content, usize::MAX, &mut block).unwrap();
        assert_eq!(block.len(), 6 + len);
        let mut out = b"kept".to_vec();
        decompress(&block[6..], content.len(), &mut out).unwrap();
        assert!(out[..4] == *b"kept" && out[4..] == *content);
        for room in [0, content.len(), content.len() + 9] {
            let mut room = vec![0x55; room];
            assert_eq!(decompress_in(&block[6..], content.len(), &mut room), Ok(content));
        }
        len
    }

    #[test]
    fn repeats_are_found_after_a_long_part_without_any() {
        let (random, zeros) = if cfg!(miri) { (4096, 8192) } else { (600 << 10, 4 << 20) };
        let mut seed = 5u64;
        let mut content: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40) as u8
        })
        .take(random)
        .collect();
        content.resize(random + zeros, 0);
        assert!(round_trip(&content) < random + random / 20 + zeros / 50);
    }

    /// If every repeat were checked to its end, this would take minutes.
    #[test]
    fn long_runs_take_linear_time() {
        let len = if cfg!(miri) { 4096 } else { 8 << 20 };
        assert!(round_trip(&vec![0; len]) < len / 80);
    }

    #[test]
    fn decompression_restores_the_content() {
        for len in [0, 1, 2, 3, 4, 31, 32, 33, 263, 264, 265, 266, 267, 268, 8191, 8192, 8200] {
            round_trip(&vec![b'a'; len]);
        }
        let mut seed = 3u64;
        for round in 0..if cfg!(miri) { 4 } else { 400 } {
            let mut content = Vec::new();
            while content.len() < round * 50 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let byte = (seed >> 40) as u8 % if round % 3 == 0 { 200 } else { 3 };
                let run = 1 + (seed >> 50) as usize % 20;
                content.extend(std::iter::repeat_n(byte, run));
                if seed >> 60 == 0 {
                    content.extend_from_within(content.len() / 2..);
                }
            }
            round_trip(&content);
        }
        let text = "one element after another, ".repeat(500);
        assert!(round_trip(text.as_bytes()) < text.len() / 50);
    }

    #[test]
    fn blocks_of_a_real_server_are_read() {
        // From DUMP payloads of strings with these contents.
        for (block, content) in [
            (&b"\x01aa\xe0\x1b\x00\x01aa"[..], "a".repeat(40)),
            (b"\x03abca\xe0\x0b\x02\x02xyz", "abc".repeat(8) + "xyz"),
            (
                b"\x0cthe list of t\xa0\x0b\x00s\xe0\x03\x0c@\x0b  \x01ts",
                "the list of the lists of the list of lists".into(),
            ),
            (b"\x0a01234567890\xe0\xff\x09\xe1\xff\x0d\xe22\x11\x0189", "0123456789".repeat(60)),
            (b"\x01xx\xe0;\x00\x01yz\xe0;E\x01xx", "x".repeat(70) + "yz" + &"x".repeat(70)),
        ] {
            let mut out = vec![];
            decompress(block, content.len(), &mut out).unwrap();
            assert_eq!(out, content.as_bytes());
        }
    }

    #[test]
    fn a_block_fits_the_requested_length_or_is_not_made() {
        let mut out = vec![1];
        assert_eq!(compress(b"nothing to be saved", 15, &mut out), None);
        assert_eq!(out, [1]);
        let len = compress(&[b'x'; 1000], 20, &mut out).unwrap();
        assert_eq!(out.len(), 1 + len);
        assert_eq!(compress(&[b'x'; 1000], len - 1, &mut Vec::new()), None);
    }

    #[test]
    fn malformed_blocks_are_rejected() {
        for (block, len, what) in [
            (&b"\x04ab"[..], 5, "an LZF copy is cut off"),
            (b"\x00a\x20", 4, "an LZF instruction is cut off"),
            (b"\x00a\xe0\x00", 10, "an LZF instruction is cut off"),
            (b"\x20\x00", 3, "an LZF repetition reaches before the start"),
            (b"\x00a\x20\x01", 4, "an LZF repetition reaches before the start"),
            (b"\x00a\x20\x00", 3, "an LZF block has more content than announced"),
            (b"\x00a\x20\x00", 5, "an LZF block has less content than announced"),
            (b"", 1, "an LZF block has less content than announced"),
            (b"\x00a", usize::MAX, "an LZF block has less content than announced"),
        ] {
            let mut out = vec![];
            assert_eq!(decompress(block, len, &mut out).unwrap_err().what, what, "{block:?}");
            assert!(out.is_empty() && out.capacity() < TRUSTED_FACTOR * (block.len() + 1));
        }
        let mut out = vec![];
        decompress(b"\x00a\x20\x00", 4, &mut out).unwrap();
        assert_eq!(out, b"aaaa");
    }
}
