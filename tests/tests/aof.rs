//! The append-only file: the data that is restored after the process is killed, at any moment and under load. Damaged
//! files and disk problems are tested in `aof_trouble`, and the format in `aof_format`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_backend;
use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::aof::AofHome;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const LIBRARY: &str = "#!lua name=lib\nredis.register_function('put', function(keys, args) \
                       redis.call('SET', keys[1], args[1]) return redis.call('INCR', 'calls') end)\n";
const SCRIPT: &str = "for n = 1, 3 do redis.call('RPUSH', KEYS[1], n) end \
                      redis.call('EXPIRE', KEYS[1], 1000) return redis.call('SPOP', KEYS[2])";

#[track_caller]
fn run(conn: &mut Conn, lines: &[&str]) {
    for line in lines {
        let reply = conn.cmd(line).to_string();
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
    }
}

/// Writes values of every type, with every command that is written to the file in a different form.
fn fill(server: &Server, conn: &mut Conn) {
    fill_alone(conn);
    fill_together(server, conn);
    wait_until("it has expired", || conn.cmd("EXISTS soon").integer() == 0);
}

/// The commands that need only one client.
fn fill_alone(conn: &mut Conn) {
    let many = |line: &str, item: &dyn Fn(usize) -> String| {
        (0..300).fold(line.to_owned(), |line, n| format!("{line} {}", item(n)))
    };
    run(
        conn,
        &[
            "SET string hello",
            "APPEND string world",
            "SETRANGE large 100000 end",
            "INCRBYFLOAT float 3.1",
            "SETBIT bits 1000 1",
            "PFADD hll a b c",
            "SET later v PX 10000000",
            "GETEX string EX 5000",
            "SET soon v PX 1",
            "MSET {m}1 a {m}2 b",
            "LPUSH list a b c",
            &many("RPUSH list:long", &|n| format!("element-{n}")),
            "LMOVE list list:long LEFT RIGHT",
            "LINSERT list BEFORE b x",
            "LTRIM list:long 3 -2",
            &many("SADD set", &|n| format!("member-{n}")),
            "SPOP set 20",
            "SPOP set",
            "SMOVE set other member-299",
            &many("HSET hash", &|n| format!("f{n} {n}")),
            "HINCRBYFLOAT hash f1 1.5",
            &many("ZADD zset", &|n| format!("{n}.25 m{n}")),
            "ZPOPMIN zset 7",
            "ZINCRBY zset 1e20 m50",
            "ZRANGESTORE zset:part zset 3 9",
            "GEOADD geo 13.361389 38.115556 Palermo",
            "SORT list ALPHA STORE sorted",
            "XADD stream * a b",
            "XADD stream MAXLEN ~ 10 5000000000000-1 a b c d",
            "XADD stream 5000000000000-2 a b",
            "XGROUP CREATE stream group 0",
            "XGROUP CREATECONSUMER stream group idler",
            "XREADGROUP GROUP group me COUNT 2 STREAMS stream >",
            "XACK stream group 5000000000000-1",
            "XCLAIM stream group you 0 5000000000000-1",
            "XAUTOCLAIM stream group third 0 0",
            "XDEL stream 5000000000000-2",
            "COPY list list:copy",
            "COPY list list:copy DB 5",
            "RENAME list:copy list:renamed",
            "MOVE {m}2 7",
            "MULTI",
            "SET in:multi 1",
            "SELECT 9",
            "SET in:multi 2",
            "EXPIRE in:multi 3000",
            "SELECT 0",
            "EXEC",
            "SELECT 3",
            "SET gone 1",
            "FLUSHDB",
            "SET other-database yes",
            "SELECT 4",
            "RPUSH swapped 1",
            "SWAPDB 4 6",
            "SELECT 0",
        ],
    );
    if !subject_is_redis() {
        run(conn, &["HPEXPIRE hash 10000000 FIELDS 2 f1 f2", "HPEXPIRE hash 1 FIELDS 1 f3"]);
        wait_until("a field has expired", || conn.cmd("HEXISTS hash f3").integer() == 0);
    }
    assert!(!conn.call(&["EVAL", SCRIPT, "2", "scripted", "set"]).is_error());
    assert_eq!(conn.call(&["FUNCTION", "LOAD", LIBRARY]).text(), "lib");
    assert_reply!(conn, "FCALL put 1 by-function x", "(integer) 1");
    let dump = conn.cmd("DUMP hash");
    let Reply::Bulk(bytes) = dump else { panic!("{dump}") };
    assert_eq!(conn.call(&[b"RESTORE", &b"restored"[..], b"0", &bytes]).text(), "OK");
}

