//! Replicas, and replicas of replicas, with links that break. In the end they have the data of their primary. They need
//! no full synchronization if the backlog is large enough, and they never show half of a change.
//!
//! `BRISK_CHAIN_CUTS`, `BRISK_CHAIN_WRITES` and `BRISK_CHAIN_SEED` change the default run.

use brisk_testkit::kind::{Kind, are_there, named};
use brisk_testkit::proxy::Disconnect;
use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;
use brisk_testkit::writers::Writers;
use brisk_testkit::{Launch, Server, wait_until};
use brisk_tests::links::{Budget, Chain, break_link, sized};
use std::sync::atomic::{AtomicBool, Ordering};

use Kind::{Brisk, Redis, Valkey};

const WRITERS: u64 = 3;

/// The control group: the assertions also hold for real servers.
const OF_REDIS: &[&[Kind]] = &[&[Redis, Redis], &[Redis, Redis, Redis]];
const FROM_BRISK: &[&[Kind]] = &[&[Brisk, Redis], &[Brisk, Redis, Redis], &[Brisk, Valkey]];
/// Chains in which our server is a replica.
const TO_BRISK: &[&[Kind]] = &[
    &[Brisk, Brisk],
    &[Redis, Brisk],
    &[Brisk, Brisk, Brisk],
    &[Redis, Brisk, Redis],
    &[Redis, Brisk, Brisk],
    &[Brisk, Redis, Brisk],
    &[Valkey, Brisk],
    &[Valkey, Brisk, Brisk],
];
/// Chains with Valkey. Redis is never a replica of Valkey, because it cannot read the snapshots of Valkey.
const OF_VALKEY: &[&[Kind]] = &[&[Valkey, Valkey, Valkey], &[Redis, Valkey]];

/// Runs `body` concurrently for all chains that this machine can run. Most of the time, they wait for servers that
/// reconnect once per second.
fn each_chain(lists: &[&[&[Kind]]], body: impl Fn(&[Kind]) + Sync) {
    std::thread::scope(|scope| {
        for &kinds in lists.iter().copied().flatten() {
            if are_there(kinds) {
                let body = &body;
                scope.spawn(move || body(kinds));
            }
        }
    });
}

fn with_large_backlog(launch: Launch) -> Launch {
    launch.set("repl-backlog-size", "64mb")
}

/// Writers write while links break. In the end, all servers must have the same data.
fn survives_cuts(kinds: &[Kind]) {
    let cuts: u64 = sized("BRISK_CHAIN_CUTS", 20);
    let grant = sized("BRISK_CHAIN_WRITES", 6000) / cuts.max(1);
    let seed = sized("BRISK_CHAIN_SEED", 1);
    let chain = Chain::start(kinds, with_large_backlog);
    let before: Vec<[u64; 2]> = chain.nodes.iter().map(|node| node.served()).collect();
    let budget = Budget::default();
    let written = std::thread::scope(|scope| {
        let writers = Writers::to(&chain.primary().address(), seed);
        let budget = &budget;
        let writing = scope.spawn(move || writers.run(WRITERS, |_| budget.take()));
        let mut random = Random::new(seed);
        for _ in 0..cuts {
            break_link(random.pick(&chain.links), &mut random, budget, grant);
            // Otherwise the next cut happens during the reconnection.
            if random.percent(60) {
                chain.wait_until_all_follow();
            }
        }
        budget.end();
        writing.join().expect("writers say themselves what went wrong")
    });
    chain.assert_agrees();
    let served = chain.nodes.iter().zip(&before).map(|(node, before)| {
        let now = node.served();
        [now[0] - before[0], now[1] - before[1]]
    });
    let served: Vec<[u64; 2]> = served.collect();
    eprintln!(
        "{}: seed {seed}, {cuts} cuts, {} commands ({} errors), [full, partial] synchronizations \
         served: {served:?}",
        named(kinds),
        written.commands,
        written.errors
    );
    let sum = |at: usize| served.iter().map(|served| served[at]).sum::<u64>();
    assert_eq!(sum(0), 0, "the backlog would have sufficed: {served:?}");
    assert!(cuts == 0 || sum(1) > 0, "{served:?}");
}

#[test]
fn replicas_of_redis_have_the_same_data_after_links_broke() {
    each_chain(&[OF_REDIS], survives_cuts);
}

#[test]
fn replicas_of_ours_have_the_same_data_after_links_broke() {
    each_chain(&[FROM_BRISK], survives_cuts);
}

#[test]
fn ours_as_replicas_have_the_same_data_after_links_broke() {
    each_chain(&[TO_BRISK], survives_cuts);
}

#[test]
fn replicas_of_valkey_have_the_same_data_after_links_broke() {
    each_chain(&[OF_VALKEY], survives_cuts);
}

/// Writes several times as much as the backlog can contain.
fn overflow(primary: &Server) {
    let mut conn = primary.connect();
    for n in 0..20 {
        conn.call(&["SET", &format!("large:{n}"), &"x".repeat(10_000)]);
    }
}

