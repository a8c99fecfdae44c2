//! Sorted sets as listpacks: member, score, member, score … in order. Scores are stored as integers
//! if that is exact, otherwise as text with 17 digits, as Redis writes them.

use super::LexRange;
use brisk_resp::reply::encode;
use brisk_structures::listpack::{Item, Iter, ListPack, Pos};
use std::ops::Range;

/// Length of the longest score as text.
pub(super) const SCORE_BYTES_MAX: usize = 24;
/// Above this value Redis does not check whether a double is an integer.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// Members and scores in order.
pub struct Pairs<'a>(Iter<'a>);

impl<'a> Iterator for Pairs<'a> {
    type Item = (Item<'a>, f64);

    fn next(&mut self) -> Option<(Item<'a>, f64)> {
        let member = self.0.next()?;
        Some((member, score_of(self.0.next()?)))
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let score = score_of(self.0.next_back()?);
        Some((self.0.next_back()?, score))
    }
}

pub(super) fn pairs(list: &ListPack) -> Pairs<'_> {
    Pairs(list.iter())
}

/// The pairs with these ranks.
pub(super) fn slice(list: &ListPack, ranks: Range<usize>) -> Pairs<'_> {
    Pairs(list.iter_range(2 * ranks.start..2 * ranks.end))
}

/// The scores alone, in order.
pub(super) fn scores(list: &ListPack) -> impl Iterator<Item = f64> {
    list.iter().skip(1).step_by(2).map(score_of)
}

/// The scores, and the positions of their members.
pub(super) fn places(list: &ListPack) -> impl Iterator<Item = (f64, Pos)> {
    let mut items = list.iter();
    std::iter::from_fn(move || Some((items.pos()?, items.nth(1)?)))
        .map(|(at, score)| (score_of(score), at))
}

fn score_of(item: Item<'_>) -> f64 {
    match item {
        Item::Int(number) => number as f64,
        // Our own listpacks contain numbers, and external bytes have already been validated.
        Item::Str(text) => crate::base::double::parse_bound(text).unwrap_or(0.0),
    }
}

/// Calls `put` with the stored form of a score.
fn with_score<R>(score: f64, put: impl FnOnce(Item<'_>) -> R) -> R {
    if score.abs() <= INTEGER_MAX && score.trunc() == score {
        return put(Item::Int(score as i64));
    }
    let mut text = Vec::with_capacity(SCORE_BYTES_MAX);
    encode::double_text(&mut text, score);
    put(Item::of(&text))
}

pub(super) fn find(list: &ListPack, member: &[u8]) -> Option<(Pos, f64)> {
    let at = list.find(list.first()?, member, 1)?;
    Some((at, score_after(list, at)))
}

/// The score of the member at `at`.
fn score_after(list: &ListPack, at: Pos) -> f64 {
    score_of(list.item(list.next(at).expect("members and scores come in pairs")))
}

pub(super) fn rank(list: &ListPack, member: &[u8]) -> Option<(usize, f64)> {
    let (at, rank) = list.find_counted(list.first()?, member, 1)?;
    Some((rank, score_after(list, at)))
}

/// Appends a member that is greater than all others.
pub(super) fn push<'a>(list: &mut ListPack, member: impl Into<Item<'a>>, score: f64) {
    list.push_back(member);
    with_score(score, |score| list.push_back(score));
}

/// Inserts a new member at its position.
pub(super) fn insert(list: &mut ListPack, member: &[u8], score: f64) {
    let mut items = list.iter();
    loop {
        let at = items.pos();
        let (Some(at), Some(other), Some(value)) = (at, items.next(), items.next()) else {
            return push(list, member, score);
        };
        let value = score_of(value);
        if value > score || value == score && other.text(&mut itoa::Buffer::new()) > member {
            let at = list.insert_before(at, member);
            with_score(score, |score| list.insert_after(at, score));
            return;
        }
    }
}

/// See [`super::SortedSet::lex_ranks`]; `range` is not empty.
pub(super) fn lex_ranks(list: &ListPack, range: &LexRange<'_>, backward: bool) -> Range<usize> {
    let mut buffer = itoa::Buffer::new();
    let mut reaches = |item: Item<'_>| range.reaches(item.text(&mut buffer));
    let mut buffer = itoa::Buffer::new();
    let mut exceeded = |item: Item<'_>| range.exceeded_by(item.text(&mut buffer));
    let len = list.len() / 2;
    let ends = (pairs(list).next(), pairs(list).next_back());
    let (Some((first, _)), Some((last, _))) = ends else { return 0..0 };
    if !reaches(last) || exceeded(first) {
        return 0..0;
    }
    if backward {
        let exceeding = pairs(list).rev().take_while(|pair| exceeded(pair.0)).count();
        let end = len - exceeding;
        let within = pairs(list).rev().skip(exceeding).take_while(|pair| reaches(pair.0)).count();
        end - within..end
    } else {
        let start = pairs(list).take_while(|pair| !reaches(pair.0)).count();
        let within = pairs(list).skip(start).take_while(|pair| !exceeded(pair.0)).count();
        start..start + within
    }
}
