//! Names of connections. A token stays unambiguous after its connection is closed.

/// Names one connection of one reactor. After the connection is closed, the token names nothing.
///
/// `index` is dense and reused, so callers can keep their own state per connection in a `Vec`.
/// `generation` changes with every reuse, so a stale token is recognized and ignored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    index: u32,
    generation: u32,
}

/// One more than the highest index. The user data of a ring operation has 28 bits for the index.
pub(crate) const CONNECTIONS_MAX: usize = 1 << 28;

impl Token {
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// Returns the dense index, which is below the highest number of connections that were open at
    /// once.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the number of connections that have had this index so far. Never 0.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Returns the token as a `u64`: the generation in the upper half, the index in the lower half.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Reverses [`Token::to_u64`].
    #[must_use]
    pub const fn from_u64(value: u64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the halves are taken apart on purpose"
        )]
        Self { index: value as u32, generation: (value >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_conversion_to_u64_and_back() {
        let token = Token::new(77, u32::MAX);
        assert_eq!(Token::from_u64(token.to_u64()), token);
    }
}
