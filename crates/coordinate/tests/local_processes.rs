//! `local:` with several processes that are killed in the middle of changes. The processes are this
//! test program, started again for one test with an environment variable.

use crate::subject::{cluster, id, open_local};
use brisk_coordinate::Coordinator;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::local::LocalCoordinator;
use brisk_coordinate::values::{
    Campaign, ChangeOutcome, Claim, Incarnation, LeaseTtl, NodeRegistration, Revision,
    TopologyChange, WatchEvent,
};
use brisk_testkit::TempDir;
use brisk_testkit::random::Random;
use brisk_testkit::wait::wait_until;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Directory, digit of the node id, and incarnation of a writer, separated by commas.
const WRITER: &str = "BRISK_COORDINATE_WRITER";
const WRITERS: u8 = 3;
/// Number of processes that are killed.
const KILLS: usize = 40;
/// Maximum number of acknowledged changes of one process before it is killed.
const CHANGES_MAX: usize = 6;

/// A process that changes the document in an endless loop, and writes a line for each acknowledged
/// change.
#[test]
fn writer_process() {
    let Ok(order) = std::env::var(WRITER) else { return };
    let fields: Vec<&str> = order.split(',').collect();
    let coordinator = LocalCoordinator::open(&PathBuf::from(fields[0]), &cluster()).unwrap();
    let registration = NodeRegistration {
        node: id(fields[1].parse().unwrap()),
        incarnation: Incarnation::parse(fields[2]).unwrap(),
        details: b"writer".to_vec(),
    };
    let ttl = LeaseTtl::at_least(Duration::from_secs(5));
    let mut lease = coordinator.register(&registration, ttl, Claim::Start).unwrap();
    let mut out = std::io::stdout();
    // The test runner has already begun a line of output.
    out.write_all(b"\n").unwrap();
    for number in 0_u32.. {
        let topology = coordinator.read().unwrap();
        let stamp = format!("{}-{}-{number}\n", fields[1], fields[2]);
        let mut document = topology.document.unwrap_or_default();
        document.extend_from_slice(stamp.as_bytes());
        let expected = topology.revision;
        let change = TopologyChange { expected, document: &document, controller: None };
        match coordinator.change(&change) {
            ChangeOutcome::Changed(_) => {
                out.write_all(format!("acknowledged {stamp}").as_bytes()).unwrap();
                out.flush().unwrap();
            }
            ChangeOutcome::Conflict => {}
            other => panic!("{other:?}"),
        }
        if let Campaign::Elected(_) = coordinator.campaign(&lease).unwrap() {
            coordinator.resign(&lease).unwrap();
        }
        coordinator.put_status(&lease, stamp.as_bytes()).unwrap();
        if number % 4 == 3 {
            coordinator.end(&lease).unwrap();
            lease = coordinator.register(&registration, ttl, Claim::Resume).unwrap();
        }
    }
}

struct Writer {
    child: Child,
    output: BufReader<ChildStdout>,
    incarnation: String,
}

