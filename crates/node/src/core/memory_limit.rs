//! `maxmemory`: which memory counts as used, and eviction until it is within the limit.

use super::Core;
use brisk_config::Config;
use brisk_engine::keyspace::evict::Evictor;
use brisk_structures::alloc::AsideMeter;

/// Maximum number of large values that have been evicted but not freed yet. If there are more, eviction waits for the
/// thread that frees them.
const LAZY_EVICTIONS_AHEAD_MAX: u64 = 8;

/// The memory limit, as one worker applies it.
pub struct MemoryLimit {
    /// `maxmemory`; 0 for no limit.
    max: u64,
    /// `replica-ignore-maxmemory`: a replica leaves eviction to its primary.
    is_of_primaries: bool,
    /// Time limit of one eviction.
    budget_ns: u64,
    evictor: Evictor,
    /// Excludes the reply that a command is building from the memory that triggers eviction, until the reply is in the
    /// output.
    reply_meter: Option<AsideMeter>,
}

impl MemoryLimit {
    pub(super) fn new(config: &Config) -> MemoryLimit {
        let mut limit = MemoryLimit {
            max: 0,
            is_of_primaries: false,
            budget_ns: 0,
            evictor: Evictor::default(),
            reply_meter: None,
        };
        limit.take_config(config);
        limit
    }

    pub(super) fn take_config(&mut self, config: &Config) {
        self.max = config.memory.maxmemory;
        self.is_of_primaries = config.replication.replica_ignore_maxmemory;
        self.budget_ns = eviction_budget_ns(config.memory.maxmemory_eviction_tenacity);
    }

    /// Reports whether memory use is so close to the limit that bytes that are about to be freed must be counted. Up to
    /// `unread_max` bytes of output that clients have not read do not count.
    pub(super) fn is_near(&self, unread_max: u64) -> bool {
        self.max != 0 && brisk_observe::memory::above(self.max / 4 * 3, unread_max) > 0
    }

    /// Called when a command begins to build a reply of any size. Other workers must not evict keys because of this
    /// reply.
    pub fn begin_reply(&mut self) {
        self.reply_meter = Some(AsideMeter::begin());
    }

    /// Counts the reply of the last command as used memory from now on.
    #[inline]
    pub fn end_reply(&mut self) {
        if self.reply_meter.is_some() {
            self.reply_meter = None;
        }
    }
}

/// The memory limit of commands in bytes; 0 for no limit. A replica leaves eviction to its
/// primary, unless the settings say otherwise.
pub fn in_force(core: &Core) -> u64 {
    let MemoryLimit { max, is_of_primaries, .. } = core.memory;
    if is_of_primaries && core.shared.conditions.is_replica() { 0 } else { max }
}

/// Reports whether at most `max` bytes are used. Memory that will be freed without eviction does not count.
pub fn fits(core: &Core, max: u64) -> bool {
    excess(core, max) == 0
}

/// Number of bytes used above `max`. Memory that will be freed without eviction does not count, nor does output that
/// clients have not read ([`brisk_observe::memory::above`]).
fn excess(core: &Core, max: u64) -> u64 {
    let max = max.saturating_add(core.shared.passing_bytes());
    brisk_observe::memory::above(max, core.limits.unread_max())
}

/// Evicts until memory is within `maxmemory`. Returns false if nothing more can be evicted. Returns true if the memory
/// is within the limit or the time of `maxmemory-eviction-tenacity` has run out.
pub fn make_room(core: &mut Core) -> bool {
    make_room_within(core, core.memory.budget_ns)
}

/// Evicts until memory is within `maxmemory`, for at most `budget_ns`. Also returns true if the time ran out while
/// memory was being freed.
pub fn make_room_within(core: &mut Core, budget_ns: u64) -> bool {
    let max = in_force(core);
    if max == 0 || fits(core, max) {
        return true;
    }
    // Objects that earlier commands unlinked count as free once they are passed to the freeing thread.
    core.free_garbage();
    let mut excess = excess(core, max);
    if excess == 0 {
        return true;
    }
    // The data must not change. During CLIENT PAUSE and loading, this rule takes precedence over the memory limit.
    // During a slow script, the memory limit takes precedence.
    if core.data_must_not_change() {
        return core.pause_in_force().is_some() || core.shared.conditions.is_loading();
    }
    let begin = core.clock.ticks();
    let mut fits_now = false;
    loop {
        let evicted = core.memory.evictor.evict_one(&core.shared.keyspace, &core.env);
        let Some(bytes) = evicted else { break };
        core.free_garbage();
        // Events and invalidations for the evicted keys also take memory until they are sent. Evicting keys to make
        // room for them would only create more of them.
        excess = excess.saturating_sub(bytes);
        fits_now = excess == 0 || fits(core, max);
        if fits_now {
            break;
        }
        let lasted = core.clock.ns(core.clock.ticks().wrapping_sub(begin));
        // With `lazyfree-lazy-eviction`, another thread frees the values later. Evicting until the measured memory is
        // low enough would evict more than needed.
        let ahead = core.env.settings.lazy_eviction
            && core.shared.threads.freeing.pending() >= LAZY_EVICTIONS_AHEAD_MAX;
        if lasted > budget_ns || ahead {
            // More is evicted before the next command. Until then, writes are allowed because memory is being freed.
            fits_now = true;
            break;
        }
    }
    let ns = core.clock.ns(core.clock.ticks().wrapping_sub(begin));
    core.stats().eviction_ns.add(ns);
    core.note_latency("eviction-cycle", ns);
    fits_now
}

/// Time limit of one eviction, from `maxmemory-eviction-tenacity`. From 0 to 10, it grows linearly to 500 µs. Each
/// further step multiplies it by 1.15. At 100, there is no limit.
fn eviction_budget_ns(tenacity: i64) -> u64 {
    match tenacity {
        ..=10 => 50_000 * tenacity.max(0) as u64,
        11..100 => (500_000.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}
