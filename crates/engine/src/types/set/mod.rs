//! Sets: distinct byte strings without an order.
//!
//! | encoding | when |
//! |---|---|
//! | `intset` | integers only, up to `set-max-intset-entries` |
//! | `listpack` | at most `set-max-listpack-entries` members of at most `set-max-listpack-value` bytes |
//! | `hashtable` | otherwise |
//!
//! A set starts with the encoding that suits its first member and the number of members added with it. It changes the
//! encoding when a member does not fit, and does not change back on its own. Only operations that build a new set
//! (unions and the like, and SPOP when few members remain) choose the smallest encoding again. All of this is as in
//! Redis 7.2.

mod algebra;
mod choice;
mod dump;
mod probe;
#[cfg(test)]
mod tests;

pub use algebra::{
    count_common, difference, each_common, each_of_any, each_only_in, intersection, union,
};
pub use brisk_structures::listpack::Item as Member;
pub use choice::MemberDrawer;

use super::{Collection, Encoding, EncodingLimits, Value, ValueKind};
use crate::base::event::EventClass;
use crate::base::number::{decimal_len, parse_i64};
use brisk_structures::intset::{self, IntSet};
use brisk_structures::listpack::{self, ListPack};
use brisk_structures::segments::Segments;
use std::ops::ControlFlow;

/// A set of byte strings. Members appear as [`Member`]s, which are integers if they are stored as
/// integers.
#[derive(Debug, Clone, Default)]
pub struct Set(Members);

#[derive(Debug, Clone, Default)]
enum Members {
    /// No member has been added yet. The first one determines the encoding.
    #[default]
    None,
    Ints(IntSet),
    Pack(ListPack),
    Table(Box<Segments>),
}

/// Maximum size of an integer in a listpack, in bytes.
const PACKED_INT_MAX: usize = 11;

/// A table with at most this number of segments is freed immediately.
const LIGHT_SEGMENTS_MAX: usize = 32;

impl Collection for Set {
    const KIND: ValueKind = ValueKind::Set;
    const EVENTS: EventClass = EventClass::SET;

    fn new(_limits: &EncodingLimits) -> Set {
        Set::default()
    }

    #[inline]
    fn of_value(value: &Value) -> Option<&Set> {
        match value {
            Value::Set(set) => Some(set),
            _ => None,
        }
    }

    #[inline]
    fn of_value_mut(value: &mut Value) -> Option<&mut Set> {
        match value {
            Value::Set(set) => Some(set),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        Value::Set(self)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        Set::is_empty(self)
    }

    #[inline]
    fn encoding(&self) -> Encoding {
        match &self.0 {
            Members::None | Members::Ints(_) => Encoding::IntSet,
            Members::Pack(_) => Encoding::ListPack,
            Members::Table(_) => Encoding::HashTable,
        }
    }
}

impl Set {
    /// An empty set that stores integers.
    fn of_ints() -> Set {
        Set(Members::Ints(IntSet::new()))
    }

    /// An empty set that becomes a listpack with its first member.
    fn packed() -> Set {
        Set(Members::Pack(ListPack::new()))
    }

    /// Prepares for adding `count` members, the first of which is `first`. Chooses the encoding of
    /// a new set, or leaves a compact one that cannot hold that many. The number of offered members
    /// counts, even if the set contains some of them already.
    pub fn expect(&mut self, first: &[u8], count: usize, limits: &EncodingLimits) {
        let too_many = match &self.0 {
            Members::None => return *self = Set::for_member(first, count, limits),
            Members::Ints(_) => count > limits.set_max_intset_entries,
            Members::Pack(_) => count > limits.set_max_listpack_entries,
            Members::Table(_) => false,
        };
        if too_many {
            self.become_table(count, limits);
        }
    }

    fn for_member(first: &[u8], count: usize, limits: &EncodingLimits) -> Set {
        if count <= limits.set_max_intset_entries && parse_i64(first).is_some() {
            Set::of_ints()
        } else if count <= limits.set_max_listpack_entries {
            Set::packed()
        } else {
            Set(Members::Table(Box::new(Segments::with_capacity(limits.hash_key, count))))
        }
    }

    /// Prefetches the memory that looking up these members will read. O(members).
    pub(crate) fn prefetch(&self, members: &[&[u8]]) {
        if let Members::Table(table) = &self.0 {
            table.prefetch(members);
        }
    }

