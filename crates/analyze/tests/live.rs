//! Analysis of live servers: a real Redis and a Brisk.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::*;
use brisk_analyze::measure::Limits;
use brisk_analyze::model::Classes;
use brisk_analyze::progress::Progress;
use brisk_analyze::source::live::{self, Options, Server as LiveServer, Words};
use brisk_analyze::{Analysis, Findings, Report};
use brisk_resp::Value;
use brisk_testkit::{Launch, Server, TempDir, wait_until};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn options() -> Options {
    Options { share: 1.0, limit: None, reads_values: true, resume: None, classes: None }
}

fn scanned(connection: &mut dyn LiveServer, options: &Options) -> Findings {
    let mut analysis = Analysis::new(Classes::BUNDLED, Limits::default(), 0);
    live::read(connection, options, &mut analysis, &mut Progress::hidden()).unwrap();
    analysis.finish()
}

fn servers() -> [Server; 2] {
    [Launch::redis(), Launch::subject()].map(|launch| launch.set("save", "").start())
}

fn data() -> Vec<Words> {
    let mut all = Vec::new();
    for n in 0..3000 {
        all.push(words(&format!("SET user:{n}:name name-{n}")));
        all.push(words(&format!("SET page:{n} {} EX 5000", "x".repeat(200))));
        if n % 10 == 0 {
            all.push(words(&format!("HSET hash:{n} a {n} b text c {}", "y".repeat(100))));
            all.push(words(&format!("ZADD board:{n} 1 a 2 b 3 c")));
            all.push(words(&format!("SADD numbers:{n} 1 2 3")));
            all.push(words(&format!("RPUSH list:{n} a b c")));
            all.push(words(&format!("XADD stream:{n} * a b")));
        }
    }
    all.push(words("SELECT 3"));
    all.extend((0..500).map(|n| words(&format!("SET other:{n} v"))));
    all
}

/// The number of keys for each database, pattern and type.
fn keys(findings: &Findings) -> BTreeMap<(u64, String, &'static str), u64> {
    let mut all = BTreeMap::new();
    for (pattern, key, group) in &findings.groups {
        *all.entry((key.db, pattern.to_string(), key.kind.name())).or_default() += group.keys;
    }
    all
}

#[test]
fn all_keys_are_found_in_both_servers() {
    let expected: BTreeMap<(u64, String, &str), u64> = [
        (0, "user:<n>:name", "string", 3000),
        (0, "page:<n>", "string", 3000),
        (0, "hash:<n>", "hash", 300),
        (0, "board:<n>", "zset", 300),
        (0, "numbers:<n>", "set", 300),
        (0, "list:<n>", "list", 300),
        (0, "stream:<n>", "stream", 300),
        (3, "other:<n>", "string", 500),
    ]
    .map(|(db, pattern, kind, keys)| ((db, pattern.to_owned(), kind), keys))
    .into();
    for server in servers() {
        fill(&server, data());
        let findings = scanned(&mut TestConnection::new(&server), &options());
        assert_eq!(findings.facts.error, None);
        assert_eq!(keys(&findings), expected);
        let pages = findings.groups.iter().find(|(pattern, ..)| pattern.to_string() == "page:<n>");
        let (_, _, pages) = pages.unwrap();
        assert_eq!((pages.expiring, pages.expired), (3000, 0));
        // 5,000 seconds is between an hour and a day.
        assert_eq!(pages.ttl.keys[2], 3000);
        assert_eq!(pages.idle.total(), 3000);
        // Not all values are read, but at least those of one SCAN step.
        assert!(pages.detailed >= 200 && pages.detailed < 3000, "{}", pages.detailed);
        assert!(findings.facts.used_memory.unwrap() > 0);
    }
}

/// The model's numbers for a live server are those of MEMORY USAGE, as far as both have the same meaning.
#[test]
fn memory_usage_agrees_with_the_model() {
    for (server, is_brisk) in servers().into_iter().zip([false, true]) {
        fill(&server, data());
        let findings = scanned(&mut TestConnection::new(&server), &options());
        for (pattern, key, group) in &findings.groups {
            let total = group.total();
            let model = if is_brisk { total.brisk } else { total.redis } / group.keys as f64;
            let reported = group.reported_bytes as f64 / group.keys as f64;
            // MEMORY USAGE of Redis does not round entries and objects to their size classes, and does not count
            // entries of the table of expiry times. Streams are modeled less accurately. Brisk's MEMORY USAGE counts
            // eight bytes for the table.
            let tolerance = if is_brisk { 24.0 } else { 60.0 };
            let part = match (key.kind.name(), key.encoding.name()) {
                ("stream", _) => 0.3,
                (_, "hashtable") => 0.15,
                _ => 0.1,
            };
            let slack = (reported * part).max(tolerance);
            assert!(
                (model - reported).abs() <= slack,
                "{pattern} {}: {model} {reported}",
                key.kind.name()
            );
        }
    }
}

