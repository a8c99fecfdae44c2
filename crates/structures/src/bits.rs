//! Operations on the bits of byte strings: counting, finding, and integers at any bit offset.
//!
//! Bit 0 is the most significant bit of byte 0, so the bits of a string read from left to right.
//! Strings are processed a word at a time; only their ends are processed byte by byte.

/// Counts the bits of `bytes` that are set. O(bytes / 8).
pub fn count_ones(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let whole: u64 =
        words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    whole + tail.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// Counts the set bits in `first..=last`. The range must be inside `bytes`.
pub fn count_ones_in(bytes: &[u8], first: u64, last: u64) -> u64 {
    debug_assert!(first <= last && last < bytes.len() as u64 * 8);
    let (from, to) = ((first / 8) as usize, (last / 8) as usize);
    let before = bytes[from] & !(0xff >> (first % 8));
    let after = bytes[to] & !(0xff << (7 - last % 8));
    let outside = before.count_ones() + after.count_ones();
    count_ones(&bytes[from..=to]) - u64::from(outside)
}

/// Returns the offset of the first bit in `first..=last` that is set (or clear, if `set` is false).
/// The range must be inside `bytes`. O(bits / 64).
pub fn find(bytes: &[u8], set: bool, first: u64, last: u64) -> Option<u64> {
    debug_assert!(first <= last && last < bytes.len() as u64 * 8);
    // Flip so that the wanted bits are ones.
    let flip = if set { 0 } else { 0xff };
    let (from, to) = ((first / 8) as usize, (last / 8) as usize);
    let masked = |at: usize| {
        let mut byte = bytes[at] ^ flip;
        if at == from {
            byte &= 0xff >> (first % 8);
        }
        if at == to {
            byte &= 0xff << (7 - last % 8);
        }
        byte
    };
    let place = |at: usize, byte: u8| at as u64 * 8 + u64::from(byte.leading_zeros());
    if masked(from) != 0 || from == to {
        return (masked(from) != 0).then(|| place(from, masked(from)));
    }
    let middle = &bytes[from + 1..to];
    let differs = |word: &[u8; 8]| u64::from_ne_bytes(*word) ^ if set { 0 } else { u64::MAX };
    // Whole blocks first: without branches inside, the compiler can vectorise them.
    let dull = |block: &&[u8; 64]| {
        block.as_chunks::<8>().0.iter().fold(0, |seen, word| seen | differs(word)) == 0
    };
    let mut skipped = middle.as_chunks::<64>().0.iter().take_while(dull).count() * 64;
    let (words, _) = middle[skipped..].as_chunks::<8>();
    skipped += words.iter().take_while(|word| differs(word) == 0).count() * 8;
    let found = (from + 1 + skipped..=to).find(|at| masked(*at) != 0);
    found.map(|at| place(at, masked(at)))
}

/// Returns the bit at `offset`. Bits after the end are clear.
pub fn bit(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|at| bytes.get(at));
    byte.is_some_and(|byte| byte & (0x80 >> (offset % 8)) != 0)
}

/// Sets the bit at `offset`, which must be inside `bytes`, and returns its old value.
pub fn set_bit(bytes: &mut [u8], offset: u64, set: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let mask = 0x80 >> (offset % 8);
    let was = *byte & mask != 0;
    *byte = if set { *byte | mask } else { *byte & !mask };
    was
}

/// Maximum number of bytes that an integer of up to 64 bits touches.
const WINDOW: usize = 9;

/// Reads `width` bits (1 to 64) at `offset` as an integer. Bits after the end are clear.
pub fn read_bits(bytes: &[u8], offset: u64, width: u32) -> u64 {
    let from = usize::try_from(offset / 8).map_or(bytes.len(), |at| at.min(bytes.len()));
    let window = &bytes[from..];
    let mut wide = 0u128;
    for at in 0..WINDOW {
        wide = wide << 8 | u128::from(window.get(at).copied().unwrap_or(0));
    }
    let (shift, mask) = window_of(offset, width);
    (wide >> shift & mask) as u64
}

/// Writes the low `width` bits (1 to 64) of `value` at `offset`. The bits must be inside `bytes`.
pub fn write_bits(bytes: &mut [u8], offset: u64, width: u32, value: u64) {
    let from = (offset / 8) as usize;
    let to = ((offset + u64::from(width) - 1) / 8) as usize;
    let window = &mut bytes[from..=to];
    let (shift, mask) = window_of(offset, width);
    let (mask, value) = (mask << shift, (u128::from(value) & mask) << shift);
    for (at, byte) in window.iter_mut().enumerate() {
        let down = 8 * (WINDOW - 1 - at);
        *byte = *byte & !((mask >> down) as u8) | (value >> down) as u8;
    }
}

/// Returns the distance of the bits from the right end of their window, and a mask of `width` ones.
fn window_of(offset: u64, width: u32) -> (u32, u128) {
    debug_assert!((1..=64).contains(&width));
    (8 * WINDOW as u32 - (offset % 8) as u32 - width, (1 << width) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudorandom bytes with long runs of equal bytes.
    fn sample(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                match state >> 60 {
                    0..=5 => 0,
                    6..=11 => 0xff,
                    _ => (state >> 32) as u8,
                }
            })
            .collect()
    }

    #[test]
    fn counting_and_finding_agree_with_looking_at_each_bit() {
        for seed in 0..40 {
            let bytes = sample(seed, 1 + (seed as usize * 7) % 50);
            let bits = bytes.len() as u64 * 8;
            let all = (0..bits).filter(|at| bit(&bytes, *at)).count() as u64;
            assert_eq!(count_ones(&bytes), all);
            for first in (0..bits).step_by(3) {
                for last in (first..bits).step_by(5) {
                    let set = |at: &u64| bit(&bytes, *at);
                    let count = (first..=last).filter(set).count() as u64;
                    assert_eq!(count_ones_in(&bytes, first, last), count);
                    assert_eq!(find(&bytes, true, first, last), (first..=last).find(set));
                    let clear = (first..=last).find(|at| !set(at));
                    assert_eq!(find(&bytes, false, first, last), clear);
                }
            }
        }
    }

    #[test]
    fn integers_are_read_as_written_and_their_neighbors_stay() {
        for seed in 0..200 {
            let before = sample(seed, 24);
            let (offset, width) = (seed % 100, 1 + (seed * 13 % 64) as u32);
            let value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut bytes = before.clone();
            write_bits(&mut bytes, offset, width, value);
            assert_eq!(read_bits(&bytes, offset, width), value & (u64::MAX >> (64 - width)));
            let inside = offset..offset + u64::from(width);
            for at in (0..24 * 8).filter(|at| !inside.contains(at)) {
                assert_eq!(bit(&bytes, at), bit(&before, at));
            }
        }
    }

    #[test]
    fn bits_beyond_the_end_are_clear() {
        assert_eq!(read_bits(b"\xff", 4, 8), 0xf0);
        assert_eq!(read_bits(b"\xff", u64::MAX - 64, 64), 0);
        assert!(!bit(b"\xff", 8));
    }
}
