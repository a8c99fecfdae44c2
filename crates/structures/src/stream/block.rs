//! A block of a stream: several entries in a listpack, in Redis's format.
//!
//! ```text
//!  master entry:  live  deleted  n  field 1 … field n  0
//!  entry, fields as in the master: flags  ms  seq            value 1 … value n               count
//!  entry, other fields:            flags  ms  seq  n  field 1  value 1 … field n  value n    count
//! ```
//! `ms` and `seq` are relative to the block's first ID. `count` is the number of preceding elements
//! of the entry, for walking backwards. Deleted entries stay in the block; their flags mark them as
//! deleted.

use super::id::StreamId;
use super::tally::Tally;
use crate::listpack::{BYTES_MAX, Item, ListPack, Pos};
use crate::malformed::Malformed;
use crate::sequence::Part;

/// Flags of an entry.
pub(super) const DELETED: i64 = 1;
pub(super) const SAME_FIELDS: i64 = 2;

/// Number of elements at the start of an entry: flags, ms, seq. The master entry begins with three
/// elements, too.
const FIXED: usize = 3;

/// The limits of a block. 0 means no limit.
#[derive(Debug, Clone, Copy)]
pub struct BlockLimits {
    pub bytes: usize,
    pub entries: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The ID to which the IDs of the entries are relative.
    first: StreamId,
    /// The number of live entries, as in the master entry.
    live: usize,
    deleted: usize,
    /// The ID of the last entry, deleted or not.
    last_id: StreamId,
    /// A position before which there is no live entry; `None` if unknown. Without this position,
    /// every XADD that trims the stream would walk over all deleted entries of the block.
    front: Option<Pos>,
    pack: ListPack,
}

impl Part for Block {
    fn len(&self) -> usize {
        self.live
    }
}

/// An entry of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub id: StreamId,
    pack: &'a ListPack,
    /// The position of the entry's flags.
    at: Pos,
    /// The position of the first value, or of the first field if the entry has its own fields.
    body: Pos,
    /// Number of fields.
    count: usize,
    same_fields: bool,
}

/// Returns the integer of an element; validated bytes have integers at all expected positions.
fn int(item: Item<'_>) -> i64 {
    item.int().unwrap_or(0)
}

fn skip(pack: &ListPack, at: Pos, count: usize) -> Pos {
    (0..count).fold(at, |at, _| pack.next(at).unwrap_or(at))
}

