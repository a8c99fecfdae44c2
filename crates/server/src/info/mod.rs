//! INFO: the server's metrics as text.
//!
//! Every section costs the same with a million clients or keys as with one. Each worker maintains its counters while it
//! works, and INFO adds them up over the workers. Nothing here iterates over clients, keys or slots (I1). The timers of
//! worker 0 sample the metrics that only the kernel knows, so INFO makes no system calls except to read the clock.
//!
//! The text is built in one buffer, without an allocation per field.

mod brisk;
mod clients;
pub(crate) mod cluster;
mod commandstats;
mod cpu;
mod debug;
mod errorstats;
mod keyspace;
mod latencystats;
mod memory;
mod modules;
mod persistence;
mod replication;
mod server;
mod stats;

use brisk_config::Config;
use brisk_engine::keyspace::Totals;
use brisk_node::core::shared::Shared;
use brisk_observe::stats::{Count, WorkerStats};
use brisk_observe::text::Text;

/// The data sources of the sections.
pub(crate) struct View<'s> {
    shared: &'s Shared,
    config: &'s Config,
    now_ms: u64,
    totals: Totals,
    /// Bytes that were allocated before the text was begun.
    used: u64,
}

impl View<'_> {
    /// Returns the sum of a counter over all workers.
    fn sum(&self, of: fn(&WorkerStats) -> &Count) -> u64 {
        self.shared.observe.sum(of)
    }

    /// Returns the maximum of a counter over all workers.
    fn max(&self, of: fn(&WorkerStats) -> &Count) -> u64 {
        self.shared.observe.stats.iter().map(|stats| of(stats).get()).max().unwrap_or(0)
    }
}

/// A section: its name in lower case, its title, when it is shown, and the function that writes it.
struct Section {
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&View<'_>, &mut Text),
}

/// When a section is shown if it is not named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    ByDefault,
    /// With `all` and `everything`.
    WithAll,
    /// Only if it is named.
    Named,
}

/// The sections in the order in which they are shown.
const SECTIONS: &[Section] = &[
    section("server", "Server", Shown::ByDefault, server::write),
    section("clients", "Clients", Shown::ByDefault, clients::write),
    section("memory", "Memory", Shown::ByDefault, memory::write),
    section("persistence", "Persistence", Shown::ByDefault, persistence::write),
    section("stats", "Stats", Shown::ByDefault, stats::write),
    section("replication", "Replication", Shown::ByDefault, replication::write),
    section("cpu", "CPU", Shown::ByDefault, cpu::write),
    section("modules", "Modules", Shown::ByDefault, modules::write),
    section("commandstats", "Commandstats", Shown::WithAll, commandstats::write),
    section("errorstats", "Errorstats", Shown::ByDefault, errorstats::write),
    section("latencystats", "Latencystats", Shown::WithAll, latencystats::write),
    section("cluster", "Cluster", Shown::ByDefault, cluster::write),
    section("keyspace", "Keyspace", Shown::ByDefault, keyspace::write),
    section("brisk", "Brisk", Shown::WithAll, brisk::write),
    section("debug", "Debug", Shown::Named, debug::write),
];

const fn section(
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&View<'_>, &mut Text),
) -> Section {
    Section { name, title, shown, write }
}

/// Initial capacity, which suffices for the default sections. With command statistics, the text grows.
const TEXT_BYTES: usize = 8 * 1024;

/// Returns the text of the sections in `words`, or of the default sections if it is empty. Unknown names are skipped.
/// O(workers x (commands + databases)).
pub fn text<'w>(
    shared: &Shared,
    config: &Config,
    words: impl ExactSizeIterator<Item = &'w [u8]>,
) -> String {
    let default = shown(|section| section.shown == Shown::ByDefault);
    let mut wanted = if words.len() == 0 { default } else { 0 };
    for word in words {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        wanted |= if is("default") {
            default
        } else if is("all") || is("everything") {
            shown(|section| section.shown != Shown::Named)
        } else {
            shown(|section| is(section.name))
        };
    }
    if wanted == 0 {
        return String::new();
    }
    let used = brisk_observe::memory::used();
    let now_ms = brisk_reactor::unix_ms();
    let view = View { shared, config, now_ms, totals: shared.keyspace.totals(), used };
    let mut text = Text::with_capacity(TEXT_BYTES);
    for (at, section) in SECTIONS.iter().enumerate() {
        if wanted & 1 << at != 0 {
            text.begin(section.title);
            (section.write)(&view, &mut text);
        }
    }
    text.done()
}

/// Returns the sections for which `is_wanted` is true, as bits.
fn shown(is_wanted: impl Fn(&Section) -> bool) -> u32 {
    let picked = SECTIONS.iter().enumerate().filter(|(_, section)| is_wanted(section));
    picked.fold(0, |bits, (at, _)| bits | 1 << at)
}
