//! The expiry cycle finds everything that has expired, regardless of what happens during its walk.

use super::*;
use crate::keyspace::expire::{SweepOutcome, Sweeper};

/// A time in ms that is longer than the rest of a slot between two walks.
const REST_MS: u64 = 1000;

fn sweep_all(world: &World, sweepers: &mut [Sweeper]) {
    for sweeper in sweepers {
        while sweeper.cycle(&world.keyspace, &world.env, || true) != SweepOutcome::All {}
    }
}

#[test]
fn sweepers_together_remove_exactly_the_expired_keys() {
    let world = World::new();
    for n in 0..6000 {
        let deadline = (n % 3 != 0).then_some(1001 + n as u64 % 2000);
        world.set(&name(n), deadline);
    }
    let mut sweepers: Vec<Sweeper> = (0..3).map(|share| Sweeper::new(share, 3)).collect();
    world.env.set_now(UnixMs(1500));
    sweep_all(&world, &mut sweepers);
    world.keyspace.check();
    let due = (0..6000).filter(|n| n % 3 != 0 && 1001 + n % 2000 <= 1500).count() as u64;
    assert_eq!(world.count(), 6000 - due);
    assert_eq!(world.keyspace.totals().expired, due);
    world.env.set_now(UnixMs(3001 + REST_MS));
    sweep_all(&world, &mut sweepers);
    world.keyspace.check();
    assert_eq!(world.count(), 2000);
    assert_eq!(world.keyspace.totals().databases[0].with_deadline, 0);
}

#[test]
fn a_slot_that_was_never_walked_does_not_rest_at_any_time() {
    // The end of a slot's rest is stored in 32 bits, which wrap every 50 days.
    for now in [1_u64 << 31, (1 << 31) + 5_000, (1 << 32) - 5_000, 1 << 32, 1_795_265_467_136] {
        let world = World::new();
        world.env.set_now(UnixMs(now - 1000));
        for n in 0..100 {
            world.set(&name(n), Some(now - 500));
        }
        world.env.set_now(UnixMs(now));
        sweep_all(&world, &mut [Sweeper::new(0, 1)]);
        assert_eq!(world.count(), 0, "at {now}");
    }
}

#[test]
fn a_cycle_looks_at_the_time_after_each_step_of_a_walk() {
    let world = World::new();
    for n in 0..200 {
        world.set(&format!("spread:{n}"), Some(1001));
    }
    world.env.set_now(UnixMs(2000));
    let mut sweeper = Sweeper::new(0, 1);
    let mut cycles = 1;
    while sweeper.cycle(&world.keyspace, &world.env, || false) == SweepOutcome::Part {
        cycles += 1;
    }
    assert!(cycles > 150, "only {cycles} cycles for 200 keys, most of them in slots of their own");
    assert_eq!(world.count(), 0);
}

/// An old or missing rest does not delay expiry, regardless of the low 32 bits of the time.
#[test]
fn keys_expire_at_any_time_of_the_calendar() {
    for now in [0x1_0000, 0x8000_1000, 0xFFFF_0000, 0x1A1_FE00_0000, 0x1A1_7000_0000u64] {
        let world = World::new();
        world.env.set_now(UnixMs(now));
        world.set("k", Some(now + 1));
        world.env.set_now(UnixMs(now + 1));
        sweep_all(&world, &mut [Sweeper::new(0, 1)]);
        assert_eq!(world.count(), 0, "at {now:#x}");
    }
}

/// A crowded slot, and a sweeper in the middle of it.
fn half_walked(world: &World) -> Sweeper {
    for n in 0..4000 {
        world.set(&format!("{{crowd}}:{n}"), Some(if n % 2 == 0 { 1500 } else { 90_000 }));
    }
    world.env.set_now(UnixMs(2000));
    let mut sweeper = Sweeper::new(0, 1);
    while world.count() > 3800 {
        sweeper.cycle(&world.keyspace, &world.env, || false);
    }
    assert!(world.count() > 2500, "the walk is not over yet");
    sweeper
}

fn finish(world: &World, sweeper: &mut Sweeper) {
    while sweeper.cycle(&world.keyspace, &world.env, || true) != SweepOutcome::All {}
    world.keyspace.check();
}

#[test]
fn a_ttl_set_after_a_running_walk_has_passed_is_kept() {
    let world = World::new();
    let mut sweeper = half_walked(&world);
    for n in 0..100 {
        world.set(&format!("{{crowd}}:late:{n}"), Some(2100));
    }
    finish(&world, &mut sweeper);
    world.env.set_now(UnixMs(2100));
    for n in 0..100 {
        assert!(!world.exists(&format!("{{crowd}}:late:{n}")));
    }
    world.env.set_now(UnixMs(2100 + REST_MS));
    finish(&world, &mut sweeper);
    assert_eq!(world.count(), 2000);
}

#[test]
fn a_walk_survives_swapdb_and_flush() {
    for swap in [true, false] {
        let world = World::new();
        let mut sweeper = half_walked(&world);
        world.unlocked(|keys| {
            if swap {
                keys.swap(HOME, DbIndex::of(1));
            } else {
                keys.flush(HOME);
            }
        });
        for n in 0..2000 {
            world.set(&format!("{{crowd}}:new:{n}"), Some(2001 + n));
        }
        if swap {
            // The half-walked meta returns to its slot, with a table that the walk did not see.
            world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1)));
            world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1)));
        }
        finish(&world, &mut sweeper);
        world.env.set_now(UnixMs(4100));
        finish(&world, &mut sweeper);
        assert_eq!(world.count(), 0);
    }
}

#[test]
fn a_slot_rests_after_a_walk_and_readers_still_see_no_expired_key() {
    let world = World::new();
    for n in 0..100 {
        world.set(&format!("{{crowd}}:{n}"), Some(1500 + n));
    }
    let mut sweeper = Sweeper::new(0, 1);
    world.env.set_now(UnixMs(1550));
    finish(&world, &mut sweeper);
    assert_eq!(world.count(), 49);
    world.env.set_now(UnixMs(1600));
    finish(&world, &mut sweeper);
    assert_eq!(world.count(), 49, "the slot rests");
    assert!(!world.exists("{crowd}:99"));
    world.env.set_now(UnixMs(1600 + REST_MS));
    finish(&world, &mut sweeper);
    assert_eq!(world.count(), 0);
}

#[test]
fn every_expired_or_evicted_key_is_a_separate_transaction() {
    use crate::env::effect::Hooks;
    use crate::testing::take_transactions;
    let world = World::new();
    world.env.set_hooks(Hooks::PROPAGATE, true);
    let take = || {
        assert!(world.env.aftermath.borrow().effects.is_empty(), "effects without a ticket");
        take_transactions(&world.keyspace)
    };
    let fill = || {
        world.env.set_now(UnixMs(1000));
        // Each key is in a different slot, except the last two.
        ["a", "b", "c", "{c}d"].iter().for_each(|name| world.set(name, Some(2000)));
        world.env.set_now(UnixMs(3000));
    };
    fill();
    take();
    sweep_all(&world, &mut [Sweeper::new(0, 1)]);
    let transactions = take();
    assert_eq!((transactions.len(), transactions.concat().len()), (3, 4), "one for each slot");
    fill();
    world.unlocked(|keys| keys.scan_and_expire(0, 100, |_| true, |_| {}));
    let transactions = take();
    assert_eq!((transactions.len(), transactions.concat().len()), (4, 4));
    fill();
    world.unlocked(|keys| assert_eq!(keys.random_key(), None));
    let transactions = take();
    assert_eq!(transactions.concat().len(), 4 - world.count() as usize);
}
