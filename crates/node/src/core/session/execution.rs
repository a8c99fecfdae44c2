//! The execution of a session's requests: whether it is stalled, and retries of its current request.

use super::Session;

/// Rounds in which a request could not lock its slots before all other workers are stopped for it;
/// a power of two. A round without other work takes some microseconds.
const SLOT_REFUSALS_MAX: u32 = 64;

/// Why a session executes nothing at the moment. Its unread input stays in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// It executes commands.
    None,
    /// Its client does not read its replies: the session waits until the output has drained. (P4)
    Output,
    /// Another worker held a slot, or the session used its share of this round.
    NextRound,
    /// CLIENT PAUSE.
    Paused,
    /// Its command waits for a key.
    Waiting,
    /// Its command is computed by another thread.
    Elsewhere,
    /// Its command would write to data from which another command is being computed.
    Frozen,
    /// It is a replica that is being sent its snapshot.
    Synchronises,
}

impl Stall {
    /// Reports whether unexecuted requests are dropped when the client disconnects. This is so
    /// during a pause or a wait, as in Redis, and for a replica that waits for its snapshot.
    /// Otherwise the requests are executed first, since a client that only shut its sending side
    /// may still read the replies.
    pub fn ends_with_the_client(self) -> bool {
        matches!(self, Stall::Paused | Stall::Waiting | Stall::Synchronises)
    }
}

/// The state of the session's current request.
pub(super) struct ExecutionState {
    stall: Stall,
    /// How often the request was postponed because another worker held a slot.
    slot_refusals: u32,
    /// Monitors have been shown the request, a script that still waits for its slots.
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

    /// Sets why it executes nothing. The caller ensures that it is resumed.
    #[inline]
    pub fn set_stall(&mut self, stall: Stall) {
        self.execution.stall = stall;
    }

    /// Counts that its current request could not lock its slots.
    pub(crate) fn count_slot_refusal(&mut self) {
        self.execution.slot_refusals = self.execution.slot_refusals.saturating_add(1);
    }

    /// Reports whether its current request was postponed because another worker held a slot.
    #[inline]
    pub(crate) fn was_refused_slots(&self) -> bool {
        self.execution.slot_refusals != 0
    }

    /// Reports whether its current request was postponed so often that it is tried while all other
    /// workers are quiesced. A request that needs several slots in constant use might never find
    /// them free at once. The pauses between tries grow, because a script that holds a slot for
    /// long cannot be stopped.
    #[inline]
    pub fn is_starved(&self) -> bool {
        let refusals = self.execution.slot_refusals;
        refusals >= SLOT_REFUSALS_MAX && refusals.is_power_of_two()
    }

    /// Notes that monitors are shown its script. Returns false if they were shown it before, at an earlier try.
    pub(crate) fn note_script_shown(&mut self) -> bool {
        !std::mem::replace(&mut self.execution.script_shown, true)
    }

    /// Ends a try of a script. The next script is shown again unless `again`: the same script is to be retried.
    pub fn end_script_try(&mut self, again: bool) {
        self.execution.script_shown &= again;
    }

    /// Called after each command: the next request begins.
    #[inline]
    pub fn after_command(&mut self) {
        self.execution.slot_refusals = 0;
        self.options.after_command();
    }
}
