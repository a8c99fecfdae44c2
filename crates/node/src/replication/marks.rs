//! When which part of the stream was made: so a replica is behind not only by bytes, but by seconds.
//!
//! A mark is a place, and the moment in which the byte there was made. What stands between two marks was
//! made at the first, or less than their distance later: [`APART_MS`], and more if the oldest is old.

use std::collections::VecDeque;

/// Marks are so far apart in time, at least.
const APART_MS: u64 = 100;
/// When there would be more, every second one goes, and those that come are as far apart: who is behind by hours
/// does not need tenths of a second.
const MARKS_MAX: usize = 1024;
/// Fewer can be close again.
const MARKS_FEW: usize = 16;

/// In the order of places.
#[derive(Debug)]
pub(super) struct Marks {
    /// Places, and Unix ms.
    marks: VecDeque<(u64, u64)>,
    /// How far apart those are that come.
    apart_ms: u64,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { marks: VecDeque::new(), apart_ms: APART_MS }
    }
}

impl Marks {
    /// What the stream has from this place on is new. Amortised O(1).
    pub(super) fn note(&mut self, from: u64, now_ms: u64) {
        // A clock that was set back makes a mark as well.
        if self.marks.back().is_some_and(|(_, last_ms)| now_ms.abs_diff(*last_ms) < self.apart_ms) {
            return;
        }
        self.marks.push_back((from, now_ms));
        if self.marks.len() > MARKS_MAX {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.apart_ms *= 2;
        }
    }

    /// Nobody has to know of what stands before this place.
    pub(super) fn trim(&mut self, needed_from: u64) {
        while self.marks.get(1).is_some_and(|(from, _)| *from <= needed_from) {
            self.marks.pop_front();
        }
        if self.marks.len() < MARKS_FEW {
            self.apart_ms = APART_MS;
        }
    }

    /// When the byte at a place was made, in Unix ms; of one before all marks, that it was by then.
    /// O(log marks).
    pub(super) fn made_ms(&self, place: u64) -> Option<u64> {
        let behind = self.marks.partition_point(|(from, _)| *from <= place);
        self.marks.get(behind.saturating_sub(1)).map(|(_, ms)| *ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_as_old_as_the_mark_before_it() {
        let mut marks = Marks::default();
        assert_eq!(marks.made_ms(5), None);
        marks.note(100, 5_000);
        marks.note(150, 5_099);
        marks.note(200, 5_100);
        marks.note(300, 4_000);
        let made = |marks: &Marks, place| marks.made_ms(place);
        assert_eq!([99, 100, 199].map(|place| made(&marks, place)), [Some(5_000); 3]);
        assert_eq!([200, 299].map(|place| made(&marks, place)), [Some(5_100); 2]);
        assert_eq!(made(&marks, 300), Some(4_000), "the clock was set back");
        marks.trim(299);
        assert_eq!((marks.marks.len(), made(&marks, 299)), (2, Some(5_100)));
        marks.trim(u64::MAX);
        assert_eq!((marks.marks.len(), made(&marks, 400)), (1, Some(4_000)));
    }

    #[test]
    fn many_marks_are_thinned_out_and_the_oldest_stays() {
        let mut marks = Marks::default();
        for number in 0..100_000 {
            marks.note(number * 10, number * 1_000);
            assert!(marks.marks.len() <= MARKS_MAX);
        }
        assert_eq!(marks.made_ms(0), Some(0));
        // The time of all of them, by half as many as there may be, and twice that at the end.
        let gap_max = 100_000 * 1_000 / (MARKS_MAX as u64 / 4);
        for place in [1_000_u64, 500_005, 999_000] {
            let (made, exact) = (marks.made_ms(place).unwrap_or(0), place / 10 * 1_000);
            assert!(made <= exact && exact - made <= gap_max, "{made} for {exact}");
        }
        marks.trim(999_999);
        marks.note(1_000_000, 100_000_000);
        marks.note(1_000_001, 100_000_100);
        assert_eq!(marks.made_ms(1_000_001), Some(100_000_100), "close again");
    }
}
