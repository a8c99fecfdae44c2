//! Members of consumer groups: each entry is handled, acknowledged after that, and retried if the handler fails. No
//! entry is lost, even if members crash, connections are lost or streams are deleted.

use brisk::consumer::{Begin, Consumer, Event, Fate, Id, Message, Summary};
use brisk::{Bytes, Client, Kind, Result};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A Redis server and a Brisk server.
fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

async fn add(db: &Client, entries: usize) {
    let adds = (0..entries).map(|n| brisk::commands::xadd("s", "*", [("n", n), ("user", n % 7)]));
    db.batch(adds.collect::<Vec<_>>()).await.expect("entries");
}

/// What handlers received: the delivery counts of each entry, in order.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<BTreeMap<Id, Vec<u64>>>>);

impl Log {
    fn note(&self, m: &Message) {
        self.0.lock().expect("no panic").entry(m.id()).or_default().push(m.deliveries());
    }

    fn entries(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    fn deliveries(&self) -> Vec<Vec<u64>> {
        self.0.lock().expect("no panic").values().cloned().collect()
    }
}

/// A running consumer.
struct Member {
    task: JoinHandle<Result<Summary>>,
    stop: oneshot::Sender<()>,
}

impl Member {
    fn start<F, Fut>(consumer: Consumer, handler: F) -> Member
    where
        F: Fn(Message) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<(), String>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let consumer = consumer.until(async {
            let _ = stopped.await;
        });
        Member { task: tokio::spawn(consumer.run(handler)), stop }
    }

    async fn stop(self) -> Summary {
        self.stop.send(()).expect("it is at work");
        self.task.await.expect("no panic").expect("an end without error")
    }

    /// Ends the consumer without a shutdown, as if its process had crashed.
    async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.is_err());
    }
}

fn member(db: &Client, name: &'static str) -> Consumer {
    db.consumer("s").group("g").member(name).retry(ms(1), ms(5))
}

/// The number of entries that are pending for all members.
fn pending(server: &Server) -> usize {
    server.connect().cmd("XPENDING s g - + 100000").elements().len()
}

/// The delivery counts of the pending entries.
fn counts(server: &Server) -> Vec<i64> {
    let listed = server.connect().cmd("XPENDING s g - + 100000");
    listed.elements().iter().map(|one| one.elements()[3].integer()).collect()
}

#[test]
fn each_entry_is_handled_once_when_nothing_fails() {
    for server in servers() {
        for protocol in [2, 3] {
            run(async {
                let url = format!("redis://{}?protocol={protocol}", server.address());
                let db = Client::connect(&url).await.unwrap();
                db.flushall().await.unwrap();
                add(&db, 500).await;
                let log = Log::default();
                let members = ["a", "b", "c"].map(|name| {
                    let log = log.clone();
                    Member::start(member(&db, name).parallel(20), move |m| {
                        log.note(&m);
                        async move {
                            let (n, user): (u32, u32) = (
                                m.field("n").map_err(|error| error.to_string())?,
                                m.field("user").map_err(|error| error.to_string())?,
                            );
                            if n % 7 == user { Ok(()) } else { Err("mixed up".to_owned()) }
                        }
                    })
                });
                add(&db, 1500).await;
                wait_until("all to be handled", || log.entries() == 2000);
                wait_until("all to be confirmed", || pending(&server) == 0);
                let mut handled = 0;
                for one in members {
                    let summary = one.stop().await;
                    assert_eq!(summary, Summary { handled: summary.handled, ..Summary::default() });
                    handled += summary.handled;
                }
                assert_eq!(handled, 2000);
                assert!(log.deliveries().iter().all(|deliveries| *deliveries == [1]));
            });
        }
    }
}

