//! The execution of a session's requests: whether the session is stalled, and retries of its current request.

use super::Session;

/// If a request could not lock its slots in this many rounds, all other workers are stopped for it. A power of two. A
/// round without other work takes some microseconds.
const SLOT_REFUSALS_MAX: u32 = 64;

/// Why a session executes nothing at the moment. Its unread input stays in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// The session executes commands.
    None,
    /// The client does not read its replies. The session waits until the output has drained.
    Output,
    /// Another worker held a slot, or the session has used up its share of this round.
    NextRound,
    /// CLIENT PAUSE.
    Paused,
    /// The session's command waits for a key.
    Waiting,
    /// Another thread is computing the session's command.
    Elsewhere,
    /// The session's command would write to data that a long command, which another thread computes, is using.
    Frozen,
    /// The session is a replica that is being sent its snapshot.
    FullSync,
}

impl Stall {
    /// Reports whether unexecuted requests are dropped if the client disconnects. They are dropped during a pause or a
    /// wait, as in Redis, and for a replica that waits for its snapshot. Otherwise the requests are executed first,
    /// because a client that has only shut down its sending side may still read the replies.
    pub fn ends_with_the_client(self) -> bool {
        matches!(self, Stall::Paused | Stall::Waiting | Stall::FullSync)
    }
}

/// The state of the session's current request.
pub(super) struct ExecutionState {
    stall: Stall,
    /// How often the request was postponed because another worker held a slot.
    slot_refusals: u32,
    /// True if the request is a script that still waits for its slots but has already been shown to monitors.
    script_shown: bool,
}

impl Default for ExecutionState {
    fn default() -> ExecutionState {
        ExecutionState { stall: Stall::None, slot_refusals: 0, script_shown: false }
    }
}

impl Session {
    #[inline]
    pub fn stall(&self) -> Stall {
        self.execution.stall
    }

    /// Sets the reason why the session executes nothing. The caller ensures that the session is resumed.
    #[inline]
    pub fn set_stall(&mut self, stall: Stall) {
        self.execution.stall = stall;
    }

    /// Counts a failed attempt of the current request to lock its slots.
    pub(crate) fn count_slot_refusal(&mut self) {
        self.execution.slot_refusals = self.execution.slot_refusals.saturating_add(1);
    }

    /// Reports whether the current request was postponed because another worker held a slot.
    #[inline]
    pub(crate) fn was_refused_slots(&self) -> bool {
        self.execution.slot_refusals != 0
    }

    /// Reports whether the current request was postponed so often that the next attempt quiesces all other workers. A
    /// request that needs several constantly used slots might never find all of them free. The number of rounds between
    /// such attempts grows, because a script that holds a slot for a long time cannot be stopped.
    #[inline]
    pub fn is_starved(&self) -> bool {
        let refusals = self.execution.slot_refusals;
        refusals >= SLOT_REFUSALS_MAX && refusals.is_power_of_two()
    }

    /// Notes that monitors are shown the script. Returns false if they were shown it at an earlier attempt.
    pub(crate) fn note_script_shown(&mut self) -> bool {
        !std::mem::replace(&mut self.execution.script_shown, true)
    }

    /// Ends an attempt to run a script. If `again` is true, the same script is retried and is not shown to monitors
    /// again.
    pub fn end_script_try(&mut self, again: bool) {
        self.execution.script_shown &= again;
    }

    /// Called after each command, before the next request begins.
    #[inline]
    pub fn after_command(&mut self) {
        self.execution.slot_refusals = 0;
        self.options.after_command();
    }
}
