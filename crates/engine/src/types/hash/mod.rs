//! Hashes: fields with values, in no order; a field may have a deadline of its own.
//!
//! | encoding | when |
//! |---|---|
//! | `listpack` | within `hash-max-listpack-entries`; each word within `hash-max-listpack-value` |
//! | `listpackex` | the same, once a field was given a deadline |
//! | `hashtable` | else |
//!
//! A hash never goes back to an earlier encoding, as in Redis.
//!
//! Deadlines are Unix ms. The type does not judge them against the time: whoever opens a hash has
//! fields that are due removed first ([`Hash::expire`]), so nobody sees one.

mod choice;
mod dump;
mod pack;
#[cfg(test)]
mod tests;

pub use brisk_structures::listpack::Item as Text;

use super::{Collection, Encoding, EncodingLimits, Value, ValueKind};
use crate::base::event::EventClass;
use brisk_structures::listpack::ListPack;
use brisk_structures::segments::{Element, Segments};
use pack::Pack;

/// A hash. Values are shown as [`Text`]s: integers where they are stored so.
#[derive(Debug, Clone)]
pub struct Hash(Fields);

#[derive(Debug, Clone)]
enum Fields {
    /// Field, value, field, value …
    Pack(ListPack),
    /// Field, value, deadline, field, value, deadline …
    Timed(Box<Timed>),
    Table(Box<Segments>),
}

/// A listpack with deadlines, 0 for none.
#[derive(Debug, Clone)]
struct Timed {
    list: ListPack,
    /// No deadline is before this; the maximum if there is none.
    soonest: u64,
}

/// A table of fewer segments is freed at once.
const LIGHT_SEGMENTS_MAX: usize = 32;

/// What becomes of a field's deadline when its value is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldDeadline {
    Drop,
    Keep,
}

impl Collection for Hash {
    const KIND: ValueKind = ValueKind::Hash;
    const EVENTS: EventClass = EventClass::HASH;

    fn new(_limits: &EncodingLimits) -> Hash {
        Hash(Fields::Pack(ListPack::new()))
    }

    #[inline]
    fn of_value(value: &Value) -> Option<&Hash> {
        match value {
            Value::Hash(hash) => Some(hash),
            _ => None,
        }
    }

    #[inline]
    fn of_value_mut(value: &mut Value) -> Option<&mut Hash> {
        match value {
            Value::Hash(hash) => Some(hash),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        Value::Hash(self)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        match &self.0 {
            Fields::Pack(list) => list.is_empty(),
            Fields::Timed(timed) => timed.list.is_empty(),
            Fields::Table(table) => table.is_empty(),
        }
    }

    #[inline]
    fn encoding(&self) -> Encoding {
        match &self.0 {
            Fields::Pack(_) => Encoding::ListPack,
            Fields::Timed(_) => Encoding::ListPackEx,
            Fields::Table(_) => Encoding::HashTable,
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<u64> {
        match &self.0 {
            Fields::Pack(_) => None,
            Fields::Timed(timed) => (timed.soonest != u64::MAX).then_some(timed.soonest),
            Fields::Table(table) => table.soonest(),
        }
    }
}

/// The text of a table's value.
fn text<'a>(element: &Element<'a>) -> Text<'a> {
    Text::Str(element.value.unwrap_or_default())
}

impl Hash {
    /// Prefetches what looking up these fields will read. O(fields).
    pub(crate) fn prefetch(&self, fields: &[&[u8]]) {
        if let Fields::Table(table) = &self.0 {
            table.prefetch(fields);
        }
    }

