//! SORT of many elements with keys from BY or GET. Another thread computes it without delaying
//! other clients.
//!
//! ```text
//!  read the keys ─> sort ─> slots that have changed: do their keys have the same values? ─> result
//!  (slot by slot)    ^                             no │
//!                    └────────────────────────────────┘
//! ```
//!
//! Then the command is run again while it holds all these slots. It reads keys once more in the few slots that have
//! changed since then. If all keys still have the same values, the result is correct at this moment. Otherwise another
//! thread sorts again. In this and any further attempt the slots are frozen: clients that write to them wait until the
//! attempt ends.

use super::elements::{LookedUp, SortSource, Texts};
use super::pattern::Pattern;
use super::{SortOrder, list_of};
use crate::base::error::Result;
use crate::base::steps::LONG_STEPS_MIN;
use crate::call::long::Prepared;
use crate::keyspace::{
    AccessRecorder, DbIndex, EntryRef, Keys, Keyspace, Observer, SlotId, UnixMs,
};
use crate::reply::{Reply, ReplyBuffer};
use crate::types::EncodingLimits;
use crate::types::View;
use crate::types::list::List;
use brisk_resp::Protocol;
use brisk_resp::slot::key_slot;
use std::ops::Range;

/// Number of keys looked up in a slot before other threads may lock it.
const KEYS_PER_STEP: usize = 64;

/// Number of times that changed slots are read again and the elements sorted again before the
/// command is run again. Each round takes a fraction of the time of the previous one, so fewer
/// changes happen during it.
const ROUNDS_MAX: usize = 4;

/// The arguments of the request, owned.
pub(super) struct SortRequest {
    pub(super) order: SortOrder,
    pub(super) by: Option<Vec<u8>>,
    pub(super) get: Vec<Vec<u8>>,
    pub(super) protocol: Protocol,
    pub(super) limits: EncodingLimits,
}

/// The result of the sort.
pub(super) enum SortOutput {
    Reply(ReplyBuffer),
    List(List),
}

/// The inputs of a SORT, and its result.
pub(super) struct Gathered {
    request: SortRequest,
    reader: LookupContext,
    elements: Texts,
    /// The weight of each element, from BY.
    weights: Lookups,
    /// The indexes of the wanted elements, in order.
    arranged: Vec<usize>,
    /// The results of each GET for these elements.
    shown: Lookups,
    /// All slots in which keys were looked up, in ascending order.
    slots: Vec<SlotId>,
    output: Option<Result<SortOutput>>,
}

