//! The cases of the contract over a bad network: each reply is correct, or there is an error that says what happened.

use super::{Case, all, block_on, connection_methods};
use brisk::{Builder, Client, Error, Kind, Lanes};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy, Split};
use brisk_testkit::server::Server;
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use std::future::Future;
use std::time::Duration;

/// In the first round, connections are cut after this many bytes in one direction. Later rounds cut them later, up to
/// the end of what a case sends.
const CUTS_FROM: u64 = 1;
/// How much later the next round cuts, in percent (the next constant: in bytes). The cuts are close together at the
/// beginning, during the login.
const CUT_LATER_PERCENT: u64 = 50;
const CUT_LATER_BYTES: u64 = 37;
const CUT_MAX: u64 = 30_000;
/// After this number of attempts to connect, a silent peer replies again. The cases themselves make fewer attempts.
const SILENT_ATTEMPTS: u64 = 14;

fn builder(link: &Proxy, protocol: u8) -> Builder {
    let url = format!("redis://{}", link.address());
    Client::builder(&url).protocol(protocol).lanes(Lanes::Count(1)).timeout(Duration::from_secs(20))
}

/// Calls `body` for a server of each kind behind a bad network, and for both protocols.
fn each(body: impl Fn(&Server, &Proxy, u8) + Sync) {
    connection_methods::each_kind(|_, server| {
        for protocol in [3, 2] {
            server.connect().cmd("FLUSHALL");
            let link = Proxy::to(&server.address());
            body(server, &link, protocol);
        }
    });
}

/// Reports whether an error is allowed over a bad network.
fn is_allowed(error: &Error) -> bool {
    matches!(error.kind(), Kind::Disconnected | Kind::Timeout(_))
}

#[track_caller]
fn ended(case: &Case, what: &str, ended: Result<(), Error>) -> bool {
    if let Err(error) = &ended {
        assert!(is_allowed(error), "{}, {what}: {:?}: {error}", case.name, error.kind());
    }
    ended.is_ok()
}

/// Runs all cases at the same time.
async fn run_all(db: &Client, run: &str) -> Vec<(&'static Case, Result<(), Error>)> {
    join_all(all().map(|case| async move { (case, case.run(db, run).await) })).await
}

/// Waits for `work` while another thread does something to the network.
async fn during<T>(trouble: impl FnOnce() + Send, work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            scope.spawn(trouble);
            runtime.block_on(work)
        })
    })
}

#[test]
fn bytes_that_arrive_one_by_one_or_slowly_give_the_same_replies() {
    each(|_, link, protocol| {
        block_on(async {
            let split = Split { single_bytes: 3000, bytes_max: 90, seed: u64::from(protocol) };
            for (run, split, speed) in
                [("split", Some(split), None), ("slow", None, Some(8_000_000))]
            {
                link.split(split);
                link.throttle(speed);
                let db = builder(link, protocol).connect().await.expect("a server");
                for (case, ended) in run_all(&db, run).await {
                    ended.unwrap_or_else(|error| panic!("{}, {run}: {error}", case.name));
                }
                link.heal();
            }
        });
    });
}

#[test]
fn a_connection_cut_after_any_byte_gives_no_wrong_reply() {
    each(|server, link, protocol| {
        let (mut whole, mut cut, mut refused) = (0, 0, 0);
        block_on(async {
            let (mut after, mut step) = (CUTS_FROM, 0);
            while after < CUT_MAX {
                let how = if after.is_multiple_of(2) { Disconnect::Reset } else { Disconnect::End };
                for (at, case) in all().enumerate() {
                    // The cases alternate between the two directions, and so do the rounds of each case.
                    let direction = Direction::BOTH[(at + step) % 2];
                    link.cut_next_after(direction, after, how);
                    let what = format!("{how:?} behind {after} bytes {direction:?}");
                    match builder(link, protocol).connect().await {
                        Ok(db) => {
                            let run = case.run(&db, &format!("{after}:{direction:?}"));
                            match ended(case, &what, run.await) {
                                true => whole += 1,
                                false => cut += 1,
                            }
                            db.close();
                        }
                        Err(error) => {
                            assert!(is_allowed(&error), "{what}: {error}");
                            refused += 1;
                        }
                    }
                }
                step += 1;
                after += after * CUT_LATER_PERCENT / 100 + CUT_LATER_BYTES;
            }
        });
        eprintln!(
            "note: {whole} cases ended well, {cut} with an error, {refused} had no connection"
        );
        assert!(whole > 0 && cut > 0 && refused > 0);
        wait_until("all connections to be gone", || server.info("connected_clients") == "1");
    });
}

#[test]
fn connections_that_are_cut_while_all_cases_run_give_no_wrong_reply() {
    each(|_, link, protocol| {
        block_on(async {
            let db = builder(link, protocol).lanes(Lanes::Count(2)).connect().await;
            let db = db.expect("a server");
            for round in 0..12 {
                let before = link.written_bytes(Direction::ToClient);
                let cut = || {
                    wait_until("something to pass", || {
                        link.written_bytes(Direction::ToClient) > before + 250 * round
                    });
                    link.cut(if round % 2 == 0 { Disconnect::Reset } else { Disconnect::End });
                };
                for (case, end) in during(cut, run_all(&db, &format!("round:{round}"))).await {
                    ended(case, "cut amid others", end);
                }
            }
        });
    });
}

#[test]
fn a_peer_that_falls_silent_gives_a_timely_error_and_no_wrong_reply() {
    each(|_, link, protocol| {
        // Each protocol tests one direction.
        let direction = Direction::BOTH[usize::from(protocol) % 2];
        block_on(async {
            let time = Duration::from_millis(150);
            let db = builder(link, protocol).timeout(time).silence(2 * time);
            let db = db.connect_timeout(time).connect().await.expect("a server");
            let before = link.written_bytes(Direction::ToServer);
            let accepted = link.accepted();
            let fall = || {
                wait_until("something to pass", || {
                    link.written_bytes(Direction::ToServer) > before + 2000
                });
                link.swallow(direction, true);
                wait_until("it to be given up", || link.accepted() > accepted + SILENT_ATTEMPTS);
                link.heal();
                // A connection that has lost bytes is useless.
                link.cut(Disconnect::Reset);
            };
            let run = format!("silent:{direction:?}");
            for (case, end) in during(fall, run_all(&db, &run)).await {
                ended(case, "silent", end);
            }
            let again = db.echo::<String>("again").timeout(Duration::from_secs(20)).await;
            assert_eq!(again.expect("a server"), "again");
        });
    });
}
