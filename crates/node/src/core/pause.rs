//! CLIENT PAUSE and the server's own holds, during which all commands or only writes wait.

use brisk_structures::poison::EvenPoisoned;
use std::sync::{Mutex, MutexGuard};

/// The commands that wait during a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paused {
    Writes,
    /// Commands that read or write keys.
    Keys,
    All,
}

/// Why the server itself holds commands back, independent of CLIENT PAUSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Hold {
    /// A replica is about to take over.
    Failover = 1,
    /// Replicas must catch up before the server exits.
    Shutdown = 2,
    /// Another node of the cluster may be the primary by now, so reads are held back as well.
    Switch = 4,
}

/// The pauses in force, if any. The `arm` and `disarm` functions run while the lock is held, so that the end of one
/// pause cannot disarm the next.
#[derive(Debug, Default)]
pub struct Pause(Mutex<Pauses>);

#[derive(Debug, Default)]
struct Pauses {
    /// The pause that a client requested, and its end.
    requested: Option<(Paused, u64)>,
    /// Bits of [`Hold`]. While any bit is set, writes wait.
    holds: u8,
}

impl Pauses {
    /// The commands that the server itself holds back.
    const fn held(&self) -> Option<Paused> {
        match self.holds {
            0 => None,
            holds if holds & Hold::Switch as u8 != 0 => Some(Paused::Keys),
            _ => Some(Paused::Writes),
        }
    }
}

impl Pauses {
    fn in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        let requested = self.requested.filter(|(_, until)| *until > now_ms);
        let Some(held) = self.held() else { return requested };
        let what = requested.map_or(held, |(what, _)| what.max(held));
        Some((what, u64::MAX))
    }
}

impl Pause {
    /// Pauses until `until_ms`. A pause that is already in force at `now_ms` is never weakened or shortened.
    pub fn begin(&self, what: Paused, until_ms: u64, now_ms: u64, arm: impl FnOnce()) {
        let mut pauses = self.lock();
        pauses.requested = Some(match pauses.requested.filter(|(_, until)| *until > now_ms) {
            Some((before, until)) => (before.max(what), until.max(until_ms)),
            None => (what, until_ms),
        });
        arm();
    }

    /// Ends the pause that clients requested.
    pub fn end(&self, disarm: impl FnOnce()) {
        let mut pauses = self.lock();
        pauses.requested = None;
        if pauses.holds == 0 {
            disarm();
        }
    }

    /// Holds commands back for a purpose, until [`Pause::release`].
    pub fn hold(&self, purpose: Hold, arm: impl FnOnce()) {
        let mut pauses = self.lock();
        pauses.holds |= purpose as u8;
        arm();
    }

    /// Ends the hold for this purpose. The next call to [`Pause::in_force_or`] disarms if nothing else is in force.
    pub fn release(&self, purpose: Hold) {
        self.lock().holds &= !(purpose as u8);
    }

    /// True while commands are held back for this purpose.
    pub fn is_held(&self, purpose: Hold) -> bool {
        self.lock().holds & purpose as u8 != 0
    }

    /// The commands that are paused at `now_ms`, and until when.
    pub fn in_force(&self, now_ms: u64) -> Option<(Paused, u64)> {
        self.lock().in_force(now_ms)
    }

    /// As [`Pause::in_force`], but also disarms if nothing is paused any more.
    pub fn in_force_or(&self, now_ms: u64, disarm: impl FnOnce()) -> Option<(Paused, u64)> {
        let mut pauses = self.lock();
        let in_force = pauses.in_force(now_ms);
        if in_force.is_none() {
            pauses.requested = None;
            disarm();
        }
        in_force
    }

    fn lock(&self) -> MutexGuard<'_, Pauses> {
        self.0.lock().even_poisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(pause: &Pause, what: Paused, until_ms: u64, now_ms: u64) {
        pause.begin(what, until_ms, now_ms, || ());
    }

    #[test]
    fn a_pause_cannot_be_weakened_or_shortened() {
        let pause = Pause::default();
        begin(&pause, Paused::Writes, 2000, 1000);
        begin(&pause, Paused::All, 1300, 1000);
        assert_eq!(pause.in_force(1999), Some((Paused::All, 2000)));
        assert_eq!(pause.in_force(2000), None);
    }

    #[test]
    fn an_expired_pause_has_no_effect_on_the_next() {
        let pause = Pause::default();
        begin(&pause, Paused::All, 2000, 1000);
        begin(&pause, Paused::Writes, 2500, 2000);
        assert_eq!(pause.in_force(2100), Some((Paused::Writes, 2500)));
    }

    #[test]
    fn clients_cannot_end_what_the_server_holds_back() {
        for purpose in [Hold::Failover, Hold::Shutdown] {
            let pause = Pause::default();
            begin(&pause, Paused::All, 2000, 1000);
            pause.hold(purpose, || ());
            pause.end(|| panic!("a hold is in force"));
            assert_eq!(pause.in_force(9_999_999), Some((Paused::Writes, u64::MAX)));
            pause.release(purpose);
            assert_eq!(pause.in_force(1000), None);
        }
    }

    #[test]
    fn writes_are_held_back_until_each_purpose_is_over() {
        let pause = Pause::default();
        pause.hold(Hold::Failover, || ());
        pause.hold(Hold::Shutdown, || ());
        pause.release(Hold::Failover);
        assert_eq!(pause.in_force(1), Some((Paused::Writes, u64::MAX)));
        pause.in_force_or(1, || panic!("still in force"));
        pause.release(Hold::Shutdown);
        assert_eq!(pause.in_force(1), None);
    }

    #[test]
    fn reads_are_held_back_only_for_a_switch() {
        let pause = Pause::default();
        pause.hold(Hold::Failover, || ());
        pause.hold(Hold::Switch, || ());
        assert_eq!(pause.in_force(1), Some((Paused::Keys, u64::MAX)));
        begin(&pause, Paused::Writes, 2000, 1000);
        assert_eq!(pause.in_force(1000), Some((Paused::Keys, u64::MAX)));
        pause.release(Hold::Switch);
        assert!(pause.is_held(Hold::Failover) && !pause.is_held(Hold::Switch));
        assert_eq!(pause.in_force(2000), Some((Paused::Writes, u64::MAX)));
    }

    #[test]
    fn only_a_pause_that_is_over_is_disarmed() {
        let pause = Pause::default();
        begin(&pause, Paused::All, 2000, 1000);
        pause.in_force_or(1500, || panic!("still in force"));
        let mut disarmed = false;
        pause.in_force_or(2000, || disarmed = true);
        assert!(disarmed);
    }
}