#[test]
fn a_short_cut_costs_a_partial_resync_and_one_beyond_the_backlog_a_full_one() {
    each_chain(&[OF_REDIS, FROM_BRISK, TO_BRISK, OF_VALKEY], |kinds| {
        eprintln!("{}", named(kinds));
        let chain = Chain::start(kinds, |launch| launch.set("repl-backlog-size", "16kb"));
        let mut conn = chain.primary().connect();
        for (at, link) in chain.links.iter().enumerate() {
            let upper = &chain.nodes[at];
            for how in [Disconnect::Reset, Disconnect::End] {
                let before = upper.served();
                link.refuse(true);
                link.cut(how);
                conn.cmd("RPUSH list short");
                link.refuse(false);
                wait_until("it goes on", || upper.served()[1] > before[1]);
                assert_eq!(upper.served(), [before[0], before[1] + 1], "{how:?}");
                chain.assert_agrees();
            }
        }
        for (at, link) in chain.links.iter().enumerate() {
            let upper = &chain.nodes[at];
            let before = upper.served();
            link.refuse(true);
            link.cut(Disconnect::Reset);
            overflow(chain.primary());
            wait_until("those above have it", || {
                upper.server.info("master_repl_offset") == conn.info("master_repl_offset")
            });
            link.refuse(false);
            wait_until("it begins anew", || upper.served()[0] > before[0]);
            chain.assert_agrees();
            assert_eq!(upper.served(), [before[0] + 1, before[1]]);
        }
    });
}

/// A writer that keeps two keys equal, alternately by transactions and scripts, and never decreases them.
fn keep_equal(server: &Server, budget: &Budget) {
    let mut conn = server.connect();
    let script = "redis.call('set', 'one', ARGV[1]) redis.call('set', 'two', ARGV[1])";
    for n in 1_u64.. {
        if !budget.take() {
            return;
        }
        let value = n.to_string();
        if n % 4 == 0 {
            conn.call(&["EVAL", script, "0", &value]);
        } else {
            let [one, two] = ["one", "two"].map(|key| format!("SET {key} {value}"));
            conn.pipeline(&["MULTI", &one, "DEL none", &two, "EXEC"]);
        }
    }
}

/// Reads both keys repeatedly. Returns the number of different values that it has seen.
fn assert_equal_and_rising(server: &Server, is_over: &AtomicBool) -> u64 {
    let mut conn = server.connect();
    let (mut newest, mut seen) = (0, 0);
    let mut turn = 0;
    while !is_over.load(Ordering::SeqCst) {
        turn += 1;
        let reply = if turn % 2 == 0 {
            conn.cmd("MGET one two")
        } else {
            let replies = conn.pipeline(&["MULTI", "GET one", "GET two", "EXEC"]);
            replies.into_iter().last().expect("there are four")
        };
        if reply.is_error() {
            // The server is receiving a full synchronization.
            let text = reply.to_string();
            let is_expected =
                ["LOADING", "MASTERDOWN", "EXECABORT"].map(|word| text.contains(word));
            assert!(is_expected.contains(&true), "{text}");
            continue;
        }
        let values = reply.elements();
        assert_eq!(values[0], values[1], "half of a transaction");
        let value =
            if *values[0] == Reply::Null { 0 } else { values[0].text().parse().unwrap_or(0) };
        assert!(value >= newest, "{value} behind {newest}");
        seen += u64::from(value > newest);
        newest = value;
    }
    seen
}

#[test]
fn a_replica_never_shows_half_a_transaction_or_an_older_state() {
    each_chain(&[OF_REDIS, FROM_BRISK, TO_BRISK, OF_VALKEY], |kinds| {
        let chain = Chain::start(kinds, with_large_backlog);
        let (budget, is_over) = (Budget::default(), AtomicBool::new(false));
        let seen: Vec<u64> = std::thread::scope(|scope| {
            let writing = scope.spawn(|| keep_equal(chain.primary(), &budget));
            let is_over = &is_over;
            let reading: Vec<_> = chain.nodes[1..]
                .iter()
                .map(|node| scope.spawn(move || assert_equal_and_rising(&node.server, is_over)))
                .collect();
            let mut random = Random::new(1);
            for _ in 0..5 {
                break_link(random.pick(&chain.links), &mut random, &budget, 300);
                chain.wait_until_all_follow();
                let used = budget.used();
                budget.grant(300);
                budget.wait_until_used(used + 300);
            }
            budget.end();
            writing.join().expect("the writer ends");
            chain.assert_agrees();
            is_over.store(true, Ordering::SeqCst);
            reading.into_iter().map(|thread| thread.join().expect("the reader ends")).collect()
        });
        eprintln!("{}: values seen {seen:?} of {}", named(kinds), budget.used());
        assert!(seen.iter().all(|seen| *seen > 5), "{seen:?}");
    });
}

/// The new address belongs to the same server, or to one with the same history. Replicas of the replica do not notice
/// the switch.
#[test]
fn replicas_of_a_replica_stay_when_it_switches_within_the_same_history() {
    let lists: [&[&[Kind]]; 2] = [&[&[Redis, Redis, Redis]], &[&[Brisk, Brisk, Brisk]]];
    each_chain(&lists, |kinds| {
        let chain = Chain::start(kinds, with_large_backlog);
        let [first, middle, _] = &chain.nodes[..] else { unreachable!() };
        wait_until("all are online", || {
            [first, middle].iter().all(|node| node.server.info("slave0").contains("state=online"))
        });
        middle.follow(first.server.port());
        middle.wait_until_it_follows();
        first.server.connect().cmd("SET later 1");
        chain.assert_agrees();
        assert_eq!(middle.served(), [1, 0], "{}", named(kinds));
    });
}
