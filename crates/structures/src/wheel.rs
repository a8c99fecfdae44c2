//! Timer wheel: many deadlines in milliseconds, each added and canceled in O(1).
//!
//! Six levels of 64 slots; a slot of level n spans 64^n ms. A timer is on the level of the highest
//! digit (base 64) in which its deadline differs from the wheel's time. It moves down when the time
//! reaches its slot, at most five times in its life. A timer that is further ahead than 63 slots of
//! the top level (2.1 years) is put into the farthest slot, and is placed again when the time
//! reaches that slot.
//!
//! ```text
//!  level 5 ... level 1: | 64 ms | 64 ms | ... |   level 0: | 1 ms | 1 ms | ... |
//! ```
//!
//! Invariants (`check` verifies each)
//!  1. Bit s of `occupied[level]` is set if and only if the list of slot s is not empty.
//!  2. Every timer is linked in the slot that `home` returns, between its neighbors.
//!  3. The time `elapsed` never goes back; no occupied slot begins before it except the current ones.

use crate::slab::{Id, Slab};

const LEVELS: usize = 6;
const SLOTS: usize = 64;
const DIGIT_BITS: u32 = 6;
/// The longest time ahead for which a timer is placed. The slot after that would be the current one
/// again.
const AHEAD_MAX_MS: u64 = 63 << (DIGIT_BITS * 5);

#[derive(Debug)]
struct Timer<T> {
    deadline_ms: u64,
    home: usize,
    previous: Option<Id>,
    next: Option<Id>,
    value: T,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<Id>,
    last: Option<Id>,
}

/// Timers with a value each. The caller defines the time, in ms from any origin.
#[derive(Debug)]
pub struct Wheel<T> {
    elapsed_ms: u64,
    timers: Slab<Timer<T>>,
    occupied: [u64; LEVELS],
    slots: Box<[Ends]>,
}

