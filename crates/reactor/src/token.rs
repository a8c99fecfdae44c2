//! Names of connections that stay unambiguous after the connection is gone.

/// Names one connection of one reactor for as long as it lives, and nothing afterwards.
///
/// `index` is dense and reused, so callers can keep their own state in a `Vec` beside the reactor's
/// connections; `generation` changes with every reuse, so a token kept too long is recognised and
/// ignored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    index: u32,
    generation: u32,
}

/// One more than the greatest index: a user datum of the ring keeps 28 bits for it.
pub(crate) const CONNECTIONS_MAX: usize = 1 << 28;

impl Token {
    pub(crate) const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// Dense index, below the greatest number of connections open at once so far.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Counts the connections that had this index before; never 0.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The token as one word: generation above, index below.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Reverses [`Token::to_u64`].
    #[must_use]
    pub const fn from_u64(word: u64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the halves are taken apart on purpose"
        )]
        Self { index: word as u32, generation: (word >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_way_through_one_word() {
        let token = Token::new(77, u32::MAX);
        assert_eq!(Token::from_u64(token.to_u64()), token);
    }
}
