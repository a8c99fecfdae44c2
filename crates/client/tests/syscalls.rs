//! System calls for reading and writing: many callers need few of them, over short and long distances. C1.
//!
//! The test runs itself again as a child process, which generates the load. `strace` counts the child's system calls.
//! These include the reads and writes at the start of the child, and the waking of threads.

use brisk::{Client, Lanes};
use brisk_testkit::proxy::Proxy;
use brisk_testkit::server::Launch;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Passes the address of the server, the number of callers, and the number of requests per caller to the child.
const LOAD: &str = "BRISK_CLIENT_SYSCALLS";
const WRITES: [&str; 4] = ["write", "writev", "sendto", "sendmsg"];
const READS: [&str; 4] = ["read", "readv", "recvfrom", "recvmsg"];

/// The child's part: this number of callers send this number of requests, each after the reply to the previous one.
fn load(text: &str) {
    let mut words = text.split(' ');
    let server = words.next().expect("a server");
    let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
    let (callers, rounds): (usize, usize) = (number(), number());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let db = Client::builder(server).lanes(Lanes::Count(1)).timeout(Duration::from_secs(60));
        let db = db.connect().await.expect("a connection");
        let start = Arc::new(tokio::sync::Barrier::new(callers));
        let calls = (0..callers).map(|caller| {
            let (db, start) = (db.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                let key = format!("key:{caller}");
                // Otherwise, the first callers would run before the others.
                start.wait().await;
                for _ in 0..rounds {
                    let value: Option<String> = db.get(&key).await.expect("a reply");
                    assert_eq!(value, None);
                }
            })
        });
        for call in futures_util::future::join_all(calls).await {
            call.expect("a caller");
        }
    });
}

/// The number of system calls that the load makes, by name. `None` if `strace` is not installed.
fn counted(
    test: &str,
    server: &str,
    callers: usize,
    rounds: usize,
) -> Option<BTreeMap<String, u64>> {
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|s| s.success())
    {
        brisk_testkit::skipped("no strace on this machine");
        return None;
    }
    let traced = format!("trace={},{}", WRITES.join(","), READS.join(","));
    let file = std::env::temp_dir().join(format!("brisk-{test}-{}", std::process::id()));
    let own = std::env::current_exe().expect("this test");
    let output = Command::new("strace")
        .args(["-c", "-f", "-e", &traced, "-o"])
        .arg(&file)
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env(LOAD, format!("{server} {callers} {rounds}"))
        .output()
        .expect("strace");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = std::fs::read_to_string(&file).expect("what strace has counted");
    std::fs::remove_file(&file).expect("it was there");
    // The columns: share, seconds, microseconds per call, calls, errors if there were any, name.
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(((*words.last()?).to_owned(), words.get(3)?.parse().ok()?))
    };
    let counts: BTreeMap<String, u64> = table.lines().filter_map(row).collect();
    eprintln!("note: {callers} callers, {rounds} rounds: {counts:?}");
    Some(counts)
}

fn sum(counts: &BTreeMap<String, u64>, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

#[test]
fn many_callers_share_their_reads_and_writes() {
    if let Ok(text) = std::env::var(LOAD) {
        return load(&text);
    }
    const CALLERS: usize = 256;
    const ROUNDS: usize = 500;
    for server in [Launch::redis().start(), Launch::subject().start()] {
        let test = "syscalls::many_callers_share_their_reads_and_writes";
        let Some(counts) = counted(test, &server.address(), CALLERS, ROUNDS) else { return };
        let calls = sum(&counts, &WRITES) + sum(&counts, &READS);
        assert!(calls > 0, "{counts:?}");
        let each = calls as f64 / (CALLERS * ROUNDS) as f64;
        assert!(each <= 0.08, "{each} for each GET: {counts:?}");
    }
}

#[test]
fn over_a_slow_link_all_callers_share_a_round_trip() {
    if let Ok(text) = std::env::var(LOAD) {
        return load(&text);
    }
    const CALLERS: usize = 200;
    const ROUNDS: usize = 40;
    for server in [Launch::redis().start(), Launch::subject().start()] {
        let link = Proxy::to(&server.address());
        // 12 ms per round trip.
        link.delay(Duration::from_millis(6));
        let test = "syscalls::over_a_slow_link_all_callers_share_a_round_trip";
        let Some(counts) = counted(test, &link.address(), CALLERS, ROUNDS) else { return };
        // Only the calls for sockets count, because threads also wake each other by writing.
        let sent = sum(&counts, &["sendto", "sendmsg", "writev"]);
        // There are four calls for each round trip, since callers get their replies in four waves, and some more for
        // the handshake and for replies that arrive in parts. Without batching, there would be as many calls as
        // requests.
        assert!(sent >= ROUNDS as u64, "{counts:?}");
        assert!(sent <= 6 * ROUNDS as u64, "{sent} for {ROUNDS} round trips: {counts:?}");
    }
}
