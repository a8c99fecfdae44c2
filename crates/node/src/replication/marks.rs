//! The times at which parts of the stream were appended, from which the lag of a replica in seconds is computed.
//!
//! A mark is a position and the time at which the byte at this position was appended. A byte between two marks was
//! appended at the time of the first mark, or later, but by less than the time between the two marks. The time between
//! two marks is [`APART_MS`], or longer if the oldest mark is old.

use std::collections::VecDeque;

/// The shortest time between two marks.
const APART_MS: u64 = 100;
/// The largest number of marks. When it is exceeded, every second mark is dropped, which doubles the time between
/// marks. For a lag of hours, tenths of a second do not matter.
const MARKS_MAX: usize = 1024;
/// If there are fewer marks than this, the time between marks is reset to [`APART_MS`].
const MARKS_FEW: usize = 16;

/// Marks in the order of positions.
#[derive(Debug)]
pub(super) struct Marks {
    /// Positions and times in Unix ms.
    marks: VecDeque<(u64, u64)>,
    /// The current time between marks.
    apart_ms: u64,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { marks: VecDeque::new(), apart_ms: APART_MS }
    }
}

impl Marks {
    /// Notes that the bytes from this position on are new. Amortized O(1).
    pub(super) fn note(&mut self, from: u64, now_ms: u64) {
        // If the clock was set back, a mark is added as well.
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

    /// Drops marks before this position.
    pub(super) fn trim(&mut self, needed_from: u64) {
        while self.marks.get(1).is_some_and(|(from, _)| *from <= needed_from) {
            self.marks.pop_front();
        }
        if self.marks.len() < MARKS_FEW {
            self.apart_ms = APART_MS;
        }
    }

    /// The time at which the byte at a position was appended, in Unix ms. For a byte before all marks, this is the time
    /// of the first mark. O(log marks).
    pub(super) fn appended_ms(&self, place: u64) -> Option<u64> {
        let after = self.marks.partition_point(|(from, _)| *from <= place);
        self.marks.get(after.saturating_sub(1)).map(|(_, ms)| *ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_as_old_as_the_mark_before_it() {
        let mut marks = Marks::default();
        assert_eq!(marks.appended_ms(5), None);
        marks.note(100, 5_000);
        marks.note(150, 5_099);
        marks.note(200, 5_100);
        marks.note(300, 4_000);
        let made = |marks: &Marks, place| marks.appended_ms(place);
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
        assert_eq!(marks.appended_ms(0), Some(0));
        // Half of the maximum number of marks covers the whole time, and the time between marks may just have doubled.
        let gap_max = 100_000 * 1_000 / (MARKS_MAX as u64 / 4);
        for place in [1_000_u64, 500_005, 999_000] {
            let (made, exact) = (marks.appended_ms(place).unwrap_or(0), place / 10 * 1_000);
            assert!(made <= exact && exact - made <= gap_max, "{made} for {exact}");
        }
        marks.trim(999_999);
        marks.note(1_000_000, 100_000_000);
        marks.note(1_000_001, 100_000_100);
        assert_eq!(marks.appended_ms(1_000_001), Some(100_000_100), "close again");
    }
}
