//! Decodes lists, sets, hashes and sorted sets in all their encodings.

use crate::error::LoadError;
use crate::rdb::compact::DistinctRule;
use crate::rdb::input::Input;
use crate::rdb::primitive::{Decoder, parse_double};
use crate::rdb::strings::Strings;
use crate::rdb::value::{HashValue, ListNode, SetValue, SortedSetValue};
use crate::rdb::{VERSION_VALKEY, kind, ziplist, zipmap};
use brisk_structures::intset::IntSet;
use brisk_structures::listpack::{Item, ListPack, element_at};
use std::num::NonZeroU64;

/// The kinds of quicklist nodes.
const CONTAINER_PLAIN: u64 = 1;
const CONTAINER_PACKED: u64 = 2;

/// A plain list node shorter than this is stored together with others. A separate node would take
/// several times its size in the file.
const PLAIN_BYTES_MIN: usize = 64;

/// Highest Unix time in milliseconds that is valid as an expiry time.
const EXPIRE_TIME_MAX: u64 = i64::MAX as u64;

const DUPLICATE_FIELD: &str = "a hash has a field twice";
const DUPLICATE_MEMBER: &str = "a set has a member twice";
const DUPLICATE_SCORED: &str = "a sorted set has a member twice";
const NO_NUMBER: &str = "a score is not a number";

impl<I: Input> Decoder<I> {
    pub(super) fn list(&mut self, kind: u8) -> Result<Vec<ListNode>, LoadError> {
        let mut list = ListBuilder::default();
        let len = if kind == kind::LIST_ZIPLIST { 1 } else { self.length()? };
        for _ in 0..len {
            match kind {
                kind::LIST => self.string_onto(&mut list.elements)?,
                kind::LIST_QUICKLIST_2 => self.list_node(&mut list)?,
                _ => self.ziplist_onto(&mut list.elements)?,
            }
        }
        list.finish()
    }

    fn list_node(&mut self, list: &mut ListBuilder) -> Result<(), LoadError> {
        match self.length()? {
            CONTAINER_PLAIN => {
                let element = self.string()?;
                if element.is_empty() {
                    return Err(self.malformed("a plain list node is empty"));
                }
                if element.len() < PLAIN_BYTES_MIN {
                    list.elements.push(&element);
                } else {
                    list.push(ListNode::Plain(element));
                }
            }
            CONTAINER_PACKED => {
                let node = self.listpack(None)?;
                // Nodes without elements are skipped, as servers do.
                if !node.is_empty() {
                    list.push(ListNode::Packed(node));
                }
            }
            _ => return Err(self.malformed("a list node is neither plain nor packed")),
        }
        Ok(())
    }

    fn ziplist_onto(&mut self, out: &mut Strings) -> Result<(), LoadError> {
        let bytes = self.string()?;
        ziplist::read(&bytes, out).map_err(|what| self.malformed(what))
    }

    pub(super) fn members(&mut self) -> Result<SetValue, LoadError> {
        let mut members = Strings::new();
        for _ in 0..self.length()? {
            self.string_onto(&mut members)?;
        }
        require_elements(members.len())?;
        self.require_unique(&members, 1, DUPLICATE_MEMBER)?;
        Ok(SetValue::Members(members))
    }

    pub(super) fn intset(&mut self) -> Result<IntSet, LoadError> {
        let bytes = self.string()?;
        IntSet::from_bytes(bytes).map_err(|error| self.malformed(error.what))
    }

    pub(super) fn set_listpack(&mut self) -> Result<ListPack, LoadError> {
        let members = self.listpack(Some(DistinctRule { step: 1, fault: DUPLICATE_MEMBER }))?;
        require_elements(members.len())?;
        Ok(members)
    }

    pub(super) fn fields(&mut self) -> Result<HashValue, LoadError> {
        let mut fields = Strings::new();
        for _ in 0..self.length()? {
            self.string_onto(&mut fields)?;
            self.string_onto(&mut fields)?;
        }
        self.unique_fields(fields)
    }

    pub(super) fn compact_fields(&mut self, kind: u8) -> Result<HashValue, LoadError> {
        let mut fields = Strings::new();
        if kind == kind::HASH_ZIPMAP {
            let bytes = self.string()?;
            zipmap::read(&bytes, &mut fields).map_err(|what| self.malformed(what))?;
        } else {
            self.ziplist_onto(&mut fields)?;
        }
        self.require_multiple(fields.len(), 2)?;
        self.unique_fields(fields)
    }