impl Block {
    /// Creates an empty block for entries from this ID on, with the fields of `words`.
    pub(super) fn new<'w>(
        first: StreamId,
        words: impl ExactSizeIterator<Item = &'w [u8]>,
    ) -> Block {
        let mut pack = ListPack::new();
        pack.push_back(Item::Int(0));
        pack.push_back(Item::Int(0));
        pack.push_back(Item::Int((words.len() / 2) as i64));
        words.step_by(2).for_each(|field| pack.push_back(field));
        pack.push_back(Item::Int(0));
        Block { first, live: 0, deleted: 0, last_id: first, front: None, pack }
    }

    /// Takes external entries after validating each; `None` if no entry is live.
    pub(super) fn from_listpack(
        first: StreamId,
        pack: ListPack,
    ) -> Result<Option<Block>, Malformed> {
        let Tally { live, deleted, last, .. } = Tally::of(first, &pack)?;
        let (live, deleted) = (live as usize, deleted as usize);
        let block = Block { first, live, deleted, last_id: last, front: None, pack };
        Ok((live > 0).then_some(block))
    }

    /// Returns the bytes of the entries, as dumps contain them.
    pub(super) fn pack(&self) -> &ListPack {
        &self.pack
    }

    pub(super) fn first_id(&self) -> StreamId {
        self.first
    }

    pub(super) fn last_id(&self) -> StreamId {
        self.last_id
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn has_room<'w>(
        &self,
        words: impl ExactSizeIterator<Item = &'w [u8]>,
        limits: &BlockLimits,
    ) -> bool {
        let added: usize = words.map(<[u8]>::len).sum();
        let bytes_max = if limits.bytes == 0 { BYTES_MAX } else { limits.bytes.min(BYTES_MAX) };
        self.pack.bytes() + added < bytes_max
            && (limits.entries == 0 || self.live + self.deleted < limits.entries)
    }

    /// Returns the number of the master entry's fields, and the position of the first.
    fn fields(&self) -> (usize, Pos) {
        let at = skip(&self.pack, self.pack.first().expect("a block has a master entry"), 2);
        (int(self.pack.item(at)) as usize, skip(&self.pack, at, 1))
    }

    /// Returns the position of the first entry.
    fn body(&self) -> Option<Pos> {
        let (count, fields) = self.fields();
        self.pack.next(skip(&self.pack, fields, count))
    }

    pub(super) fn append<'w>(
        &mut self,
        id: StreamId,
        words: impl ExactSizeIterator<Item = &'w [u8]> + Clone,
    ) {
        let (count, at) = self.fields();
        let given = words.len() / 2;
        let same = count == given
            && self.pack.iter_from(at).zip(words.clone().step_by(2)).all(|(a, b)| a.is(b));
        let pack = &mut self.pack;
        pack.push_back(Item::Int(if same { SAME_FIELDS } else { 0 }));
        pack.push_back(Item::Int(id.ms.wrapping_sub(self.first.ms) as i64));
        pack.push_back(Item::Int(id.seq.wrapping_sub(self.first.seq) as i64));
        if same {
            words.skip(1).step_by(2).for_each(|value| pack.push_back(value));
            pack.push_back(Item::Int((FIXED + given) as i64));
        } else {
            pack.push_back(Item::Int(given as i64));
            words.for_each(|word| pack.push_back(word));
            pack.push_back(Item::Int((FIXED + 1 + 2 * given) as i64));
        }
        self.live += 1;
        self.last_id = id;
        self.write_counts();
    }

    fn write_counts(&mut self) {
        let bytes = self.pack.bytes();
        let live = self.pack.first().expect("a block has a master entry");
        self.pack.replace(live, Item::Int(self.live as i64));
        let deleted = skip(&self.pack, live, 1);
        self.pack.replace(deleted, Item::Int(self.deleted as i64));
        if self.pack.bytes() != bytes {
            self.front = None;
        }
    }

    /// Marks live entries as deleted. `entries` must ascend.
    pub(super) fn bury(&mut self, entries: &[Pos]) {
        // From the last one to the first, because flags that another server wrote may have a longer
        // encoding than ours. A change then moves the entries after it, but not those before it.
        let bytes = self.pack.bytes();
        for at in entries.iter().rev() {
            let flags = int(self.pack.item(*at)) | DELETED;
            self.pack.replace(*at, Item::Int(flags));
        }
        self.live -= entries.len();
        self.deleted += entries.len();
        if self.pack.bytes() != bytes {
            self.front = None;
        }
        self.write_counts();
        self.front = self.iter().next().map(|entry| entry.at);
    }

    /// Returns the live entries.
    pub(super) fn iter(&self) -> BlockIter<'_> {
        let at = self.front.or_else(|| self.body());
        BlockIter { block: self, master_fields: self.fields().0, at }
    }

    /// Returns the live entries, the last first.
    pub(super) fn iter_reversed(&self) -> BlockIterReversed<'_> {
        let walk = BlockIter { block: self, master_fields: self.fields().0, at: None };
        BlockIterReversed { walk, end: self.pack.last() }
    }

    /// Returns the position of the live entry with this ID.
    pub(super) fn find(&self, id: StreamId) -> Option<Pos> {
        let entry = self.iter().find(|entry| entry.id >= id)?;
        (entry.id == id).then_some(entry.at)
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.pack.allocated_bytes()
    }

    pub(super) fn check(&self) {
        self.pack.check();
        let counts: Vec<i64> = self.pack.iter().take(2).map(int).collect();
        assert_eq!(counts, [self.live as i64, self.deleted as i64]);
        let forth: Vec<StreamId> = self.iter().map(|entry| entry.id).collect();
        let mut back: Vec<StreamId> = self.iter_reversed().map(|entry| entry.id).collect();
        back.reverse();
        assert_eq!(forth.len(), self.live);
        assert_eq!(forth, back);
        assert!(self.live > 0);
        let walk = BlockIter { at: self.body(), ..self.iter() };
        assert_eq!(walk.map(|entry| entry.id).next(), forth.first().copied());
        assert!(self.iter().all(|entry| entry.id >= self.first && entry.id <= self.last_id));
    }
}

