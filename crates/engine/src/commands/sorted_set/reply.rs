//! Members and scores in replies: flat in RESP2, in pairs in RESP3.

use crate::reply::{Outcome, Reply};
use crate::types::SortedSet;
use brisk_resp::Protocol;
use brisk_structures::listpack::Item;
use std::ops::Range;

/// Maximum number of members that are written immediately. Longer ranges are written as the client
/// reads them, from a view of the set.
pub(super) const AT_ONCE_MAX: usize = 2_000;
/// Number of members that are written between two checks of the budget.
const PIECE_LEN: usize = 128;

/// A member alone or with its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    Members,
    WithScores,
}

impl Show {
    /// Writes the header for this number of members.
    pub(super) fn announce(self, reply: &mut Reply<'_>, members: usize) {
        let flat = self == Show::WithScores && reply.protocol() == Protocol::Resp2;
        reply.array(if flat { 2 * members } else { members });
    }

    pub(super) fn member(self, reply: &mut Reply<'_>, member: Item<'_>, score: f64) {
        if self == Show::WithScores && reply.protocol() == Protocol::Resp3 {
            reply.array(2);
        }
        reply.bulk(member.text(&mut itoa::Buffer::new()));
        if self == Show::WithScores {
            reply.double(score);
        }
    }

    /// Replies with the members of these ranks. Nothing may be written after them.
    pub(super) fn ranks(
        self,
        reply: &mut Reply<'_>,
        set: &SortedSet,
        ranks: Range<usize>,
        backward: bool,
    ) -> Outcome {
        self.announce(reply, ranks.len());
        if ranks.len() <= AT_ONCE_MAX {
            self.piece(reply, set, ranks, backward);
            return Outcome::Replied;
        }
        let view = set.clone();
        let mut left = ranks;
        reply.stream(move |reply, budget| {
            let end = reply.written().saturating_add(budget);
            while !left.is_empty() && reply.written() < end {
                let piece = if backward {
                    let start = left.end.saturating_sub(PIECE_LEN).max(left.start);
                    let piece = start..left.end;
                    left.end = start;
                    piece
                } else {
                    let end = (left.start + PIECE_LEN).min(left.end);
                    let piece = left.start..end;
                    left.start = end;
                    piece
                };
                self.piece(reply, &view, piece, backward);
            }
            !left.is_empty()
        })
    }

    fn piece(self, reply: &mut Reply<'_>, set: &SortedSet, ranks: Range<usize>, backward: bool) {
        let members = set.iter(ranks);
        if backward {
            members.rev().for_each(|(member, score)| self.member(reply, member, score));
        } else {
            members.for_each(|(member, score)| self.member(reply, member, score));
        }
    }
}