    fn unique_fields(&mut self, fields: Strings) -> Result<HashValue, LoadError> {
        require_elements(fields.len())?;
        self.require_unique(&fields, 2, DUPLICATE_FIELD)?;
        Ok(HashValue::Fields(fields))
    }

    pub(super) fn hash_listpack(&mut self) -> Result<ListPack, LoadError> {
        let fields = self.listpack(Some(DistinctRule { step: 2, fault: DUPLICATE_FIELD }))?;
        let len = fields.len();
        require_elements(len)?;
        self.require_multiple(len, 2)?;
        Ok(fields)
    }

    /// Reads a listpack of field, value and expiry time. If the times are not in order, the fields
    /// are returned one by one.
    pub(super) fn hash_listpack_with_expiry(&mut self, kind: u8) -> Result<HashValue, LoadError> {
        if kind == kind::HASH_LISTPACK_EX {
            // The earliest expiry time, which the listpack contains too.
            self.milliseconds()?;
        }
        let packed = self.listpack(Some(DistinctRule { step: 3, fault: DUPLICATE_FIELD }))?;
        let len = packed.len();
        require_elements(len)?;
        self.require_multiple(len, 3)?;
        let mut before = 1;
        let mut in_order = true;
        for item in packed.iter().skip(2).step_by(3) {
            let expire_time = match item {
                Item::Int(number @ 0..) => number as u64,
                _ => return Err(self.malformed("a field's expiry time is not valid")),
            };
            // Fields without an expiry time come last, as if they had the highest one.
            let rank = if expire_time == 0 { u64::MAX } else { expire_time };
            in_order &= before <= rank;
            before = rank;
        }
        if in_order {
            return Ok(HashValue::PackedExpiry(packed));
        }
        let (mut fields, mut expire_times) = (Strings::new(), Vec::new());
        for (index, item) in packed.iter().enumerate() {
            if index % 3 == 2 {
                expire_times.push(item.int().and_then(|ms| NonZeroU64::new(ms.cast_unsigned())));
            } else {
                fields.push(item.text(&mut itoa::Buffer::new()));
            }
        }
        Ok(HashValue::FieldsExpiry(fields, expire_times))
    }

    /// Reads fields with an expiry time each, in one of three layouts.
    pub(super) fn fields_with_expiry(&mut self, kind: u8) -> Result<HashValue, LoadError> {
        let times_after = kind == kind::HASH_2 && self.version == VERSION_VALKEY;
        let earliest = match kind {
            kind::HASH_METADATA => self.milliseconds()?.cast_unsigned(),
            _ => 0,
        };
        if earliest > EXPIRE_TIME_MAX {
            return Err(self.malformed("a field's expiry time is not valid"));
        }
        let (mut fields, mut expire_times) = (Strings::new(), Vec::new());
        for _ in 0..self.length()? {
            let mut expire_time = if times_after { 0 } else { self.length()? };
            if kind == kind::HASH_METADATA && expire_time != 0 {
                // Times are relative to the earliest time, which is stored as 1.
                expire_time = earliest.saturating_add(expire_time - 1);
            }
            self.string_onto(&mut fields)?;
            self.string_onto(&mut fields)?;
            if times_after {
                expire_time = match self.milliseconds()? {
                    -1 => 0,
                    // 0 would mean "none". The field expired long ago, and 1 ms more makes no
                    // difference.
                    0 => 1,
                    time => time.cast_unsigned(),
                };
            }
            if expire_time > EXPIRE_TIME_MAX {
                return Err(self.malformed("a field's expiry time is not valid"));
            }
            expire_times.push(NonZeroU64::new(expire_time));
        }
        require_elements(fields.len())?;
        self.require_unique(&fields, 2, DUPLICATE_FIELD)?;
        Ok(HashValue::FieldsExpiry(fields, expire_times))
    }

