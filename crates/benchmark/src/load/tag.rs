//! Hash tags of cluster keys. `{tag}` in a command is replaced with a tag whose slot the addressed node serves.

use brisk_resp::slot::key_slot;

/// The placeholder of a hash tag, in cluster mode.
pub const TAG_WORD: &str = "{tag}";
/// Number of slots in a cluster.
pub const SLOTS: usize = 16_384;

/// Bytes of a tag, without its braces.
const TAG_BYTES: usize = 3;
const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text between the braces. All tags have the same length, so that one can replace another within a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub [u8; TAG_BYTES]);

impl Default for Tag {
    /// The placeholder itself.
    fn default() -> Tag {
        Tag(*b"tag")
    }
}

impl Tag {
    /// The tag as a number, for an atomic variable.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_le_bytes([a, b, c, 0])
    }

    /// The inverse of [`Tag::to_bits`].
    #[must_use]
    pub const fn from_bits(bits: u32) -> Tag {
        let [a, b, c, _] = bits.to_le_bytes();
        Tag([a, b, c])
    }
}

/// A tag for every slot, indexed by slot. Tries tags of three letters and digits, of which there are about 240,000.
#[must_use]
pub fn tags_by_slot() -> Vec<Tag> {
    let mut tags = vec![None; SLOTS];
    for &a in DIGITS {
        for &b in DIGITS {
            for &c in DIGITS {
                let slot = usize::from(key_slot(&[a, b, c]));
                tags[slot].get_or_insert(Tag([a, b, c]));
            }
        }
    }
    // A test verifies that every slot has a tag.
    tags.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_its_own_tag() {
        let tags = tags_by_slot();
        assert_eq!(tags.len(), SLOTS);
        for (slot, tag) in tags.iter().enumerate() {
            let key = [b"key:{", tag.0.as_slice(), b"}:000000000042"].concat();
            assert_eq!(usize::from(key_slot(&key)), slot, "{tag:?}");
        }
        assert_eq!(Tag::from_bits(tags[7].to_bits()), tags[7]);
    }
}
