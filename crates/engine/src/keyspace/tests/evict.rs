//! Each policy evicts the keys that it is supposed to evict, and no others.

use super::*;
use crate::env::EvictionPolicy;
use crate::keyspace::evict::{self, Evictor};

fn world_with(policy: EvictionPolicy) -> World {
    let mut world = World::new();
    world.env.settings.eviction = policy;
    world
}

fn evict(world: &World, evictor: &mut Evictor, keys: usize) {
    for _ in 0..keys {
        assert!(evictor.evict_one(&world.keyspace, &world.env).is_some());
    }
    world.keyspace.check();
}

/// Number of the named keys that were evicted.
fn evicted_count(world: &World, numbers: std::ops::Range<usize>) -> usize {
    numbers.filter(|n| !world.exists(&name(*n))).count()
}

#[test]
fn noeviction_removes_nothing() {
    let world = world_with(EvictionPolicy::NoEviction);
    world.set("k", Some(5000));
    assert!(Evictor::default().evict_one(&world.keyspace, &world.env).is_none());
    assert_eq!(world.count(), 1);
}

#[test]
fn volatile_policies_spare_persistent_keys_to_the_last() {
    for policy in [
        EvictionPolicy::VolatileLru,
        EvictionPolicy::VolatileLfu,
        EvictionPolicy::VolatileRandom,
        EvictionPolicy::VolatileTtl,
    ] {
        let world = world_with(policy);
        for n in 0..300 {
            world.set(&name(n), (n % 10 == 0).then_some(5000));
        }
        let mut evictor = Evictor::default();
        evict(&world, &mut evictor, 30);
        assert!(evictor.evict_one(&world.keyspace, &world.env).is_none(), "{policy:?}");
        assert_eq!(world.count(), 270);
        assert!((0..300).all(|n| n % 10 == 0 || world.exists(&name(n))));
        assert_eq!(world.keyspace.totals().evicted, 30);
    }
}

#[test]
fn allkeys_policies_can_empty_all_databases() {
    for policy in
        [EvictionPolicy::AllKeysLru, EvictionPolicy::AllKeysLfu, EvictionPolicy::AllKeysRandom]
    {
        let world = world_with(policy);
        for n in 0..100 {
            world.set(&name(n), None);
        }
        world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1)));
        for n in 0..100 {
            world.set(&name(n), Some(5000));
        }
        let mut evictor = Evictor::default();
        evict(&world, &mut evictor, 200);
        assert!(evictor.evict_one(&world.keyspace, &world.env).is_none(), "{policy:?}");
    }
}

#[test]
fn lru_removes_the_least_recently_used_keys() {
    let world = world_with(EvictionPolicy::AllKeysLru);
    for n in 0..2000 {
        world.set(&name(n), None);
    }
    world.env.set_now(UnixMs(1_000_000));
    (1000..2000).for_each(|n| world.touch(&name(n)));
    let mut evictor = Evictor::default();
    evict(&world, &mut evictor, 500);
    let (old, used) = (evicted_count(&world, 0..1000), evicted_count(&world, 1000..2000));
    assert_eq!(old + used, 500);
    assert!(used < 25, "{used} keys just used were removed");
}

#[test]
fn lfu_removes_the_least_frequently_used_keys() {
    let world = world_with(EvictionPolicy::AllKeysLfu);
    for n in 0..1000 {
        world.set(&name(n), None);
    }
    for _ in 0..20 {
        (500..1000).for_each(|n| world.touch(&name(n)));
    }
    let mut evictor = Evictor::default();
    evict(&world, &mut evictor, 250);
    let often = evicted_count(&world, 500..1000);
    assert!(often < 15, "{often} keys used often were removed");
}

#[test]
fn volatile_ttl_removes_what_expires_first() {
    let world = world_with(EvictionPolicy::VolatileTtl);
    for n in 0..1000 {
        world.set(&name(n), Some(10_000 + n as u64));
    }
    let mut evictor = Evictor::default();
    evict(&world, &mut evictor, 250);
    let late = evicted_count(&world, 500..1000);
    assert!(late < 15, "{late} keys with a late deadline were removed");
}

#[test]
fn scores_of_a_former_policy_are_forgotten() {
    let mut world = world_with(EvictionPolicy::AllKeysLru);
    for n in 0..200 {
        world.set(&name(n), (n >= 100).then_some(5000 + n as u64));
    }
    world.env.set_now(UnixMs(2000));
    let mut evictor = Evictor::default();
    evict(&world, &mut evictor, 5);
    let persistent = (0..100).filter(|n| world.exists(&name(*n))).count();
    world.env.settings.eviction = EvictionPolicy::VolatileTtl;
    evict(&world, &mut evictor, 50);
    assert_eq!((0..100).filter(|n| world.exists(&name(*n))).count(), persistent);
    world.env.settings.eviction = EvictionPolicy::NoEviction;
    assert!(evictor.evict_one(&world.keyspace, &world.env).is_none());
}

/// The result of `of` for the clock of each key.
fn clocks<T>(world: &World, of: impl Fn(u32) -> T) -> Vec<T> {
    let mut found = Vec::new();
    world.keyspace.each_key(HOME, UnixMs(0), |entry| found.push(of(entry.clock())));
    found
}

#[test]
fn keys_count_as_new_while_clocks_are_restarted_step_by_step_and_count_uses_afterwards() {
    const KEYS: usize = 3000;
    let mut world = world_with(EvictionPolicy::AllKeysLru);
    world.env.set_now(UnixMs(1_700_000_000_000));
    (0..KEYS).for_each(|n| world.set(&name(n), None));
    world.env.settings.eviction = EvictionPolicy::AllKeysLfu;
    world.keyspace.restart_clocks(true);
    let mut walker = ClockWalker::default();
    let mut steps = 0;
    while !walker.walk(&world.keyspace, &world.env, || false) {
        steps += 1;
        if steps % 100 == 1 {
            let uses = clocks(&world, |clock| evict::frequency(&world.env, clock));
            assert!(uses.len() == KEYS && uses.iter().all(|uses| *uses == 5));
        }
        if steps == 1000 {
            // Swap the databases, so that keys that the walk has not reached yet are briefly in the database that it
            // has already visited.
            world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1)));
            for _ in 0..50 {
                assert!(!walker.walk(&world.keyspace, &world.env, || false));
            }
            world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1)));
        }
        let (from, to) = (name(10 + steps), name(KEYS + steps));
        if world.exists(&from) {
            world.with(HOME, &[from.as_bytes(), to.as_bytes()], |keys, found| {
                keys.rename(&found[0], &found[1]);
            });
        }
        (0..10).for_each(|n| world.touch(&name(n)));
    }
    assert!(steps > 1000 && !world.keyspace.restarts_clocks());
    (0..10).for_each(|n| world.touch(&name(n)));
    let mut uses = clocks(&world, |clock| evict::frequency(&world.env, clock));
    uses.sort_unstable();
    assert_eq!(uses, [[5; KEYS - 10].as_slice(), &[6; 10]].concat());

    // A second change before the first restart is complete.
    world.keyspace.restart_clocks(true);
    assert!(!walker.walk(&world.keyspace, &world.env, || false));
    world.env.settings.eviction = EvictionPolicy::AllKeysLru;
    world.keyspace.restart_clocks(false);
    assert!(walker.walk(&world.keyspace, &world.env, || true));
    world.env.set_now(UnixMs(1_700_000_005_000));
    let idle = clocks(&world, |clock| evict::idle_ms(&world.env, clock));
    assert!(idle.len() == KEYS && idle.iter().all(|ms| *ms == 5000));
}
