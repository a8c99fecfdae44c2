//! A server in the simulation: a real worker with its event loop, on its own thread. The simulation has the other ends
//! of its connections.

use super::environment::{FIRST_PORT, SimulatedEnvironment};
use super::model::{DATABASES, LISTS, keys, strings};
use super::thread_group::{Group, SimulatedThread, Wait, pause};
use crate::boot::{assemble, load};
use crate::commands;
use crate::worker::Worker;
use brisk_config::value::{PrimaryAddress, Text};
use brisk_config::{Config, Store};
use brisk_engine::keyspace::{KeyHasher, SnapshotWalker};
use brisk_engine::random::Random as Own;
use brisk_engine::table::CommandTable;
use brisk_engine::{DbIndex, ReplyBuffer};
use brisk_node::core::Core;
use brisk_node::core::call::ServerHandler;
use brisk_node::core::mailbox::Message;
use brisk_node::core::session::Session;
use brisk_node::core::shared::Shared;
use brisk_node::persistence::loading::steps::{self, WorkerLoading};
use brisk_node::replication::failover::FailoverPhase;
use brisk_node::replication::history::{self, ReplicationIds};
use brisk_node::replication::replica::ReplicaStage;
use brisk_node::replication::replicas::ReplicaHandle;
use brisk_node::run::batch::{Batch, KeyLookup};
use brisk_node::run::dispatch;
use brisk_node::run::trusted_session;
use brisk_observe::log::{Level, Log};
use brisk_reactor::{Accept, BackendChoice, Handler, PeerAddr, Reactor, ReactorConfig};
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::reclaim::Participant;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// If there are more turns than this without a pause, there is a bug.
const TURNS_MAX: usize = 10_000;

pub(super) fn port(node: usize) -> u16 {
    FIRST_PORT + node as u16
}

/// The parameters with which a server starts.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) seed: u64,
    pub(super) primary: Option<usize>,
    pub(super) backlog_bytes: u64,
    pub(super) backlog_ttl_s: i64,
    pub(super) timeout_s: i64,
    pub(super) prints: bool,
}

type Job = Box<dyn FnOnce(&mut Machine) + Send>;

/// The simulation's handle to a server.
pub(super) struct Node {
    pub(super) group: Arc<Group>,
    host: Arc<SimulatedThread>,
    job: Arc<Mutex<Option<Job>>>,
}

/// The state of a server on its own thread.
pub(super) struct Machine {
    worker: Worker,
    reactor: Reactor,
    shared: &'static Shared,
    /// Emits snapshot entries, in addition to the worker.
    walker: SnapshotWalker,
    reader: Session,
    batch: Batch,
    /// The server's history and offset when its dataset was last read.
    read_at: Option<(String, u64)>,
}

/// The observable state of a server.
#[derive(Debug, Clone)]
pub(super) struct NodeView {
    pub(super) ids: ReplicationIds,
    pub(super) offset: u64,
    /// The offset of the first byte of the backlog, and its end.
    pub(super) kept: Option<(u64, u64)>,
    pub(super) is_replica: bool,
    pub(super) is_up: bool,
    pub(super) is_loading: bool,
    /// True while the server hands over to a replica, or waits for one that can take over.
    pub(super) fails_over: bool,
    /// The ports of its replicas, and the offsets that they have acknowledged.
    pub(super) acked: Vec<(u16, u64)>,
    /// Replies that show the dataset, if it may have changed.
    pub(super) shown: Option<Vec<String>>,
    /// Replies that show the expiry times of the server's keys, if its history has a new id or everything is read
    /// again.
    pub(super) deadlines: Option<Vec<String>>,
}

impl Node {
    pub(super) fn start(index: usize, nodes: usize, dir: PathBuf, start: Start) -> Node {
        let group = Group::new(nodes);
        let job: Arc<Mutex<Option<Job>>> = Arc::default();
        let (inbox, own) = (Arc::clone(&job), Arc::clone(&group));
        let host = group.spawn(move || {
            let mut machine = Machine::new(index, &dir, &start, &own);
            loop {
                pause(Wait { until_ms: None, signal: Some(Arc::default()) });
                let job = inbox.lock().even_poisoned().take();
                if let Some(job) = job {
                    machine.worker.resumed();
                    job(&mut machine);
                    machine.worker.waiting();
                }
            }
        });
        host.resume();
        Node { group, host, job }
    }