#[test]
fn a_group_begins_at_the_configured_position() {
    let server = Launch::subject().start();
    run(async {
        let db = Client::connect(&server.address()).await.unwrap();
        for (begin, expected) in [
            (Begin::Oldest, vec![1, 2, 3, 4]),
            (Begin::After(Id { ms: 2, seq: 0 }), vec![3, 4]),
            (Begin::Newest, vec![4]),
        ] {
            db.flushall().await.unwrap();
            let adds = (1..=3).map(|n| brisk::commands::xadd("s", format!("{n}-0"), ("n", n)));
            db.batch(adds.collect::<Vec<_>>()).await.unwrap();
            let (log, made) = (Log::default(), Arc::new(Notify::new()));
            let (seen, maker) = (log.clone(), Arc::clone(&made));
            let consumer = member(&db, "a").begin(begin).observe(move |event| {
                if matches!(event, Event::GroupCreated) {
                    maker.notify_one();
                }
            });
            let one = Member::start(consumer, move |m| {
                seen.note(&m);
                async { Ok(()) }
            });
            made.notified().await;
            db.xadd("s", "4-0", ("n", 4)).await.unwrap();
            wait_until("the last one", || log.entries() == expected.len());
            one.stop().await;
            let seen: Vec<u64> = log.0.lock().unwrap().keys().map(|id| id.ms).collect();
            assert_eq!(seen, expected);
        }
    });
}

#[test]
fn pending_entries_of_a_member_that_does_not_return_are_taken_over() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 40).await;
            let begun = Log::default();
            let seen = begun.clone();
            let first = Member::start(member(&db, "a").parallel(10).ahead(10), move |m| {
                seen.note(&m);
                std::future::pending()
            });
            wait_until("handlers at work", || begun.entries() == 10);
            wait_until("entries to be pending", || pending(&server) == 20);
            first.crash().await;
            let log = Log::default();
            let seen = log.clone();
            let second = member(&db, "b").claim_idle(ms(150)).parallel(4);
            let second = Member::start(second, move |m| {
                seen.note(&m);
                async { Ok(()) }
            });
            wait_until("all to be handled", || log.entries() == 40);
            wait_until("all to be confirmed", || pending(&server) == 0);
            let summary = second.stop().await;
            assert_eq!((summary.handled, summary.claimed), (40, 20));
            let mut deliveries = log.deliveries();
            deliveries.sort();
            assert_eq!(deliveries, [vec![vec![1]; 20], vec![vec![2]; 20]].concat());
        });
    }
}

#[test]
fn a_restarted_member_finds_its_pending_entries() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 100).await;
            let first = Member::start(member(&db, "a").parallel(30), |_| std::future::pending());
            wait_until("entries to be pending", || pending(&server) == 60);
            first.crash().await;
            // The member reads its own entries long before others may claim them, and page by page, since it has less
            // room than before.
            let log = Log::default();
            let seen = log.clone();
            let again = Member::start(member(&db, "a").parallel(4).ahead(3), move |m| {
                seen.note(&m);
                async { Ok(()) }
            });
            wait_until("all to be handled", || log.entries() == 100);
            wait_until("all to be confirmed", || pending(&server) == 0);
            again.stop().await;
            let expected = [vec![vec![2]; 60], vec![vec![1]; 40]].concat();
            assert_eq!(log.deliveries(), expected, "those left first, which are the oldest");
        });
    }
}

