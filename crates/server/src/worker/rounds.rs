//! Timing of a worker's rounds.

use brisk_node::core::Core;

/// If a round has taken longer than this, its remaining turns are shortened.
const ROUND_NS_MAX: u64 = 4_000_000;

/// When the current round began, and the values from which the metrics of a round are computed.
pub(super) struct RoundClock {
    /// When the current round began, in ticks.
    began: u64,
    /// When the last wait for events ended, and how many commands had been processed by then.
    resumed_at: u64,
    commands_before: u64,
}

impl RoundClock {
    pub(super) fn new() -> RoundClock {
        RoundClock { began: 0, resumed_at: brisk_reactor::clock().ticks(), commands_before: 0 }
    }

    /// Called when a round begins without a preceding wait for events.
    pub(super) fn begin(&mut self, ticks: u64) {
        self.began = ticks;
    }

    /// Called when a round begins after a wait for events.
    pub(super) fn resume(&mut self, ticks: u64) {
        self.began = ticks;
        self.resumed_at = ticks;
    }

    /// True if the other sessions have waited long enough in this round.
    #[inline]
    pub(super) fn is_long(&self, core: &Core) -> bool {
        let round = core.accounting.last_ticks().wrapping_sub(self.began);
        core.clock.ns(round) > ROUND_NS_MAX
    }

    /// Records the metrics of a completed round.
    #[inline]
    pub(super) fn record(&mut self, core: &Core) {
        let stats = core.stats();
        let clock = core.clock;
        let ns = clock.ns(clock.ticks().wrapping_sub(self.resumed_at));
        stats.rounds.add(1);
        stats.round_ns.add(ns);
        stats.round_ns_max.raise(ns);
        let commands = stats.commands_processed.get();
        stats.round_commands_max.raise(commands.saturating_sub(self.commands_before));
        self.commands_before = commands;
    }
}
