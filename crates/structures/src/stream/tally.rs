//! Counts the entries of a block, and validates external blocks.

use super::block::{DELETED, SAME_FIELDS};
use super::id::StreamId;
use crate::listpack::{Iter, ListPack};
use crate::malformed::Malformed;

/// The totals of a block's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub live: u64,
    pub deleted: u64,
    pub first_live: Option<StreamId>,
    /// The ID of the last entry, deleted or not; the block's own ID if it has no entries.
    pub last: StreamId,
}

impl Tally {
    /// Walks over a block's entries and validates them completely. `block` is the ID to which their
    /// IDs are relative. O(elements).
    ///
    /// # Errors
    /// Returns the violated rule of the layout (see `block.rs`).
    pub fn of(block: StreamId, entries: &ListPack) -> Result<Tally, Malformed> {
        tally(block, entries).map_err(|what| Malformed { offset: 0, what })
    }
}

fn tally(block: StreamId, entries: &ListPack) -> Result<Tally, &'static str> {
    const CUT_OFF: &str = "a stream block is cut off";
    let mut items = entries.iter();
    let number = |items: &mut Iter<'_>| match items.next() {
        Some(item) => item.int().ok_or("a stream block has text where a number should be"),
        None => Err(CUT_OFF),
    };
    let live = number(&mut items)?;
    let deleted = number(&mut items)?;
    let fields = number(&mut items)?;
    skip(&mut items, fields).ok_or(CUT_OFF)?;
    if number(&mut items)? != 0 {
        return Err("a stream block's first entry does not end with zero");
    }
    let (Ok(live), Ok(deleted)) = (u64::try_from(live), u64::try_from(deleted)) else {
        return Err("a stream block has a negative count of entries");
    };

    let mut seen = Tally { live: 0, deleted: 0, first_live: None, last: block };
    while items.clone().next().is_some() {
        let flags = number(&mut items)?;
        if flags & !(DELETED | SAME_FIELDS) != 0 {
            return Err("a stream entry has unknown flags");
        }
        let (ms, seq) = (number(&mut items)?, number(&mut items)?);
        let id = StreamId {
            ms: block.ms.wrapping_add_signed(ms),
            seq: block.seq.wrapping_add_signed(seq),
        };
        let first = seen.live + seen.deleted == 0;
        if id < seen.last || (id == seen.last && !first) {
            return Err("a stream block's entries are not in order");
        }
        seen.last = id;
        let (parts, head) = if flags & SAME_FIELDS != 0 {
            skip(&mut items, fields).ok_or(CUT_OFF)?;
            (fields, 3)
        } else {
            let own = number(&mut items)?;
            let both = own.checked_mul(2).ok_or(CUT_OFF)?;
            skip(&mut items, both).ok_or(CUT_OFF)?;
            (both, 4)
        };
        if number(&mut items)? != parts + head {
            return Err("a stream entry's count of elements is wrong");
        }
        if flags & DELETED != 0 {
            seen.deleted += 1;
        } else {
            seen.live += 1;
            seen.first_live.get_or_insert(id);
        }
    }
    if (seen.live, seen.deleted) != (live, deleted) {
        return Err("a stream block's count of entries is wrong");
    }
    Ok(seen)
}

/// Skips `count` elements; `None` if there are fewer, or if the count is not a valid number of
/// elements.
fn skip(items: &mut Iter<'_>, count: i64) -> Option<()> {
    for _ in 0..u64::try_from(count).ok()? {
        items.next()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listpack::Item;

    fn block(words: &str) -> ListPack {
        let mut pack = ListPack::new();
        for word in words.split_whitespace() {
            pack.push_back(Item::of(word.as_bytes()));
        }
        pack
    }

    fn check(words: &str) -> Result<(u64, Option<StreamId>, StreamId), &'static str> {
        let id = StreamId { ms: 10, seq: 5 };
        tally(id, &block(words)).map(|tally| (tally.live, tally.first_live, tally.last))
    }

    #[test]
    fn a_block_is_counted_and_its_ids_are_those_of_its_entries() {
        // Two fields. One entry with the same fields, a deleted one, and one with a field of its
        // own whose sequence number is below the block's.
        let words = "2 1 2 a b 0  2 0 0 x y 5  3 0 1 x y 5  0 7 -5 1 c z 6";
        let (first, last) = (StreamId { ms: 10, seq: 5 }, StreamId { ms: 17, seq: 0 });
        assert_eq!(check(words), Ok((2, Some(first), last)));
    }

    #[test]
    fn broken_blocks_are_rejected() {
        for bad in [
            "",
            "1 0 1 a",
            "x 0 1 a 0 2 0 0 x 4",
            "1 0 1 a 1 2 0 0 x 4",
            "1 0 1 a 0 2 0 0 x 5",
            "2 0 1 a 0 2 0 0 x 4",
            "1 1 1 a 0 2 0 0 x 4",
            "-1 2 1 a 0 2 0 0 x 4",
            "1 0 -1 a 0 2 0 0 x 4",
            "1 0 1 a 0 2 0 0 x",
            "1 0 1 a 0 2 0 0 x 4 9",
            "1 0 1 a 0 2 0 -1 x 4",
            "2 0 1 a 0 2 0 0 x 4 2 0 0 y 4",
            "2 0 1 a 0 2 0 3 x 4 2 0 2 y 4",
            "1 0 1 a 0 0 0 0 9223372036854775807 b x 6",
            "1 0 9223372036854775807 a 0 2 0 0 x 4",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