    /// Adds `member`. Returns false if it already exists. O(1) in a table, else O(n).
    #[inline]
    pub fn add(&mut self, member: &[u8], limits: &EncodingLimits) -> bool {
        match &mut self.0 {
            Members::Table(table) => table.add(member, None),
            Members::Pack(pack) => {
                if pack.first().is_some_and(|first| pack.find(first, member, 0).is_some()) {
                    return false;
                }
                self.add_to_pack(member, limits);
                true
            }
            Members::Ints(_) => match parse_i64(member) {
                Some(number) => self.add_integer(number, limits),
                None => self.add_to_integers(member, limits),
            },
            Members::None => {
                *self = Set::for_member(member, 1, limits);
                self.add(member, limits)
            }
        }
    }

    /// Adds a new member to a listpack.
    fn add_to_pack(&mut self, member: &[u8], limits: &EncodingLimits) {
        match &mut self.0 {
            Members::Pack(pack)
                if pack.len() < limits.set_max_listpack_entries
                    && member.len() <= limits.set_max_listpack_value
                    && pack.has_room(1, member.len()) =>
            {
                pack.push_back(member);
            }
            _ => {
                let count = self.len() + 1;
                self.become_table(count, limits).add(member, None);
            }
        }
    }

    /// Adds a member of another set, which this set must not contain. O(1) in a listpack too.
    fn add_absent(&mut self, member: Member<'_>, limits: &EncodingLimits) {
        match &self.0 {
            Members::Pack(_) => {
                self.add_to_pack(member.text(&mut itoa::Buffer::new()), limits);
            }
            _ => {
                self.add_member(member, limits);
            }
        }
    }

    /// Adds a member of another set. Returns false if it already exists.
    #[inline]
    pub fn add_member(&mut self, member: Member<'_>, limits: &EncodingLimits) -> bool {
        match member {
            Member::Int(number) if matches!(self.0, Members::Ints(_)) => {
                self.add_integer(number, limits)
            }
            other => self.add(other.text(&mut itoa::Buffer::new()), limits),
        }
    }

    /// Adds an integer to an intset.
    fn add_integer(&mut self, number: i64, limits: &EncodingLimits) -> bool {
        let Members::Ints(ints) = &mut self.0 else {
            return self.add_member(Member::Int(number), limits);
        };
        let added = ints.insert(number);
        let len = ints.len();
        if added && len > limits.set_max_intset_entries.min(intset::LEN_MAX - 1) {
            self.become_table(len, limits);
        }
        added
    }

    /// Adds a member that is not an integer to an intset.
    #[cold]
    fn add_to_integers(&mut self, member: &[u8], limits: &EncodingLimits) -> bool {
        let (len, longest) = match &self.0 {
            Members::Ints(ints) => {
                let ends = ints.min().into_iter().chain(ints.max());
                (ints.len(), ends.map(decimal_len).max().unwrap_or(0))
            }
            _ => (self.len(), 0),
        };
        let fits = len < limits.set_max_listpack_entries
            && member.len().max(longest) <= limits.set_max_listpack_value
            && len.saturating_mul(PACKED_INT_MAX) + member.len() < listpack::BYTES_MAX / 2;
        if !fits {
            return self.become_table(len + 1, limits).add(member, None);
        }
        let mut pack = ListPack::with_capacity(len * 4 + member.len());
        self.each(|own| pack.push_back(own));
        pack.push_back(member);
        self.0 = Members::Pack(pack);
        true
    }

    /// Moves the members to a table with room for `count`.
    fn become_table(&mut self, count: usize, limits: &EncodingLimits) -> &mut Segments {
        let mut table = Box::new(Segments::with_capacity(limits.hash_key, count));
        let mut digits = itoa::Buffer::new();
        self.each(|member| {
            table.add(member.text(&mut digits), None);
        });
        self.0 = Members::Table(table);
        match &mut self.0 {
            Members::Table(table) => table,
            _ => unreachable!("it was just put there"),
        }
    }

    /// Removes `member`. Returns false if it does not exist. O(1) in a table, else O(n).
    #[inline]
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.0 {
            Members::None => false,
            Members::Ints(ints) => parse_i64(member).is_some_and(|number| ints.remove(number)),
            Members::Pack(pack) => {
                let found = pack.first().and_then(|first| pack.find(first, member, 0));
                found.map(|at| pack.delete(at)).is_some()
            }
            Members::Table(table) => table.remove(member),
        }
    }

