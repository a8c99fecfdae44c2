//! SORT of many elements with keys of BY or GET: computed elsewhere, while nobody waits for it.
//!
//! ```text
//!  what the keys say ─> arranged ─> slots that have changed: do their keys say the same? ─> result
//!  (slot after slot)       ^                           no │
//!                          └──────────────────────────────┘
//! ```
//!
//! Then the command is run again, which holds all these slots: the few that have changed since are
//! looked at once more. If all keys say what they said, the result is that of this moment. Else it
//! is arranged anew, elsewhere; from then on the slots are frozen, so that only writers there wait,
//! and only for that.

use super::elements::{Elements, Found, Texts};
use super::pattern::Pattern;
use super::{Order, list_of};
use crate::base::error::Result;
use crate::base::steps::LONG_STEPS_MIN;
use crate::call::long::Product;
use crate::keyspace::{DbIndex, EntryRef, Keys, Keyspace, Observer, SlotId, Touches, UnixMs};
use crate::reply::{Reply, ReplyBuffer};
use crate::types::EncodingLimits;
use crate::types::View;
use crate::types::list::List;
use brisk_resp::Protocol;
use brisk_resp::slot::key_slot;
use std::ops::Range;

/// Keys looked up in a slot before others have their turn.
const KEYS_PER_STEP: usize = 64;

/// So often what has changed is looked at and arranged anew before the command is run again: each
/// time takes a fraction of the time before, in which as much less changes.
const ROUNDS_MAX: usize = 4;

/// What the request asks for, owned.
pub(super) struct Request {
    pub(super) order: Order,
    pub(super) by: Option<Vec<u8>>,
    pub(super) get: Vec<Vec<u8>>,
    pub(super) protocol: Protocol,
    pub(super) limits: EncodingLimits,
}

/// What came of it.
pub(super) enum Output {
    Reply(ReplyBuffer),
    List(List),
}

/// What a SORT is made of, and what was made of it.
pub(super) struct Gathered {
    request: Request,
    reader: Reader,
    elements: Texts,
    /// What BY says for each element.
    weights: Lookups,
    /// The indexes of the elements wanted, in order.
    arranged: Vec<usize>,
    /// What each GET says for each of these.
    shown: Lookups,
    /// All slots in which keys were looked up, in ascending order.
    slots: Vec<SlotId>,
    output: Option<Result<Output>>,
}

impl Gathered {
    /// Looks for what goes with the elements of a list, set or sorted set.
    pub(super) fn new(
        mut request: Request,
        mut reader: Reader,
        keyspace: &Keyspace,
        view: &View,
    ) -> Gathered {
        let elements = Elements::of(view).load(&mut request.order);
        let by: Vec<Vec<u8>> = request.by.iter().cloned().collect();
        let mut weights = Lookups::new(by, (0..elements.len()).collect(), &elements);
        weights.read(keyspace, &mut reader, &elements);
        Gathered {
            shown: Lookups::new(Vec::new(), Vec::new(), &elements),
            request,
            reader,
            elements,
            weights,
            arranged: Vec::new(),
            slots: Vec::new(),
            output: None,
        }
    }

    /// Looks once more for what may have changed, and makes the result of that.
    pub(super) fn again(mut self, keyspace: &Keyspace) -> Product {
        self.look_again(keyspace);
        self.complete(keyspace)
    }

    /// Makes the result.
    pub(super) fn complete(mut self, keyspace: &Keyspace) -> Product {
        let mut rounds = 0;
        let arranged = loop {
            let arranged = self.arrange(keyspace);
            rounds += 1;
            if rounds == ROUNDS_MAX || !self.look_again(keyspace) {
                break arranged;
            }
        };
        self.output = Some(arranged.map(|()| self.put_together()));
        let groups = self.weights.groups.iter().chain(&self.shown.groups);
        self.slots.extend(groups.map(|group| group.slot));
        self.slots.sort_unstable();
        self.slots.dedup();
        let (slots, found) = (self.slots.clone(), self.reader.found);
        Product::looked_up(self, slots, found)
    }

