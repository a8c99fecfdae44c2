//! Each policy removes what it promises, and nothing that it spares.

use super::*;
use crate::env::EvictionPolicy;
use crate::keyspace::evict::Evictor;

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

/// How many of the named keys are gone.
fn gone(world: &World, numbers: std::ops::Range<usize>) -> usize {
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
fn lru_removes_what_was_not_used_for_longest() {
    let world = world_with(EvictionPolicy::AllKeysLru);
    for n in 0..2000 {
        world.set(&name(n), None);
    }
    world.env.set_now(UnixMs(1_000_000));
    (1000..2000).for_each(|n| world.touch(&name(n)));
    let mut evictor = Evictor::default();
    evict(&world, &mut evictor, 500);
    let (old, used) = (gone(&world, 0..1000), gone(&world, 1000..2000));
    assert_eq!(old + used, 500);
    assert!(used < 25, "{used} keys just used were removed");
}

#[test]
fn lfu_removes_what_is_used_least() {
    let world = world_with(EvictionPolicy::AllKeysLfu);
    for n in 0..1000 {
        world.set(&name(n), None);
    }
    for _ in 0..20 {
        (500..1000).for_each(|n| world.touch(&name(n)));
    }
    let mut evictor = Evictor::default();
    evict(&world, &mut evictor, 250);
    let often = gone(&world, 500..1000);
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
    let late = gone(&world, 500..1000);
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