#[test]
fn a_failing_entry_is_retried_and_finally_a_dead_letter_even_across_restarts() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 6).await;
            let log = Log::default();
            let start = |rest: Duration, failures: Arc<AtomicUsize>| {
                let log = log.clone();
                let consumer = member(&db, "a").attempts(4).retry(rest, rest).dead_letter("dead");
                Member::start(consumer, move |m| {
                    log.note(&m);
                    failures.fetch_add(1, Ordering::Relaxed);
                    let n: usize = m.field("n").expect("a number");
                    async move { if n < 2 { Ok(()) } else { Err(format!("no {n}")) } }
                })
            };
            // In the first run each entry fails once, and in the second run once more. In the third run, the entries
            // fail until no attempts are left.
            for (round, expected) in [(1, 6), (2, 4)] {
                let failures = Arc::new(AtomicUsize::new(0));
                let one = start(Duration::from_secs(60), Arc::clone(&failures));
                wait_until("each to be tried", || failures.load(Ordering::Relaxed) == expected);
                wait_until("the others to be confirmed", || pending(&server) == 4);
                let summary = one.stop().await;
                assert_eq!((summary.failed, summary.retried, summary.returned), (4, 0, 4));
                assert_eq!(counts(&server), [round; 4]);
            }
            let failures = Arc::new(AtomicUsize::new(0));
            let one = start(ms(1), Arc::clone(&failures));
            wait_until("dead letters", || server.connect().cmd("XLEN dead").integer() == 4);
            wait_until("all to be confirmed", || pending(&server) == 0);
            let summary = one.stop().await;
            assert_eq!((summary.failed, summary.retried, summary.dead), (8, 4, 4));
            let expected = [vec![vec![1]; 2], vec![vec![1, 2, 3, 4]; 4]].concat();
            assert_eq!(log.deliveries(), expected);
            let dead: Vec<(Id, HashMap<String, String>)> =
                db.xrange("dead", "-", "+").await.unwrap();
            for (_, fields) in dead {
                let n: usize = fields["n"].parse().unwrap();
                assert_eq!(fields["user"], n.to_string());
                assert_eq!(fields["dead:error"], format!("no {n}"));
                assert_eq!(fields["dead:deliveries"], "4");
                assert_eq!((&*fields["dead:stream"], &*fields["dead:group"]), ("s", "g"));
                assert!(log.0.lock().unwrap().contains_key(&fields["dead:id"].parse().unwrap()));
            }
        });
    }
}

#[test]
fn an_entry_without_attempts_left_stays_pending_or_is_discarded() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            for discards in [false, true] {
                db.flushall().await.unwrap();
                add(&db, 3).await;
                let (tries, fates) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::default()));
                let reported: Arc<Mutex<Vec<(Id, Fate)>>> = Arc::clone(&fates);
                let mut consumer = member(&db, "a").attempts(2).claim_idle(ms(150));
                if discards {
                    consumer = consumer.discard();
                }
                let consumer = consumer.observe(move |event| {
                    if let Event::Dead { id, fate, .. } = event {
                        reported.lock().expect("no panic").push((*id, *fate));
                    }
                });
                let counted = Arc::clone(&tries);
                let one = Member::start(consumer, move |_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    async { Err("never".to_owned()) }
                });
                // Entries that stay pending are found and reported again, but not handled.
                let expected = if discards { 3 } else { 9 };
                wait_until("them to be given up", || fates.lock().unwrap().len() >= expected);
                wait_until("them to be confirmed, or not", || {
                    pending(&server) == if discards { 0 } else { 3 }
                });
                one.stop().await;
                assert_eq!(tries.load(Ordering::Relaxed), 6);
                let fate = if discards { Fate::Discarded } else { Fate::Kept };
                assert!(fates.lock().unwrap().iter().all(|(_, reported)| *reported == fate));
            }
        });
    }
}

#[test]
fn a_panic_in_a_handler_counts_as_a_failure_only() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 50).await;
            let texts: Arc<Mutex<Vec<String>>> = Arc::default();
            let reported = Arc::clone(&texts);
            let consumer = member(&db, "a").observe(move |event| {
                if let Event::Failed { why, .. } = event {
                    reported.lock().expect("no panic").push((*why).to_owned());
                }
            });
            let log = Log::default();
            let seen = log.clone();
            let one = Member::start(consumer, move |m| {
                seen.note(&m);
                let n: usize = m.field("n").expect("a number");
                assert!(n != 7 || m.deliveries() > 1, "before the future, {n}");
                async move {
                    assert!(n != 8 || m.deliveries() > 1, "in the future");
                    Ok(())
                }
            });
            wait_until("all to be confirmed", || log.entries() == 50 && pending(&server) == 0);
            let summary = one.stop().await;
            assert_eq!((summary.handled, summary.failed, summary.retried), (50, 2, 2));
            let mut texts = texts.lock().unwrap();
            texts.sort();
            assert_eq!(*texts, ["panic: before the future, 7", "panic: in the future"]);
        });
    }
}