/// The commands that need several clients or servers.
fn fill_together(server: &Server, conn: &mut Conn) {
    // Served by the client that pushes.
    let [mut popper, mut mover, mut reader] = server.connections();
    popper.send("BLPOP blocked 0");
    mover.send("BLMOVE blocked moved LEFT RIGHT 0");
    reader.send("XREADGROUP GROUP group me BLOCK 0 STREAMS stream >");
    server.wait_for_info("blocked_clients", |count| count == "3");
    run(conn, &["RPUSH blocked 1 2 3", "XADD stream 5000000000000-9 woken up"]);
    let replies = [popper.reply(), mover.reply(), reader.reply()];
    assert!(replies.iter().all(|reply| !reply.is_error()), "{replies:?}");

    // Migrate a key to another server and back.
    let elsewhere = Launch::subject().start();
    let to = |server: &Server| format!("127.0.0.1 {}", server.port());
    run(conn, &[&format!("MIGRATE {} zset:part 0 5000", to(&elsewhere))]);
    run(conn, &[&format!("MIGRATE {} other 0 5000 COPY", to(&elsewhere))]);
    let mut elsewhere_conn = elsewhere.connect();
    run(&mut elsewhere_conn, &[&format!("MIGRATE {} zset:part 2 5000", to(server))]);
}

/// A description that distinguishes two datasets. The keys of the first database are listed individually, to find the
/// difference.
fn dataset(conn: &mut Conn) -> Vec<String> {
    let whole = [
        "DEBUG DIGEST",
        "FUNCTION LIST WITHCODE",
        "PEXPIRETIME later",
        "PEXPIRETIME string",
        "XINFO GROUPS stream",
        "DBSIZE",
    ];
    let mut lines = whole.map(|line| conn.cmd(line).to_string()).to_vec();
    let keys = conn.cmd("KEYS *");
    let mut keys: Vec<String> = keys.elements().iter().map(|key| key.text()).collect();
    keys.sort();
    lines.extend(keys.iter().map(|key| {
        let digest = conn.cmd(&format!("DEBUG DIGEST-VALUE {key}"));
        format!("{key}: {digest} until {}", conn.cmd(&format!("PEXPIRETIME {key}")))
    }));
    lines
}

#[track_caller]
fn assert_same(found: &[String], wanted: &[String]) {
    let [missing, odd] = [(wanted, found), (found, wanted)]
        .map(|(here, there)| here.iter().filter(|line| !there.contains(line)).collect::<Vec<_>>());
    assert!(missing.is_empty() && odd.is_empty(), "missing: {missing:#?}, instead: {odd:#?}");
}

#[test]
fn all_data_is_recovered_after_a_kill() {
    for (policy, backend) in [("always", "auto"), ("everysec", "epoll"), ("no", "auto")] {
        let home = AofHome::new();
        let launch = || match subject_is_redis() {
            true => home.launch(policy),
            false => home.launch(policy).set("io-backend", backend),
        };
        let server = launch().start();
        let mut conn = server.connect();
        fill(&server, &mut conn);
        let before = dataset(&mut conn);
        server.kill();
        let server = AofHome::load(launch());
        let mut conn = server.connect();
        assert_same(&dataset(&mut conn), &before);
        // Now the data is loaded from a base and the commands after it.
        rewrite(&mut conn);
        run(&mut conn, &["SET behind 1", "FLUSHALL", "SET behind 2"]);
        assert_eq!(conn.call(&["FUNCTION", "DELETE", "lib"]).text(), "OK");
        fill(&server, &mut conn);
        let before = dataset(&mut conn);
        server.kill();
        let server = AofHome::load(launch());
        assert_same(&dataset(&mut server.connect()), &before);
    }
}

/// Rewrites the file, and waits until the rewrite has ended.
#[track_caller]
fn rewrite(conn: &mut Conn) {
    let reply = conn.cmd("BGREWRITEAOF").text();
    assert!(reply.starts_with("Background append only file rewriting"), "{reply}");
    wait_rewritten(conn);
}

fn wait_rewritten(conn: &mut Conn) {
    wait_until("the file is rewritten", || {
        conn.info("aof_rewrite_in_progress") == "0" && conn.info("aof_rewrite_scheduled") == "0"
    });
    assert_eq!(conn.info("aof_last_bgrewrite_status"), "ok");
}

/// How the server is used until it is killed.
#[derive(Clone, Copy)]
struct Load {
    policy: &'static str,
    /// The first command of every client.
    greeting: &'static str,
    /// The file is rewritten continuously.
    rewrites: bool,
}

