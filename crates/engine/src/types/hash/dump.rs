//! Hashes in dumps. Since version 12, hashes with field TTLs have their own dump types.

use super::pack::Pack;
use super::{Fields, Hash, Text, Timed};
use crate::types::EncodingLimits;
use brisk_persist::rdb::value::HashValue;
use brisk_persist::rdb::{Encoder, Sink, kind};
use brisk_structures::listpack::ListPack;
use brisk_structures::segments::Segments;
use std::num::NonZeroU64;

/// A field with its value and expiry time.
type Field<'a> = (&'a [u8], &'a [u8], Option<u64>);

impl Hash {
    pub(in crate::types) fn dump_kind(&self) -> u8 {
        match (&self.0, self.first_deadline()) {
            (Fields::Pack(_), _) => kind::HASH_LISTPACK,
            (Fields::Timed(_), Some(_)) => kind::HASH_LISTPACK_EX,
            (Fields::Table(_), Some(_)) => kind::HASH_METADATA,
            (Fields::Timed(_) | Fields::Table(_), None) => kind::HASH,
        }
    }

    pub(in crate::types) fn dump<S: Sink>(&self, encoder: &mut Encoder<S>) {
        match (&self.0, self.first_deadline()) {
            (Fields::Pack(list), _) => encoder.string(list.as_bytes()),
            (Fields::Timed(timed), Some(first)) => {
                encoder.milliseconds(first.get().cast_signed());
                encoder.string(in_order(&timed.list).as_bytes());
            }
            (Fields::Table(table), Some(first)) => {
                let fields = table.iter().map(|field| {
                    let deadline = field.deadline.and_then(NonZeroU64::new);
                    (field.key, field.value.unwrap_or_default(), deadline)
                });
                encoder.fields_with_expiry(table.len() as u64, first, fields);
            }
            (Fields::Timed(_) | Fields::Table(_), None) => {
                encoder.length(self.len() as u64);
                let mut digits = itoa::Buffer::new();
                self.each(|field, value| {
                    encoder.string(field.text(&mut digits));
                    encoder.string(value.text(&mut digits));
                });
            }
        }
    }

    /// The earliest expiry time of an existing field, unlike [`super::Collection::next_deadline`].
    fn first_deadline(&self) -> Option<NonZeroU64> {
        let mut first = None;
        match &self.0 {
            Fields::Pack(_) => {}
            Fields::Table(table) if !table.has_deadlines() => {}
            Fields::Timed(_) | Fields::Table(_) => self.each_timed(|_, _, deadline| {
                first = [first, deadline.and_then(NonZeroU64::new)].into_iter().flatten().min();
            }),
        }
        first
    }

    pub(in crate::types) fn of_dumped(value: HashValue, limits: &EncodingLimits) -> Hash {
        let mut hash = match value {
            HashValue::Packed(list) => Hash(Fields::Pack(list)),
            HashValue::PackedExpiry(list) => timed(list),
            HashValue::Fields(fields) => {
                let all = fields.pairs().map(|(field, value)| (field, value, None));
                return Hash::of_fields(fields.len() / 2, all, false, limits);
            }
            HashValue::FieldsExpiry(fields, deadlines) => {
                let all = fields.pairs().zip(&deadlines);
                let all = all.map(|((field, value), at)| (field, value, at.map(NonZeroU64::get)));
                return Hash::of_fields(deadlines.len(), all, true, limits);
            }
        };
        if hash.len() > limits.hash_max_listpack_entries {
            hash.become_table(limits);
        }
        hash
    }

    fn of_fields<'a>(
        len: usize,
        fields: impl Iterator<Item = Field<'a>> + Clone,
        has_deadlines: bool,
        limits: &EncodingLimits,
    ) -> Hash {
        let longest = limits.hash_max_listpack_value;
        let bytes = fields.clone().map(|(field, value, _)| field.len() + value.len()).sum();
        let mut list = ListPack::new();
        let fits = len <= limits.hash_max_listpack_entries
            && fields.clone().all(|(f, value, _)| f.len() <= longest && value.len() <= longest)
            && list.has_room(3 * len, bytes);
        if !fits {
            let mut table = Segments::with_capacity(limits.hash_key, len);
            for (field, value, deadline) in fields {
                table.insert(field, Some(value), deadline);
            }
            return Hash(Fields::Table(Box::new(table)));
        }
        for (field, value, deadline) in fields {
            list.push_back(field);
            list.push_back(value);
            if has_deadlines {
                list.push_back(deadline.unwrap_or(0).cast_signed());
            }
        }
        if has_deadlines { timed(list) } else { Hash(Fields::Pack(list)) }
    }
}

/// The hash for a listpack with TTLs.
fn timed(list: ListPack) -> Hash {
    let mut soonest = u64::MAX;
    Pack::new(&list, 3).each(|_, _, at| soonest = soonest.min(at.unwrap_or(u64::MAX)));
    Hash(Fields::Timed(Box::new(Timed { list, soonest })))
}

/// The same fields in order of their expiry times, as in dumps. Fields without a TTL come last.
fn in_order(list: &ListPack) -> ListPack {
    let mut fields: Vec<(u64, Text<'_>, Text<'_>)> = Vec::with_capacity(list.len() / 3);
    Pack::new(list, 3).each(|field, value, at| fields.push((at.unwrap_or(u64::MAX), field, value)));
    fields.sort_by_key(|field| field.0);
    let mut ordered = ListPack::with_capacity(list.bytes());
    for (deadline, field, value) in fields {
        ordered.push_back(field);
        ordered.push_back(value);
        ordered.push_back(if deadline == u64::MAX { 0 } else { deadline.cast_signed() });
    }
    ordered
}