#[test]
fn running_and_pending_entries_stay_within_their_limits() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 1000).await;
            let [at_work, most, done] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
            let step = Arc::new(tokio::sync::Semaphore::new(0));
            let (counted, peak, over) =
                (Arc::clone(&at_work), Arc::clone(&most), Arc::clone(&done));
            let gate = Arc::clone(&step);
            let one = Member::start(member(&db, "a").parallel(8).ahead(5), move |_| {
                let now = counted.fetch_add(1, Ordering::SeqCst) + 1;
                peak.fetch_max(now, Ordering::SeqCst);
                let (counted, over) = (Arc::clone(&counted), Arc::clone(&over));
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.expect("a gate").forget();
                    counted.fetch_sub(1, Ordering::SeqCst);
                    over.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                }
            });
            let mut conn = server.connect();
            for round in 0..=1000 {
                wait_until("handlers at work", || {
                    at_work.load(Ordering::SeqCst) == 8.min(1000 - round)
                });
                if round % 25 == 0 {
                    wait_until("places to be filled", || pending(&server) == 13.min(1000 - round));
                }
                let pending = conn.cmd("XPENDING s g - + 100000").elements().len();
                assert!(pending <= 13, "{pending} pending");
                step.add_permits(1);
                wait_until("one to be done", || {
                    done.load(Ordering::SeqCst) == (round + 1).min(1000)
                });
            }
            wait_until("all to be confirmed", || pending(&server) == 0);
            assert_eq!((one.stop().await.handled, most.load(Ordering::SeqCst)), (1000, 8));
        });
    }
}

#[test]
fn entries_of_a_key_are_handled_in_order_and_others_in_parallel() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 700).await;
            let order: Arc<Mutex<HashMap<u32, Vec<Id>>>> = Arc::default();
            let [at_work, most] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
            let (seen, counted, peak) = (Arc::clone(&order), at_work, Arc::clone(&most));
            let consumer = member(&db, "a").parallel(16).ahead(60).in_order_by("user").attempts(9);
            let one = Member::start(consumer, move |m| {
                peak.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let (seen, counted) = (Arc::clone(&seen), Arc::clone(&counted));
                async move {
                    for _ in 0..m.id().seq % 5 {
                        tokio::task::yield_now().await;
                    }
                    counted.fetch_sub(1, Ordering::SeqCst);
                    // Every third entry fails at first. No later entry of its key overtakes it.
                    if m.deliveries() == 1 && m.field::<u32>("n").expect("a number") % 3 == 0 {
                        return Err("not yet".to_owned());
                    }
                    let user = m.field("user").expect("a user");
                    seen.lock().expect("no panic").entry(user).or_default().push(m.id());
                    Ok(())
                }
            });
            wait_until("all to be handled", || {
                order.lock().unwrap().values().map(Vec::len).sum::<usize>() == 700
            });
            let summary = one.stop().await;
            assert_eq!((summary.handled, summary.failed), (700, 234));
            let order = order.lock().unwrap();
            assert_eq!(order.len(), 7);
            assert!(order.values().all(|ids| ids.is_sorted()));
            let most = most.load(Ordering::SeqCst);
            assert!((2..=7).contains(&most), "{most} at once, of 7 keys");
        });
    }
}

