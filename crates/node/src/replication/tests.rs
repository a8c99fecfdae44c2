//! Tests of the stream and the replicas together.

use super::backlog::{BLOCK_BYTES_MAX, StreamPiece};
use super::replica::ReplicaProgress;
use super::stream::Kept;
use super::*;
use crate::clients::testing::record;
use crate::core::changes::ChangeDispatcher;
use crate::persistence::aof::state::Aof;
use brisk_engine::keyspace::{KeyHasher, SlotSet, Snapshot, SnapshotOptions};

fn replica(client: u64, worker: usize) -> ReplicaHandle {
    ReplicaHandle::new(record(client, worker), Arc::default(), 0)
}

impl Replication {
    /// Bytes of the stream in memory.
    fn stream_bytes(&self) -> u64 {
        let (kept, beyond) = self.stream.memory();
        kept + beyond
    }
}

struct World {
    replication: Replication,
    changes: ChangeDispatcher,
    aof: Aof,
    keyspace: Keyspace,
    journal: Journal,
}

impl World {
    fn new() -> World {
        let keyspace = Keyspace::new(1, KeyHasher::seeded(1, 2));
        let (replication, aof) = (Replication::new(2, "i".repeat(40)), Aof::new(2));
        replication.stream.set_backlog_bytes(50_000);
        let (changes, journal) = (ChangeDispatcher::default(), Journal::default());
        World { replication, changes, aof, keyspace, journal }
    }

    /// Appends to the journal and dispatches. Returns the workers that are woken.
    fn dispatch(&self, text: &[u8]) -> Vec<usize> {
        let mut woken = Vec::new();
        self.journal.append_request(text);
        let wake = |worker| woken.push(worker);
        self.changes.dispatch(&self.journal, &self.aof, &self.replication, wake);
        woken
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let options =
            SnapshotOptions { compresses: false, queue_bytes_max: u64::MAX, dataset_bytes: 0 };
        self.keyspace.begin_snapshot(SlotSet::all(), options).expect("no other snapshot")
    }

    /// Lets the waiting replicas follow the stream from its current end.
    fn join(&self) -> Arc<SnapshotTransfer> {
        let transfer = Arc::new(SnapshotTransfer::new(self.snapshot(), self.journal.end().0, None));
        self.replication.join((&transfer, None), &self.journal, 1);
        self.keyspace.end_snapshot(transfer.snapshot().unwrap());
        transfer
    }

    fn attach(&self, client: u64, worker: usize) -> Arc<ReplicaProgress> {
        let replica = replica(client, worker);
        let progress = Arc::clone(&replica.progress);
        self.replication.replicas.attach(replica);
        progress
    }

    fn take(&self, progress: &ReplicaProgress, most: usize) -> Option<Vec<u8>> {
        let mut pieces = Vec::new();
        self.replication.stream.take(progress, Ticket(u64::MAX), most, &mut pieces)?;
        Some(pieces.iter().flat_map(StreamPiece::as_slice).copied().collect())
    }
}

#[test]
fn replicas_get_the_stream_from_their_snapshots_on() {
    let world = World::new();
    let replication = &world.replication;
    assert!(world.dispatch(b"nobody follows").is_empty());
    let first = world.attach(1, 1);
    assert!(world.dispatch(b"one waits").is_empty() && replication.replicas.has_waiting());
    assert!(replication.replicas.following() == 0 && !replication.stream.has_backlog());
    assert_eq!(world.take(&first, 100), None);
    let transfer = world.join();
    assert!(
        replication.replicas.following() == 1
            && !replication.replicas.has_waiting()
            && replication.stream.has_backlog()
    );
    assert_eq!((first.handed(), first.sent()), (Some(23), Some(23)));
    world.attach(2, 0);
    assert_eq!(world.dispatch(b"one"), [1]);
    assert!(world.dispatch(b"two").is_empty() && replication.stream.behind(&first) == 6);
    replication.replicas.clear_ready(1);
    assert_eq!(world.take(&first, 100), Some(b"onetwo".to_vec()));
    assert!(
        !replication.stream.has_more(&first) && replication.stream.behind(&first) == 6,
        "nothing was sent"
    );
    assert!(!replication.replicas.is_ready(1) && !replication.replicas.is_ready(0));
    replication.detach(&record(1, 1), 5);
    replication.detach(&record(2, 0), 7);
    assert_eq!(replication.replicas.alone_since_ms(), Some(7));
    // Nothing is written for a replica that has disconnected.
    first.leave();
    assert!(transfer.snapshot().unwrap().is_over());
    // New bytes are kept in case a replica reconnects.
    assert!(world.dispatch(b"three").is_empty());
    assert_eq!(replication.stream.kept(), Some(Kept { first: Ticket(23), bytes: 11 }));
}

