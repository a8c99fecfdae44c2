//! The compact encodings: fields in a listpack, with two entries per field or, with TTLs, three.

use super::{FieldDeadline, Text};
use brisk_structures::listpack::{ListPack, Pos};

/// A listpack of fields, read-only.
#[derive(Clone, Copy)]
pub(super) struct Pack<'a> {
    list: &'a ListPack,
    /// Number of entries per field: 2, or 3 with an expiry time.
    stride: usize,
}

/// The message of `expect` where entries come in groups.
const WHOLE: &str = "a field is followed by the rest of its group";

impl<'a> Pack<'a> {
    #[inline]
    pub(super) fn new(list: &'a ListPack, stride: usize) -> Pack<'a> {
        Pack { list, stride }
    }

    pub(super) fn list(self) -> &'a ListPack {
        self.list
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.list.len() / self.stride
    }

    #[inline]
    pub(super) fn find(self, field: &[u8]) -> Option<Pos> {
        self.list.find(self.list.first()?, field, self.stride - 1)
    }

    fn after(self, at: Pos) -> Pos {
        self.list.next(at).expect(WHOLE)
    }

    #[inline]
    pub(super) fn get(self, field: &[u8]) -> Option<Text<'a>> {
        self.find(field).map(|at| self.list.item(self.after(at)))
    }

    pub(super) fn deadline(self, field: &[u8]) -> Option<Option<u64>> {
        let at = self.find(field)?;
        Some(if self.stride == 2 {
            None
        } else {
            deadline_of(self.list.item(self.after(self.after(at))))
        })
    }

    /// Calls `visit` with every field, its value and its expiry time.
    #[inline]
    pub(super) fn each(self, mut visit: impl FnMut(Text<'a>, Text<'a>, Option<u64>)) {
        let mut items = self.list.iter();
        while let Some(field) = items.next() {
            let value = items.next().expect(WHOLE);
            let deadline = if self.stride == 2 { None } else { items.next().and_then(deadline_of) };
            visit(field, value, deadline);
        }
    }

    /// The field with this index, and its value.
    pub(super) fn nth(self, index: usize) -> Option<(Text<'a>, Text<'a>)> {
        let at = self.list.seek((index * self.stride) as i64)?;
        Some((self.list.item(at), self.list.item(self.after(at))))
    }
}

fn deadline_of(item: Text<'_>) -> Option<u64> {
    item.int().and_then(|number| u64::try_from(number).ok()).filter(|&number| number != 0)
}

fn entry(deadline: Option<u64>) -> i64 {
    deadline.map_or(0, |deadline| deadline as i64)
}

#[inline]
pub(super) fn set(
    list: &mut ListPack,
    stride: usize,
    field: &[u8],
    value: &[u8],
    deadline: FieldDeadline,
) -> bool {
    let Some(at) = Pack::new(list, stride).find(field) else {
        list.push_back(field);
        list.push_back(value);
        if stride == 3 {
            list.push_back(0);
        }
        return true;
    };
    let at = list.next(at).expect(WHOLE);
    list.replace(at, value);
    if stride == 3 && deadline == FieldDeadline::Drop {
        let at = list.next(at).expect(WHOLE);
        list.replace(at, 0);
    }
    false
}

pub(super) fn remove(list: &mut ListPack, stride: usize, field: &[u8]) -> bool {
    let found = Pack::new(list, stride).find(field);
    if let Some(at) = found {
        list.delete_range(at, stride);
    }
    found.is_some()
}

/// Size of a short text as a listpack entry, in bytes.
pub(super) fn entry_len(word: &[u8]) -> usize {
    match Text::of(word) {
        Text::Int(0..=127) => 2,
        Text::Int(-4096..=4095) => 3,
        Text::Int(-0x8000..=0x7fff) => 4,
        Text::Int(-0x80_0000..=0x7f_ffff) => 5,
        Text::Int(-0x8000_0000..=0x7fff_ffff) => 6,
        Text::Int(_) => 10,
        // The header and the back length take one byte each for texts of up to 63 bytes.
        Text::Str(text) => text.len() + 2 + text.len() / 64,
    }
}

/// The same fields, with entries for expiry times.
pub(super) fn timed(list: &ListPack) -> ListPack {
    let mut timed = ListPack::with_capacity(list.bytes() + list.len());
    Pack::new(list, 2).each(|field, value, _| {
        timed.push_back(field);
        timed.push_back(value);
        timed.push_back(0);
    });
    timed
}

pub(super) fn set_deadline(list: &mut ListPack, field: &[u8], deadline: Option<u64>) -> bool {
    let Some(at) = Pack::new(list, 3).find(field) else {
        return false;
    };
    let value = list.next(at).expect(WHOLE);
    let at = list.next(value).expect(WHOLE);
    list.replace(at, entry(deadline));
    true
}

/// Removes fields that have expired by `now`, after calling `visit` with each. Returns the earliest
/// expiry time of the others, or the maximum if there is none.
pub(super) fn expire(list: &mut ListPack, now: u64, mut visit: impl FnMut(Text<'_>)) -> u64 {
    let mut soonest = u64::MAX;
    let mut next = list.first();
    while let Some(field) = next {
        let value = list.next(field).expect(WHOLE);
        let last = list.next(value).expect(WHOLE);
        next = match deadline_of(list.item(last)) {
            Some(deadline) if deadline <= now => {
                visit(list.item(field));
                list.delete_range(field, 3)
            }
            deadline => {
                soonest = soonest.min(deadline.unwrap_or(u64::MAX));
                list.next(last)
            }
        };
    }
    soonest
}
