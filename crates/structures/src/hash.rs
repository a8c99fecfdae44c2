//! SipHash-1-3 over one byte slice: the hash of every table key.
//!
//! Keyed with 128 bits drawn at start, so that a client cannot choose keys that collide. It agrees
//! with `std`'s `SipHasher13` fed by a single `write(bytes)`; specialised here because the
//! streaming interface of `Hasher` costs more than the hash itself for keys of 16 bytes.

/// The secret of a keyed hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKey {
    pub k0: u64,
    pub k1: u64,
}

impl HashKey {
    /// The SipHash-1-3 value of `bytes`. O(length).
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
}

/// The last 0 to 7 bytes as a little-endian number, without a loop over bytes.
#[inline(always)]
fn tail_word(tail: &[u8]) -> u64 {
    let n = tail.len();
    if n >= 4 {
        let low = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let high = u32::from_le_bytes([tail[n - 4], tail[n - 3], tail[n - 2], tail[n - 1]]);
        // The two reads overlap by 8 - n bytes; the overlap carries equal bits.
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

    /// The first of the published SipHash-1-3 vectors: key 00..0f, no input.
    #[test]
    fn agrees_with_the_published_vector_under_a_key() {
        let key = HashKey { k0: 0x0706_0504_0302_0100, k1: 0x0f0e_0d0c_0b0a_0908 };
        let expected = [0xdc, 0xc4, 0x0f, 0x05, 0x58, 0x01, 0xac, 0xab];
        assert_eq!(key.hash(b""), u64::from_le_bytes(expected));
    }
}