impl<T> Wheel<T> {
    /// Creates an empty wheel whose time is `now_ms`.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            elapsed_ms: now_ms,
            timers: Slab::new(),
            occupied: [0; LEVELS],
            slots: vec![Ends::default(); LEVELS * SLOTS].into_boxed_slice(),
        }
    }

    /// Adds a timer. If its deadline has passed, it fires at the next `advance`. O(1).
    pub fn insert(&mut self, deadline_ms: u64, value: T) -> Id {
        let timer = Timer { deadline_ms, home: 0, previous: None, next: None, value };
        let id = self.timers.insert(timer);
        self.link(id, deadline_ms);
        id
    }

    /// Removes a timer; `None` if it has fired or was canceled. O(1).
    pub fn cancel(&mut self, id: Id) -> Option<T> {
        self.unlink(id)?;
        self.timers.remove(id).map(|timer| timer.value)
    }

    /// Changes the deadline of a timer. Returns false if the timer no longer exists. O(1).
    pub fn reset(&mut self, id: Id, deadline_ms: u64) -> bool {
        if self.unlink(id).is_none() {
            return false;
        }
        if let Some(timer) = self.timers.get_mut(id) {
            timer.deadline_ms = deadline_ms;
        }
        self.link(id, deadline_ms);
        true
    }

    /// Fires every timer with a deadline up to `now_ms`. O(fired + moved down).
    pub fn advance(&mut self, now_ms: u64, mut fire: impl FnMut(T)) {
        while let Some(value) = self.pop_expired(now_ms) {
            fire(value);
        }
    }

    /// Removes one timer with a deadline up to `now_ms`, earlier ones first. Returns `None` if
    /// there is none; the wheel's time is then `now_ms`. For callers that add timers during the
    /// loop, or bound their work.
    pub fn pop_expired(&mut self, now_ms: u64) -> Option<T> {
        loop {
            let Some((home, begin_ms)) = self.earliest().filter(|&(_, ms)| ms <= now_ms) else {
                self.elapsed_ms = self.elapsed_ms.max(now_ms);
                return None;
            };
            self.elapsed_ms = self.elapsed_ms.max(begin_ms);
            let id = self.slots[home].first?;
            let deadline_ms = self.timers.get(id)?.deadline_ms;
            self.unlink(id);
            if deadline_ms <= self.elapsed_ms {
                return self.timers.remove(id).map(|timer| timer.value);
            }
            self.link(id, deadline_ms);
        }
    }

    /// Returns when to call `advance` next. This is not later than the earliest deadline, and
    /// precedes it by less than the span of its slot. `None` if there are no timers. O(levels).
    #[inline]
    #[must_use]
    pub fn next_ms(&self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        self.earliest().map(|(_, begin_ms)| begin_ms)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Returns the earliest occupied slot and its start (or the current time, if the slot has
    /// begun).
    fn earliest(&self) -> Option<(usize, u64)> {
        // All levels are compared: a slot that has begun may still hold timers to be moved down,
        // which come before those already on a lower level.
        let occupied = (0..LEVELS).filter(|&level| self.occupied[level] != 0);
        let begins = occupied.map(|level| {
            let shift = DIGIT_BITS * level as u32;
            let current = self.elapsed_ms >> shift;
            let ahead = self.occupied[level].rotate_right((current % 64) as u32).trailing_zeros();
            let digit = current + u64::from(ahead);
            (level * SLOTS + (digit % 64) as usize, (digit << shift).max(self.elapsed_ms))
        });
        begins.min_by_key(|&(_, begin_ms)| begin_ms)
    }

    fn link(&mut self, id: Id, deadline_ms: u64) {
        let latest_ms = self.elapsed_ms.saturating_add(AHEAD_MAX_MS);
        let at_ms = deadline_ms.clamp(self.elapsed_ms, latest_ms);
        let differing = at_ms ^ self.elapsed_ms;
        let level = (differing.checked_ilog2().unwrap_or(0) / DIGIT_BITS).min(LEVELS as u32 - 1);
        let slot = (at_ms >> (DIGIT_BITS * level)) % 64;
        let home = level as usize * SLOTS + slot as usize;
        self.occupied[level as usize] |= 1 << slot;
        let previous = self.slots[home].last.replace(id);
        match previous.and_then(|before| self.timers.get_mut(before)) {
            Some(before) => before.next = Some(id),
            None => self.slots[home].first = Some(id),
        }
        if let Some(timer) = self.timers.get_mut(id) {
            (timer.home, timer.previous, timer.next) = (home, previous, None);
        }
    }

    fn unlink(&mut self, id: Id) -> Option<()> {
        let timer = self.timers.get(id)?;
        let (home, previous, next) = (timer.home, timer.previous, timer.next);
        match previous.and_then(|before| self.timers.get_mut(before)) {
            Some(before) => before.next = next,
            None => self.slots[home].first = next,
        }
        match next.and_then(|after| self.timers.get_mut(after)) {
            Some(after) => after.previous = previous,
            None => self.slots[home].last = previous,
        }
        if self.slots[home].first.is_none() {
            self.occupied[home / SLOTS] &= !(1 << (home % SLOTS));
        }
        Some(())
    }

    /// Verifies the invariants. O(timers + slots).
    pub fn check(&self) {
        self.timers.check();
        let mut linked = 0;
        for (home, ends) in self.slots.iter().enumerate() {
            let bit = self.occupied[home / SLOTS] >> (home % SLOTS) & 1 != 0;
            assert_eq!(bit, ends.first.is_some(), "1: occupied");
            let mut before = None;
            let mut at = ends.first;
            while let Some(timer) = at.and_then(|id| self.timers.get(id)) {
                assert_eq!((timer.home, timer.previous), (home, before), "2: links");
                linked += 1;
                before = at;
                at = timer.next;
            }
            assert_eq!(ends.last, before, "2: last");
        }
        assert_eq!(linked, self.timers.len(), "2: a timer is not linked");
    }
}

#[cfg(test)]
mod tests {
    use super::{AHEAD_MAX_MS, Wheel};
    use std::collections::HashMap;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        *state >> 20
    }

    #[test]
    fn every_timer_fires_at_its_time_and_not_before() {
        let mut state = 9;
        for start_ms in [0, 63, 1_700_000_000_000] {
            let (mut now_ms, mut wheel) = (start_ms, Wheel::new(start_ms));
            let mut model = HashMap::new();
            for step in 0..if cfg!(miri) { 150 } else { 6_000 } {
                let span = [1, 70, 5_000, 300_000, 20_000_000, 1 << 37];
                let far = random(&mut state) % span[random(&mut state) as usize % span.len()];
                match random(&mut state) % 8 {
                    0..4 => {
                        let deadline_ms = (now_ms + far).saturating_sub(3);
                        model.insert(wheel.insert(deadline_ms, step), (deadline_ms, step));
                    }
                    4 => {
                        if let Some(&id) = model.keys().next() {
                            let (_, value) = model.remove(&id).expect("just seen");
                            assert_eq!(wheel.cancel(id), Some(value));
                            assert_eq!(wheel.cancel(id), None);
                        }
                    }
                    5 => {
                        if let Some((&id, timer)) = model.iter_mut().next() {
                            timer.0 = now_ms + far;
                            assert!(wheel.reset(id, now_ms + far));
                        }
                    }
                    _ => {
                        now_ms += far;
                        let mut due: Vec<_> =
                            model.values().filter(|t| t.0 <= now_ms).map(|t| t.1).collect();
                        model.retain(|_, t| t.0 > now_ms);
                        let mut fired = vec![];
                        wheel.advance(now_ms, |value| fired.push(value));
                        due.sort_unstable();
                        fired.sort_unstable();
                        assert_eq!(fired, due);
                    }
                }
                let earliest = model.values().map(|t| t.0.max(now_ms)).min();
                assert_eq!(wheel.next_ms().is_some(), earliest.is_some());
                assert!(wheel.next_ms() <= earliest, "waiting for next_ms would be too late");
                wheel.check();
            }
        }
    }

    #[test]
    fn timers_fire_in_the_order_of_their_deadlines() {
        let mut wheel = Wheel::new(1_000);
        for deadline_ms in [9_000, 1_001, 5_000, 1_064, 1_063, 4_096, 4_095, 0] {
            wheel.insert(deadline_ms, deadline_ms);
        }
        let mut fired = vec![];
        wheel.advance(10_000, |value| fired.push(value));
        assert_eq!(fired, [0, 1_001, 1_063, 1_064, 4_095, 4_096, 5_000, 9_000]);
    }

    #[test]
    fn a_deadline_beyond_the_wheel_is_kept() {
        let mut wheel = Wheel::new(5);
        wheel.insert(u64::MAX, ());
        wheel.insert(5 + 3 * AHEAD_MAX_MS, ());
        let mut fired = 0;
        wheel.advance(4 + 3 * AHEAD_MAX_MS, |()| fired += 1);
        assert_eq!(fired, 0);
        wheel.advance(5 + 3 * AHEAD_MAX_MS, |()| fired += 1);
        assert_eq!((fired, wheel.len()), (1, 1));
    }

    #[test]
    fn timers_added_while_popping_are_served_in_the_same_round() {
        let mut wheel = Wheel::new(0);
        wheel.insert(3, 3);
        let mut fired = vec![];
        while let Some(value) = wheel.pop_expired(10) {
            fired.push(value);
            if value < 12 {
                wheel.insert(value + 4, value + 4);
            }
        }
        assert_eq!(fired, [3, 7]);
        assert_eq!(wheel.next_ms(), Some(11));
    }
}
