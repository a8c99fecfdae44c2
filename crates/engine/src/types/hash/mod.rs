//! Hashes: fields with values, without an order. A field may have its own TTL.
//!
//! | encoding | when |
//! |---|---|
//! | `listpack` | within `hash-max-listpack-entries`; each text within `hash-max-listpack-value` |
//! | `listpackex` | the same, once a field has had a TTL |
//! | `hashtable` | otherwise |
//!
//! A hash never returns to an earlier encoding, as in Redis.
//!
//! Expiry times are Unix ms. The type does not compare them with the current time: expired fields are
//! removed before a command opens the hash ([`Hash::expire`]), so no command sees one.

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

/// A hash. Values appear as [`Text`]s, which are integers if they are stored as integers.
#[derive(Debug, Clone)]
pub struct Hash(Fields);

#[derive(Debug, Clone)]
enum Fields {
    /// Field, value, field, value …
    Pack(ListPack),
    /// Field, value, expiry time, field, value, expiry time …
    Timed(Box<Timed>),
    Table(Box<Segments>),
}

/// A listpack with expiry times, 0 for none.
#[derive(Debug, Clone)]
struct Timed {
    list: ListPack,
    /// Lower bound of the expiry times; the maximum if there is none.
    soonest: u64,
}

/// A table with fewer segments is freed immediately.
const LIGHT_SEGMENTS_MAX: usize = 32;

/// How replacing a field's value affects the field's TTL.
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
    /// Prefetches the memory that looking up these fields will read. O(fields).
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

    /// The compact encodings under a common interface.
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

    /// The expiry time of a field, `Some(None)` if it has no TTL; `None` if the field does not
    /// exist.
    pub fn deadline(&self, field: &[u8]) -> Option<Option<u64>> {
        match &self.0 {
            Fields::Table(table) => table.get(field).map(|element| element.deadline),
            _ => self.pack().deadline(field),
        }
    }

    /// Calls `visit` with every field and its value.
    #[inline]
    pub fn each(&self, mut visit: impl FnMut(Text<'_>, Text<'_>)) {
        match &self.0 {
            Fields::Table(table) => {
                table.iter().for_each(|element| visit(Text::Str(element.key), text(&element)));
            }
            _ => self.pack().each(|field, value, _| visit(field, value)),
        }
    }

    /// Calls `visit` with every field, its value and its expiry time.
    pub fn each_timed(&self, mut visit: impl FnMut(Text<'_>, Text<'_>, Option<u64>)) {
        match &self.0 {
            Fields::Table(table) => table.iter().for_each(|element| {
                visit(Text::Str(element.key), text(&element), element.deadline);
            }),
            _ => self.pack().each(visit),
        }
    }

    /// Visits about `count` fields starting at `cursor`, and returns the next cursor. The cursor 0 starts an iteration,
    /// and is returned at its end. Fields that exist throughout an iteration are visited at least once, even if the
    /// hash changes during it, and exactly once if the hash does not change. Compact encodings are visited as a whole.
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

    /// Changes the encoding if a field or value in `words` is too long for a compact encoding,
    /// before any of them is added.
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
            // One allocation, not one per added text.
            self.0 = Fields::Pack(ListPack::with_capacity(packed));
        }
    }

    /// Sets a field. Returns true if it is new.
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

    /// Removes a field. Returns false if it does not exist.
    #[inline]
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.0 {
            Fields::Pack(list) => pack::remove(list, 2, field),
            Fields::Timed(timed) => pack::remove(&mut timed.list, 3, field),
            Fields::Table(table) => table.remove(field),
        }
    }

    /// Sets or removes a field's expiry time. Returns false if the field does not exist.
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

    /// Removes about `limit` fields that have expired by `now`, after calling `visit` with each.
    /// Returns true if no expired field is left.
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

    /// Reports whether freeing the hash is as quick as handing it to another thread.
    pub(crate) fn is_light(&self) -> bool {
        match &self.0 {
            Fields::Pack(_) | Fields::Timed(_) => true,
            Fields::Table(table) => table.segment_count() < LIGHT_SEGMENTS_MAX,
        }
    }

    /// Reports whether the texts are so long in total that a reply with all of them should be
    /// written piece by piece. O(1).
    pub fn is_long(&self) -> bool {
        const BYTES_MAX: usize = 256 * 1024;
        match &self.0 {
            Fields::Table(table) => !self.is_light() || table.allocated_bytes() > BYTES_MAX,
            _ => false,
        }
    }

    /// Memory usage in bytes, excluding the struct itself. O(segments).
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
