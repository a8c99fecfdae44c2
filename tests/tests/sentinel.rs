//! Failovers by real sentinels. Whatever happens to the primary, there is a primary again afterwards, with two replicas
//! that have its data, and no guarantee is violated.
//!
//! The guarantees, which are checked after each failover:
//!
//! - Everything that all replicas had before the failure is kept, because one of them becomes the next primary.
//! - Each record for which WAIT has counted both replicas is also kept, no matter when it was written. One replica is
//!   not enough: sentinels choose a replica by offsets that they queried earlier, and a planned failover does not wait
//!   for the replica that it promotes.
//! - If clients request with CLIENT DURABILITY that both replicas have a write before its reply, every acknowledged
//!   record is kept.
//! - Other acknowledged records may be lost if they were written during the failover. They are counted and printed.
//! - A primary that is cut off from its replicas soon rejects writes (`min-replicas-to-write`), so the number of
//!   acknowledged writes that it can lose is bounded.
//! - No server has incomplete, duplicate, or out-of-order records.
//!
//! `BRISK_FAILOVERS` sets the number of failovers. The default is one for each kind of failure.

use brisk_testkit::kind::{Kind, are_there, named};
use brisk_testkit::proxy::Disconnect;
use brisk_testkit::{Launch, wait_until};
use brisk_tests::links::sized;
use brisk_tests::records::{Promise, Records};
use brisk_tests::sentinels::Group;

use Kind::{Brisk, Redis, Valkey};

const CLIENTS: usize = 3;
const REPLICAS: i64 = 2;
/// Number of records of each client before a failure, and after it.
const RECORDS: usize = 20;

#[derive(Debug, Clone, Copy)]
enum Failure {
    /// The process is killed, and restarted when there is another primary.
    Killed,
    /// The process is suspended, and continues when there is another primary.
    Stopped,
    /// The primary is unreachable, except for a client on its side of the partition.
    Parted,
    /// There is no failure. SENTINEL FAILOVER requests another primary.
    Planned,
}

const FAILURES: [Failure; 4] =
    [Failure::Killed, Failure::Stopped, Failure::Parted, Failure::Planned];

fn launch(launch: Launch) -> Launch {
    launch.set("min-replicas-to-write", "1").set("min-replicas-max-lag", "2")
}

impl Failure {
    #[track_caller]
    fn happens_to(self, group: &mut Group, primary: usize) {
        match self {
            Failure::Killed => {
                group.members[primary].node.server.kill_for_now();
                group.wait_until_it_is_not(primary);
                group.members[primary].start_again();
            }
            Failure::Stopped => {
                group.members[primary].node.server.signal("STOP");
                group.wait_until_it_is_not(primary);
                group.members[primary].node.server.signal("CONT");
            }
            Failure::Parted => {
                let member = &group.members[primary];
                member.door.part();
                let mut direct = member.node.server.connect();
                wait_until("it to refuse writes", || {
                    direct.cmd("INCR alone").to_string().contains("NOREPLICAS")
                });
                group.wait_until_it_is_not(primary);
                member.door.cut(Disconnect::Reset);
                member.door.heal();
            }
            Failure::Planned => {
                group.hand_over();
                group.wait_until_it_is_not(primary);
            }
        }
    }
}

fn survives_failovers(kinds: [Kind; 3], promise: Promise) {
    let mut group = Group::start(kinds, launch);
    let records = Records::new(CLIENTS, REPLICAS, promise);
    let failovers = sized("BRISK_FAILOVERS", FAILURES.len());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (records, find) = (&records, group.finder());
            scope.spawn(move || records.write(client, find));
        }
        // Otherwise the clients would write forever if an assertion fails.
        let end = EndAtExit(&records);
        for round in 0..failovers {
            let failure = FAILURES[round % FAILURES.len()];
            let primary = group.wait_until_settled();
            records.wait_until_they_go_on(RECORDS);
            let safe = {
                let _paused = records.pause();
                group.assert_agrees(primary);
                records.sent()
            };
            failure.happens_to(&mut group, primary);
            let next = group.wait_until_settled();
            records.wait_until_they_go_on(RECORDS);
            let _paused = records.pause();
            group.assert_agrees(next);
            let fate = records.check(&group.members[next].node.server, &safe);
            eprintln!("{}, {promise:?}: {failure:?}, {primary} -> {next}: {fate:?}", named(&kinds));
            assert!(promise == Promise::Wait || fate.lost == 0, "{fate:?}");
        }
        drop(end);
    });
}

struct EndAtExit<'a>(&'a Records);

impl Drop for EndAtExit<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs the test for all groups that this machine can run.
fn each_group(groups: &[[Kind; 3]], promise: Promise) {
    for kinds in groups {
        if are_there(kinds) {
            survives_failovers(*kinds, promise);
        }
    }
}

#[test]
fn a_group_of_redis_survives_failovers() {
    each_group(&[[Redis; 3]], Promise::Wait);
}

#[test]
fn a_group_of_valkey_survives_failovers() {
    each_group(&[[Valkey; 3]], Promise::Wait);
}

#[test]
fn a_group_of_ours_survives_failovers() {
    each_group(&[[Brisk; 3]], Promise::Wait);
}

/// Other servers do not support CLIENT DURABILITY.
#[test]
fn a_group_of_brisk_servers_loses_no_promised_write() {
    each_group(&[[Brisk; 3]], Promise::Durability);
}

#[test]
fn groups_of_ours_and_others_survive_failovers() {
    each_group(
        &[[Redis, Brisk, Brisk], [Brisk, Redis, Brisk], [Brisk, Brisk, Valkey]],
        Promise::Wait,
    );
}
