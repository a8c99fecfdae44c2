//! Failover under random faults: nodes, controllers and a coordinator in one thread, with a schedule from a
//! seed.
//!
//! | file | about |
//! |---|---|
//! | `coordinator` | the model of a coordinator: document, leases, changes that are lost or applied late |
//! | `node` | the model of a node: clock, lease, document in force, dataset |
//! | `world` | events, faults, and the invariants that hold after each event |
//!
//! `BRISK_CLUSTER_RUNS` sets the number of seeds, `BRISK_CLUSTER_SEED` the first one.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

mod coordinator;
mod node;
mod world;

use world::World;

/// The default number of runs: one to two seconds in a debug build.
const RUNS: u64 = 15;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn at_most_one_primary_serves_under_random_faults() {
    let first = number("BRISK_CLUSTER_SEED", 1);
    let runs = number("BRISK_CLUSTER_RUNS", RUNS);
    let mut totals = world::Totals::default();
    for seed in first..first + runs {
        let mut world = World::new(seed);
        world.run();
        totals.add(&world.totals);
    }
    println!("{runs} runs from seed {first}: {totals:?}");
    // Faults that never lead to a failover would prove nothing.
    assert!(totals.failovers >= runs, "{totals:?}");
    assert!(totals.served_checks > 100 * runs, "{totals:?}");
    assert!(totals.served_extended > runs, "{totals:?}");
    assert!(totals.short_waits > 0, "{totals:?}");
    assert!(totals.ttls_recorded > 0, "{totals:?}");
}