#[test]
fn the_analysis_writes_nothing_and_leaves_no_trace_if_the_server_supports_it() {
    for server in servers() {
        fill(&server, data());
        let mut conn = server.connect();
        let dirty = conn.info("rdb_changes_since_last_save");
        let mut connection = TestConnection::new(&server);
        scanned(&mut connection, &options());
        assert_eq!(conn.info("rdb_changes_since_last_save"), dirty);
        let mut names: Vec<String> = connection
            .requests
            .iter()
            .map(|request| String::from_utf8_lossy(&request[0]).into_owned())
            .collect();
        names.sort();
        names.dedup();
        let expected = [
            "CLIENT", "CONFIG", "DUMP", "INFO", "MEMORY", "OBJECT", "PTTL", "SCAN", "SELECT",
            "TYPE",
        ];
        assert_eq!(names, expected);
        let no_touch =
            connection.requests.iter().any(|request| request[1..] == words("NO-TOUCH ON"));
        assert!(no_touch);
    }
}

/// A server whose round trips take a known time, measured by a simulated clock.
struct Slow {
    inner: TestConnection,
    waited: Duration,
    longest: usize,
}

impl LiveServer for Slow {
    fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String> {
        let begun = Instant::now();
        let replies = self.inner.request_all(requests);
        self.waited += begun.elapsed();
        self.longest = self.longest.max(requests.len());
        replies
    }

    fn pause(&mut self, time: Duration) {
        self.inner.pause(time);
    }
}

/// Pauses are only counted.
#[test]
fn the_analysis_pauses_as_long_as_the_share_demands() {
    let [server, _] = servers();
    fill(&server, data());
    for share in [0.05, 0.5] {
        let mut slow =
            Slow { inner: TestConnection::new(&server), waited: Duration::ZERO, longest: 0 };
        scanned(&mut slow, &Options { share, ..options() });
        let (waited, paused) = (slow.waited.as_secs_f64(), slow.inner.paused.as_secs_f64());
        assert!(waited / (waited + paused) <= share, "{waited} {paused}");
        // At most five commands for each of 512 keys.
        assert!(slow.longest <= 5 * 512, "{}", slow.longest);
    }
}

#[test]
fn a_limit_ends_the_scan_and_is_reported() {
    let [server, _] = servers();
    fill(&server, data());
    let findings =
        scanned(&mut TestConnection::new(&server), &Options { limit: Some(1000), ..options() });
    assert!((1000..2600).contains(&findings.keys()), "{}", findings.keys());
    let part = findings.facts.scanned_fraction.unwrap();
    assert!((part - findings.keys() as f64 / 8000.0).abs() < 1e-9, "{part}");
}

/// A server whose connection fails after some requests.
struct Failing {
    inner: TestConnection,
    left: usize,
}

impl LiveServer for Failing {
    fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String> {
        self.left = self.left.checked_sub(1).ok_or("the line is cut")?;
        self.inner.request_all(requests)
    }

    fn pause(&mut self, _: Duration) {}
}

#[test]
fn an_interrupted_scan_resumes_where_it_was() {
    for server in servers() {
        fill(&server, data());
        let home = TempDir::new();
        let options = Options { resume: Some(home.path("scan")), ..options() };
        let mut failing = Failing { inner: TestConnection::new(&server), left: 20 };
        let first = scanned(&mut failing, &options);
        assert_eq!(first.facts.error.as_deref(), Some("the line is cut"));
        assert!(first.keys() > 0 && first.keys() < 8000, "{}", first.keys());
        let mut connection = TestConnection::new(&server);
        let whole = scanned(&mut connection, &options);
        assert_eq!(whole.facts.error, None);
        let once = scanned(
            &mut TestConnection::new(&server),
            &Options { resume: None, ..options.clone() },
        );
        assert_eq!(keys(&whole), keys(&once));
        let types =
            connection.requests.iter().filter(|request| request[0] == b"TYPE").count() as u64;
        assert_eq!(types, whole.keys() - first.keys(), "no key was asked for again");
        // A third run finds nothing left to read.
        let mut connection = TestConnection::new(&server);
        assert_eq!(keys(&scanned(&mut connection, &options)), keys(&once));
        assert!(!connection.requests.iter().any(|request| request[0] == b"TYPE"));
    }
}

/// The reported share of the server's time takes every pause into account, and never exceeds the requested share.
#[test]
fn the_reported_share_does_not_exceed_the_requested_one() {
    /// A server for which pauses really wait.
    struct Waiting(TestConnection);
    impl LiveServer for Waiting {
        fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String> {
            self.0.request_all(requests)
        }

        fn pause(&mut self, time: Duration) {
            let until = Instant::now() + time;
            wait_until("the pause is over", || Instant::now() >= until);
        }
    }
    let server = redis();
    fill(&server, data());
    let home = TempDir::new();
    let options = Options { resume: Some(home.path("scan")), share: 0.5, ..options() };
    // In the second run, there is nothing left to do.
    for _ in 0..2 {
        let findings = scanned(&mut Waiting(TestConnection::new(&server)), &options);
        let note = findings.facts.notes.iter().find(|note| note.contains("of its time")).unwrap();
        let percent = note.rsplit("at most ").next().unwrap().split(' ').next().unwrap();
        assert!(percent.parse::<f64>().unwrap() <= 50.0, "{note}");
    }
}

