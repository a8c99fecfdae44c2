//! Sets in dumps. Listpacks are not written, because servers of version 7.0 cannot read them.

use super::{Members, Set};
use crate::base::number::parse_i64;
use crate::types::EncodingLimits;
use brisk_persist::rdb::value::SetValue;
use brisk_persist::rdb::{Encoder, Sink, Strings, kind};
use brisk_structures::intset::IntSet;
use brisk_structures::listpack::ListPack;
use brisk_structures::segments::Segments;

impl Set {
    pub(in crate::types) fn dump_kind(&self) -> u8 {
        match &self.0 {
            Members::None | Members::Ints(_) => kind::SET_INTSET,
            Members::Pack(_) | Members::Table(_) => kind::SET,
        }
    }

    pub(in crate::types) fn dump<S: Sink>(&self, encoder: &mut Encoder<S>) {
        match &self.0 {
            Members::None => encoder.string(IntSet::new().as_bytes()),
            Members::Ints(ints) => encoder.string(ints.as_bytes()),
            Members::Pack(_) | Members::Table(_) => {
                encoder.length(self.len() as u64);
                let mut digits = itoa::Buffer::new();
                self.each(|member| encoder.string(member.text(&mut digits)));
            }
        }
    }

    pub(in crate::types) fn of_dumped(value: SetValue, limits: &EncodingLimits) -> Set {
        let (mut set, len_max) = match value {
            SetValue::Ints(ints) => (Set(Members::Ints(ints)), limits.set_max_intset_entries),
            SetValue::Packed(pack) => (Set(Members::Pack(pack)), limits.set_max_listpack_entries),
            SetValue::Members(members) => return Set::of_members(&members, limits),
        };
        let len = set.len();
        if len > len_max {
            set.become_table(len, limits);
        }
        set
    }

    /// As in Redis, a set starts as an intset if the number of members allows it, and leaves that
    /// encoding at the first member that is not an integer.
    fn of_members(members: &Strings, limits: &EncodingLimits) -> Set {
        let is_compact = members.len() <= limits.set_max_intset_entries;
        let mut rest = members.iter();
        let mut integers: Vec<i64> = Vec::new();
        if is_compact {
            let mut ahead = rest.clone();
            while let Some(number) = ahead.next().and_then(parse_i64) {
                integers.push(number);
                rest.next();
            }
            // In ascending order each integer is added at the end.
            integers.sort_unstable();
            if integers.len() == members.len() {
                return Set(Members::Ints(integers.into_iter().collect()));
            }
        }
        let bytes: usize = members.iter().map(<[u8]>::len).sum();
        let mut pack = ListPack::new();
        let fits = is_compact
            && members.len() <= limits.set_max_listpack_entries
            && members.iter().all(|member| member.len() <= limits.set_max_listpack_value)
            && pack.has_room(members.len(), bytes);
        if fits {
            integers.into_iter().for_each(|number| pack.push_back(number));
            rest.for_each(|member| pack.push_back(member));
            return Set(Members::Pack(pack));
        }
        let mut table = Segments::with_capacity(limits.hash_key, members.len());
        members.iter().for_each(|member| _ = table.add(member, None));
        Set(Members::Table(Box::new(table)))
    }
}
