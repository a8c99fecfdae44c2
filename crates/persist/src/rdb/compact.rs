//! Listpacks in the strings of a file: looked at where they stand, or where they were expanded, each
//! byte once, and copied into memory of their own only when all is well.
//!
//! Elements that have to differ go into a small table of where they stand, which knows nothing of
//! their texts but a part of a hash. Many elements are left to [`super::unique`]: there the hash has to
//! withstand whoever chooses them.

use super::input::Input;
use super::primitive::{Decoder, Form, SCRATCH_BYTES_MAX};
use crate::error::LoadError;
use brisk_structures::hash::HashKey;
use brisk_structures::listpack::{Checked, Item, ListPack, count_said, element_at};
use brisk_structures::lzf;

/// So many elements that have to differ are compared here, at most: with two places for each the table
/// takes 16 KiB, and elements that all collide half a million comparisons.
const DIFFERENT_MAX: usize = 1024;
const PLACES_MIN: usize = 16;
/// No entry of a listpack has less bytes.
const ENTRY_BYTES_MIN: usize = 2;

/// Which elements of a listpack have to differ from each other.
#[derive(Clone, Copy)]
pub(super) struct Different {
    /// The first of each so many elements.
    pub(super) step: usize,
    /// What to say if two of them are the same.
    pub(super) fault: &'static str,
}

/// Elements of a listpack that were met. Kept from value to value for its memory.
#[derive(Default)]
pub(super) struct Seen {
    /// A power of two of places: where an element stands, with the high half of its hash; zero is free,
    /// as no element stands at byte 0.
    places: Vec<u64>,
    mask: usize,
    /// How many more find a place.
    left: usize,
}

impl Seen {
    /// Forgets all, and makes room for so many.
    fn begin(&mut self, count: usize) {
        let places = (count * 2).next_power_of_two().max(PLACES_MIN);
        if self.places.len() < places {
            self.places.resize(places, 0);
        }
        self.places[..places].fill(0);
        (self.mask, self.left) = (places - 1, count);
    }

    /// Adds the element that stands at byte `at`; false if there is one like it.
    #[inline]
    fn add(&mut self, key: &HashKey, bytes: &[u8], at: usize, element: Item<'_>) -> bool {
        if self.left == 0 {
            // More than the listpack says it has, which is found at its end.
            return true;
        }
        self.left -= 1;
        // The same text may be stored in two ways.
        let hash = match element.canonical() {
            Item::Int(number) => key.quick(&number.to_le_bytes()),
            Item::Str(text) => key.quick(text),
        };
        let tag = hash & !u64::from(u32::MAX);
        let mut place = hash as usize & self.mask;
        loop {
            let taken = self.places[place];
            if taken == 0 {
                break;
            }
            let is_like = taken & !u64::from(u32::MAX) == tag;
            if is_like && element_at(bytes, taken as u32 as usize) == Some(element) {
                return false;
            }
            place = (place + 1) & self.mask;
        }
        // Listpacks are shorter than 4 GiB.
        self.places[place] = tag | u64::from(at as u32);
        true
    }
}

impl<I: Input> Decoder<I> {
    /// A listpack in a string. O(bytes).
    pub(super) fn listpack(&mut self, different: Option<Different>) -> Result<ListPack, LoadError> {
        self.listpack_where(different, |_, _, _| Ok(()))
    }

    /// The same; `each` hears of each element, at which byte of which bytes it stands, and may find
    /// fault with it.
    pub(super) fn listpack_where(
        &mut self,
        different: Option<Different>,
        each: impl FnMut(&[u8], usize, Item<'_>) -> Result<(), &'static str>,
    ) -> Result<ListPack, LoadError> {
        let form = self.form()?;
        let key = self.unique.key();
        let Decoder { input, block, content, seen, .. } = self;
        let mut unseen = false;
        let look = |bytes: &[u8]| -> Result<ListPack, &'static str> {
            let few = different.and_then(|which| {
                // It is not believed beyond what the bytes can hold.
                let count = usize::from(count_said(bytes)?).min(bytes.len() / ENTRY_BYTES_MIN);
                let count = count.div_ceil(which.step);
                (count <= DIFFERENT_MAX).then_some((which, count))
            });
            unseen = different.is_some() && few.is_none();
            look_at(bytes, &key, seen, few, each).map(ListPack::copy_of)
        };
        let found = match form {
            Form::Raw { len } => look(input.bytes(len, content)?),
            Form::Lzf { block_len, len } => {
                let packed = input.bytes(block_len, block)?;
                // It takes memory only if the block has so much content.
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                match lzf::decompress_in(packed, len, content) {
                    Ok(bytes) => look(bytes),
                    Err(error) => Err(error.what),
                }
            }
            Form::Int(_) => Err("a number stands where a listpack should"),
        };
        for room in [block, content] {
            if room.capacity() > SCRATCH_BYTES_MAX {
                *room = Vec::new();
            }
        }
        let list = found.map_err(|what| self.malformed(what))?;
        if unseen && let Some(Different { step, fault }) = different {
            self.demand_unique_texts(list.iter().step_by(step), fault)?;
        }
        Ok(list)
    }
}

/// Walks once over the bytes of a listpack. `few` are the elements that must differ and how many there
/// are said to be.
fn look_at<'b>(
    bytes: &'b [u8],
    key: &HashKey,
    seen: &mut Seen,
    few: Option<(Different, usize)>,
    mut each: impl FnMut(&[u8], usize, Item<'_>) -> Result<(), &'static str>,
) -> Result<Checked<'b>, &'static str> {
    let checked = match few {
        None => Checked::new(bytes, |at, element| each(bytes, at, element)),
        Some((Different { step, fault }, count)) => {
            seen.begin(count);
            let mut until = 0;
            Checked::new(bytes, |at, element| {
                if until == 0 {
                    until = step;
                    if !seen.add(key, bytes, at, element) {
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
        let different = Some(Different { step, fault: FAULT });
        let found = decoder.listpack(different);
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn duplicates_are_found_however_many_elements_there_are() {
        for count in [1, 7, 8, 9, 128, DIFFERENT_MAX, DIFFERENT_MAX + 1, 70_000] {
            let mut list = ListPack::new();
            for number in 0..count {
                list.push_back(format!("element {number}").as_bytes());
            }
            let loaded_list = loaded(&list, 1).expect("all are different");
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

    /// The table is made for as many as the header says; all are looked at before that is found wrong.
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
            let different = Some(Different { step: 1, fault: FAULT });
            assert!(decoder.listpack(different).is_err(), "{count}");
        }
    }
}