#[test]
fn a_replica_resumes_if_the_stream_still_contains_its_position() {
    let world = World::new();
    let replication = &world.replication;
    assert_eq!(replication.resume(replica(1, 0), Ticket(0)), None);
    world.dispatch(b"before");
    replication.begin_backlog(world.journal.end(), 1);
    assert_eq!(replication.resume(replica(1, 0), Ticket(5)), None);
    assert_eq!(replication.resume(replica(1, 0), Ticket(7)), None);
    assert_eq!(replication.resume(replica(1, 0), Ticket(6)), Some(0));
    assert!(replication.replicas.is_ready(0) && replication.replicas.list()[0].is_online());
    world.dispatch(b"behind");
    let second = replica(2, 1);
    let progress = Arc::clone(&second.progress);
    assert_eq!(replication.resume(second, Ticket(8)), Some(4));
    assert_eq!(world.take(&progress, 100), Some(b"hind".to_vec()));
    // With another history, bytes that the replicas had not received are gone.
    let late = Arc::clone(&replication.replicas.list()[0].progress);
    replication.begin_backlog(world.journal.end(), 2);
    assert_eq!(world.take(&late, 100), None);
    assert_eq!(world.take(&progress, 100), Some(vec![]));
    replication.forget_backlog();
    assert!(
        replication.stream.kept().is_none()
            && replication.resume(replica(3, 0), Ticket(12)).is_none()
    );
    assert!(world.dispatch(b"not kept").is_empty() && replication.stream_bytes() == 0);
}

#[test]
fn a_replica_resumes_in_the_file_while_another_needs_it() {
    let world = World::new();
    let replication = &world.replication;
    replication.stream.set_memory_bytes_max(100_000);
    let slow = world.attach(1, 0);
    world.join();
    for n in 0..100u8 {
        world.dispatch(&[n; 10_000]);
    }
    let dir = std::env::temp_dir();
    let name = format!("brisk-stream-{}", std::process::id());
    let file = Arc::new(crate::persistence::disk::nameless(&dir, &name).unwrap());
    while let Some(Some(moved)) = replication.next_move() {
        let mut at = moved.file().map_or(0, |(_, at)| at);
        for bytes in moved.blocks() {
            std::os::unix::fs::FileExt::write_all_at(&*file, bytes, at).unwrap();
            at += bytes.len() as u64;
        }
        replication.end_move(&moved, Arc::clone(&file));
    }
    assert!(replication.stream.spilled_bytes() > 800_000 && replication.stream_bytes() < 200_000);
    assert_eq!(replication.stream.kept(), Some(Kept { first: Ticket(0), bytes: 1_000_000 }));
    let second = replica(2, 1);
    let progress = Arc::clone(&second.progress);
    // The position is within a transaction, as it can be after a lost connection.
    assert_eq!(replication.resume(second, Ticket(123_456)), Some(1_000_000 - 123_456));
    // Bytes in the file do not count toward the replica's limit.
    assert!(replication.stream.counted_behind(&progress) < 200_000);
    let mut at = 123_456;
    while replication.stream.has_more(&progress) {
        for byte in world.take(&progress, 1000).unwrap() {
            assert_eq!(u64::from(byte), at / 10_000);
            at += 1;
        }
    }
    assert_eq!(at, 1_000_000);
    progress.begin_at(at);
    replication.stream.counted_behind(&progress);
    assert!(!progress.catches_up() && slow.catches_up());
    // When no replica needs the file any more, the file is dropped, and no replica can resume in it.
    slow.begin_at(at);
    replication.trim_stream();
    assert_eq!(replication.stream.spilled_bytes(), 0);
    assert_eq!(replication.resume(replica(3, 0), Ticket(123_456)), None);
}

#[test]
fn the_slowest_replica_decides_how_much_is_held() {
    let world = World::new();
    let replication = &world.replication;
    let slow: Vec<_> = (0..10).map(|client| world.attach(client, 0)).collect();
    world.join();
    for _ in 0..100 {
        world.dispatch(&[b'x'; 10_000]);
    }
    assert_eq!((replication.stream_bytes(), replication.buffered()), (1_000_000, 950_000));
    // All replicas but one have received nearly everything.
    for one in &slow[1..] {
        one.begin_at(990_000);
    }
    replication.trim_stream();
    assert_eq!(replication.stream_bytes(), 1_000_000);
    slow[0].begin_at(500_000);
    replication.trim_stream();
    assert_eq!(replication.stream_bytes(), 500_000);
    slow[0].begin_at(990_000);
    replication.trim_stream();
    assert_eq!((replication.stream_bytes(), replication.buffered()), (50_000, 0));
    // A lowered size takes effect when the next part is appended.
    replication.stream.set_backlog_bytes(16_384);
    slow.iter().for_each(|one| one.begin_at(1_000_000));
    world.dispatch(b"x");
    assert_eq!(replication.stream_bytes(), 20_001);
}

#[test]
fn the_backlog_of_a_slow_replica_is_dropped_in_steps_after_it_has_left() {
    let world = World::new();
    let replication = &world.replication;
    world.attach(1, 0);
    world.join();
    for _ in 0..600 {
        world.dispatch(&[b'x'; 20_000]);
    }
    replication.detach(&record(1, 0), 1);
    let left = replication.stream_bytes();
    assert!(left > 50_000, "it takes more than one step");
    assert_eq!(replication.buffered(), left - 50_000 - BLOCK_BYTES_MAX as u64);
    while replication.buffered() > 0 {
        let before = replication.stream_bytes();
        replication.trim_stream();
        assert!(replication.stream_bytes() < before);
    }
}
