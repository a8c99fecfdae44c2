//! Tests of what a replica's clients and its primary may do. The error texts are those of Redis 7.0.15.

use super::table;
use brisk_config::value::{PrimaryAddress, Text};
use brisk_config::{Config, Store};
use brisk_engine::keyspace::KeyHasher;
use brisk_engine::{Keyspace, ReplyBuffer, UnixMs};
use brisk_node::clients::address::Address;
use brisk_node::clients::{ClientRecord, flag};
use brisk_node::core::Core;
use brisk_node::core::conditions::Condition;
use brisk_node::core::process::Process;
use brisk_node::core::session::Session;
use brisk_node::core::settings::Settings;
use brisk_node::core::shared::Shared;
use brisk_node::replication::upstream::state::UpstreamPhase;
use brisk_node::run::batch::{Batch, KeyLookup};
use brisk_node::run::dispatch::{self, Flow};
use brisk_node::run::gate;
use brisk_observe::log::{Level, Log};
use brisk_reactor::{PeerAddr, Token, unix_ms};
use brisk_testkit::TempDir;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const READONLY: &str = "-READONLY You can't write against a read only replica.\r\n";
const MASTERDOWN: &str =
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n";

/// A server without connections, whose only worker executes commands from the test.
struct Node {
    core: Core,
    batch: Batch,
    dir: TempDir,
}

impl Node {
    fn new(change: impl FnOnce(&mut Config)) -> Node {
        let dir = TempDir::new();
        let log = Arc::new(Log::to_file(Level::Notice, &dir.path("log")).unwrap());
        let (table, handlers) = table(&[]).unwrap();
        let (table, handlers) = (&*Box::leak(Box::new(table)), &*handlers.leak());
        let config = Config::default();
        let settings = Settings::new(config.clone(), Store::new(config.clone(), None));
        let process = Process::new("r".repeat(40), unix_ms(), false, false);
        let keyspace = Keyspace::new(16, KeyHasher::seeded(1, 2));
        let shared =
            Shared::new(log, settings, (table, handlers), keyspace, 1, process, "i".repeat(40));
        let core = Core::new(Box::leak(Box::new(shared)), 0, 1);
        let mut node = Node { core, batch: Batch::default(), dir };
        node.configure(change);
        node
    }

    /// A replica that receives its stream.
    fn replica(change: impl FnOnce(&mut Config)) -> Node {
        let node = Node::new(|config| {
            let host = Text::from("primary");
            config.replication.replicaof = Some(PrimaryAddress { host, port: 6379 });
            change(config);
        });
        node.enter(UpstreamPhase::Connected);
        node
    }

    fn enter(&self, phase: UpstreamPhase) {
        let shared = self.core.shared;
        let upstream = &shared.replication.upstream;
        assert!(shared.enter_phase(upstream, upstream.generation(), phase, unix_ms()));
    }

    /// Changes settings as CONFIG SET would.
    fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = (*self.core.shared.config()).clone();
        change(&mut config);
        self.core.shared.publish_config(config);
        self.core.refresh_config();
        self.core.pause_in_force();
    }

    fn session(&self) -> Session {
        let (shared, nowhere) = (self.core.shared, || Address::Socket(PeerAddr::Unix));
        let (id, token) = (shared.clients.next_id(), Token::from_u64(u64::MAX));
        let addresses = (nowhere(), nowhere());
        let record = ClientRecord::new(id, 0, token, -1, true, true, addresses, unix_ms());
        let mut session = Session::new(Arc::new(record), shared.accounts.default_account());
        session.trust();
        session
    }

    fn primary(&self) -> Session {
        let mut session = self.session();
        session.source.follow_primary();
        session.record.set(flag::PRIMARY, true);
        session
    }

    /// Returns the reply to one request. `None` if the request has to be run later.
    fn request(&mut self, session: &mut Session, words: &[&str]) -> Option<String> {
        let shared = self.core.shared;
        let mut data = Vec::new();
        brisk_resp::request::encode(&mut data, words);
        let look = KeyLookup {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db()),
            participant: None,
        };
        let limits = self.core.limits.requests(true);
        self.batch.fill(&data, 1, session.connection.decoder_mut(), &limits, &look);
        let request = *self.batch.request(0);
        let mut replies = ReplyBuffer::new();
        let (core, batch) = (&mut self.core, &self.batch);
        match dispatch::dispatch(core, session, batch, &request, &data, &mut replies) {
            Flow::Later(_) => None,
            _ => Some(String::from_utf8_lossy(replies.bytes_mut()).into_owned()),
        }
    }

    /// Runs a client's commands, whose arguments are split at blanks, and checks their replies.
    fn check(&mut self, session: &mut Session, lines: &[(&str, &str)]) {
        for (line, want) in lines {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(self.request(session, &words).as_deref(), Some(*want), "{line}");
        }
    }

    fn eval(&mut self, session: &mut Session, source: &str) -> String {
        self.request(session, &["EVAL", source, "0"]).unwrap()
    }

    fn unexpected_errors(&self) -> u64 {
        self.core.shared.observe.metrics.unexpected_errors.load(Ordering::Relaxed)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path("log")).unwrap()
    }
}