    /// Puts the elements in order, and looks for what GET shows of those wanted.
    fn arrange(&mut self, keyspace: &Keyspace) -> Result<()> {
        let Request { order, by, get, .. } = &self.request;
        let arranged = match by {
            Some(_) => order.by_others(&self.elements, &self.weights.found)?,
            None => order.by_elements(&self.elements)?,
        };
        if arranged != self.arranged {
            self.shown = Lookups::new(get.clone(), arranged.clone(), &self.elements);
            self.shown.read(keyspace, &mut self.reader, &self.elements);
            self.arranged = arranged;
        }
        Ok(())
    }

    /// Whether keys in slots that have changed say something new.
    fn look_again(&mut self, keyspace: &Keyspace) -> bool {
        let Gathered { reader, elements, weights, shown, .. } = self;
        weights.read_changed(keyspace, reader, elements)
            | shown.read_changed(keyspace, reader, elements)
    }

    fn put_together(&self) -> Output {
        let count = self.arranged.len();
        if self.request.order.stored {
            let mut texts = Texts::default();
            // What is not there is stored as an empty element.
            self.each(|text| texts.push(text.unwrap_or_default()));
            return Output::List(list_of(&texts, &self.request.limits));
        }
        let mut buffer = ReplyBuffer::new();
        let mut reply = Reply::new(&mut buffer, self.request.protocol);
        reply.array(count * self.request.get.len().max(1));
        self.each(|text| {
            _ = match text {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            }
        });
        buffer.share();
        Output::Reply(buffer)
    }

    /// Shows what is answered or stored.
    fn each(&self, mut visit: impl FnMut(Option<&[u8]>)) {
        let patterns: Vec<Pattern<'_>> =
            self.request.get.iter().map(|pattern| Pattern::new(pattern)).collect();
        for (place, index) in self.arranged.iter().enumerate() {
            let element = self.elements.get(*index);
            if patterns.is_empty() {
                visit(Some(element));
            }
            for (number, pattern) in patterns.iter().enumerate() {
                visit(match pattern {
                    Pattern::Element => Some(element),
                    Pattern::Fixed => None,
                    Pattern::Key { .. } => self.shown.found.get(place * patterns.len() + number),
                });
            }
        }
    }

    /// The slots of all keys that were looked up.
    pub(super) fn slots(&self) -> &[SlotId] {
        &self.slots
    }

    /// What was made, if all keys say now what they said; their slots are held.
    pub(super) fn result(&mut self, keys: &Keys<'_>) -> Option<Result<Output>> {
        let Gathered { reader, elements, weights, shown, output, .. } = self;
        let mut left = LONG_STEPS_MIN;
        let mut same = |lookups: &Lookups| lookups.is_still_so(keys, reader, elements, &mut left);
        if same(weights) && same(shown) { output.take() } else { None }
    }
}

/// What it takes to look keys up elsewhere.
pub(super) struct Reader {
    observer: Observer,
    db: DbIndex,
    now: UnixMs,
    touches: Touches,
    /// Keys that were found, and not found, when they were looked up first.
    found: (i64, i64),
}

impl Reader {
    pub(super) fn of(keys: &Keys<'_>) -> Reader {
        Reader {
            observer: keys.keyspace().observer(),
            db: keys.db(),
            now: keys.env().horizon(),
            touches: Touches::of(keys.env()),
            found: (0, 0),
        }
    }
}

fn is_alive(entry: &EntryRef<'_>, now: UnixMs) -> bool {
    entry.deadline().is_none_or(|at| at > now)
}

/// Keys that go with elements by some patterns, and what they say.
struct Lookups {
    patterns: Vec<Vec<u8>>,
    /// The indexes of the elements.
    of: Vec<usize>,
    /// Which are looked up, slot by slot: place in `of`, times the number of patterns, and which of
    /// these.
    numbers: Vec<usize>,
    groups: Vec<Group>,
    found: Found,
}

/// Keys of one slot.
struct Group {
    slot: SlotId,
    /// Which of [`Lookups::numbers`].
    range: Range<usize>,
    /// The slot's count of changes when they were looked up.
    changes: u32,
}

