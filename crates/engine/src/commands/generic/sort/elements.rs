//! The elements that SORT sorts, and their order.

use super::SortOrder;
use super::pattern::Pattern;
use crate::base::double::parse_weight;
use crate::base::error::{CommandError, Result};
use crate::commands::iteration::before_nul;
use crate::keyspace::{EntryRef, Key, Keys};
use crate::types::View;
use crate::types::list::{End, List};
use crate::types::set::{Member, Set};
use crate::types::sorted_set::SortedSet;
use crate::types::{Value, ValueKind};
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

impl SortOrder {
    /// The part of `len` sorted elements that is wanted.
    fn window(&self, len: usize) -> Range<usize> {
        let within = |number: i64| usize::try_from(number).map_or(0, |number| number.min(len));
        let start = within(self.offset);
        let end = if self.count < 0 { len } else { (start + within(self.count)).min(len) };
        start..end
    }

    /// The part to read of a list or sorted set with `len` elements.
    fn stretch(&self, len: usize) -> Range<usize> {
        let window = self.window(len);
        match (self.as_is, self.descending) {
            (false, _) => 0..len,
            (true, false) => window,
            (true, true) => len - window.end..len - window.start,
        }
    }
}

/// Texts, stored one after the other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.ranges[index].clone()]
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.ranges.push(start..self.bytes.len());
    }

    fn push_member(&mut self, member: Member<'_>) {
        self.push(member.text(&mut itoa::Buffer::new()));
    }

    /// Keeps the texts with these indexes, in that order.
    pub(super) fn take(&mut self, indexes: &[usize]) {
        self.ranges = indexes.iter().map(|index| self.ranges[*index].clone()).collect();
    }

    pub(super) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator + Clone {
        self.ranges.iter().map(|range| &self.bytes[range.clone()])
    }
}

/// The texts that other keys have for elements, by the element's number; `None` if there is none.
#[derive(Debug)]
pub(super) struct LookedUp {
    bytes: Vec<u8>,
    ranges: Vec<Option<Range<usize>>>,
}

impl LookedUp {
    pub(super) fn nothing(len: usize) -> LookedUp {
        LookedUp { bytes: Vec::new(), ranges: vec![None; len] }
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        self.ranges[index].clone().map(|range| &self.bytes[range])
    }

    /// Sets a text. Returns true if it differs from the previous one.
    pub(super) fn set(&mut self, index: usize, text: Option<&[u8]>) -> bool {
        if self.get(index) == text {
            return false;
        }
        self.ranges[index] = text.map(|text| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(text);
            start..self.bytes.len()
        });
        true
    }

    fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.ranges.len()).map(|index| self.get(index))
    }
}

