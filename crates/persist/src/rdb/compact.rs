//! Listpacks that are stored in strings of a file. They are validated in one pass, in the input or
//! in the decompression buffer. Only valid listpacks are copied into separate memory.
//!
//! Elements that must be distinct go into a small hash table. A slot holds the offset of an element
//! and half of its hash, but not its text. For many elements, [`super::unique`] is used instead:
//! its hash has to withstand an attacker who chooses the elements.

use super::input::Input;
use super::primitive::{Decoder, SCRATCH_BYTES_MAX, StringEncoding};
use crate::error::LoadError;
use brisk_structures::hash::HashKey;
use brisk_structures::listpack::{Checked, Item, ListPack, count_said, element_at};
use brisk_structures::lzf;

/// Maximum number of distinct elements that are compared here. With two slots per element the table
/// takes 16 KiB. If all elements collide, it takes half a million comparisons.
const DISTINCT_MAX: usize = 1024;
const SLOTS_MIN: usize = 16;
/// Minimum size of a listpack entry.
const ENTRY_BYTES_MIN: usize = 2;

/// The elements of a listpack that must be distinct.
#[derive(Clone, Copy)]
pub(super) struct DistinctRule {
    /// The first of every `step` elements must be distinct.
    pub(super) step: usize,
    /// The fault to report for a duplicate.
    pub(super) fault: &'static str,
}

/// A hash table of listpack elements. Kept from value to value to reuse its memory.
#[derive(Default)]
pub(super) struct DistinctTable {
    /// The slots of the table, whose number is a power of two. A slot holds the offset of an
    /// element and the upper half of its hash. Zero means free, because no element begins at byte
    /// 0.
    slots: Vec<u64>,
    mask: usize,
    /// Number of elements that the table can still take.
    left: usize,
}

impl DistinctTable {
    /// Clears the table and makes room for `count` elements.
    fn begin(&mut self, count: usize) {
        let slots = (count * 2).next_power_of_two().max(SLOTS_MIN);
        if self.slots.len() < slots {
            self.slots.resize(slots, 0);
        }
        self.slots[..slots].fill(0);
        (self.mask, self.left) = (slots - 1, count);
    }

    /// Adds the element at byte `at`. Returns false if it is a duplicate.
    #[inline]
    fn add(&mut self, key: &HashKey, bytes: &[u8], at: usize, element: Item<'_>) -> bool {
        if self.left == 0 {
            // There are more elements than the header says, which is detected at the end of the
            // validation.
            return true;
        }
        self.left -= 1;
        // The same text may be stored in two ways.
        let hash = match element.canonical() {
            Item::Int(number) => key.quick(&number.to_le_bytes()),
            Item::Str(text) => key.quick(text),
        };
        let tag = hash & !u64::from(u32::MAX);
        let mut slot = hash as usize & self.mask;
        loop {
            let taken = self.slots[slot];
            if taken == 0 {
                break;
            }
            let is_like = taken & !u64::from(u32::MAX) == tag;
            if is_like && element_at(bytes, taken as u32 as usize) == Some(element) {
                return false;
            }
            slot = (slot + 1) & self.mask;
        }
        // Listpacks are shorter than 4 GiB.
        self.slots[slot] = tag | u64::from(at as u32);
        true
    }
}

impl<I: Input> Decoder<I> {
    /// Reads a listpack that is stored as a string. O(bytes).
    pub(super) fn listpack(
        &mut self,
        distinct: Option<DistinctRule>,
    ) -> Result<ListPack, LoadError> {
        self.listpack_where(distinct, |_, _, _| Ok(()))
    }

    /// Like [`Self::listpack`], and calls `each` with the bytes, the offset and the value of every
    /// element. `each` may return a fault.
    pub(super) fn listpack_where(
        &mut self,
        distinct: Option<DistinctRule>,
        each: impl FnMut(&[u8], usize, Item<'_>) -> Result<(), &'static str>,
    ) -> Result<ListPack, LoadError> {
        let encoding = self.string_encoding()?;
        let key = self.unique.key();
        let Decoder { input, block, content, table, .. } = self;
        let mut unseen = false;
        let look = |bytes: &[u8]| -> Result<ListPack, &'static str> {
            let few = distinct.and_then(|which| {
                // Do not trust the count beyond what the bytes can hold.
                let count = usize::from(count_said(bytes)?).min(bytes.len() / ENTRY_BYTES_MIN);
                let count = count.div_ceil(which.step);
                (count <= DISTINCT_MAX).then_some((which, count))
            });
            unseen = distinct.is_some() && few.is_none();
            validate(bytes, &key, table, few, each).map(ListPack::copy_of)
        };
        let found = match encoding {
            StringEncoding::Raw { len } => look(input.bytes(len, content)?),
            StringEncoding::Lzf { block_len, len } => {
                let packed = input.bytes(block_len, block)?;
                // Memory is used only if the block really has that much content.
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                match lzf::decompress_in(packed, len, content) {
                    Ok(bytes) => look(bytes),
                    Err(error) => Err(error.what),
                }
            }
            StringEncoding::Int(_) => Err("found a number instead of a listpack"),
        };
        for room in [block, content] {
            if room.capacity() > SCRATCH_BYTES_MAX {
                *room = Vec::new();
            }
        }
        let list = found.map_err(|what| self.malformed(what))?;
        if unseen && let Some(DistinctRule { step, fault }) = distinct {
            self.require_unique_texts(list.iter().step_by(step), fault)?;
        }
        Ok(list)
    }
}

