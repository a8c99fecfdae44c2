//! Sorted sets: a listpack of members and scores in order, or members in a tree with an index
//! (named `skiplist`, as clients know it).

mod dump;
mod listpack;
mod range;

pub use range::{LexRange, ScoreRange};

use super::{Collection, Encoding, EncodingLimits, Kind, Value};
use crate::effect::EventClass;
use crate::error::{CommandError, Result};
use brisk_structures::listpack::{Item, ListPack};
use brisk_structures::ordered::{self, Ordered};
use std::ops::{ControlFlow, Range};

/// Members of a value that is freed at once instead of by another thread.
const LIGHT_LEN_MAX: usize = 256;

/// Members with scores, in the order of (score, member).
#[derive(Debug, Clone)]
pub enum SortedSet {
    ListPack(ListPack),
    SkipList(Box<Ordered>),
}

/// When ZADD changes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddRules {
    /// Only members that are not there.
    pub only_new: bool,
    /// Only members that are there.
    pub only_existing: bool,
    /// Only to greater scores.
    pub only_greater: bool,
    /// Only to lesser scores.
    pub only_less: bool,
    /// The number is to be added to the score.
    pub increment: bool,
}

/// What became of one member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Added {
    /// The rules did not allow it.
    Refused,
    /// It had that score already.
    Same(f64),
    New(f64),
    Changed(f64),
}

impl AddRules {
    /// What becomes of a member with the score `current`, asked for `score`.
    fn judge(&self, current: Option<f64>, score: f64) -> Result<Added> {
        let Some(current) = current else {
            return Ok(if self.only_existing { Added::Refused } else { Added::New(score) });
        };
        if self.only_new {
            return Ok(Added::Refused);
        }
        let score = if self.increment { current + score } else { score };
        if score.is_nan() {
            return Err(CommandError::text("ERR resulting score is not a number (NaN)"));
        }
        let refused = self.only_less && score >= current || self.only_greater && score <= current;
        Ok(match refused {
            true => Added::Refused,
            false if score == current => Added::Same(score),
            false => Added::Changed(score),
        })
    }
}

impl SortedSet {
    /// A set without members, for many.
    #[must_use]
    pub fn new_tree(limits: &EncodingLimits) -> Ordered {
        Ordered::new(limits.hash_key)
    }

    /// The set with the members of a result, in the encoding of its size.
    #[must_use]
    pub fn of_result(members: Ordered, limits: &EncodingLimits) -> SortedSet {
        let short = |(member, _): (&[u8], f64)| member.len() <= limits.zset_max_listpack_value;
        if members.len() > limits.zset_max_listpack_entries || !members.iter().all(short) {
            return SortedSet::SkipList(Box::new(members));
        }
        let mut list = ListPack::new();
        for (member, score) in members.iter() {
            listpack::push(&mut list, member, score);
        }
        SortedSet::ListPack(list)
    }

    /// As `Value::is_same`.
    pub(super) fn is_same(&self, other: &SortedSet) -> bool {
        match (self, other) {
            (SortedSet::ListPack(a), SortedSet::ListPack(b)) => a.as_bytes() == b.as_bytes(),
            (SortedSet::SkipList(a), SortedSet::SkipList(b)) => a.is_same(b),
            _ => false,
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            SortedSet::ListPack(list) => list.len() / 2,
            SortedSet::SkipList(tree) => tree.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks for what looking up these members will read. O(members).
    pub(crate) fn prefetch(&self, members: &[&[u8]]) {
        if let SortedSet::SkipList(tree) = self {
            tree.prefetch(members);
        }
    }

    /// O(1), but O(n) in a listpack.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            SortedSet::ListPack(list) => listpack::find(list, member).map(|found| found.1),
            SortedSet::SkipList(tree) => tree.score(member),
        }
    }