/// The value to sort.
#[derive(Clone, Copy)]
pub(super) enum SortSource<'k> {
    None,
    List(&'k List),
    Set(&'k Set),
    SortedSet(&'k SortedSet),
}

impl<'k> SortSource<'k> {
    pub(super) fn open(keys: &'k Keys<'_>, key: &Key<'_>) -> Result<SortSource<'k>> {
        let found = match keys.inspect(key).map(|entry| entry.kind()) {
            Some(ValueKind::List) => keys.open::<List>(key)?.map(SortSource::List),
            Some(ValueKind::SortedSet) => keys.open::<SortedSet>(key)?.map(SortSource::SortedSet),
            // This also handles a missing key, and a key of a wrong type.
            _ => keys.open::<Set>(key)?.map(SortSource::Set),
        };
        Ok(found.unwrap_or(SortSource::None))
    }

    /// Like `open`, but without side effects, for a key that has already been opened.
    pub(super) fn of_entry(entry: Option<EntryRef<'k>>) -> SortSource<'k> {
        entry.and_then(|entry| entry.object()).map_or(SortSource::None, SortSource::of_value)
    }

    pub(super) fn of(view: &'k View) -> SortSource<'k> {
        view.as_ref().map_or(SortSource::None, SortSource::of_value)
    }

    fn of_value(value: &'k Value) -> SortSource<'k> {
        match value {
            Value::List(list) => SortSource::List(list),
            Value::Set(set) => SortSource::Set(set),
            Value::SortedSet(set) => SortSource::SortedSet(set),
            _ => SortSource::None,
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            SortSource::None => 0,
            SortSource::List(list) => list.len(),
            SortSource::Set(set) => set.len(),
            SortSource::SortedSet(set) => set.len(),
        }
    }

    /// The number of elements to read, and the number wanted.
    pub(super) fn counts(self, order: SortOrder) -> (usize, usize) {
        let len = self.len();
        let wanted = order.window(len).len();
        let read = match self {
            SortSource::Set(_) if order.as_is && order.reproducible => len,
            SortSource::Set(_) if order.as_is => order.window(len).end,
            _ => order.stretch(len).len(),
        };
        (read, wanted)
    }

    /// Reads the elements to sort, or the wanted ones if their order does not change.
    pub(super) fn load(self, order: &mut SortOrder) -> Texts {
        let mut texts = Texts::default();
        match self {
            SortSource::None => {}
            SortSource::List(list) => {
                let range = order.stretch(list.len());
                let end = range.end;
                list.walk(range.start, End::Front, |index, element| {
                    if index >= end {
                        return ControlFlow::Break(());
                    }
                    texts.push_member(element);
                    ControlFlow::Continue(())
                });
            }
            SortSource::SortedSet(set) => {
                for (member, _) in set.iter(order.stretch(set.len())) {
                    texts.push_member(member);
                }
            }
            SortSource::Set(set) => {
                if order.as_is && order.reproducible {
                    (order.as_is, order.alpha) = (false, true);
                }
                let window = if order.as_is { order.window(set.len()) } else { 0..set.len() };
                let _ = set.try_each(|member| {
                    if texts.len() == window.end {
                        return ControlFlow::Break(());
                    }
                    texts.push_member(member);
                    ControlFlow::Continue(())
                });
                texts.ranges.drain(..window.start);
                return texts;
            }
        }
        if order.as_is && order.descending {
            texts.ranges.reverse();
        }
        texts
    }

    /// The wanted elements in order, without lookups of other keys.
    pub(super) fn sorted(self, mut order: SortOrder) -> Result<Texts> {
        let mut texts = self.load(&mut order);
        if !order.as_is {
            texts.take(&order.by_elements(&texts)?);
        }
        Ok(texts)
    }

    /// Like `sorted`, with weights from other keys.
    pub(super) fn sorted_by(
        keys: &mut Keys<'_>,
        mut texts: Texts,
        by: Pattern<'_>,
        order: SortOrder,
    ) -> Result<Texts> {
        let mut weights = LookedUp::nothing(texts.len());
        let mut name = Vec::new();
        for (index, element) in texts.iter().enumerate() {
            by.look_up(keys, element, &mut name, |text| weights.set(index, text))?;
        }
        texts.take(&order.by_others(&texts, &weights)?);
        Ok(texts)
    }
}

impl SortOrder {
    /// The indexes of the wanted elements, ordered by their numbers and, if these are equal, by
    /// their texts.
    fn by_number(
        &self,
        texts: &Texts,
        weights: impl Iterator<Item = Option<f64>>,
    ) -> Result<Vec<usize>> {
        let mut all_numbers = true;
        let weights = weights.enumerate().map(|(index, weight)| {
            all_numbers &= weight.is_some();
            (weight.unwrap_or(0.0), index)
        });
        let weights: Vec<(f64, usize)> = weights.collect();
        if !all_numbers {
            let text = "ERR One or more scores can't be converted into double";
            return Err(CommandError::text(text));
        }
        Ok(self.arrange(weights, |(a, i), (b, j)| {
            a.partial_cmp(b)
                .filter(|order| order.is_ne())
                .unwrap_or_else(|| texts.get(*i).cmp(texts.get(*j)))
        }))
    }

    /// The part of a text that is compared. Without STORE it ends at a NUL, as for C's functions
    /// that compare by locale.
    fn compared(&self) -> fn(&[u8]) -> &[u8] {
        if self.stored { |text| text } else { before_nul }
    }

    /// The indexes of the wanted elements, ordered by text.
    fn by_text(&self, texts: &Texts) -> Vec<usize> {
        let compared = self.compared();
        let items = texts.iter().map(compared).enumerate().map(|(i, text)| (text, i)).collect();
        self.arrange(items, |(a, _): &(&[u8], usize), (b, _)| a.cmp(b))
    }

    /// The indexes of the wanted elements, ordered by the elements themselves.
    pub(super) fn by_elements(&self, texts: &Texts) -> Result<Vec<usize>> {
        if self.as_is {
            Ok((0..texts.len()).collect())
        } else if self.alpha {
            Ok(self.by_text(texts))
        } else {
            self.by_number(texts, texts.iter().map(parse_weight))
        }
    }

    /// The indexes of the wanted elements, ordered by their weights from other keys.
    pub(super) fn by_others(&self, texts: &Texts, weights: &LookedUp) -> Result<Vec<usize>> {
        if !self.alpha {
            // A missing weight counts as 0.
            let weights = weights.iter().map(|text| text.map_or(Some(0.0), parse_weight));
            return self.by_number(texts, weights);
        }
        let compared = self.compared();
        // Elements without a weight come first.
        let items = weights.iter().enumerate().map(|(i, text)| (text.map(compared), i)).collect();
        Ok(self.arrange(items, |(a, _): &(Option<&[u8]>, usize), (b, _)| a.cmp(b)))
    }

    /// Sorts weights with their indexes and returns the indexes of the wanted elements.
    fn arrange<W>(
        &self,
        mut items: Vec<(W, usize)>,
        compare: impl Fn(&(W, usize), &(W, usize)) -> Ordering,
    ) -> Vec<usize> {
        let order = |a: &(W, usize), b: &(W, usize)| {
            if self.descending { compare(b, a) } else { compare(a, b) }
        };
        let window = self.window(items.len());
        if window.end < items.len() {
            // The elements after the window need no order.
            items.select_nth_unstable_by(window.end, order);
            items.truncate(window.end);
        }
        items.sort_by(order);
        items.drain(window).map(|(_, index)| index).collect()
    }
}