/// Validates the bytes of a listpack in one pass. `few` is the rule for distinct elements, and
/// their number according to the header.
fn validate<'b>(
    bytes: &'b [u8],
    key: &HashKey,
    table: &mut DistinctTable,
    few: Option<(DistinctRule, usize)>,
    mut each: impl FnMut(&[u8], usize, Item<'_>) -> Result<(), &'static str>,
) -> Result<Checked<'b>, &'static str> {
    let checked = match few {
        None => Checked::new(bytes, |at, element| each(bytes, at, element)),
        Some((DistinctRule { step, fault }, count)) => {
            table.begin(count);
            let mut until = 0;
            Checked::new(bytes, |at, element| {
                if until == 0 {
                    until = step;
                    if !table.add(key, bytes, at, element) {
                        return Err(fault);
                    }
                }
                until -= 1;
                each(bytes, at, element)
            })
        }
    };
    checked.map_err(|error| error.what)
}

#[cfg(test)]
mod tests {
    use super::super::input::SliceInput;
    use super::*;

    const FAULT: &str = "twice";

    fn loaded(list: &ListPack, step: usize) -> Result<ListPack, String> {
        let len = (list.bytes() as u32).to_be_bytes();
        let string = [&[0x80][..], &len, list.as_bytes()].concat();
        let mut decoder = Decoder::new(SliceInput::new(&string), 10);
        let distinct = Some(DistinctRule { step, fault: FAULT });
        let found = decoder.listpack(distinct);
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn duplicates_are_found_among_any_number_of_elements() {
        for count in [1, 7, 8, 9, 128, DISTINCT_MAX, DISTINCT_MAX + 1, 70_000] {
            let mut list = ListPack::new();
            for number in 0..count {
                list.push_back(format!("element {number}").as_bytes());
            }
            let loaded_list = loaded(&list, 1).expect("all are distinct");
            assert_eq!(loaded_list.as_bytes(), list.as_bytes());
            list.push_back(format!("element {}", count / 2).as_bytes());
            let error = loaded(&list, 1).expect_err("one is there twice");
            assert!(error.contains(FAULT), "{error}");
        }
    }

    #[test]
    fn only_the_first_of_each_group_have_to_differ() {
        let mut list = ListPack::new();
        for word in ["a", "x", "b", "x", "c", "a"] {
            list.push_back(word.as_bytes());
        }
        assert!(loaded(&list, 2).is_ok());
        assert!(loaded(&list, 1).is_err());
    }

    #[test]
    fn a_number_and_its_text_are_the_same() {
        let mut list = ListPack::new();
        list.push_back(Item::Int(1234));
        list.push_back(Item::Str(b"01234"));
        assert!(loaded(&list, 1).is_ok());
        list.push_back(Item::Str(b"1234"));
        assert!(loaded(&list, 1).is_err());
    }

    /// The table is sized by the header. All elements are visited before the count is found to be
    /// wrong.
    #[test]
    fn more_elements_than_the_header_says_are_an_error() {
        let mut list = ListPack::new();
        for number in 0..200 {
            list.push_back(Item::Int(number * 1000));
        }
        let mut bytes = list.into_bytes();
        for count in [0, 1, 199, 201, 1000] {
            bytes[4..6].copy_from_slice(&u16::to_le_bytes(count));
            let string = [&[0x80][..], &(bytes.len() as u32).to_be_bytes(), &bytes].concat();
            let mut decoder = Decoder::new(SliceInput::new(&string), 10);
            let distinct = Some(DistinctRule { step: 1, fault: FAULT });
            assert!(decoder.listpack(distinct).is_err(), "{count}");
        }
    }
}