    /// How many members come before this one, and its score. O(log n).
    #[must_use]
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            SortedSet::ListPack(list) => listpack::rank(list, member),
            SortedSet::SkipList(tree) => tree.rank(member),
        }
    }

    /// Gives `member` the score that `rules` allow. O(log n).
    ///
    /// # Errors
    /// If the sum is not a number, or the member too long; then nothing has changed.
    pub fn add(
        &mut self,
        member: &[u8],
        score: f64,
        rules: &AddRules,
        limits: &EncodingLimits,
    ) -> Result<Added> {
        if let SortedSet::ListPack(list) = self {
            let found = listpack::find(list, member);
            let added = rules.judge(found.map(|found| found.1), score)?;
            match (added, found) {
                (Added::Changed(score), Some((at, _))) => {
                    list.delete_range(at, 2);
                    listpack::insert(list, member, score);
                    return Ok(added);
                }
                (Added::New(score), _) => {
                    let fits = list.len() / 2 < limits.zset_max_listpack_entries
                        && member.len() <= limits.zset_max_listpack_value
                        && list.has_room(2, member.len() + listpack::SCORE_BYTES_MAX);
                    if fits {
                        listpack::insert(list, member, score);
                        return Ok(added);
                    }
                }
                _ => return Ok(added),
            }
        }
        if member.len() > ordered::MEMBER_BYTES_MAX {
            return Err(CommandError::StringTooLong);
        }
        let tree = self.as_tree(limits);
        // The rules ask for the old score; without any the tree finds it on the way.
        if *rules == AddRules::default() {
            return Ok(match tree.insert(member, score) {
                None => Added::New(score),
                Some(old) if old == score => Added::Same(score),
                Some(_) => Added::Changed(score),
            });
        }
        let added = rules.judge(tree.score(member), score)?;
        if let Added::New(score) | Added::Changed(score) = added {
            tree.insert(member, score);
        }
        Ok(added)
    }

    /// The tree; a listpack is converted.
    fn as_tree(&mut self, limits: &EncodingLimits) -> &mut Ordered {
        if let SortedSet::ListPack(_) = self {
            let mut tree = SortedSet::new_tree(limits);
            for (member, score) in self.iter(0..self.len()) {
                tree.insert(member.text(&mut itoa::Buffer::new()), score);
            }
            *self = SortedSet::SkipList(Box::new(tree));
        }
        match self {
            SortedSet::SkipList(tree) => tree,
            SortedSet::ListPack(_) => unreachable!("it was just converted"),
        }
    }

    /// True if it was there. O(log n).
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            SortedSet::ListPack(list) => {
                let found = listpack::find(list, member);
                found.map(|(at, _)| list.delete_range(at, 2)).is_some()
            }
            SortedSet::SkipList(tree) => tree.remove(member).is_some(),
        }
    }

    /// Removes the members of these ranks.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) {
        match self {
            SortedSet::ListPack(list) => {
                if let Some(at) = list.seek(2 * ranks.start as i64) {
                    list.delete_range(at, 2 * ranks.len());
                }
            }
            SortedSet::SkipList(tree) => tree.remove_range(ranks),
        }
    }

    /// The ranks that Redis's notation means: from the end if negative, cut to what there is.
    #[must_use]
    pub fn ranks(&self, start: i64, end: i64) -> Range<usize> {
        let len = self.len() as i64;
        let from_front = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
        let start = from_front(start).max(0);
        let end = from_front(end).min(len - 1);
        if start > end { 0..0 } else { start as usize..end as usize + 1 }
    }

    /// The ranks of the members with scores in `range`. O(log n).
    #[must_use]
    pub fn score_ranks(&self, range: &ScoreRange) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let (start, end) = match self {
            SortedSet::ListPack(list) => {
                let scores = || listpack::pairs(list).map(|pair| pair.1);
                let start = scores().take_while(|score| !range.reaches(*score)).count();
                (start, scores().take_while(|score| !range.exceeded_by(*score)).count())
            }
            SortedSet::SkipList(tree) => (
                tree.partition(|score, _| !range.reaches(score)),
                tree.partition(|score, _| !range.exceeded_by(score)),
            ),
        };
        start..end.max(start)
    }

    /// The ranks of the members in `range`, which is meant for members of the same score. O(log n).
    /// With different scores, what a search from the front (from the end if `backward`) finds.
    #[must_use]
    pub fn lex_ranks(&self, range: &LexRange<'_>, backward: bool) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        match self {
            SortedSet::ListPack(list) => listpack::lex_ranks(list, range, backward),
            SortedSet::SkipList(tree) => {
                let (first, last) = (tree.by_rank(0), tree.by_rank(tree.len().wrapping_sub(1)));
                if first.is_none_or(|first| range.exceeded_by(first.0))
                    || last.is_none_or(|last| !range.reaches(last.0))
                {
                    return 0..0;
                }
                let start = tree.partition(|_, member| !range.reaches(member.bytes()));
                let end = tree.partition(|_, member| !range.exceeded_by(member.bytes()));
                start..end.max(start)
            }
        }
    }

    /// The members of these ranks with their scores, from either end.
    #[must_use]
    pub fn iter(&self, ranks: Range<usize>) -> Members<'_> {
        match self {
            SortedSet::ListPack(list) => Members::ListPack(listpack::slice(list, ranks)),
            SortedSet::SkipList(tree) => Members::SkipList(tree.range(ranks)),
        }
    }

    /// Shows those members of these ranks to `visit` whose scores `pick` admits, with what it says
    /// of them, until it has seen enough.
    pub fn select<'a, R>(
        &'a self,
        ranks: Range<usize>,
        mut pick: impl FnMut(f64) -> Option<R>,
        mut visit: impl FnMut(Item<'a>, f64, R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            SortedSet::ListPack(list) => {
                for (member, score) in listpack::slice(list, ranks) {
                    if let Some(picked) = pick(score) {
                        visit(member, score, picked)?;
                    }
                }
            }
            SortedSet::SkipList(tree) => {
                for run in tree.runs(ranks) {
                    for (at, &score) in run.scores().iter().enumerate() {
                        if let Some(picked) = pick(score) {
                            visit(Item::Str(run.member(at)), score, picked)?;
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits members with the texts of their scores, as SCAN does: about `count` from `cursor` on,
    /// or all of a listpack. The next cursor.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Item<'_>, &[u8])) -> u64 {
        match self {
            SortedSet::ListPack(list) => {
                let mut items = list.iter();
                while let (Some(member), Some(score)) = (items.next(), items.next()) {
                    visit(member, score.text(&mut itoa::Buffer::new()));
                }
                0
            }
            SortedSet::SkipList(tree) => {
                let mut text = Vec::new();
                tree.scan(cursor, count, |member, score| {
                    text.clear();
                    brisk_resp::reply::encode::double_text(&mut text, score);
                    visit(Item::Str(member), &text);
                })
            }
        }
    }

    pub(super) fn is_light(&self) -> bool {
        match self {
            SortedSet::ListPack(_) => true,
            SortedSet::SkipList(tree) => tree.len() <= LIGHT_LEN_MAX,
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        match self {
            SortedSet::ListPack(list) => list.allocated_bytes(),
            SortedSet::SkipList(tree) => size_of::<Ordered>() + tree.allocated_bytes(),
        }
    }
}

impl Collection for SortedSet {
    const KIND: Kind = Kind::SortedSet;
    const EVENTS: EventClass = EventClass::SORTED_SET;

    fn new(_: &EncodingLimits) -> SortedSet {
        SortedSet::ListPack(ListPack::new())
    }
    fn of_value(value: &Value) -> Option<&SortedSet> {
        match value {
            Value::SortedSet(set) => Some(set),
            _ => None,
        }
    }
    fn of_value_mut(value: &mut Value) -> Option<&mut SortedSet> {
        match value {
            Value::SortedSet(set) => Some(set),
            _ => None,
        }
    }
    fn into_value(self) -> Value {
        Value::SortedSet(self)
    }
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn encoding(&self) -> Encoding {
        match self {
            SortedSet::ListPack(_) => Encoding::ListPack,
            SortedSet::SkipList(_) => Encoding::SkipList,
        }
    }
}

/// Neighbouring members with their scores.
pub enum Members<'a> {
    ListPack(listpack::Pairs<'a>),
    SkipList(ordered::Members<'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = (Item<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<(Item<'a>, f64)> {
        match self {
            Members::ListPack(pairs) => pairs.next(),
            Members::SkipList(members) => members.next().map(|(m, score)| (Item::Str(m), score)),
        }
    }
}

impl DoubleEndedIterator for Members<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Members::ListPack(pairs) => pairs.next_back(),
            Members::SkipList(members) => {
                members.next_back().map(|(member, score)| (Item::Str(member), score))
            }
        }
    }
}