    /// Runs `work` on the server's thread.
    pub(super) fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Machine) -> T + Send + 'static,
    ) -> T {
        let done: Arc<Mutex<Option<T>>> = Arc::default();
        let into = Arc::clone(&done);
        let job: Job = Box::new(move |machine| {
            let made = work(machine);
            *into.lock().even_poisoned() = Some(made);
        });
        *self.job.lock().even_poisoned() = Some(job);
        self.host.resume();
        done.lock().even_poisoned().take().expect("it was done")
    }

    /// Runs all threads of the server except the worker, for example the upstream thread. Returns true if any had
    /// something to do.
    pub(super) fn run_threads(&self, now_ms: u64) -> bool {
        self.group.run_threads(&self.host, now_ms)
    }
}

fn table() -> (&'static CommandTable, &'static [ServerHandler]) {
    static TABLE: OnceLock<(&'static CommandTable, &'static [ServerHandler])> = OnceLock::new();
    *TABLE.get_or_init(|| {
        let (table, handlers) = commands::table(&[]).expect("a table without renamed commands");
        (&*Box::leak(Box::new(table)), &*handlers.leak())
    })
}

fn configure(index: usize, dir: &Path, start: &Start) -> Config {
    let mut config = Config::default();
    config.process.dir = Text::from(dir.to_str().expect("a name"));
    config.process.databases = i64::from(DATABASES);
    config.network.port = i64::from(port(index));
    config.persistence.save = Vec::new();
    let replication = &mut config.replication;
    replication.repl_backlog_size = start.backlog_bytes;
    replication.repl_backlog_ttl_s = start.backlog_ttl_s;
    replication.repl_timeout_s = start.timeout_s;
    replication.repl_diskless_sync = false;
    replication.replica_announce_ip = Text::from("127.0.0.1");
    replication.replicaof = start
        .primary
        .map(|primary| PrimaryAddress { host: Text::from("127.0.0.1"), port: port(primary) });
    config
}

impl Machine {
    fn new(index: usize, dir: &Path, start: &Start, group: &Arc<Group>) -> Machine {
        let level = if start.prints { Level::Notice } else { Level::Warning };
        let log = Arc::new(Log::to_file(level, &dir.join("log")).expect("a log"));
        let mut random = Own::seeded(start.seed);
        let hasher = KeyHasher::seeded(random.below(1 << 32), random.below(1 << 32));
        let ids = (history::new_id(&mut random), history::new_id(&mut random));
        let store = Store::new(configure(index, dir, start), None);
        let shared = assemble(&log, store, 1, false, table(), (hasher, ids));
        let environment = SimulatedEnvironment(Arc::clone(group));
        shared.replication.set_environment(Box::new(environment));
        // The same on every machine, whether it permits io_uring or not.
        let backend = BackendChoice::Epoll;
        let reactor = Reactor::new(&ReactorConfig { backend }).expect("an event loop");
        let participant = Participant::register().expect("a free participant");
        let core = Core::new(shared, 0, random.below(1 << 32));
        brisk_engine::keyspace::on_slot_wait(move || shared.quiesce.checkpoint(0));
        let reader = trusted_session::new(&core, PeerAddr::Unix);
        let mut worker = Worker::new(core, participant, Vec::new());
        let (steps, inbox) = steps::pair(shared);
        worker.begin_loading(WorkerLoading::new(inbox));
        worker.resumed();
        worker.waiting();
        group.spawn(move || load::load(shared, &steps).expect("a valid snapshot"));
        let (walker, batch) = (SnapshotWalker::default(), Batch::default());
        Machine { worker, reactor, shared, walker, reader, batch, read_at: None }
    }

    /// Accepts a connection.
    pub(super) fn accept(&mut self, socket: UnixStream) {
        let token = self.reactor.io().adopt(socket).expect("a free slot");
        let accepted = self.worker.accepted(self.reactor.io(), token, 0);
        assert!(matches!(accepted, Accept::Keep));
        self.serve();
    }

    /// Executes received input. Does nothing else, unless a snapshot was begun.
    pub(super) fn serve(&mut self) {
        self.poll();
        if self.is_writing() || self.has_written() {
            self.turn();
        }
    }

    fn poll(&mut self) {
        self.reactor.poll(&mut self.worker, Some(Duration::ZERO)).expect("the loop works");
    }