    /// Removes a member of another set. Returns false if it does not exist.
    fn remove_member(&mut self, member: Member<'_>) -> bool {
        match (&mut self.0, member) {
            (Members::Ints(ints), Member::Int(number)) => ints.remove(number),
            (_, other) => self.remove(other.text(&mut itoa::Buffer::new())),
        }
    }

    /// Reports whether the set contains `member`. O(1) in a table, O(log n) in an intset, else
    /// O(n).
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.0 {
            Members::None => false,
            Members::Ints(ints) => parse_i64(member).is_some_and(|number| ints.contains(number)),
            Members::Pack(pack) => {
                pack.first().is_some_and(|first| pack.find(first, member, 0).is_some())
            }
            Members::Table(table) => table.contains(member),
        }
    }

    /// Reports whether the set contains a member of another set.
    #[inline]
    pub fn contains_member(&self, member: Member<'_>) -> bool {
        match (&self.0, member) {
            (Members::Ints(ints), Member::Int(number)) => ints.contains(number),
            (_, Member::Str(text)) => self.contains(text),
            (_, other) => self.contains(other.text(&mut itoa::Buffer::new())),
        }
    }

    /// Number of members. O(1), except for listpacks with 65,535 or more.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Members::None => 0,
            Members::Ints(ints) => ints.len(),
            Members::Pack(pack) => pack.len(),
            Members::Table(table) => table.len(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Members::None => true,
            Members::Ints(ints) => ints.is_empty(),
            Members::Pack(pack) => pack.is_empty(),
            Members::Table(table) => table.is_empty(),
        }
    }

    /// Calls `visit` with all members.
    #[inline]
    pub fn each<'a>(&'a self, mut visit: impl FnMut(Member<'a>)) {
        let _ = self.try_each(|member| {
            visit(member);
            ControlFlow::Continue(())
        });
    }

    /// Calls `visit` with members until it breaks.
    #[inline]
    pub fn try_each<'a>(
        &'a self,
        mut visit: impl FnMut(Member<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.0 {
            Members::None => ControlFlow::Continue(()),
            Members::Ints(ints) => ints.iter().map(Member::Int).try_for_each(visit),
            Members::Pack(pack) => pack.iter().try_for_each(visit),
            Members::Table(table) => {
                table.iter().try_for_each(|element| visit(Member::Str(element.key)))
            }
        }
    }

    /// One step of an iteration: visits about `count` members starting at `cursor`, and returns the next cursor, which
    /// is 0 at the end. Compact sets are visited as a whole. Members that exist throughout an iteration are visited at
    /// least once, regardless of what is added or removed during it.
    pub fn scan<'a>(&'a self, cursor: u64, count: u64, mut visit: impl FnMut(Member<'a>)) -> u64 {
        let Members::Table(table) = &self.0 else {
            self.each(visit);
            return 0;
        };
        // Empty positions must not end the step early, and many of them must not make it long.
        let (mut next, mut seen) = (cursor, 0);
        for _ in 0..count.saturating_mul(10) {
            next = table.scan(next, |element| {
                seen += 1;
                visit(Member::Str(element.key));
            });
            if next == 0 || seen >= count {
                break;
            }
        }
        next
    }

    /// Like `Value::is_same`.
    pub(super) fn is_same(&self, other: &Set) -> bool {
        match (&self.0, &other.0) {
            (Members::None, Members::None) => true,
            (Members::Ints(a), Members::Ints(b)) => a == b,
            (Members::Pack(a), Members::Pack(b)) => a.as_bytes() == b.as_bytes(),
            (Members::Table(a), Members::Table(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// Reports whether freeing the set is quick.
    pub(super) fn is_light(&self) -> bool {
        match &self.0 {
            Members::Table(table) => table.segment_count() <= LIGHT_SEGMENTS_MAX,
            Members::None | Members::Ints(_) | Members::Pack(_) => true,
        }
    }

    /// Memory usage in bytes, excluding the struct itself.
    pub(super) fn allocated_bytes(&self) -> usize {
        match &self.0 {
            Members::None => 0,
            Members::Ints(ints) => ints.allocated_bytes(),
            Members::Pack(pack) => pack.allocated_bytes(),
            Members::Table(table) => size_of::<Segments>() + table.allocated_bytes(),
        }
    }

    /// Verifies the invariants of the encoding.
    pub fn check(&self) {
        match &self.0 {
            Members::None => {}
            Members::Ints(ints) => ints.check(),
            Members::Pack(pack) => pack.check(),
            Members::Table(table) => table.check(),
        }
    }
}