impl Gathered {
    /// Looks up the keys for the elements of a list, set or sorted set.
    pub(super) fn new(
        mut request: SortRequest,
        mut reader: LookupContext,
        keyspace: &Keyspace,
        view: &View,
    ) -> Gathered {
        let elements = SortSource::of(view).load(&mut request.order);
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

    /// Looks up again those keys that may have changed, and computes the result.
    pub(super) fn again(mut self, keyspace: &Keyspace) -> Prepared {
        self.reread_changed(keyspace);
        self.complete(keyspace)
    }

    /// Computes the result.
    pub(super) fn complete(mut self, keyspace: &Keyspace) -> Prepared {
        let mut rounds = 0;
        let arranged = loop {
            let arranged = self.arrange(keyspace);
            rounds += 1;
            if rounds == ROUNDS_MAX || !self.reread_changed(keyspace) {
                break arranged;
            }
        };
        self.output = Some(arranged.map(|()| self.put_together()));
        let groups = self.weights.groups.iter().chain(&self.shown.groups);
        self.slots.extend(groups.map(|group| group.slot));
        self.slots.sort_unstable();
        self.slots.dedup();
        let (slots, found) = (self.slots.clone(), self.reader.found);
        Prepared::looked_up(self, slots, found)
    }

    /// Sorts the elements, and looks up the keys of GET for the wanted ones.
    fn arrange(&mut self, keyspace: &Keyspace) -> Result<()> {
        let SortRequest { order, by, get, .. } = &self.request;
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

    /// Reads changed slots again. Returns true if their keys have new values.
    fn reread_changed(&mut self, keyspace: &Keyspace) -> bool {
        let Gathered { reader, elements, weights, shown, .. } = self;
        weights.read_changed(keyspace, reader, elements)
            | shown.read_changed(keyspace, reader, elements)
    }

    fn put_together(&self) -> SortOutput {
        let count = self.arranged.len();
        if self.request.order.stored {
            let mut texts = Texts::default();
            // A missing text is stored as an empty element.
            self.each(|text| texts.push(text.unwrap_or_default()));
            return SortOutput::List(list_of(&texts, &self.request.limits));
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
        SortOutput::Reply(buffer)
    }

    /// Visits the texts of the reply or of the stored list.
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

    /// The result, if all keys still have the values that were read. Their slots are held.
    pub(super) fn result(&mut self, keys: &Keys<'_>) -> Option<Result<SortOutput>> {
        let Gathered { reader, elements, weights, shown, output, .. } = self;
        let mut left = LONG_STEPS_MIN;
        let mut same = |lookups: &Lookups| lookups.is_unchanged(keys, reader, elements, &mut left);
        if same(weights) && same(shown) { output.take() } else { None }
    }
}

/// The state that is needed to look up keys on another thread.
pub(super) struct LookupContext {
    observer: Observer,
    db: DbIndex,
    now: UnixMs,
    touches: AccessRecorder,
    /// Number of keys found, and not found, in the first lookup.
    found: (i64, i64),
}

impl LookupContext {
    pub(super) fn of(keys: &Keys<'_>) -> LookupContext {
        LookupContext {
            observer: keys.keyspace().observer(),
            db: keys.db(),
            now: keys.env().horizon(),
            touches: AccessRecorder::of(keys.env()),
            found: (0, 0),
        }
    }
}

fn is_alive(entry: &EntryRef<'_>, now: UnixMs) -> bool {
    entry.deadline().is_none_or(|at| at > now)
}

/// The keys for elements by some patterns, and their values.
struct Lookups {
    patterns: Vec<Vec<u8>>,
    /// The indexes of the elements.
    of: Vec<usize>,
    /// The lookups, slot by slot. Each is the position in `of`, times the number of patterns, plus
    /// the index of the pattern.
    numbers: Vec<usize>,
    groups: Vec<SlotGroup>,
    found: LookedUp,
}

/// Keys of one slot.
struct SlotGroup {
    slot: SlotId,
    /// The range in [`Lookups::numbers`].
    range: Range<usize>,
    /// The slot's change counter at the lookup.
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
        let mut groups: Vec<SlotGroup> = Vec::new();
        for same in placed.chunk_by(|a, b| a.0 == b.0) {
            let start = groups.last().map_or(0, |group| group.range.end);
            let range = start..start + same.len();
            groups.push(SlotGroup { slot: SlotId::new(same[0].0), range, changes: 0 });
        }
        let found = LookedUp::nothing(of.len() * patterns.len());
        let numbers = placed.into_iter().map(|(_, number)| number).collect();
        Lookups { patterns, of, numbers, groups, found }
    }

    /// Looks up all keys.
    fn read(&mut self, keyspace: &Keyspace, reader: &mut LookupContext, elements: &Texts) {
        self.read_those(keyspace, reader, elements, false);
    }

    /// Looks up the keys in changed slots again. Returns true if one of them has a new value.
    fn read_changed(
        &mut self,
        keyspace: &Keyspace,
        reader: &mut LookupContext,
        elements: &Texts,
    ) -> bool {
        self.read_those(keyspace, reader, elements, true)
    }

    fn read_those(
        &mut self,
        keyspace: &Keyspace,
        reader: &mut LookupContext,
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
                        // This counter detects changes between the steps.
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

    /// Reports whether all keys have the values that were read. At most `left` keys are read again;
    /// if more would be needed, they count as changed. The slots of the keys are held.
    fn is_unchanged(
        &self,
        keys: &Keys<'_>,
        reader: &LookupContext,
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