impl Writer {
    fn start(dir: &TempDir, digit: u8, incarnation: String) -> Writer {
        let order = format!("{},{digit},{incarnation}", dir.path("store").display());
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "local_processes::writer_process", "--nocapture"])
            .env(WRITER, order)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts again");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Writer { child, output, incarnation }
    }

    /// The stamp of the next acknowledged change; `None` if the process has ended.
    fn acknowledged(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).expect("the pipe works") == 0 {
                return None;
            }
            if let Some(stamp) = line.strip_prefix("acknowledged ") {
                // A line that was cut off by the kill acknowledges nothing.
                return stamp.ends_with('\n').then(|| stamp.trim_end().to_owned());
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn killed_processes_lose_no_acknowledged_change_and_tear_no_document() {
    let seed = u64::from(std::process::id());
    let mut random = Random::new(seed);
    let dir = TempDir::new();
    let observer = open_local(&dir);
    let mut acknowledged: Vec<String> = Vec::new();
    let mut writers: Vec<Writer> =
        (1..=WRITERS).map(|digit| Writer::start(&dir, digit, format!("k{digit}"))).collect();
    for kill in 0..KILLS {
        let at = random.below(usize::from(WRITERS));
        let count = 1 + random.below(CHANGES_MAX);
        let writer = &mut writers[at];
        for _ in 0..count {
            acknowledged.push(writer.acknowledged().expect("the writer works"));
        }
        // SIGKILL, while the next change is under way.
        writer.child.kill().unwrap();
        while let Some(stamp) = writer.acknowledged() {
            acknowledged.push(stamp);
        }
        let digit = at as u8 + 1;
        let dead = writer.incarnation.clone();
        writer.child.wait().unwrap();
        wait_until("the killed process to be gone", || {
            let nodes = observer.nodes().unwrap();
            !nodes.iter().any(|node| node.registration.incarnation.as_str() == dead)
        });
        let topology = observer.read().unwrap();
        assert!(topology.document.is_some(), "seed {seed}");
        writers[at] = Writer::start(&dir, digit, format!("k{digit}x{kill}"));
    }
    for writer in &mut writers {
        writer.child.kill().unwrap();
        while let Some(stamp) = writer.acknowledged() {
            acknowledged.push(stamp);
        }
        writer.child.wait().unwrap();
    }
    let document = observer.snapshot().unwrap().topology.document.unwrap();
    let document = String::from_utf8(document).unwrap();
    let stamps: Vec<&str> = document.lines().collect();
    for stamp in &acknowledged {
        let count = stamps.iter().filter(|found| *found == stamp).count();
        assert_eq!(count, 1, "seed {seed}: {stamp} was acknowledged");
    }
    assert!(acknowledged.len() >= KILLS);
    assert_eq!(observer.nodes().unwrap(), []);
    assert_eq!(observer.snapshot().unwrap().controller, None);
}

#[test]
fn a_damaged_topology_is_an_error_and_is_not_overwritten() {
    let dir = TempDir::new();
    let coordinator = open_local(&dir);
    let change = |expected| TopologyChange { expected, document: b"document", controller: None };
    let ChangeOutcome::Changed(revision) = coordinator.change(&change(Default::default())) else {
        panic!("the first change is made")
    };
    let path = dir.path("store/brisk/topology");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = coordinator.read().unwrap_err();
    assert!(matches!(error, CoordinatorError::Damaged { .. }), "{error}");
    let outcome = coordinator.change(&change(revision));
    assert!(
        matches!(outcome, ChangeOutcome::Refused(CoordinatorError::Damaged { .. })),
        "{outcome:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(coordinator.read().unwrap().document.as_deref(), Some(&b"document"[..]));
}

#[test]
fn a_damaged_journal_is_an_error_and_may_be_removed() {
    let dir = TempDir::new();
    let coordinator = open_local(&dir);
    let change = |expected| TopologyChange { expected, document: b"document", controller: None };
    let ChangeOutcome::Changed(first) = coordinator.change(&change(Default::default())) else {
        panic!("the first change is made")
    };
    let path = dir.path("store/brisk/journal");
    std::fs::write(&path, "garbage").unwrap();
    let error = coordinator.snapshot().unwrap_err();
    assert!(error.to_string().contains("journal is damaged"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"garbage");
    std::fs::remove_file(&path).unwrap();
    let ChangeOutcome::Changed(second) = coordinator.change(&change(first)) else {
        panic!("the second change is made")
    };
    assert!(second > first);
}

#[test]
fn a_document_that_a_power_failure_has_taken_from_the_history_compacts_the_watch() {
    let dir = TempDir::new();
    let coordinator = open_local(&dir);
    let mut revision = Default::default();
    for document in [b"1", b"2", b"3"] {
        let change = TopologyChange { expected: revision, document, controller: None };
        let ChangeOutcome::Changed(changed) = coordinator.change(&change) else {
            panic!("the change is made")
        };
        revision = changed;
    }
    std::fs::remove_file(dir.path("store/brisk/history/2")).unwrap();
    let mut watch = coordinator.watch(Revision(1));
    let events = watch.next(Duration::from_secs(5)).unwrap();
    assert!(matches!(events[..], [WatchEvent::Compacted { .. }]), "{events:?}");
}
