//! Sorted sets: a listpack of members and scores in order, or members in a tree with an index
//! (shown as `skiplist`, the name that clients know).

mod dump;
mod listpack;
mod range;

pub use range::{LexRange, ScoreRange};

use super::{Collection, Encoding, EncodingLimits, Value, ValueKind};
use crate::base::double::parse_f64;
use crate::base::error::{CommandError, Result};
use crate::base::event::EventClass;
use brisk_structures::listpack::{Item, ListPack, Pos};
use brisk_structures::ordered::{self, Ordered};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

/// Estimated bytes of a member and its score in a listpack, without the member's text.
const PACKED_SCORE_BYTES: usize = 6;

/// Maximum number of members of a value that is freed immediately instead of by another thread.
const LIGHT_LEN_MAX: usize = 256;

/// Members with scores, in the order of (score, member).
#[derive(Debug, Clone)]
pub enum SortedSet {
    ListPack(ListPack),
    SkipList(Box<Ordered>),
}

/// The options of ZADD that restrict changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddRules {
    /// Only add new members.
    pub only_new: bool,
    /// Only change existing members.
    pub only_existing: bool,
    /// Only change scores to greater ones.
    pub only_greater: bool,
    /// Only change scores to lesser ones.
    pub only_less: bool,
    /// Add the number to the score.
    pub increment: bool,
}

/// The effect of ZADD on one member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Added {
    /// The rules did not allow the change.
    Refused,
    /// The member already had that score.
    Same(f64),
    New(f64),
    Changed(f64),
}

impl AddRules {
    /// The effect on a member with the score `current`, for the requested `score`.
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
    /// A set of these members, sorted by score and text, in the encoding for its size. O(n), but
    /// O(n log n) for many members.
    #[must_use]
    pub fn of_sorted(members: &[(Item<'_>, f64)], limits: &EncodingLimits) -> SortedSet {
        let short = |(member, _): &(Item<'_>, f64)| member.len() <= limits.zset_max_listpack_value;
        if members.len() > limits.zset_max_listpack_entries || !members.iter().all(short) {
            return SortedSet::SkipList(Box::new(SortedSet::tree_of(members, limits)));
        }
        let bytes: usize = members.iter().map(|(member, _)| member.len()).sum();
        let mut list = ListPack::with_capacity(bytes + members.len() * PACKED_SCORE_BYTES);
        for (member, score) in members {
            listpack::push(&mut list, member.canonical(), *score);
        }
        SortedSet::ListPack(list)
    }

    /// Builds a sorted set as a tree, regardless of the number of members.
    #[must_use]
    pub fn tree_of(members: &[(Item<'_>, f64)], limits: &EncodingLimits) -> Ordered {
        let mut tree = Ordered::new(limits.hash_key);
        for (member, score) in members {
            tree.insert(member.text(&mut itoa::Buffer::new()), *score);
        }
        tree
    }

    /// Sorts members by score and text. O(n log n), or O(n) if they are sorted already.
    pub fn sort(members: &mut [(Item<'_>, f64)]) {
        members.sort_unstable_by(|(one, score), (other, other_score)| {
            let by_score = score.partial_cmp(other_score).unwrap_or(Ordering::Equal);
            by_score.then_with(|| match (one, other) {
                (Item::Str(one), Item::Str(other)) => one.cmp(other),
                _ => {
                    let (mut digits, mut others) = (itoa::Buffer::new(), itoa::Buffer::new());
                    one.text(&mut digits).cmp(other.text(&mut others))
                }
            })
        });
    }

    /// Like `Value::is_same`.
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

    /// Prefetches the memory that looking up these members will read. `scores` are the texts of the
    /// scores that the members will get, if any. O(members).
    pub(crate) fn prefetch(&self, members: &[&[u8]], scores: &[&[u8]]) {
        if let SortedSet::SkipList(tree) = self {
            tree.prefetch(members, |index| scores.get(index).and_then(|word| parse_f64(word)));
        }
    }

    /// The score of a member. O(1), but O(n) in a listpack.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            SortedSet::ListPack(list) => listpack::find(list, member).map(|found| found.1),
            SortedSet::SkipList(tree) => tree.score(member),
        }
    }

    /// The number of members before this one, and its score. O(log n).
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
    /// If the sum is not a number, or the member is too long. In this case nothing has changed.
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
        // Rules need the old score. Without rules the tree finds it during the insertion.
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

    /// The tree. A listpack is converted.
    fn as_tree(&mut self, limits: &EncodingLimits) -> &mut Ordered {
        if let SortedSet::ListPack(_) = self {
            let mut tree = Ordered::new(limits.hash_key);
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

    /// Removes a member. Returns true if it existed. O(log n).
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            SortedSet::ListPack(list) => {
                let found = listpack::find(list, member);
                found.map(|(at, _)| list.delete_range(at, 2)).is_some()
            }
            SortedSet::SkipList(tree) => tree.remove(member).is_some(),
        }
    }

    /// Removes the members with these ranks.
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

    /// The ranks for Redis's index notation: negative ones count from the end. The result is
    /// limited to existing ranks.
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
                let (mut start, mut end) = (0, 0);
                for score in listpack::scores(list).take_while(|score| !range.exceeded_by(*score)) {
                    start += usize::from(!range.reaches(score));
                    end += 1;
                }
                (start, end)
            }
            SortedSet::SkipList(tree) => (
                tree.partition(|score, _| !range.reaches(score)),
                tree.partition(|score, _| !range.exceeded_by(score)),
            ),
        };
        start..end.max(start)
    }

    /// The ranks of the members in `range`, for members with equal scores. O(log n). If scores
    /// differ, the result is that of a search from the front (from the end if `backward`).
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

    /// The members with these ranks and their scores, from either end.
    #[must_use]
    pub fn iter(&self, ranks: Range<usize>) -> Members<'_> {
        match self {
            SortedSet::ListPack(list) => Members::ListPack(listpack::slice(list, ranks)),
            SortedSet::SkipList(tree) => Members::SkipList(tree.range(ranks)),
        }
    }

    /// Calls `visit` with the members whose scores are in one of the ranges and for whose scores
    /// `pick` returns a value, along with that value, until `visit` breaks. The ranges are visited
    /// one after the other. O(ranges * log n + members in them), plus O(n) once for a listpack.
    pub fn select<'a, R>(
        &'a self,
        ranges: impl IntoIterator<Item = ScoreRange>,
        mut pick: impl FnMut(f64) -> Option<R>,
        mut visit: impl FnMut(Item<'a>, f64, R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            SortedSet::ListPack(list) => {
                let places: SmallVec<[(f64, Pos); 128]> = listpack::places(list).collect();
                for range in ranges {
                    let first = places.partition_point(|(score, _)| !range.reaches(*score));
                    let within = places[first..].iter();
                    for &(score, at) in within.take_while(|(score, _)| !range.exceeded_by(*score)) {
                        if let Some(picked) = pick(score) {
                            visit(list.item(at), score, picked)?;
                        }
                    }
                }
            }
            SortedSet::SkipList(tree) => {
                for range in ranges {
                    for run in tree.runs(self.score_ranks(&range)) {
                        for (at, &score) in run.scores().iter().enumerate() {
                            if let Some(picked) = pick(score) {
                                visit(Item::Str(run.member(at)), score, picked)?;
                            }
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits members with the texts of their scores, for ZSCAN: about `count` members starting at
    /// `cursor`, or all members of a listpack. Returns the next cursor.
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
    const KIND: ValueKind = ValueKind::SortedSet;
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

/// Adjacent members with their scores.
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