    /// Number of fields. O(1).
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "collections have it from their trait")]
    pub fn len(&self) -> usize {
        match &self.0 {
            Fields::Table(table) => table.len(),
            _ => self.pack().len(),
        }
    }

    /// The compact encodings under one head.
    #[inline]
    fn pack(&self) -> Pack<'_> {
        match &self.0 {
            Fields::Pack(list) => Pack::new(list, 2),
            Fields::Timed(timed) => Pack::new(&timed.list, 3),
            Fields::Table(_) => unreachable!("callers have dealt with tables"),
        }
    }

    /// The value of a field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Text<'_>> {
        match &self.0 {
            Fields::Table(table) => table.get(field).map(|element| text(&element)),
            _ => self.pack().get(field),
        }
    }

    #[inline]
    pub fn contains(&self, field: &[u8]) -> bool {
        match &self.0 {
            Fields::Table(table) => table.contains(field),
            _ => self.pack().find(field).is_some(),
        }
    }

    /// The deadline of a field, `Some(None)` if it has none; `None` if there is no such field.
    pub fn deadline(&self, field: &[u8]) -> Option<Option<u64>> {
        match &self.0 {
            Fields::Table(table) => table.get(field).map(|element| element.deadline),
            _ => self.pack().deadline(field),
        }
    }

    /// Shows every field with its value.
    #[inline]
    pub fn each(&self, mut visit: impl FnMut(Text<'_>, Text<'_>)) {
        match &self.0 {
            Fields::Table(table) => {
                table.iter().for_each(|element| visit(Text::Str(element.key), text(&element)));
            }
            _ => self.pack().each(|field, value, _| visit(field, value)),
        }
    }

    /// Shows every field with its value and its deadline.
    pub fn each_timed(&self, mut visit: impl FnMut(Text<'_>, Text<'_>, Option<u64>)) {
        match &self.0 {
            Fields::Table(table) => table.iter().for_each(|element| {
                visit(Text::Str(element.key), text(&element), element.deadline);
            }),
            _ => self.pack().each(visit),
        }
    }

    /// Shows some fields from `cursor` on, about `count`, and returns the next cursor; 0 both
    /// starts and ends. Fields that stay from start to end are shown at least once, whatever
    /// changes meanwhile; without changes exactly once. Compact encodings are shown whole.
    pub fn scan(
        &self,
        mut cursor: u64,
        count: u64,
        mut visit: impl FnMut(Text<'_>, Text<'_>),
    ) -> u64 {
        let Fields::Table(table) = &self.0 else {
            self.each(visit);
            return 0;
        };
        let mut seen = 0;
        loop {
            cursor = table.scan(cursor, |element| {
                seen += 1;
                visit(Text::Str(element.key), text(&element));
            });
            if cursor == 0 || seen >= count {
                return cursor;
            }
        }
    }

    /// Changes the encoding if one of these words, fields and values, is too long for a compact
    /// one, before any of them is added.
    pub fn prepare<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>, limits: &EncodingLimits) {
        if matches!(self.0, Fields::Table(_)) {
            return;
        }
        let (mut count, mut bytes, mut packed) = (0, 0, 0);
        let is_new = self.is_empty();
        for word in words {
            if word.len() > limits.hash_max_listpack_value {
                return self.become_table(limits);
            }
            count += 1;
            bytes += word.len();
            packed += if is_new { pack::entry_len(word) } else { 0 };
        }
        if !self.pack().list().has_room(count + count / 2, bytes + count * 8) {
            self.become_table(limits);
        } else if is_new && count / 2 <= limits.hash_max_listpack_entries {
            // All at once instead of growing with every word.
            self.0 = Fields::Pack(ListPack::with_capacity(packed));
        }
    }

    /// Sets a field. True if it is new.
    #[inline]
    pub fn set(
        &mut self,
        field: &[u8],
        value: &[u8],
        deadline: FieldDeadline,
        limits: &EncodingLimits,
    ) -> bool {
        let longest = limits.hash_max_listpack_value;
        if (field.len() > longest || value.len() > longest) && !matches!(self.0, Fields::Table(_)) {
            self.become_table(limits);
        }
        let (is_new, len) = match &mut self.0 {
            Fields::Pack(list) => (pack::set(list, 2, field, value, deadline), list.len() / 2),
            Fields::Timed(timed) => {
                let is_new = pack::set(&mut timed.list, 3, field, value, deadline);
                (is_new, timed.list.len() / 3)
            }
            Fields::Table(table) => return set_in_table(table, field, value, deadline),
        };
        if len > limits.hash_max_listpack_entries {
            self.become_table(limits);
        }
        is_new
    }

    /// Removes a field. False if there is none.
    #[inline]
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.0 {
            Fields::Pack(list) => pack::remove(list, 2, field),
            Fields::Timed(timed) => pack::remove(&mut timed.list, 3, field),
            Fields::Table(table) => table.remove(field),
        }
    }

    /// Gives a field another deadline, or none. False if there is no such field.
    pub fn set_deadline(&mut self, field: &[u8], deadline: Option<u64>) -> bool {
        if let (Fields::Pack(list), Some(_)) = (&self.0, deadline) {
            self.0 = Fields::Timed(Box::new(Timed { list: pack::timed(list), soonest: u64::MAX }));
        }
        match &mut self.0 {
            Fields::Pack(list) => Pack::new(list, 2).find(field).is_some(),
            Fields::Timed(timed) => {
                let found = pack::set_deadline(&mut timed.list, field, deadline);
                if found {
                    timed.soonest = timed.soonest.min(deadline.unwrap_or(u64::MAX));
                }
                found
            }
            Fields::Table(table) => table.set_deadline(field, deadline),
        }
    }

    /// Removes fields whose deadline is at most `now`, showing each to `visit` before, about
    /// `limit` at the most. True if none is left that is due.
    pub fn expire(&mut self, now: u64, limit: usize, mut visit: impl FnMut(Text<'_>)) -> bool {
        match &mut self.0 {
            Fields::Pack(_) => true,
            Fields::Timed(timed) => {
                timed.soonest = pack::expire(&mut timed.list, now, visit);
                true
            }
            Fields::Table(table) => {
                table.expire(now, limit, |element| visit(Text::Str(element.key)))
            }
        }
    }

    #[cold]
    fn become_table(&mut self, limits: &EncodingLimits) {
        let pack = self.pack();
        let mut table = Segments::with_capacity(limits.hash_key, pack.len() + 1);
        let (mut of_field, mut of_value) = (itoa::Buffer::new(), itoa::Buffer::new());
        pack.each(|field, value, deadline| {
            table.insert(field.text(&mut of_field), Some(value.text(&mut of_value)), deadline);
        });
        self.0 = Fields::Table(Box::new(table));
    }

    /// Whether freeing it takes no longer than handing it to another thread.
    pub(crate) fn is_light(&self) -> bool {
        match &self.0 {
            Fields::Pack(_) | Fields::Timed(_) => true,
            Fields::Table(table) => table.segment_count() < LIGHT_SEGMENTS_MAX,
        }
    }

    /// Whether its texts together are so long that a reply with all of them should be written bit
    /// by bit. O(1).
    pub fn is_long(&self) -> bool {
        const BYTES_MAX: usize = 256 * 1024;
        match &self.0 {
            Fields::Table(table) => !self.is_light() || table.allocated_bytes() > BYTES_MAX,
            _ => false,
        }
    }

    /// Bytes of memory, this struct itself not included. O(segments).
    pub fn allocated_bytes(&self) -> usize {
        match &self.0 {
            Fields::Pack(list) => list.allocated_bytes(),
            Fields::Timed(timed) => size_of::<Timed>() + timed.list.allocated_bytes(),
            Fields::Table(table) => size_of::<Segments>() + table.allocated_bytes(),
        }
    }
}

fn set_in_table(table: &mut Segments, field: &[u8], value: &[u8], deadline: FieldDeadline) -> bool {
    let kept = match deadline {
        FieldDeadline::Keep if table.soonest().is_some() => {
            table.get(field).and_then(|element| element.deadline)
        }
        _ => None,
    };
    table.insert(field, Some(value), kept)
}