/// Number of rounds of a test that kills the server. An environment variable can increase it.
fn rounds() -> u64 {
    std::env::var("BRISK_KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

const WRITERS: usize = 3;
const PIPELINED: u64 = 16;

/// The task of a client.
enum Role {
    Appends(usize),
    Pairs,
    Looks,
    Rewrites,
}

/// The acknowledged writes, by writer.
#[derive(Default)]
struct Acknowledged {
    /// Number of elements that were appended.
    appended: [AtomicU64; WRITERS],
    /// The last pair that was written.
    paired: AtomicU64,
    /// The longest list of the first writer that another client has seen.
    seen: AtomicU64,
    /// The highest sum over all writers that was seen.
    sum: AtomicU64,
    /// True if replies did not wait for the file because the disk was slow. With everysec the server may do this, and
    /// INFO reports it.
    delayed: AtomicBool,
    over: AtomicBool,
}

impl Acknowledged {
    fn replies(&self) -> u64 {
        let appended = self.appended.iter().map(|n| n.load(Ordering::SeqCst)).sum::<u64>();
        appended + self.paired.load(Ordering::SeqCst)
    }

    /// Appends numbers in pipelines until the server is gone.
    fn append(&self, writer: usize, conn: &mut Conn) -> io::Result<()> {
        for first in (0..).step_by(PIPELINED as usize) {
            let mut bytes = Vec::new();
            for n in first..first + PIPELINED {
                let words = ["RPUSH".to_owned(), format!("log:{writer}"), n.to_string()];
                brisk_testkit::words::encode_into(&mut bytes, &words);
                brisk_testkit::words::encode_into(&mut bytes, &["INCR", "sum"]);
            }
            conn.try_send_raw(&bytes)?;
            for n in first..first + PIPELINED {
                assert_eq!(conn.try_reply()?.integer() as u64, n + 1);
                conn.try_reply()?;
                self.appended[writer].store(n + 1, Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// Repeatedly writes two keys in different slots together.
    fn pair(&self, conn: &mut Conn) -> io::Result<()> {
        for n in 1..u64::MAX {
            for line in ["MULTI", &format!("SET pair:a {n}"), &format!("SET pair:b {n}")] {
                conn.try_cmd(line)?;
            }
            assert!(!conn.try_cmd("EXEC")?.is_error());
            self.paired.store(n, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Reads what other clients have written.
    fn look(&self, conn: &mut Conn) -> io::Result<()> {
        loop {
            self.seen.store(conn.try_cmd("LLEN log:0")?.integer() as u64, Ordering::SeqCst);
            let sum = conn.try_cmd("GET sum")?.text().parse().unwrap_or(0);
            self.sum.store(sum, Ordering::SeqCst);
            let info = conn.try_cmd("INFO persistence")?.text();
            let waited = info.contains("aof_delayed_fsync:0");
            self.delayed.store(!waited, Ordering::SeqCst);
        }
    }

    /// Rewrites the file repeatedly.
    fn rewrite(&self, conn: &mut Conn) -> io::Result<()> {
        while !self.over.load(Ordering::SeqCst) {
            conn.try_cmd("BGREWRITEAOF")?;
            while conn.try_cmd("INFO persistence")?.text().contains("rewrite_in_progress:1") {}
        }
        Ok(())
    }

    /// Asserts that nothing exists only in part, and that nothing that any client has seen is missing. Returns false if
    /// the second check was skipped, because `everysec` may lose writes on a slow disk.
    #[track_caller]
    fn check(&self, conn: &mut Conn, round: u64) -> bool {
        let [a, b] = ["a", "b"].map(|key| conn.cmd(&format!("GET pair:{key}")).text());
        assert_eq!(a, b, "half a transaction, round {round}");
        let lengths: [u64; WRITERS] = std::array::from_fn(|writer| {
            let kept = conn.cmd(&format!("LRANGE log:{writer} 0 -1"));
            let kept: Vec<String> = kept.elements().iter().map(|item| item.text()).collect();
            let whole: Vec<String> = (0..kept.len()).map(|n| n.to_string()).collect();
            assert_eq!(kept, whole, "writer {writer}, round {round}");
            kept.len() as u64
        });
        if self.delayed.load(Ordering::SeqCst) {
            brisk_testkit::skipped("the disk was too slow in a round");
            return false;
        }
        for (length, appended) in lengths.into_iter().zip(&self.appended) {
            let acknowledged = appended.load(Ordering::SeqCst);
            assert!(length >= acknowledged, "{length} of {acknowledged}, round {round}");
        }
        let seen = self.seen.load(Ordering::SeqCst);
        assert!(conn.cmd("LLEN log:0").integer() as u64 >= seen, "round {round}: {seen} was seen");
        let sum: u64 = conn.cmd("GET sum").text().parse().unwrap_or(0);
        assert!(sum >= self.sum.load(Ordering::SeqCst), "round {round}: {sum}");
        let paired = self.paired.load(Ordering::SeqCst);
        assert!(a.parse().unwrap_or(0) >= paired, "{a} of {paired}, round {round}");
        true
    }
}

fn kill_again_and_again(load: Load) {
    if subject_is_redis() {
        return; // these tests use several workers, which Redis does not have
    }
    let (home, mut random) = (AofHome::new(), Random::derived(1, rounds()));
    let mut complete_checks = 0;
    for round in 0..rounds() {
        let threads = if round % 2 == 0 { "2" } else { "4" };
        let backend = if round % 4 < 2 { "auto" } else { "epoll" };
        let launch = home.launch(load.policy).set("threads", threads);
        let server = AofHome::load(launch.set("io-backend", backend));
        run(&mut server.connect(), &["FLUSHALL"]);
        let acknowledged = Acknowledged::default();
        let address = server.address();
        let replies = 1 + random.below(1500) as u64;
        std::thread::scope(|scope| {
            let client = |role: Role| {
                let (acknowledged, address) = (&acknowledged, &address);
                scope.spawn(move || {
                    // Each client ends when the server is gone.
                    let Ok(mut conn) = Conn::try_tcp(address) else { return };
                    let greeted = conn.try_cmd(load.greeting);
                    let _ = greeted.and_then(|_| match role {
                        Role::Appends(writer) => acknowledged.append(writer, &mut conn),
                        Role::Pairs => acknowledged.pair(&mut conn),
                        Role::Looks => acknowledged.look(&mut conn),
                        Role::Rewrites => acknowledged.rewrite(&mut conn),
                    });
                });
            };
            (0..WRITERS).map(Role::Appends).for_each(client);
            client(Role::Pairs);
            client(Role::Looks);
            if load.rewrites {
                client(Role::Rewrites);
            }
            wait_until("enough replies arrived", || acknowledged.replies() >= replies);
            acknowledged.over.store(true, Ordering::SeqCst);
            server.kill();
        });
        let server = AofHome::load(home.launch(load.policy));
        complete_checks += u64::from(acknowledged.check(&mut server.connect(), round));
        server.kill();
    }
    assert!(complete_checks > 0, "the disk was too slow in each of {} rounds", rounds());
}

#[test]
fn no_acknowledged_write_is_lost_with_everysec() {
    let load = Load { policy: "everysec", greeting: "PING", rewrites: false };
    kill_again_and_again(load);
}

#[test]
fn no_acknowledged_write_is_lost_with_always() {
    kill_again_and_again(Load { policy: "always", greeting: "PING", rewrites: false });
}

#[test]
fn no_acknowledged_write_is_lost_with_durability_disk() {
    let greeting = "CLIENT DURABILITY DISK";
    kill_again_and_again(Load { policy: "everysec", greeting, rewrites: false });
}

#[test]
fn no_acknowledged_write_is_lost_during_rewrites() {
    for policy in ["everysec", "always"] {
        kill_again_and_again(Load { policy, greeting: "PING", rewrites: true });
    }
}

#[test]
fn a_rewrite_can_be_requested_at_any_time() {
    let home = AofHome::new();
    let server = home.launch("everysec").set("rdb-key-save-delay", "2000").start();
    let mut conn = server.connect();
    run(&mut conn, &["DEBUG POPULATE 1000"]);
    // The snapshot is deliberately slow, so that the next commands arrive while it is running.
    assert_reply!(conn, "BGSAVE", "Background saving started");
    assert_reply!(conn, "BGREWRITEAOF", "Background append only file rewriting scheduled");
    assert_eq!(conn.info("aof_rewrite_scheduled"), "1");
    assert_reply!(conn, "CONFIG SET rdb-key-save-delay 0", "OK");
    run(&mut conn, &["SET meanwhile 1"]);
    wait_until("the rewrite has begun and ended", || conn.info("aof_rewrites") == "1");
    wait_rewritten(&mut conn);
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    rewrite(&mut conn);
    rewrite(&mut conn);
    let lines = home.manifest();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains(".4.base.rdb seq 4 type b"), "{lines:?}");
    assert!(lines[1].contains(".4.incr.aof seq 4 type i"), "{lines:?}");
    // The directory contains the manifest, both files and the lock.
    assert_eq!(std::fs::read_dir(home.files()).unwrap().count(), 4);
    let before = conn.cmd("DEBUG DIGEST");
    server.kill();
    let server = AofHome::load(home.launch("everysec"));
    assert_eq!(server.connect().cmd("DEBUG DIGEST"), before);
}

#[test]
fn a_file_that_has_grown_is_rewritten() {
    let home = AofHome::new();
    let server = home
        .launch("no")
        .set("auto-aof-rewrite-percentage", "50")
        .set("auto-aof-rewrite-min-size", "100kb")
        .start();
    let mut conn = server.connect();
    let value = "x".repeat(1000);
    wait_until("it was rewritten", || {
        run(&mut conn, &[&format!("SET key {value}")]);
        conn.info("aof_rewrites") != "0"
    });
    wait_rewritten(&mut conn);
    assert!(server.log().contains("Starting automatic rewriting of AOF on "), "{}", server.log());
    let size: u64 = conn.info("aof_current_size").parse().unwrap();
    assert!(size < 150_000, "{size}");
}

/// Each time the file is switched on, it begins with the whole dataset at that time.
#[test]
fn the_file_can_be_switched_off_and_on_while_clients_write() {
    for policy in ["always", "everysec"] {
        let home = AofHome::new();
        let server = home.launch(policy).start();
        let (address, over) = (server.address(), AtomicBool::new(false));
        let written = std::thread::scope(|scope| {
            let write = |client: usize| {
                let (address, over) = (&address, &over);
                scope.spawn(move || {
                    let mut conn = Conn::tcp(address);
                    let mut count = 0;
                    while !over.load(Ordering::SeqCst) {
                        let line = format!("RPUSH list:{client} {count}");
                        let lines = [&*line, "INCR sum", "PING"];
                        let replies = conn.pipeline(&lines);
                        count += 1;
                        assert_eq!(replies[0].integer(), count);
                        assert_eq!(replies[2].text(), "PONG");
                    }
                    count
                })
            };
            let writers: Vec<_> = (0..3).map(write).collect();
            let mut conn = server.connect();
            for _ in 0..5 {
                run(&mut conn, &["CONFIG SET appendonly no"]);
                assert_eq!(conn.info("aof_enabled"), "0");
                run(&mut conn, &["CONFIG SET appendonly yes"]);
                wait_rewritten(&mut conn);
            }
            over.store(true, Ordering::SeqCst);
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<i64>>()
        });
        server.kill();
        let server = AofHome::load(home.launch(policy));
        let mut conn = server.connect();
        for (client, count) in written.iter().enumerate() {
            assert_eq!(conn.cmd(&format!("LLEN list:{client}")).integer(), *count, "{policy}");
        }
        let sum: i64 = conn.cmd("GET sum").text().parse().unwrap();
        assert_eq!(sum, written.iter().sum::<i64>());
    }
}

#[test]
fn the_file_can_be_loaded_again_while_the_server_runs() {
    each_backend(
        || Launch::subject().set("appendonly", "yes"),
        |server| {
            let mut conn = server.connect();
            fill(server, &mut conn);
            let before = dataset(&mut conn);
            assert_reply!(conn, "DEBUG LOADAOF", "OK");
            assert_same(&dataset(&mut conn), &before);
            run(&mut conn, &["SET behind 1"]);
            rewrite(&mut conn);
            let before = dataset(&mut conn);
            assert_reply!(conn, "DEBUG LOADAOF", "OK");
            assert_same(&dataset(&mut conn), &before);
        },
    );
}

/// With `aof-use-rdb-preamble no`, the base consists of commands, which a real server can read too.
#[test]
fn a_base_of_commands_gives_the_same_dataset() {
    let home = AofHome::new();
    let launch = || home.launch("everysec").set("aof-use-rdb-preamble", "no");
    let server = launch().start();
    let mut conn = server.connect();
    fill(&server, &mut conn);
    rewrite(&mut conn);
    run(&mut conn, &["SET behind 1"]);
    assert!(home.manifest()[0].contains(".base.aof "), "{:?}", home.manifest());
    let base = home.manifest()[0].split(' ').nth(1).unwrap().to_owned();
    let bytes = std::fs::read(home.files().join(base)).unwrap();
    assert!(!bytes.starts_with(b"REDIS"));
    let before = dataset(&mut conn);
    server.kill();
    let server = AofHome::load(launch());
    let mut conn = server.connect();
    assert_same(&dataset(&mut conn), &before);
    // Delete the data that only later versions support.
    run(&mut conn, &["DEL hash restored"]);
    rewrite(&mut conn);
    let before = dataset(&mut conn);
    server.kill();
    let server = AofHome::load(home.at_home(Launch::redis()));
    assert_same(&dataset(&mut server.connect()), &before);
}