impl Lookups {
    fn new(patterns: Vec<Vec<u8>>, of: Vec<usize>, elements: &Texts) -> Lookups {
        let mut placed = Vec::new();
        let mut name = Vec::new();
        for (number, pattern) in patterns.iter().enumerate() {
            let pattern = Pattern::new(pattern);
            for (place, index) in of.iter().enumerate() {
                if pattern.name_key(elements.get(*index), &mut name) {
                    placed.push((key_slot(&name), place * patterns.len() + number));
                }
            }
        }
        placed.sort_unstable();
        let mut groups: Vec<Group> = Vec::new();
        for same in placed.chunk_by(|a, b| a.0 == b.0) {
            let start = groups.last().map_or(0, |group| group.range.end);
            let range = start..start + same.len();
            groups.push(Group { slot: SlotId::new(same[0].0), range, changes: 0 });
        }
        let found = Found::nothing(of.len() * patterns.len());
        let numbers = placed.into_iter().map(|(_, number)| number).collect();
        Lookups { patterns, of, numbers, groups, found }
    }

    /// Looks all keys up.
    fn read(&mut self, keyspace: &Keyspace, reader: &mut Reader, elements: &Texts) {
        self.read_those(keyspace, reader, elements, false);
    }

    /// Looks keys in slots that have changed up again. Whether any says something new.
    fn read_changed(&mut self, keyspace: &Keyspace, reader: &mut Reader, elements: &Texts) -> bool {
        self.read_those(keyspace, reader, elements, true)
    }

    fn read_those(
        &mut self,
        keyspace: &Keyspace,
        reader: &mut Reader,
        elements: &Texts,
        only_changed: bool,
    ) -> bool {
        let Lookups { patterns, of, numbers, groups, found } = self;
        let patterns: Vec<Pattern<'_>> = patterns.iter().map(|p| Pattern::new(p)).collect();
        let (mut name, mut new) = (Vec::new(), false);
        for group in groups {
            for (at, step) in numbers[group.range.clone()].chunks(KEYS_PER_STEP).enumerate() {
                let place = (reader.db, group.slot);
                let goes_on = keyspace.observe(&reader.observer, place, |guard, changes| {
                    if at == 0 {
                        if only_changed && group.changes == changes {
                            return false;
                        }
                        // What changes between the steps is seen by that.
                        group.changes = changes;
                    }
                    for number in step {
                        let pattern = patterns[number % patterns.len()];
                        pattern.name_key(elements.get(of[number / patterns.len()]), &mut name);
                        let key = keyspace.hasher().key(&name);
                        let entry = guard.table().find(key.hash, key.bytes).map(EntryRef);
                        let entry = entry.filter(|entry| is_alive(entry, reader.now));
                        entry.iter().for_each(|entry| reader.touches.note(entry));
                        if !only_changed {
                            let count = &mut reader.found;
                            *if entry.is_some() { &mut count.0 } else { &mut count.1 } += 1;
                        }
                        new |= pattern.look_at(entry, reader.now, |text| found.set(*number, text));
                    }
                    true
                });
                if !goes_on {
                    break;
                }
            }
        }
        new
    }

    /// Whether all keys say what they said; `left` of them are looked at again, beyond which they
    /// are thought to say something new. Their slots are held.
    fn is_still_so(
        &self,
        keys: &Keys<'_>,
        reader: &Reader,
        elements: &Texts,
        left: &mut usize,
    ) -> bool {
        let Lookups { patterns, of, numbers, groups, found } = self;
        let patterns: Vec<Pattern<'_>> = patterns.iter().map(|p| Pattern::new(p)).collect();
        let mut name = Vec::new();
        let changed = groups.iter().filter(|group| keys.changes(group.slot) != group.changes);
        for number in changed.flat_map(|group| &numbers[group.range.clone()]) {
            let pattern = patterns[number % patterns.len()];
            pattern.name_key(elements.get(of[number / patterns.len()]), &mut name);
            let entry = keys.inspect(&keys.keyspace().hasher().key(&name));
            let entry = entry.filter(|entry| is_alive(entry, reader.now));
            let same = pattern.look_at(entry, reader.now, |text| found.get(*number) == text);
            if !same || *left == 0 {
                return false;
            }
            *left -= 1;
        }
        true
    }
}

#[cfg(test)]
mod tests;
