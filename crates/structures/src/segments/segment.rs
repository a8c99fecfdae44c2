//! One segment: entries packed in an arena, found through an ordered open-addressed index.
//!
//! ```text
//!  index: words of tag (12 bits) and offset (20 bits), in the order of tags, with gaps
//!  +------+------+------+------+------+--     --+------+-------+
//!  | 003@ |  --  | 0a1@ | 0a1@ | 0c7@ |   ...   | ffe@ |  --   |
//!  +------+------+------+------+------+--     --+------+-------+
//!             arena: | entry | entry | (hole) | entry | ...
//! ```
//!
//! The tag is the 12 bits of the hash that follow the segment's prefix, so the order of the index
//! is the order of the hash space. A tag's home slot is `tag * homes >> 12`. A word is at its home
//! slot or after it, with no empty slot in between.
//!
//! Invariants (`check`)
//!  1. Words are sorted by tag. No word is before its home, and no empty slot is between a word and
//!     its home. The last slot is empty.
//!  2. There are `count` words. Each leads to an entry in the arena whose key has the word's tag.
//!     No key occurs twice.
//!  3. `dead` is the length of the arena minus the total length of the entries.
//!  4. Each part outside the arena is used by exactly one entry; unused places in `outside` are
//!     `None`.
//!  5. `timed` is the number of entries with a deadline, and no deadline is earlier than `soonest`.

use super::codec::{Head, INLINE_MAX, Layout, Part, arena_len, plain_head};
use crate::hash::HashKey;
use crate::prefetch::prefetch;
use std::sync::Arc;

/// Number of bits of a tag. The other bits of a word are the offset.
pub(super) const TAG_BITS: u32 = 12;
const OFFSET_BITS: u32 = 32 - TAG_BITS;
const OFFSET_MASK: u32 = (1 << OFFSET_BITS) - 1;
const EMPTY: u32 = u32::MAX;
/// The number of words in a larger index is a multiple of this, so that a growing segment rebuilds
/// its index only once or twice before it is split.
const INDEX_STEP: usize = if cfg!(test) { 8 } else { 128 };
/// If the holes take less than this, a compaction is not worthwhile.
const HOLES_MIN: usize = 64;

/// One element of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
    /// The time at which the element expires, in a unit that the caller defines. This crate reads
    /// no clock.
    pub deadline: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Segment {
    arena: Vec<u8>,
    index: Vec<u32>,
    outside: Vec<Option<Arc<[u8]>>>,
    soonest: u64,
    dead: usize,
    homes: u32,
    count: u32,
    timed: u32,
}

/// Returns the tag of a hash from which the bits of the segment's prefix have been shifted out.
#[inline(always)]
pub(super) fn tag_of(rest: u64) -> u32 {
    (rest >> (64 - TAG_BITS)) as u32
}

#[inline(always)]
fn tag(word: u32) -> u32 {
    word >> OFFSET_BITS
}

#[inline(always)]
fn offset(word: u32) -> usize {
    (word & OFFSET_MASK) as usize
}

/// Returns the next size that allocators provide without waste: four per doubling.
fn size_class(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    bytes.next_multiple_of((bytes - 1).next_power_of_two().max(2) / 8)
}

/// Sorts words that are nearly sorted: only a few follow a greater word, and that word is close.
fn sort_nearly_sorted(words: &mut [u32]) {
    for at in 1..words.len() {
        let word = words[at];
        let mut to = at;
        while to > 0 && words[to - 1] > word {
            words[to] = words[to - 1];
            to -= 1;
        }
        words[to] = word;
    }
}

impl Segment {
    pub(super) const fn new() -> Segment {
        Segment {
            arena: Vec::new(),
            index: Vec::new(),
            outside: Vec::new(),
            soonest: u64::MAX,
            dead: 0,
            homes: 0,
            count: 0,
            timed: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns a lower bound of all deadlines; the maximum if there are none.
    pub(super) fn soonest(&self) -> u64 {
        self.soonest
    }

    pub(super) fn timed(&self) -> usize {
        self.timed as usize
    }

    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        ((tag * self.homes) >> TAG_BITS) as usize
    }

    #[inline(always)]
    fn part(&self, part: Part) -> &[u8] {
        if part.outside { self.outside_part(part) } else { part.bytes(&self.arena) }
    }

    #[cold]
    fn outside_part(&self, part: Part) -> &[u8] {
        self.outside[part.number(&self.arena)].as_deref().expect("invariant 4")
    }

    /// Returns the key of the entry at an offset.
    #[inline(always)]
    fn key_at(&self, at: usize) -> &[u8] {
        match Layout::plain_key(&self.arena, at) {
            Some(key) => key,
            None => self.part(Layout::read(&self.arena, at).key),
        }
    }

    #[inline(always)]
    fn element(&self, word: u32) -> Element<'_> {
        match Layout::plain_key(&self.arena, offset(word)) {
            Some(key) => Element { key, value: None, deadline: None },
            None => self.full_element(word),
        }
    }