/// A scan reads only some values, but gives the same advice as the RDB file.
#[test]
fn a_scan_gives_the_same_advice_as_a_file() {
    let server = redis();
    fill(&server, data());
    let classes = classes(&server);
    let of_file = Report::new(analyzed(&saved(&server), classes));
    let of_scan = Report::new(scanned(&mut TestConnection::new(&server), &options()));
    assert_close("bytes", of_file.total.redis, of_scan.total.redis, 0.02);
    for expected in &of_file.advice {
        let same = |advice: &&brisk_analyze::advice::Advice| {
            (advice.means, &advice.pattern, advice.group)
                == (expected.means, &expected.pattern, expected.group)
        };
        match of_scan.advice.iter().find(same) {
            Some(found) => {
                let what = format!("{:?} {}", expected.means, expected.pattern);
                assert_close(&what, expected.saved.redis, found.saved.redis, 0.05);
            }
            // Only lists with a single node may be missing, because files and servers show their encoding differently.
            None => panic!("missing in the scan: {expected:?}"),
        }
    }
}

#[test]
fn an_error_of_the_server_is_reported_unchanged() {
    let server = Launch::redis().start();
    assert_eq!(server.connect().cmd("CONFIG SET requirepass secret").to_string(), "OK");
    let mut analysis = Analysis::new(Classes::BUNDLED, Limits::default(), 0);
    let connection = &mut TestConnection::new(&server);
    let error =
        live::read(connection, &options(), &mut analysis, &mut Progress::hidden()).unwrap_err();
    assert_eq!(error.to_string(), "NOAUTH Authentication required.");
}

/// The user has no permission to read sizes. Sizes of 0 bytes would be wrong, and the missing sizes must be reported.
#[test]
fn denied_commands_are_reported_and_their_keys_not_counted() {
    for server in servers() {
        fill(&server, data());
        let user = "ACL SETUSER guest on >x ~* +scan +type +info +select +object +pttl";
        assert_eq!(server.connect().cmd(user).to_string(), "OK");
        let home = TempDir::new();
        let options = Options { resume: Some(home.path("scan")), ..options() };
        let mut guest = TestConnection::new(&server);
        guest.fill([words("AUTH guest x")]);
        let findings = scanned(&mut guest, &options);
        let error = findings.facts.error.clone().unwrap();
        assert!(error.contains("MEMORY USAGE was rejected 8000 times: NOPERM"), "{error}");
        assert_eq!((findings.keys(), findings.facts.skipped_keys), (0, 8000));
        // Denied keys count toward the limit.
        let few = scanned(&mut guest, &Options { limit: Some(500), ..options.clone() });
        assert!(few.facts.skipped_keys < 2000, "{}", few.facts.skipped_keys);
        // Without a limit, the scan stops sending a command that was rejected ten thousand times.
        fill(&server, (0..20_000).map(|n| words(&format!("SET more:{n} v"))));
        let many = scanned(&mut guest, &options);
        assert!((10_000..12_000).contains(&many.facts.skipped_keys), "{}", many.facts.skipped_keys);
        fill(&server, (0..20_000).map(|n| words(&format!("DEL more:{n}"))));
        // Nothing was stored, so a user with the permission starts from the beginning.
        let again = scanned(&mut TestConnection::new(&server), &options);
        assert_eq!((again.facts.error.clone(), again.keys()), (None, 8000));
        // Values are needed only for advice.
        let user = "ACL SETUSER guest +memory|usage";
        assert_eq!(server.connect().cmd(user).to_string(), "OK");
        let findings = scanned(&mut guest, &Options { resume: None, ..options });
        let error = findings.facts.error.clone().unwrap();
        assert!(error.contains("DUMP was rejected"), "{error}");
        assert_eq!((findings.keys(), findings.facts.skipped_keys), (8000, 0));
    }
}

/// A server that replies after a number of rounds as Redis does while a slow script is running.
struct Busy {
    inner: TestConnection,
    left: usize,
}

impl LiveServer for Busy {
    fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return self.inner.request_all(requests);
        }
        let text = b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
        Ok(requests.iter().map(|_| Value::Error(text.to_vec())).collect())
    }

    fn pause(&mut self, _: Duration) {}
}

#[test]
fn a_server_that_stops_replying_ends_the_scan() {
    let server = redis();
    fill(&server, data());
    let home = TempDir::new();
    let options = Options { resume: Some(home.path("scan")), ..options() };
    // The preceding rounds read the server's properties and the database, and then complete steps.
    for left in [6, 7, 8, 9, 10] {
        let findings = scanned(&mut Busy { inner: TestConnection::new(&server), left }, &options);
        let error = findings.facts.error.clone().unwrap();
        assert!(error.starts_with("BUSY"), "{error}");
        assert_eq!(findings.facts.skipped_keys, 0);
    }
    let findings = scanned(&mut TestConnection::new(&server), &options);
    assert_eq!((findings.facts.error.clone(), findings.keys()), (None, 8000));
}
