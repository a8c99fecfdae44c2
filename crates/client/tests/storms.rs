//! Many cut connections and many dropped calls: no command is executed twice, and no reply goes to the wrong caller.
//! `BRISK_CLIENT_CANCELS` and `BRISK_CLIENT_CUTS` set the numbers of dropped calls and of cuts.

use brisk::{Client, Command, Kind, Lanes, Replay, Request, Traits};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy};
use brisk_testkit::random::Random;
use brisk_testkit::server::Launch;
use brisk_testkit::wait::wait_until;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn size(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn dropped_calls_give_no_wrong_reply() {
    let server = Launch::subject().start();
    let drops = size("BRISK_CLIENT_CANCELS", 50_000);
    run(async {
        let db = Client::builder(&server.address()).lanes(Lanes::Count(2)).connect().await.unwrap();
        let dropped = Arc::new(AtomicU64::new(0));
        let callers = (0..32_u64).map(|caller| {
            let (db, dropped) = (db.clone(), Arc::clone(&dropped));
            tokio::spawn(async move {
                let mut random = Random::new(caller);
                let mut round = 0_u64;
                while dropped.load(Ordering::Relaxed) < drops {
                    round += 1;
                    let word = format!("{caller}:{round}:{}", "x".repeat(random.below(90)));
                    let echo = db.raw::<String>("ECHO").arg(&word);
                    if random.below(4) == 0 {
                        assert_eq!(echo.await.unwrap(), word);
                        continue;
                    }
                    // The call is dropped at any moment: before it is sent, while it is being sent, or after the reply
                    // has arrived.
                    let polls = random.below(4);
                    let mut echo = Box::pin(echo);
                    for _ in 0..polls {
                        if let std::task::Poll::Ready(read) = futures_util::poll!(&mut echo) {
                            assert_eq!(read.unwrap(), word);
                            break;
                        }
                        tokio::task::yield_now().await;
                    }
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        for done in futures_util::future::join_all(callers).await {
            done.unwrap();
        }
        wait_until("nothing to be under way", || db.pending() == 0);
    });
}

/// A caller's knowledge of its own counter.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    /// Increments that the server has acknowledged.
    applied: u64,
    /// Increments whose outcome is unknown.
    unknown: u64,
}

impl Ledger {
    #[track_caller]
    fn allows(&self, value: u64) {
        let range = self.applied..=self.applied + self.unknown;
        assert!(range.contains(&value), "{self:?} {value}");
    }
}

/// Increments the counter and reads it, until `over` is set.
async fn count(db: Client, key: String, over: Arc<AtomicBool>) -> Ledger {
    let mut ledger = Ledger::default();
    let reads = Traits { reads_only: true, ..Traits::default() };
    while !over.load(Ordering::Relaxed) {
        match db.raw::<u64>("INCR").key(&key).await {
            Ok(value) => {
                ledger.applied += 1;
                ledger.allows(value);
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Disconnected, "{error}");
                // A command that was not sent is sent on the next connection, and does not fail.
                assert!(error.maybe_applied(), "{error}");
                ledger.unknown += 1;
            }
        }
        // Reads are sent again each time the connection is lost.
        let read = Command::<(), Option<u64>>::new(Request::new("GET", reads)).key(&key).on(&db);
        ledger.allows(read.await.expect("a read").unwrap_or(0));
    }
    ledger
}

#[test]
fn nothing_is_applied_twice_and_no_acknowledged_write_is_lost() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    let cuts = size("BRISK_CLIENT_CUTS", 40);
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Count(2));
        let db = db.timeout(Duration::from_secs(20)).connect().await.unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let key = |caller: usize| format!("ledger:{caller}");
        let callers: Vec<_> = (0..24)
            .map(|caller| tokio::spawn(count(db.clone(), key(caller), Arc::clone(&over))))
            .collect();
        let mut random = Random::new(24);
        for cut in 0..cuts {
            let before = link.written_bytes(Direction::ToServer);
            let bytes = 1 + random.below(20_000) as u64;
            let how = if cut % 2 == 0 { Disconnect::Reset } else { Disconnect::End };
            // One of the next connections ends within a reply or a request, maybe one of the first.
            link.cut_next_after(Direction::BOTH[random.below(2)], bytes, how);
            link.cut(how);
            wait_until("some bytes to pass", || {
                link.written_bytes(Direction::ToServer) > before + bytes
            });
        }
        over.store(true, Ordering::Relaxed);
        let mut all = Ledger::default();
        for (caller, counted) in callers.into_iter().enumerate() {
            let ledger = counted.await.unwrap();
            // One of the cuts may still happen. A read is then sent again.
            let value: Option<u64> = db.get(key(caller)).await.unwrap();
            ledger.allows(value.unwrap_or(0));
            all.applied += ledger.applied;
            all.unknown += ledger.unknown;
        }
        eprintln!("note: {cuts} cuts, {} connections, {all:?}", link.accepted());
        assert!(all.applied > 0 && link.accepted() > cuts);
    });
}

#[test]
fn at_least_once_is_at_least_once() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db =
            Client::builder(&link.address()).lanes(Lanes::Count(1)).replay(Replay::AtLeastOnce);
        let db = db.timeout(Duration::from_secs(20)).connect().await.unwrap();
        for round in 1..=20 {
            link.stall(Direction::ToClient, true);
            let add = tokio::spawn({
                let db = db.clone();
                async move { db.raw::<i64>("SADD").key("set").arg(round).await }
            });
            wait_until("it to be under way", || db.pending() > 0);
            link.cut(Disconnect::Reset);
            link.heal();
            add.await.unwrap().unwrap();
            assert_eq!(db.raw::<i64>("SCARD").key("set").await.unwrap(), round);
        }
    });
}