    pub(super) fn scored_members(&mut self, kind: u8) -> Result<SortedSetValue, LoadError> {
        let (mut members, mut scores) = (Strings::new(), Vec::new());
        for _ in 0..self.length()? {
            self.string_onto(&mut members)?;
            let score = if kind == kind::ZSET { self.text_double()? } else { self.double()? };
            scores.push(self.number(score)?);
        }
        self.unique_members(members, scores)
    }

    pub(super) fn scored_ziplist(&mut self) -> Result<SortedSetValue, LoadError> {
        let mut pairs = Strings::new();
        self.ziplist_onto(&mut pairs)?;
        self.require_multiple(pairs.len(), 2)?;
        let (mut members, mut scores) = (Strings::new(), Vec::new());
        for (member, score) in pairs.pairs() {
            members.push(member);
            scores.push(self.number(parse_double(score).unwrap_or(f64::NAN))?);
        }
        self.unique_members(members, scores)
    }

    fn unique_members(
        &mut self,
        members: Strings,
        scores: Vec<f64>,
    ) -> Result<SortedSetValue, LoadError> {
        require_elements(scores.len())?;
        self.require_unique(&members, 1, DUPLICATE_SCORED)?;
        Ok(SortedSetValue::Members(members, scores))
    }

    pub(super) fn scored_listpack(&mut self) -> Result<ListPack, LoadError> {
        let mut order = OrderCheck::default();
        let distinct = DistinctRule { step: 2, fault: DUPLICATE_SCORED };
        let packed = self.listpack_where(Some(distinct), |bytes, at, element| {
            order.check_next(bytes, at, element)
        })?;
        let len = packed.len();
        require_elements(len)?;
        self.require_multiple(len, 2)?;
        Ok(packed)
    }

    fn number(&self, score: f64) -> Result<f64, LoadError> {
        if score.is_nan() { Err(self.malformed(NO_NUMBER)) } else { Ok(score) }
    }

    fn require_multiple(&self, len: usize, of: usize) -> Result<(), LoadError> {
        if len.is_multiple_of(of) {
            Ok(())
        } else {
            Err(self.malformed("a packed value ends with an incomplete group of elements"))
        }
    }
}

/// A list under construction: complete nodes, and elements after them that are not yet a node.
#[derive(Default)]
struct ListBuilder {
    nodes: Vec<ListNode>,
    elements: Strings,
}

impl ListBuilder {
    fn push(&mut self, node: ListNode) {
        self.flush();
        self.nodes.push(node);
    }

    fn flush(&mut self) {
        if !self.elements.is_empty() {
            self.nodes.push(ListNode::Elements(std::mem::take(&mut self.elements)));
        }
    }

    fn finish(mut self) -> Result<Vec<ListNode>, LoadError> {
        self.flush();
        require_elements(self.nodes.len())?;
        Ok(self.nodes)
    }
}

fn require_elements(len: usize) -> Result<(), LoadError> {
    if len == 0 { Err(LoadError::Empty) } else { Ok(()) }
}

/// Checks that alternating members and scores are in the order of a sorted set.
#[derive(Default)]
struct OrderCheck {
    /// Offset of the member whose score comes next.
    member: Option<usize>,
    /// The previous pair: the offset of its member, and its score.
    before: Option<(usize, f64)>,
}

impl OrderCheck {
    #[inline]
    fn check_next(
        &mut self,
        bytes: &[u8],
        at: usize,
        element: Item<'_>,
    ) -> Result<(), &'static str> {
        let Some(member) = self.member.take() else {
            self.member = Some(at);
            return Ok(());
        };
        let score = match element {
            Item::Int(number) => number as f64,
            Item::Str(text) => parse_double(text).unwrap_or(f64::NAN),
        };
        if score.is_nan() {
            return Err(NO_NUMBER);
        }
        if let Some((below, least)) = self.before
            && !(least < score || (least == score && is_less(bytes, below, member)))
        {
            return Err("a sorted set is not in order");
        }
        self.before = Some((member, score));
        Ok(())
    }
}

/// Returns true if the text of the element at `one` is less than that of the element at `other`.
fn is_less(bytes: &[u8], one: usize, other: usize) -> bool {
    let (mut digits, mut more) = (itoa::Buffer::new(), itoa::Buffer::new());
    let one = element_at(bytes, one).map(|element| element.text(&mut digits));
    one < element_at(bytes, other).map(|element| element.text(&mut more))
}
