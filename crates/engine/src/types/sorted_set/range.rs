//! Ranges of scores and of members, in the notation of ZRANGE.

use crate::base::double::parse_bound;
use crate::base::error::{CommandError, Result};

/// A range of scores. Each bound is inclusive or exclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreRange {
    pub min: f64,
    pub min_open: bool,
    pub max: f64,
    pub max_open: bool,
}

impl ScoreRange {
    /// Parses two bounds: numbers, with `(` before exclusive ones.
    pub fn parse(min: &[u8], max: &[u8]) -> Result<ScoreRange> {
        let bound = |word: &[u8]| {
            let open = word.strip_prefix(b"(");
            let value = parse_bound(open.unwrap_or(word));
            let value = value.ok_or_else(|| CommandError::text("ERR min or max is not a float"))?;
            Ok::<_, CommandError>((value, open.is_some()))
        };
        let ((min, min_open), (max, max_open)) = (bound(min)?, bound(max)?);
        Ok(ScoreRange { min, min_open, max, max_open })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.min > self.max || self.min == self.max && (self.min_open || self.max_open)
    }

    /// Reports whether `score` is not below the range.
    #[inline]
    pub(super) fn reaches(&self, score: f64) -> bool {
        if self.min_open { score > self.min } else { score >= self.min }
    }

    /// Reports whether `score` is above the range.
    #[inline]
    pub(super) fn exceeded_by(&self, score: f64) -> bool {
        if self.max_open { score >= self.max } else { score > self.max }
    }
}

/// A bound of a range of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LexBound<'a> {
    /// `-`: before everything.
    Lowest,
    /// `+`: after everything.
    Highest,
    Open(&'a [u8]),
    Closed(&'a [u8]),
}

/// A range of members.
#[derive(Debug, Clone, Copy)]
pub struct LexRange<'a> {
    min: LexBound<'a>,
    max: LexBound<'a>,
}

impl<'a> LexRange<'a> {
    /// Parses two bounds: `-`, `+`, `(member` or `[member`.
    pub fn parse(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>> {
        let bound = |word: &'a [u8]| match word {
            [b'-'] => Ok(LexBound::Lowest),
            [b'+'] => Ok(LexBound::Highest),
            [b'(', rest @ ..] => Ok(LexBound::Open(rest)),
            [b'[', rest @ ..] => Ok(LexBound::Closed(rest)),
            _ => Err(CommandError::text("ERR min or max not valid string range item")),
        };
        Ok(LexRange { min: bound(min)?, max: bound(max)? })
    }

    pub(super) fn is_empty(&self) -> bool {
        use LexBound::{Closed, Highest, Lowest, Open};
        match (self.min, self.max) {
            (Highest, _) | (_, Lowest) => true,
            (Lowest, _) | (_, Highest) => false,
            (Closed(min), Closed(max)) => min > max,
            (Closed(min) | Open(min), Closed(max) | Open(max)) => min >= max,
        }
    }

    /// Reports whether `member` is not below the range.
    #[inline]
    pub(super) fn reaches(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => true,
            LexBound::Highest => false,
            LexBound::Open(min) => member > min,
            LexBound::Closed(min) => member >= min,
        }
    }

    /// Reports whether `member` is above the range.
    #[inline]
    pub(super) fn exceeded_by(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => true,
            LexBound::Highest => false,
            LexBound::Open(max) => member >= max,
            LexBound::Closed(max) => member > max,
        }
    }
}
