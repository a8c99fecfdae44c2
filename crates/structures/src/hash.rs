//! SipHash-1-3 over one byte slice: the hash of every table key. Also a quick hash for small tables
//! that exist during one command.
//!
//! The hash is keyed with 128 random bits, so that a client cannot choose keys that collide. It
//! agrees with `std`'s `SipHasher13` after a single `write(bytes)`. This implementation is
//! specialised because, for 16-byte keys, the streaming interface of `Hasher` costs more than the
//! hash itself.

/// The secret of a keyed hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKey {
    pub k0: u64,
    pub k1: u64,
}

impl HashKey {
    /// Returns the SipHash-1-3 of `bytes`. O(length).
    #[inline]
    #[must_use]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let mut s = State::new(*self);
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut le = [0; 8];
            le.copy_from_slice(word);
            s.absorb(u64::from_le_bytes(le));
        }
        s.absorb(tail_word(words.remainder()) | (bytes.len() as u64) << 56);
        s.finish()
    }

    /// Returns a different keyed hash, which folds the halves of products together and is several
    /// times as fast for short inputs. It is not known to withstand an attacker who can observe its
    /// values, so it is only for tables of bounded size. O(length).
    #[inline]
    #[must_use]
    pub fn quick(&self, bytes: &[u8]) -> u64 {
        let mut folded = self.k0 ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
        let words = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                let inner = bytes.len().saturating_sub(1) / 16 * 16;
                for pair in bytes[..inner].as_chunks::<16>().0 {
                    let [low, high] = [&pair[..8], &pair[8..]].map(whole_word);
                    folded = fold(low ^ folded, high ^ self.k1);
                }
                // Takes the rest, and enough bytes before it to get whole words.
                match bytes.last_chunk::<16>() {
                    Some(end) => [&end[..8], &end[8..]].map(whole_word),
                    None => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
                }
            }
            _ => [tail_word(bytes), 0],
        };
        fold(fold(words[0] ^ folded, words[1] ^ self.k1), MULTIPLIER)
    }
}

/// The multiplier of the quick hash: odd, with about as many one bits as zero bits.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn whole_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// Returns the last 0 to 7 bytes as a little-endian number, without a loop over bytes.
#[inline(always)]
fn tail_word(tail: &[u8]) -> u64 {
    let n = tail.len();
    if n >= 4 {
        let low = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let high = u32::from_le_bytes([tail[n - 4], tail[n - 3], tail[n - 2], tail[n - 1]]);
        // The two reads overlap by 8 - n bytes; the bits in the overlap are equal.
        u64::from(low) | u64::from(high) << (8 * (n - 4))
    } else if n > 0 {
        let middle = n / 2;
        u64::from(tail[0])
            | u64::from(tail[middle]) << (8 * middle)
            | u64::from(tail[n - 1]) << (8 * (n - 1))
    } else {
        0
    }
}

struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    #[inline(always)]
    fn new(key: HashKey) -> Self {
        Self {
            v0: key.k0 ^ 0x736f_6d65_7073_6575,
            v1: key.k1 ^ 0x646f_7261_6e64_6f6d,
            v2: key.k0 ^ 0x6c79_6765_6e65_7261,
            v3: key.k1 ^ 0x7465_6462_7974_6573,
        }
    }

    #[inline(always)]
    fn absorb(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.v0 ^= word;
    }

    #[inline(always)]
    fn finish(mut self) -> u64 {
        self.v2 ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline(always)]
    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::HashKey;
    use std::collections::hash_map::DefaultHasher;
    use std::hash::Hasher;

    #[test]
    fn agrees_with_the_standard_hasher_under_a_zero_key_at_every_length() {
        let bytes: Vec<u8> = (0..200).map(|i: u32| (i * 37 + 11) as u8).collect();
        for n in 0..=bytes.len() {
            let mut std = DefaultHasher::new();
            std.write(&bytes[..n]);
            assert_eq!(HashKey::default().hash(&bytes[..n]), std.finish(), "length {n}");
        }
    }

    #[test]
    fn quick_hashes_of_bytes_that_are_nearly_the_same_differ_in_all_bits() {
        let key = HashKey { k0: 0x0123_4567_89ab_cdef, k1: 0xfedc_ba98_7654_3210 };
        let mut seen = std::collections::HashSet::new();
        for len in 0..100 {
            let mut bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let whole = key.quick(&bytes);
            assert!(seen.insert(whole), "length {len}");
            let mut flipped = [0u32; 64];
            for at in 0..len * 8 {
                bytes[at / 8] ^= 1 << (at % 8);
                let other = key.quick(&bytes);
                bytes[at / 8] ^= 1 << (at % 8);
                assert!(seen.insert(other), "length {len}, bit {at}");
                for (bit, count) in flipped.iter_mut().enumerate() {
                    *count += ((whole ^ other) >> bit & 1) as u32;
                }
            }
            // In hundreds of coin tosses, no coin shows the same side in three quarters of them.
            let all = len as u32 * 8;
            let even = |count: &u32| (all / 4..=all * 3 / 4).contains(count);
            assert!(len < 30 || flipped.iter().all(even), "length {len}: {flipped:?}");
        }
        let other = HashKey { k0: key.k0 + 1, k1: key.k1 };
        assert_ne!(key.quick(b"element"), other.quick(b"element"));
    }

    /// The first of the published SipHash-1-3 vectors: key 00..0f, no input.
    #[test]
    fn agrees_with_the_published_vector_under_a_key() {
        let key = HashKey { k0: 0x0706_0504_0302_0100, k1: 0x0f0e_0d0c_0b0a_0908 };
        let expected = [0xdc, 0xc4, 0x0f, 0x05, 0x58, 0x01, 0xac, 0xab];
        assert_eq!(key.hash(b""), u64::from_le_bytes(expected));
    }
}