#[test]
fn a_stopping_member_finishes_started_entries_and_returns_the_rest() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 30).await;
            let (log, gate) = (Log::default(), Arc::new(Notify::new()));
            let (seen, waits) = (log.clone(), Arc::clone(&gate));
            let is_stopping = Arc::new(Notify::new());
            let reported = Arc::clone(&is_stopping);
            let consumer = member(&db, "a").parallel(5).ahead(10).leave().observe(move |event| {
                if matches!(event, Event::Stopping) {
                    reported.notify_one();
                }
            });
            let one = Member::start(consumer, move |m| {
                seen.note(&m);
                let waits = Arc::clone(&waits);
                async move {
                    waits.notified().await;
                    Ok(())
                }
            });
            wait_until("handlers at work", || log.entries() == 5);
            wait_until("entries to be pending", || pending(&server) == 15);
            one.stop.send(()).unwrap();
            is_stopping.notified().await;
            // The consumer waits for its running handlers, and starts no others.
            let summary = loop {
                gate.notify_waiters();
                if one.task.is_finished() {
                    break one.task.await.unwrap().unwrap();
                }
                tokio::task::yield_now().await;
            };
            assert_eq!((summary.handled, summary.returned, log.entries()), (5, 10, 5));
            // The returned entries count as not delivered, and other members can claim them immediately.
            assert_eq!(counts(&server), [0; 10]);
            assert_eq!(db.xinfo_consumers::<brisk::Value>("s", "g").await.unwrap().len(), 1);
            let seen = log.clone();
            let other = Member::start(member(&db, "b").leave(), move |m| {
                seen.note(&m);
                async { Ok(()) }
            });
            wait_until("all to be handled", || log.entries() == 30 && pending(&server) == 0);
            other.stop().await;
            assert!(log.deliveries().iter().all(|deliveries| *deliveries == [1]));
            let left: Vec<HashMap<String, brisk::Value>> =
                db.xinfo_consumers("s", "g").await.unwrap();
            assert_eq!(left.len(), 1);
            assert_eq!(left[0]["name"].as_bytes(), Some(&b"a"[..]), "nothing was pending for b");
        });
    }
}

#[test]
fn a_handler_that_exceeds_the_stop_limit_is_dropped() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 3).await;
            let log = Log::default();
            let seen = log.clone();
            let one = Member::start(member(&db, "a").stop_within(ms(20)), move |m| {
                seen.note(&m);
                std::future::pending()
            });
            wait_until("handlers at work", || log.entries() == 3);
            let summary = one.stop().await;
            assert_eq!((summary.handled, summary.returned), (0, 3));
            assert_eq!(counts(&server), [1; 3], "these were begun");
        });
    }
}

#[test]
fn an_entry_in_progress_is_never_taken_over_even_if_it_takes_long() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 20).await;
            let (log, gate) = (Log::default(), Arc::new(Notify::new()));
            let (seen, waits) = (log.clone(), Arc::clone(&gate));
            let idle = ms(400);
            let slow = member(&db, "a").claim_idle(idle).parallel(4).ahead(4);
            let slow = Member::start(slow, move |m| {
                seen.note(&m);
                let waits = Arc::clone(&waits);
                async move {
                    waits.notified().await;
                    Ok(())
                }
            });
            wait_until("entries to be pending", || pending(&server) == 8);
            let others = Log::default();
            let seen = others.clone();
            let other = Member::start(member(&db, "b").claim_idle(idle), move |m| {
                seen.note(&m);
                async { Ok(()) }
            });
            wait_until("the others to be handled", || others.entries() == 12);
            // Wait for more claim attempts than it would take for the entries to become idle, if they were not kept
            // alive.
            let looked = || -> u64 {
                let stats = server.connect().cmd("INFO commandstats").text();
                let line = stats.lines().find(|line| line.starts_with("cmdstat_xautoclaim:"));
                let calls = line.and_then(|line| line.split(['=', ',']).nth(1));
                calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
            };
            let before = looked();
            wait_until("others to look around", || looked() >= before + 12);
            assert_eq!((others.entries(), counts(&server)), (12, vec![1; 8]));
            other.stop().await;
            wait_until("the slow ones to end", || {
                gate.notify_waiters();
                pending(&server) == 0
            });
            assert_eq!(slow.stop().await.handled, 8);
        });
    }
}