/// An iterator over the live entries of a block.
#[derive(Debug, Clone)]
pub(super) struct BlockIter<'a> {
    block: &'a Block,
    master_fields: usize,
    at: Option<Pos>,
}

impl<'a> BlockIter<'a> {
    /// Returns the entry that begins at `at`, if it is live, and the position of the element count
    /// that ends it.
    fn read(&self, at: Pos) -> Option<(Option<Entry<'a>>, Pos)> {
        let pack = &self.block.pack;
        let flags = int(pack.item(at));
        let ms_at = pack.next(at)?;
        let seq_at = pack.next(ms_at)?;
        let mut body = pack.next(seq_at)?;
        let same_fields = flags & SAME_FIELDS != 0;
        let mut count = self.master_fields;
        let end = if same_fields {
            skip(pack, body, count)
        } else {
            count = int(pack.item(body)) as usize;
            body = pack.next(body)?;
            skip(pack, body, 2 * count)
        };
        let first = self.block.first;
        let entry = (flags & DELETED == 0).then(|| Entry {
            id: StreamId {
                ms: first.ms.wrapping_add(int(pack.item(ms_at)) as u64),
                seq: first.seq.wrapping_add(int(pack.item(seq_at)) as u64),
            },
            pack,
            at,
            body,
            count,
            same_fields,
        });
        Some((entry, end))
    }
}

impl<'a> Iterator for BlockIter<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let (entry, end) = self.read(self.at?)?;
            self.at = self.block.pack.next(end);
            if entry.is_some() {
                return entry;
            }
        }
    }
}

/// An iterator over the live entries of a block from the last to the first. Each entry ends with
/// the number of its elements, the master entry with 0.
#[derive(Debug, Clone)]
pub(super) struct BlockIterReversed<'a> {
    walk: BlockIter<'a>,
    /// The position of the count that ends the next entry.
    end: Option<Pos>,
}

impl<'a> Iterator for BlockIterReversed<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let pack = &self.walk.block.pack;
        loop {
            let end = self.end?;
            let elements = int(pack.item(end));
            if elements == 0 {
                return None;
            }
            let at = (0..elements).try_fold(end, |at, _| pack.prev(at))?;
            self.end = pack.prev(at);
            let (entry, _) = self.walk.read(at)?;
            if entry.is_some() {
                return entry;
            }
        }
    }
}

impl<'a> Entry<'a> {
    pub(super) fn at(&self) -> Pos {
        self.at
    }

    /// Returns the number of field-value pairs.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the fields and values.
    pub fn pairs(&self) -> impl Iterator<Item = (Item<'a>, Item<'a>)> + use<'a> {
        let (pack, same) = (self.pack, self.same_fields);
        let mut values = pack.iter_from(self.body);
        // The master entry's fields follow its three numbers.
        let mut fields = pack.iter();
        fields.by_ref().take(FIXED).for_each(drop);
        (0..self.count).map_while(move |_| {
            let field = if same { fields.next()? } else { values.next()? };
            Some((field, values.next()?))
        })
    }
}