#[test]
fn clients_of_a_replica_read_and_do_not_write() {
    let mut node = Node::replica(|_| {});
    let (mut client, mut primary) = (node.session(), node.primary());
    node.check(&mut primary, &[("SET k 1", "+OK\r\n")]);
    node.check(
        &mut client,
        &[
            ("GET k", "$1\r\n1\r\n"),
            ("SET k 2", READONLY),
            ("FLUSHALL", READONLY),
            ("SWAPDB 0 1", READONLY),
            ("FUNCTION LOAD x", READONLY),
            ("SORT k", READONLY),
            ("PUBLISH a b", ":0\r\n"),
            ("PFCOUNT x", ":0\r\n"),
            ("MULTI", "+OK\r\n"),
            ("GET k", "+QUEUED\r\n"),
            ("SET k 2", READONLY),
            ("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
        ],
    );
    let waits = node.request(&mut client, &["WAIT", "x", "0"]).unwrap();
    assert!(waits.starts_with("-ERR WAIT cannot be used with replica instances. "), "{waits}");
    let waits = node.request(&mut client, &["WAITAOF", "1", "0", "0"]).unwrap();
    assert!(waits.starts_with("-ERR WAITAOF cannot be used with replica instances. "), "{waits}");
    node.configure(|config| config.replication.replica_read_only = false);
    node.check(&mut client, &[("SET k 2", "+OK\r\n")]);
    node.configure(|config| config.replication.replica_read_only = true);
    // The command is queued while the server is a primary.
    node.configure(|config| config.replication.replicaof = None);
    node.check(&mut client, &[("MULTI", "+OK\r\n"), ("SET k 3", "+QUEUED\r\n")]);
    let host = Text::from("primary");
    let primary_at = Some(PrimaryAddress { host, port: 6379 });
    node.configure(|config| config.replication.replicaof = primary_at);
    let refused = READONLY.replacen('-', "-EXECABORT Transaction discarded because of: ", 1);
    node.check(&mut client, &[("EXEC", &refused), ("GET k", "$1\r\n2\r\n")]);
}

#[test]
fn scripts_on_a_replica_write_no_more_than_clients_do() {
    let mut node = Node::replica(|_| {});
    let mut client = node.session();
    let begins = |reply: String, want: &str| assert!(reply.starts_with(want), "{reply}");
    begins(node.eval(&mut client, "return 1"), ":1\r\n");
    begins(node.eval(&mut client, "return redis.call('get', 'k')"), "$-1\r\n");
    let wrote = node.eval(&mut client, "return redis.call('set', 'k', 1)");
    begins(wrote, "-READONLY You can't write against a read only replica. script: ");
    assert_eq!(node.eval(&mut client, "return redis.pcall('set', 'k', 1).err"), {
        let text = READONLY.trim_start_matches('-').trim_end();
        format!("${}\r\n{text}\r\n", text.len())
    });
    assert_eq!(node.eval(&mut client, "#!lua\nreturn 1"), READONLY);
    begins(node.eval(&mut client, "#!lua flags=no-writes\nreturn 1"), ":1\r\n");
}

#[test]
fn a_replica_without_its_primary_may_serve_no_data() {
    let mut node = Node::replica(|config| config.replication.replica_serve_stale_data = false);
    let mut client = node.session();
    node.check(&mut client, &[("GET k", "$-1\r\n"), ("PING", "+PONG\r\n")]);
    node.check(&mut client, &[("MULTI", "+OK\r\n"), ("GET k", "+QUEUED\r\n")]);
    node.enter(UpstreamPhase::Connect);
    let refused = MASTERDOWN.replacen('-', "-EXECABORT Transaction discarded because of: ", 1);
    node.check(
        &mut client,
        &[
            ("EXEC", &refused),
            ("GET k", MASTERDOWN),
            ("SET k 1", READONLY),
            ("PING", MASTERDOWN),
            ("WAIT 0 0", MASTERDOWN),
            ("FUNCTION LIST", MASTERDOWN),
            ("SELECT 1", "+OK\r\n"),
            ("ECHO a", "$1\r\na\r\n"),
            ("PUBLISH a b", ":0\r\n"),
            ("MULTI", "+OK\r\n"),
            ("ECHO a", "+QUEUED\r\n"),
            ("EXEC", "*1\r\n$1\r\na\r\n"),
        ],
    );
    assert_eq!(node.eval(&mut client, "return 1"), MASTERDOWN);
    assert_eq!(node.eval(&mut client, "#!lua flags=no-writes\nreturn 1"), MASTERDOWN);
    assert_eq!(node.eval(&mut client, "#!lua flags=allow-stale\nreturn 1"), READONLY);
    let head = "#!lua flags=allow-stale,no-writes\nreturn redis.call";
    assert_eq!(node.eval(&mut client, &format!("{head}('echo', 'a')")), "$1\r\na\r\n");
    let refused = node.eval(&mut client, &format!("{head}('get', 'a')"));
    let want = "-ERR Can not execute the command on a stale replica script: ";
    assert!(refused.starts_with(want), "{refused}");
    node.configure(|config| config.replication.replica_serve_stale_data = true);
    node.check(&mut client, &[("GET k", "$-1\r\n")]);
    node.configure(|config| config.replication.replica_serve_stale_data = false);
    node.enter(UpstreamPhase::Connected);
    node.check(&mut client, &[("GET k", "$-1\r\n")]);
}

#[test]
fn reads_on_a_replica_skip_the_command_gate() {
    let node = Node::replica(|_| {});
    let (session, table) = (node.session(), node.core.shared.table);
    let replies_to = |name: &str| {
        let conditions = node.core.shared.conditions.now();
        gate::is_armed(conditions, &session, table.find(name.as_bytes()).unwrap())
    };
    assert!(!replies_to("get") && !replies_to("ping") && !replies_to("zrange"));
    assert!(replies_to("set") && replies_to("eval") && replies_to("fcall"));
}

#[test]
fn without_enough_replicas_clients_of_a_primary_do_not_write() {
    const NOREPLICAS: &str = "-NOREPLICAS Not enough good replicas to write.\r\n";
    let mut node = Node::new(|_| {});
    let mut client = node.session();
    node.core.shared.conditions.set(Condition::FewReplicas, true);
    node.check(&mut client, &[("SET k 1", NOREPLICAS), ("GET k", "$-1\r\n")]);
    let refused = node.eval(&mut client, "return redis.call('set', 'k', 1)");
    assert!(refused.starts_with("-NOREPLICAS Not enough good replicas to write. script: "));
    assert_eq!(node.eval(&mut client, "#!lua\nreturn 1"), NOREPLICAS);
    let mut node = Node::replica(|config| config.replication.replica_read_only = false);
    node.core.shared.conditions.set(Condition::FewReplicas, true);
    node.check(&mut client, &[("SET k 1", "+OK\r\n")]);
}

#[test]
fn commands_of_the_primary_are_never_rejected_and_wait_for_a_slow_script() {
    let mut node = Node::replica(|config| {
        config.memory.maxmemory = 1;
        config.replication.replica_ignore_maxmemory = false;
        config.replication.replica_serve_stale_data = false;
    });
    let mut primary = node.primary();
    node.core.shared.conditions.set(Condition::FewReplicas, true);
    node.enter(UpstreamPhase::Sync);
    node.check(&mut primary, &[("SET k 1", "+OK\r\n"), ("BLPOP l 0", "*-1\r\n")]);
    node.core.shared.conditions.set(Condition::Busy, true);
    assert_eq!(node.request(&mut primary, &["PING"]), None);
    node.core.shared.conditions.set(Condition::Busy, false);
    node.core.shared.conditions.begin_pause(
        brisk_node::core::pause::Paused::Writes,
        u64::MAX,
        unix_ms(),
    );
    assert_eq!(node.request(&mut primary, &["SET", "k", "1"]), None);
    node.check(&mut primary, &[("GET k", "$1\r\n1\r\n")]);
}

#[test]
fn a_replica_ignores_maxmemory_unless_configured_otherwise() {
    let mut node = Node::replica(|config| config.memory.maxmemory = 1000);
    let limit = |node: &Node| {
        let is_limited = node.core.shared.conditions.has(Condition::MemoryLimit);
        (brisk_node::core::memory_limit::in_force(&node.core), is_limited)
    };
    assert_eq!(limit(&node), (0, false));
    node.configure(|config| config.replication.replica_ignore_maxmemory = false);
    assert_eq!(limit(&node), (1000, true));
    node.configure(|config| {
        config.replication.replica_ignore_maxmemory = true;
        config.replication.replicaof = None;
    });
    assert_eq!(limit(&node), (1000, true));
}

#[test]
fn an_error_that_the_primary_did_not_have_is_logged_and_counted() {
    let mut node = Node::replica(|_| {});
    let (mut client, mut primary) = (node.session(), node.primary());
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    node.check(&mut primary, &[("SET k 1", "+OK\r\n"), ("LPUSH k 1", wrong)]);
    let line = "== CRITICAL == This replica is sending an error to its master: '-WRONGTYPE Operation \
                against a key holding the wrong kind of value' after processing the command 'lpush'";
    assert!(node.log().contains(line), "{}", node.log());
    assert_eq!(node.unexpected_errors(), 1);
    node.check(&mut client, &[("LPUSH k 1", READONLY), ("LLEN k", wrong)]);
    assert_eq!(node.unexpected_errors(), 1);
    node.request(&mut primary, &["CONFIG", "NOSUCH"]);
    node.request(&mut primary, &["NOSUCH"]);
    assert!(node.log().contains("after processing the command '<unknown>'"), "{}", node.log());
    let queue = [("MULTI", "+OK\r\n"), ("LPUSH k 1", "+QUEUED\r\n")];
    node.check(&mut primary, &queue);
    node.request(&mut primary, &["EXEC"]);
    assert_eq!(node.unexpected_errors(), 4);
}

#[test]
fn clients_see_no_expired_key_of_a_replica_and_its_primary_sees_all() {
    let mut node = Node::replica(|_| {});
    let (mut client, mut primary) = (node.session(), node.primary());
    node.core.begin_applying();
    let set = [("SET due 1 PXAT 1000", "+OK\r\n"), ("SET k 1 PX 1000000", "+OK\r\n")];
    node.check(&mut primary, &set);
    node.core.end_applying();
    node.check(
        &mut client,
        &[
            ("GET due", "$-1\r\n"),
            ("EXISTS due k", ":1\r\n"),
            ("TTL due", ":-2\r\n"),
            ("KEYS *", "*1\r\n$1\r\nk\r\n"),
            ("DBSIZE", ":2\r\n"),
        ],
    );
    node.core.begin_applying();
    node.check(&mut primary, &[("GET due", "$1\r\n1\r\n"), ("APPEND due 2", ":2\r\n")]);
    // A slow command only advances the clock.
    node.core.env.advance(UnixMs(unix_ms()));
    node.check(&mut primary, &[("GET due", "$2\r\n12\r\n")]);
    node.core.end_applying();
    node.check(&mut client, &[("GET due", "$-1\r\n"), ("DBSIZE", ":2\r\n")]);
    assert_eq!(node.core.shared.keyspace.totals().expired, 0);
}

#[test]
fn a_replica_reports_its_primary_and_its_offset() {
    let mut node = Node::replica(|_| {});
    let mut client = node.session();
    let role = |phase: &str, offset: &str| {
        let len = phase.len();
        format!("*5\r\n$5\r\nslave\r\n$7\r\nprimary\r\n:6379\r\n${len}\r\n{phase}\r\n:{offset}\r\n")
    };
    node.check(&mut client, &[("ROLE", &role("connected", "0"))]);
    node.enter(UpstreamPhase::Connecting);
    node.check(&mut client, &[("ROLE", &role("connecting", "-1"))]);
    assert!(node.log().is_empty());
    node.core.shared.log.notice(format_args!("a line"));
    assert!(node.log().starts_with(&format!("{}:S ", std::process::id())), "{}", node.log());
}

#[test]
fn a_connection_to_a_former_primary_changes_nothing() {
    let node = Node::replica(|_| ());
    let shared = node.core.shared;
    let primary = &shared.replication.upstream;
    let former = primary.generation();
    primary.leave();
    for phase in [UpstreamPhase::Handshake, UpstreamPhase::Sync, UpstreamPhase::Connected] {
        assert!(!shared.enter_phase(primary, former, phase, unix_ms()));
        assert_eq!(primary.phase(), UpstreamPhase::Connect);
    }
    node.enter(UpstreamPhase::Connected);
    assert!(primary.is_up());
}