#[test]
fn deleted_entries_are_acknowledged_and_a_deleted_stream_is_recreated() {
    for server in servers() {
        run(async {
            let db = Client::connect(&server.address()).await.unwrap();
            add(&db, 10).await;
            let first = Member::start(member(&db, "a"), |_| std::future::pending());
            wait_until("entries to be pending", || pending(&server) == 10);
            first.crash().await;
            let entries = db.xrange::<(Id, Vec<Bytes>)>("s", "-", "+").count(4).await.unwrap();
            let ids: Vec<Id> = entries.into_iter().map(|(id, _)| id).collect();
            db.xdel("s", &ids).await.unwrap();
            let (log, made) = (Log::default(), Arc::new(AtomicUsize::new(0)));
            let (seen, count) = (log.clone(), Arc::clone(&made));
            let consumer = member(&db, "a").observe(move |event| {
                count
                    .fetch_add(usize::from(matches!(event, Event::GroupCreated)), Ordering::SeqCst);
            });
            let one = Member::start(consumer, move |m| {
                seen.note(&m);
                async { Ok(()) }
            });
            wait_until("the others to be handled", || log.entries() == 6 && pending(&server) == 0);
            for round in 1..=3 {
                // The stream is deleted while the consumer waits for new entries. New entries may be added before the
                // consumer notices.
                db.del("s").await.unwrap();
                add(&db, 5).await;
                wait_until("the new ones to be handled", || log.entries() == 6 + round * 5);
                wait_until("them to be confirmed", || pending(&server) == 0);
            }
            // If only the group is gone, entries that were read before are not delivered again.
            db.xgroup_destroy("s", "g").await.unwrap();
            add(&db, 5).await;
            wait_until("the new ones to be handled", || log.entries() == 26);
            wait_until("them to be confirmed", || pending(&server) == 0);
            assert_eq!(made.load(Ordering::SeqCst), 4);
            assert_eq!(one.stop().await.handled, 26);
        });
    }
}

#[test]
fn an_invalid_consumer_is_an_error() {
    let server = Launch::subject().start();
    let db = run(async { Client::builder(&server.address()).connect_blocking().unwrap() });
    let handler = |_: Message| async { Ok::<(), String>(()) };
    let never = || member(&db, "a").until(std::future::pending());
    for consumer in [
        db.consumer("s").member("a"),
        db.consumer("s").group("g"),
        never().parallel(0),
        never().parallel(100_000),
        never().attempts(0),
        never().claim_idle(ms(1)),
    ] {
        let error = run(consumer.run(handler)).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
    }
    // A permanent error ends the consumer.
    db.set("s", 1).wait().unwrap();
    let error = run(never().run(handler)).unwrap_err();
    assert_eq!(error.code(), Some(brisk::Code::WrongType));
    db.del("s").wait().unwrap();
    db.set("dead", 1).wait().unwrap();
    db.xadd("s", "*", ("n", 1)).wait().unwrap();
    let fails = |_: Message| async { Err::<(), _>("no") };
    let error = run(never().attempts(1).dead_letter("dead").run(fails)).unwrap_err();
    assert_eq!(error.code(), Some(brisk::Code::WrongType), "{error}");
    assert_eq!(counts(&server), [1], "it is not lost");
    // A closed client ends it as well.
    run(async {
        let closed = Client::connect(&server.address()).await.unwrap();
        closed.close();
        let error = member(&closed, "a").run(handler).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Closed);
    });
}

#[test]
fn no_entry_is_lost_if_connections_are_lost() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let straight = Client::connect(&server.address()).await.unwrap();
            add(&straight, 10_000).await;
            let db = Client::connect(&link.address()).await.unwrap();
            let log = Log::default();
            let members = ["a", "b"].map(|name| {
                let seen = log.clone();
                let consumer = member(&db, name).parallel(50).attempts(100).claim_idle(ms(500));
                Member::start(consumer, move |m| {
                    seen.note(&m);
                    async move {
                        tokio::task::yield_now().await;
                        Ok(())
                    }
                })
            });
            for round in 1..=12 {
                let enough = (round * 700).min(9_000);
                wait_until("some to be handled", || log.entries() >= enough);
                link.cut(if round % 2 == 0 { Disconnect::Reset } else { Disconnect::End });
            }
            wait_until("all to be handled", || log.entries() == 10_000);
            wait_until("all to be confirmed", || pending(&server) == 0);
            for one in members {
                one.stop().await;
            }
            let deliveries = log.deliveries();
            let twice = deliveries.iter().filter(|deliveries| deliveries.len() > 1).count();
            eprintln!("note: {twice} were handled more than once, {} connections", link.accepted());
            assert!(twice < 1000 && link.accepted() > 12);
        });
    }
}