    #[inline]
    fn full_element(&self, word: u32) -> Element<'_> {
        let layout = Layout::read(&self.arena, offset(word));
        Element {
            key: self.part(layout.key),
            value: layout.value.map(|part| self.part(part)),
            deadline: layout.deadline,
        }
    }

    /// Returns the slot of `key`.
    #[inline]
    pub(super) fn find(&self, wanted: u32, key: &[u8]) -> Option<usize> {
        self.locate(wanted, key).ok()
    }

    /// Returns the slot of `key`, or the slot at which to insert its word.
    #[inline]
    pub(super) fn locate(&self, wanted: u32, key: &[u8]) -> Result<usize, usize> {
        let from = self.home(wanted);
        let first = wanted << OFFSET_BITS;
        for (i, &word) in self.index[from..].iter().enumerate() {
            if word < first {
                continue;
            }
            if word - first > OFFSET_MASK || word == EMPTY {
                return Err(from + i);
            }
            if self.key_at(offset(word)) == key {
                return Ok(from + i);
            }
        }
        // Reached only if there is no index: by 1 the last slot of an index is empty.
        Err(from)
    }

    /// Prefetches the word at which a search for this tag begins. Reads only the `Segment` struct.
    #[inline]
    pub(super) fn prefetch_word(&self, wanted: u32) {
        if let Some(word) = self.index.get(self.home(wanted)) {
            prefetch(word);
        }
    }

    /// Prefetches the entry that a search for this tag reads first, or the end of the arena, where
    /// a new entry would go. Reads the index.
    #[inline]
    pub(super) fn prefetch_entry(&self, wanted: u32) {
        let words = self.index.get(self.home(wanted)..).unwrap_or_default();
        let at = words.iter().find(|word| tag(**word) >= wanted).copied();
        let at = at.filter(|word| tag(*word) == wanted && *word != EMPTY);
        prefetch(self.arena.as_ptr().wrapping_add(at.map_or(self.arena.len(), offset)));
    }

    /// Returns the element at a slot that `find` returned.
    #[inline]
    pub(super) fn at(&self, slot: usize) -> Element<'_> {
        self.element(self.index[slot])
    }

    /// Returns all elements, in the order of the hash space.
    pub(super) fn iter(&self) -> impl Iterator<Item = Element<'_>> {
        self.words().map(|word| self.element(word))
    }

    /// Visits the elements at these positions of [`Segment::iter`], and reads no others. The
    /// positions must ascend.
    pub(super) fn visit_places<'a>(
        &'a self,
        mut places: impl Iterator<Item = usize>,
        visit: &mut impl FnMut(Element<'a>),
    ) {
        let mut wanted = places.next();
        for (place, word) in self.words().enumerate() {
            let Some(next) = wanted else { return };
            if next == place {
                visit(self.element(word));
                wanted = places.next();
            }
        }
    }

    /// Returns all elements with their tags.
    pub(super) fn iter_tagged(&self) -> impl Iterator<Item = (u32, Element<'_>)> {
        self.words().map(|word| (tag(word), self.element(word)))
    }

    fn words(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.iter().copied().filter(|&word| word != EMPTY)
    }

    /// Visits the elements of the first tag from `from` on, and returns that tag.
    pub(super) fn visit_from<'a>(
        &'a self,
        from: u32,
        visit: &mut impl FnMut(Element<'a>),
    ) -> Option<u32> {
        let words = self.index.get(self.home(from)..)?;
        let mut words = words.iter().filter(|&&word| word != EMPTY && tag(word) >= from).peekable();
        let found = tag(**words.peek()?);
        words.take_while(|&&word| tag(word) == found).for_each(|&word| visit(self.element(word)));
        Some(found)
    }

    /// Returns a random element; all have the same probability. The segment must not be empty. O(1)
    /// expected.
    pub(super) fn random(&self, below: &mut impl FnMut(u64) -> u64) -> Element<'_> {
        // At least one slot in eight is in use, except in tiny segments.
        for _ in 0..64 {
            let word = self.index[below(self.index.len() as u64) as usize];
            if word != EMPTY {
                return self.element(word);
            }
        }
        let rank = below(u64::from(self.count)) as usize;
        self.iter().nth(rank).expect("a rank below the count")
    }

    /// Adds a key that does not exist, at the slot that `locate` returned.
    pub(super) fn add(
        &mut self,
        slot: usize,
        tag: u32,
        key: &[u8],
        value: Option<&[u8]>,
        deadline: Option<u64>,
    ) {
        if let (None, None, Some(head)) = (value, deadline, plain_head(key.len())) {
            self.make_room(1 + key.len());
            let at = self.arena.len();
            self.arena.push(head);
            self.arena.extend_from_slice(key);
            return self.add_word(slot, tag << OFFSET_BITS | at as u32);
        }
        let head = Head::new(key.len(), value.map(<[u8]>::len), deadline);
        let len = head.as_bytes().len() + arena_len(key.len());
        self.make_room(len + value.map_or(0, |value| arena_len(value.len())));
        let at = self.arena.len();
        self.arena.extend_from_slice(head.as_bytes());
        self.push_part(key);
        if let Some(value) = value {
            self.push_part(value);
        }
        self.count_deadline(deadline);
        self.add_word(slot, tag << OFFSET_BITS | at as u32);
    }

    #[inline]
    fn count_deadline(&mut self, deadline: Option<u64>) {
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.soonest = self.soonest.min(deadline);
        }
    }

    fn discount_deadline(&mut self, deadline: Option<u64>) {
        if deadline.is_some() {
            self.timed -= 1;
            if self.timed == 0 {
                self.soonest = u64::MAX;
            }
        }
    }

    /// Changes the value and the deadline of the element at `slot`.
    pub(super) fn replace(&mut self, slot: usize, value: Option<&[u8]>, deadline: Option<u64>) {
        let old = Layout::read(&self.arena, offset(self.index[slot]));
        self.discount_deadline(old.deadline);
        self.count_deadline(deadline);
        if self.overwrite(&old, value, deadline) {
            return;
        }
        if let Some(part) = old.value {
            self.drop_outside(part);
        }
        let key_len = if old.key.outside { INLINE_MAX + 1 } else { old.key.len };
        let head = Head::new(key_len, value.map(<[u8]>::len), deadline);
        let len = head.as_bytes().len() + old.key.len;
        // The entry may move here; its slot stays the same.
        self.make_room(len + value.map_or(0, |value| arena_len(value.len())));
        let start = offset(self.index[slot]);
        let old = Layout::read(&self.arena, start);
        let at = self.arena.len();
        self.arena.extend_from_slice(head.as_bytes());
        self.arena.extend_from_within(old.key.start..old.key.start + old.key.len);
        if let Some(value) = value {
            self.push_part(value);
        }
        self.dead += old.end - start;
        self.index[slot] = self.index[slot] & !OFFSET_MASK | at as u32;
    }

    /// Changes an entry in place if the length of its head stays the same and the value does not
    /// grow.
    #[inline]
    fn overwrite(&mut self, old: &Layout, value: Option<&[u8]>, deadline: Option<u64>) -> bool {
        let value_head = |len: usize| if len < 254 { 1 } else { 3 };
        let shrunk = match (old.value, value) {
            (None, None) => 0,
            (Some(part), Some(value)) if !part.outside && value.len() <= part.len => {
                if value_head(part.len) != value_head(value.len()) {
                    return false;
                }
                part.len - value.len()
            }
            _ => return false,
        };
        if old.deadline.is_some() != deadline.is_some() {
            return false;
        }
        let key_len = if old.key.outside { INLINE_MAX + 1 } else { old.key.len };
        let head = Head::new(key_len, value.map(<[u8]>::len), deadline);
        let head = head.as_bytes();
        self.arena[old.key.start - head.len()..old.key.start].copy_from_slice(head);
        if let (Some(part), Some(value)) = (old.value, value) {
            self.arena[part.start..part.start + value.len()].copy_from_slice(value);
        }
        self.dead += shrunk;
        true
    }

    /// Changes the deadline of the element at `slot`, and keeps the value.
    pub(super) fn set_deadline(&mut self, slot: usize, deadline: Option<u64>) {
        let old = Layout::read(&self.arena, offset(self.index[slot]));
        if old.deadline == deadline {
            return;
        }
        let inline_len = |part: Part| if part.outside { INLINE_MAX + 1 } else { part.len };
        let head = Head::new(inline_len(old.key), old.value.map(inline_len), deadline);
        let body = old.end - old.key.start;
        self.discount_deadline(old.deadline);
        self.count_deadline(deadline);
        if old.deadline.is_some() && deadline.is_some() {
            let start = old.key.start - head.as_bytes().len();
            self.arena[start..old.key.start].copy_from_slice(head.as_bytes());
            return;
        }
        self.make_room(head.as_bytes().len() + body);
        let start = offset(self.index[slot]);
        let old = Layout::read(&self.arena, start);
        let at = self.arena.len();
        self.arena.extend_from_slice(head.as_bytes());
        self.arena.extend_from_within(old.key.start..old.end);
        self.dead += old.end - start;
        self.index[slot] = self.index[slot] & !OFFSET_MASK | at as u32;
    }

    /// Removes the element at `slot`.
    pub(super) fn remove(&mut self, slot: usize) {
        let start = offset(self.index[slot]);
        let old = Layout::read(&self.arena, start);
        self.drop_outside(old.key);
        if let Some(part) = old.value {
            self.drop_outside(part);
        }
        self.discount_deadline(old.deadline);
        self.dead += old.end - start;
        self.remove_word(slot);
        if self.dead > HOLES_MIN.max(self.arena.len() / 2) {
            self.compact(0);
        }
    }

    /// Removes the elements whose deadline is at most `now`, passes each to `visit` first, and
    /// computes the soonest deadline of the others.
    pub(super) fn expire(&mut self, now: u64, visit: &mut impl FnMut(Element<'_>)) {
        let mut soonest = u64::MAX;
        for slot in (0..self.index.len()).rev() {
            let word = self.index[slot];
            if word == EMPTY {
                continue;
            }
            match Layout::read(&self.arena, offset(word)).deadline {
                Some(deadline) if deadline <= now => {
                    visit(self.element(word));
                    // This moves only words of later slots, and those have already been visited.
                    self.remove_in_place(slot);
                }
                Some(deadline) => soonest = soonest.min(deadline),
                None => {}
            }
        }
        self.soonest = soonest;
        self.tidy();
    }

    /// Like `remove`, without rebuilding the arena or the index.
    fn remove_in_place(&mut self, slot: usize) {
        let start = offset(self.index[slot]);
        let old = Layout::read(&self.arena, start);
        self.drop_outside(old.key);
        if let Some(part) = old.value {
            self.drop_outside(part);
        }
        self.discount_deadline(old.deadline);
        self.dead += old.end - start;
        self.unlink_word(slot);
    }

    fn tidy(&mut self) {
        self.shrink_index();
        if self.dead > HOLES_MIN.max(self.arena.len() / 2) {
            self.compact(0);
        }
    }

    fn push_part(&mut self, bytes: &[u8]) {
        if bytes.len() <= INLINE_MAX {
            self.arena.extend_from_slice(bytes);
        } else {
            let number = self.keep_outside(Arc::from(bytes));
            self.arena.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn keep_outside(&mut self, bytes: Arc<[u8]>) -> u16 {
        let free = self.outside.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.outside.push(None);
            self.outside.len() - 1
        });
        self.outside[at] = Some(bytes);
        u16::try_from(at).expect("two parts for each of a segment's entries fit")
    }

    #[inline]
    fn drop_outside(&mut self, part: Part) {
        if part.outside {
            self.outside[part.number(&self.arena)] = None;
            while matches!(self.outside.last(), Some(None)) {
                self.outside.pop();
            }
        }
    }

    /// Makes room for `len` bytes at the end of the arena. Entries may move; slots do not.
    #[inline]
    fn make_room(&mut self, len: usize) {
        let need = self.arena.len() + len;
        if need > self.arena.capacity() {
            self.grow(len, need);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize, need: usize) {
        // A full segment without holes takes 512 * (13 + 2 * 512) bytes, so an offset fits.
        if self.dead > self.arena.len() / 4 || need > OFFSET_MASK as usize {
            self.compact(len);
        } else {
            self.arena.reserve_exact(size_class(need).min(OFFSET_MASK as usize) - self.arena.len());
        }
    }

    /// Copies the entries to an arena without holes that has room for `more` bytes.
    fn compact(&mut self, more: usize) {
        let live = self.arena.len() - self.dead;
        let mut arena = Vec::with_capacity(size_class(live + more));
        for word in self.index.iter_mut().filter(|word| **word != EMPTY) {
            let start = offset(*word);
            let end = Layout::read(&self.arena, start).end;
            *word = *word & !OFFSET_MASK | arena.len() as u32;
            arena.extend_from_slice(&self.arena[start..end]);
        }
        assert!(arena.len() + more <= OFFSET_MASK as usize, "offsets have 20 bits");
        self.arena = arena;
        self.dead = 0;
    }

    /// Copies an entry of another segment under a new tag, and returns its word, which is not in
    /// the index yet.
    fn adopt(&mut self, from: &Segment, at: usize, tag: u32) -> u32 {
        let start = self.arena.len();
        if let Some(end) = Layout::plain_end(&from.arena, at) {
            self.arena.extend_from_slice(&from.arena[at..end]);
            return tag << OFFSET_BITS | start as u32;
        }
        let old = Layout::read(&from.arena, at);
        self.arena.extend_from_slice(&from.arena[at..old.end]);
        for part in [Some(old.key), old.value].into_iter().flatten().filter(|part| part.outside) {
            let bytes = from.outside[part.number(&from.arena)].clone().expect("invariant 4");
            let number = self.keep_outside(bytes).to_le_bytes();
            let place = part.start - at + start;
            self.arena[place..place + 2].copy_from_slice(&number);
        }
        self.count_deadline(old.deadline);
        tag << OFFSET_BITS | start as u32
    }

    /// Splits a segment whose prefix has `depth` bits into halves. O(entries); each key is hashed.
    pub(super) fn split(&self, hash: HashKey, depth: u32) -> (Segment, Segment) {
        let mut bytes = [0; 2];
        let mut rests = Vec::with_capacity(self.len());
        for word in self.words() {
            let at = offset(word);
            let (key, end) = match Layout::plain_end(&self.arena, at) {
                Some(end) => (&self.arena[at + 1..end], end),
                None => {
                    let layout = Layout::read(&self.arena, at);
                    (self.part(layout.key), layout.end)
                }
            };
            let rest = hash.hash(key) << depth;
            bytes[(rest >> 63) as usize] += end - at;
            rests.push((rest, at));
        }
        let half = |bit: u64| {
            let mut half = Segment::new();
            half.arena.reserve_exact(size_class(bytes[bit as usize]));
            let mine = rests.iter().filter(|(rest, _)| rest >> 63 == bit);
            let mut words: Vec<u32> =
                mine.map(|&(rest, at)| half.adopt(self, at, tag_of(rest << 1))).collect();
            // The words are sorted by their old tags, which lack the lowest bit of the new tags.
            sort_nearly_sorted(&mut words);
            half.index_words(&words);
            half
        };
        (half(0), half(1))
    }

    /// Merges two halves into one segment. O(entries).
    pub(super) fn merge(low: &Segment, high: &Segment) -> Segment {
        let mut all = Segment::new();
        let bytes = low.arena.len() - low.dead + high.arena.len() - high.dead;
        all.arena.reserve_exact(size_class(bytes));
        let mut words = Vec::with_capacity(low.len() + high.len());
        for (half, top) in [(low, 0), (high, 1 << (TAG_BITS - 1))] {
            for word in half.words() {
                words.push(all.adopt(half, offset(word), top | tag(word) >> 1));
            }
        }
        all.index_words(&words);
        all
    }

    /// Inserts a word at the slot that `locate` returned.
    #[inline]
    fn add_word(&mut self, mut slot: usize, word: u32) {
        if (self.count + 1) * 8 > self.homes * 7 {
            self.rebuild_index(self.count as usize + 1);
            slot = self.home(tag(word));
            while self.index[slot] != EMPTY && tag(self.index[slot]) <= tag(word) {
                slot += 1;
            }
        }
        let gap = self.index[slot..].iter().position(|&other| other == EMPTY);
        let free = slot + gap.expect("by 1 the last slot is empty");
        if free + 1 == self.index.len() {
            self.index.push(EMPTY);
        }
        self.index.copy_within(slot..free, slot + 1);
        self.index[slot] = word;
        self.count += 1;
    }

    fn remove_word(&mut self, slot: usize) {
        self.unlink_word(slot);
        self.shrink_index();
    }

    /// Removes a word and moves the words after it closer to their homes.
    fn unlink_word(&mut self, slot: usize) {
        let mut end = slot + 1;
        while self.index[end] != EMPTY && self.home(tag(self.index[end])) < end {
            end += 1;
        }
        self.index.copy_within(slot + 1..end, slot);
        self.index[end - 1] = EMPTY;
        self.count -= 1;
    }

    fn shrink_index(&mut self) {
        if self.homes > 16 && self.count * 4 < self.homes {
            self.rebuild_index(self.count as usize * 3 / 2 + 1);
        }
    }

    /// Creates an index for `count` words, with at most 7 of 8 homes in use.
    #[cold]
    fn rebuild_index(&mut self, count: usize) {
        let old = std::mem::take(&mut self.index);
        self.prepare_index(count);
        self.place_words(old.into_iter().filter(|&word| word != EMPTY));
    }

    /// Creates the index of a segment that has none, from words that are sorted by tag.
    fn index_words(&mut self, words: &[u32]) {
        if !words.is_empty() {
            self.prepare_index(words.len());
            self.place_words(words.iter().copied());
            self.count = words.len() as u32;
        }
    }

    /// Creates an empty index with room for `count` words.
    fn prepare_index(&mut self, count: usize) {
        let count = if count < INDEX_STEP { count } else { count.next_multiple_of(INDEX_STEP) };
        let homes = count + count / 7 + 1;
        let len = size_class((homes + homes / 16 + 2) * size_of::<u32>()) / size_of::<u32>();
        self.index = vec![EMPTY; len];
        self.homes = (len - len / 16 - 1) as u32;
    }

    /// Puts words, which must be sorted by tag, into the empty index.
    #[inline]
    fn place_words(&mut self, words: impl Iterator<Item = u32>) {
        let mut next = 0;
        for word in words {
            let slot = self.home(tag(word)).max(next);
            if slot + 1 >= self.index.len() {
                self.index.push(EMPTY);
            }
            self.index[slot] = word;
            next = slot + 1;
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        let outside = self.outside.iter().flatten().map(|part| part.len() + 16).sum::<usize>();
        self.arena.capacity()
            + self.index.capacity() * size_of::<u32>()
            + self.outside.capacity() * size_of::<Option<Arc<[u8]>>>()
            + outside
    }

    /// Verifies the invariants listed at the top of this file; `depth` is the length of the prefix
    /// `prefix`.
    pub(super) fn check(&self, hash: HashKey, depth: u32, prefix: u64) {
        let mut live = 0;
        let mut timed = 0;
        let mut outside = vec![false; self.outside.len()];
        let mut previous = None;
        let mut gap = 0;
        assert!(self.index.last().is_none_or(|&word| word == EMPTY), "invariant 1");
        for (slot, &word) in self.index.iter().enumerate() {
            if word == EMPTY {
                gap = slot + 1;
                continue;
            }
            assert!(previous.is_none_or(|previous| previous <= tag(word)), "invariant 1");
            previous = Some(tag(word));
            assert!((gap..=slot).contains(&self.home(tag(word))), "invariant 1");
            let layout = Layout::read(&self.arena, offset(word));
            let key = self.part(layout.key);
            let hashed = hash.hash(key);
            assert_eq!(tag_of(hashed << depth), tag(word), "invariant 2");
            assert!(depth == 0 || hashed >> (64 - depth) == prefix, "the key belongs elsewhere");
            assert_eq!(self.find(tag(word), key), Some(slot), "invariant 2: twice");
            live += layout.end - offset(word);
            for part in [Some(layout.key), layout.value].into_iter().flatten() {
                if part.outside {
                    let used = &mut outside[part.number(&self.arena)];
                    assert!(!std::mem::replace(used, true), "invariant 4");
                }
            }
            if let Some(deadline) = layout.deadline {
                timed += 1;
                assert!(deadline >= self.soonest, "invariant 5");
            }
        }
        assert_eq!(self.words().count(), self.len(), "invariant 2");
        assert_eq!(self.arena.len() - self.dead, live, "invariant 3");
        assert_eq!(self.timed, timed, "invariant 5");
        for (part, used) in self.outside.iter().zip(outside) {
            assert_eq!(part.is_some(), used, "invariant 4");
        }
    }
}