    /// Runs turns of the event loop until nothing is due.
    pub(super) fn turn(&mut self) {
        let mailbox = &self.shared.mailboxes.of(0);
        let (mut turns, mut was_writing) = (0, self.has_written());
        loop {
            let wait = self.worker.between_rounds(self.reactor.io());
            if mailbox.has_messages() {
                self.worker.woken(self.reactor.io());
            }
            self.poll();
            // A real thread writes the snapshot. Neither its speed nor the time that the worker usually leaves between
            // two pieces may make a difference.
            if self.is_writing() {
                was_writing = true;
                self.walker.walk(&self.shared.keyspace, &self.worker.core.env, || true);
                std::thread::yield_now();
                continue;
            }
            if std::mem::take(&mut was_writing) {
                mailbox.send(Message::ContinueFullSyncs);
            } else if !wait.is_zero() && !mailbox.has_messages() {
                return;
            }
            turns += 1;
            assert!(turns < TURNS_MAX, "the loop is busy without end");
        }
    }

    /// True if there is a snapshot of which its replicas have not been notified.
    fn has_written(&self) -> bool {
        let waits = |replica: &ReplicaHandle| {
            let progress = &replica.progress;
            progress.stage() == ReplicaStage::Waits && progress.transfer().is_some()
        };
        self.shared.replication.replicas.count(waits) > 0
    }

    fn is_writing(&self) -> bool {
        let replication = &self.shared.replication;
        let is_writing_dataset = |replica: &ReplicaHandle| {
            let transfer = replica.progress.transfer();
            transfer.is_some_and(|transfer| transfer.outcome().is_none())
        };
        replication.snapshots.is_writing() || replication.replicas.count(is_writing_dataset) > 0
    }

    pub(super) fn look(&mut self, rereads: bool) -> NodeView {
        let (shared, replication) = (self.shared, &self.shared.replication);
        let (id, offset) = replication.position(&shared.keyspace);
        let kept = replication.stream.kept().map(|kept| {
            let first = replication.history.offset(kept.first);
            (first, first.wrapping_add(kept.bytes))
        });
        let is_loading = shared.conditions.is_loading();
        let at = Some((id, offset));
        let is_read = !is_loading && (rereads || self.read_at != at);
        let shown = is_read.then(|| self.read());
        let is_named = self.read_at.as_ref().map(|(id, _)| id) != at.as_ref().map(|(id, _)| id);
        let reads_deadlines = is_read && (rereads || is_named);
        let deadlines = reads_deadlines.then(|| self.read_deadlines());
        if is_read {
            self.read_at = at;
        }
        let replicas = replication.replicas.list();
        NodeView {
            ids: replication.history.ids(),
            offset,
            kept,
            is_replica: shared.conditions.is_replica(),
            is_up: replication.upstream.is_up(),
            is_loading,
            fails_over: replication.failover.phase() != FailoverPhase::None,
            acked: replicas.iter().map(|replica| (replica.port, replica.acked)).collect(),
            shown,
            deadlines,
        }
    }

    /// Returns the replies that show the dataset.
    fn read(&mut self) -> Vec<String> {
        self.worker.core.refresh_config();
        self.worker.core.read_clocks();
        let mut shown = Vec::new();
        for db in 0..DATABASES {
            self.reader.select(database(db));
            let mget: Vec<String> = ["MGET".to_owned()].into_iter().chain(strings(db)).collect();
            shown.push(self.request(&mget));
            for n in 0..LISTS {
                let list = ["LRANGE", &format!("l{n}"), "0", "-1"].map(str::to_owned);
                shown.push(self.request(&list));
            }
        }
        self.worker.core.free_garbage();
        shown
    }

    fn read_deadlines(&mut self) -> Vec<String> {
        let all = keys().map(|(db, key)| {
            self.reader.select(database(db));
            self.request(&["PEXPIRETIME".to_owned(), key])
        });
        all.collect()
    }

    fn request(&mut self, words: &[String]) -> String {
        let (shared, core) = (self.shared, &mut self.worker.core);
        let mut data = Vec::new();
        brisk_resp::request::encode(&mut data, words);
        let prefetch = KeyLookup {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(self.reader.db()),
            participant: None,
        };
        let limits = core.limits.requests(true);
        self.batch.fill(&data, 1, self.reader.connection.decoder_mut(), &limits, &prefetch);
        let request = *self.batch.request(0);
        let mut replies = ReplyBuffer::new();
        let (reader, batch) = (&mut self.reader, &self.batch);
        dispatch::dispatch(core, reader, batch, &request, &data, &mut replies);
        String::from_utf8_lossy(replies.bytes_mut()).into_owned()
    }
}

fn database(number: u32) -> DbIndex {
    DbIndex::checked(number, DATABASES).expect("a database that the servers have")
}
