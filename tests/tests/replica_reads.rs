//! The behavior of a replica toward clients: reads, rejected writes, expired keys, and its status.
//!
//! Each test runs with a replica of a real Redis. The replica is first another real Redis, which determines the
//! expected behavior, and then Brisk.

use brisk_testkit::reply::Reply;
use brisk_testkit::server::Program;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};

/// True if our server can be a replica.
const OURS_FOLLOWS: bool = true;

const READONLY: &str = "(error) READONLY You can't write against a read only replica.";
const MASTERDOWN: &str =
    "(error) MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

/// A primary, a replica of it, and a client of each.
struct Pair {
    primary: Server,
    replica: Server,
    at_primary: Conn,
    at_replica: Conn,
}

impl Pair {
    fn start(replica: Launch) -> Pair {
        // Expired keys stay on the primary until a client accesses them there.
        let primary = Launch::redis().set("repl-diskless-sync-delay", "0").start();
        let mut at_primary = primary.connect();
        assert_reply!(at_primary, "DEBUG SET-ACTIVE-EXPIRE 0", "OK");
        let address = format!("127.0.0.1 {}", primary.port());
        let replica = replica.set("replicaof", &address).start();
        let mut at_replica = replica.connect();
        wait_for_link(&mut at_replica, "up");
        Pair { primary, replica, at_primary, at_replica }
    }

    /// Writes to the primary, and waits until the replica has the write.
    fn write(&mut self, line: &str) {
        let reply = self.at_primary.cmd(line).to_string();
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
        wait_until("the replica has it", || {
            let place = self.at_primary.info("master_repl_offset");
            self.at_replica.info("slave_repl_offset") == place
        });
    }

    fn check(&mut self, lines: &[(&str, &str)]) {
        for (line, want) in lines {
            assert_eq!(self.at_replica.cmd(line).to_string(), *want, "{line}");
        }
    }
}

fn wait_for_link(conn: &mut Conn, status: &str) {
    wait_until("the link is as expected", || conn.info("master_link_status") == status);
}

fn each_replica(test: impl Fn(Pair)) {
    test(Pair::start(Launch::redis()));
    if OURS_FOLLOWS {
        test(Pair::start(Launch::new(Program::Brisk)));
    }
}

/// The names of the fields of INFO replication, in order.
fn fields(conn: &mut Conn) -> Vec<String> {
    let text = conn.cmd("INFO replication").text();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn expired_keys_of_a_replica_are_hidden_and_stay_until_its_primary_removes_them() {
    each_replica(|mut pair| {
        pair.write("MSET stays 1 due 1");
        pair.write("HSET hash f v");
        // The TTLs are not shorter, because Redis immediately deletes a key whose expiry time has already passed.
        pair.write("PEXPIRE hash 100");
        pair.write("PEXPIRE due 100");
        wait_until("both have expired", || {
            assert_reply!(pair.at_replica, "DBSIZE", "(integer) 3");
            pair.at_replica.cmd("EXISTS due hash").to_string() == "(integer) 0"
        });
        pair.check(&[
            ("GET due", "(nil)"),
            ("STRLEN due", "(integer) 0"),
            ("EXISTS due stays due", "(integer) 1"),
            ("TTL due", "(integer) -2"),
            ("PTTL due", "(integer) -2"),
            ("PEXPIRETIME due", "(integer) -2"),
            ("TYPE due", "none"),
            ("OBJECT ENCODING due", "(nil)"),
            ("DUMP due", "(nil)"),
            ("TOUCH due", "(integer) 0"),
            ("MGET due stays", "1) (nil)\n2) \"1\""),
            ("HGET hash f", "(nil)"),
            ("HLEN hash", "(integer) 0"),
            ("SCAN 0 COUNT 1000", "1) \"0\"\n2) 1) \"stays\""),
            ("KEYS *", "1) \"stays\""),
            ("RANDOMKEY", "\"stays\""),
            ("EVAL \"return redis.call('EXISTS', 'due', 'stays')\" 0", "(integer) 1"),
            ("DBSIZE", "(integer) 3"),
        ]);
        assert_eq!(pair.at_replica.info("expired_keys"), "0");
        // Accessing the keys on the primary removes them there, and its DEL removes them on the replica.
        pair.write("EXISTS due hash");
        pair.check(&[("DBSIZE", "(integer) 1")]);
        assert_eq!(pair.at_replica.info("expired_keys"), "0");
    });
}

/// For commands from the primary, these keys still exist, as they do on the primary.
#[test]
fn to_its_primary_a_replica_has_keys_that_have_expired() {
    each_replica(|mut pair| {
        pair.write("SET due 1 PXAT 1");
        pair.check(&[("EXISTS due", "(integer) 0"), ("DBSIZE", "(integer) 1")]);
        // The key is set again on the primary without a TTL, so it has no TTL on the replica either.
        pair.write("SET due 2");
        pair.check(&[("GET due", "\"2\""), ("TTL due", "(integer) -1")]);
    });
}

#[test]
fn clients_of_a_replica_do_not_write() {
    each_replica(|mut pair| {
        pair.write("SET k 1");
        pair.check(&[
            ("GET k", "\"1\""),
            ("SET k 2", READONLY),
            ("FLUSHALL", READONLY),
            ("SWAPDB 0 1", READONLY),
            ("SORT k", READONLY),
            ("SPOP k", READONLY),
            ("PUBLISH a b", "(integer) 0"),
            ("PFCOUNT none", "(integer) 0"),
            ("SCRIPT LOAD \"return 1\"", "\"e0e1f9fabfc9d4800c877a703b823ac0578ff8db\""),
            ("EVAL \"return redis.call('GET', 'k')\" 0", "\"1\""),
            ("EVAL \"return redis.pcall('SET', 'k', '2')['err']\" 0", &quoted(READONLY)),
            ("EVAL \"#!lua\\nreturn 1\" 0", READONLY),
            ("EVAL \"#!lua flags=no-writes\\nreturn 1\" 0", "(integer) 1"),
            ("MULTI", "OK"),
            ("SET k 2", READONLY),
            ("EXEC", "(error) EXECABORT Transaction discarded because of previous errors."),
            (
                "WAIT 0 0",
                "(error) ERR WAIT cannot be used with replica instances. Please also note that since \
                 Redis 4.0 if a replica is configured to be writable (which is not the default) \
                 writes to replicas are just local and are not propagated.",
            ),
        ]);
        let refused = pair.at_replica.cmd("EVAL \"return redis.call('SET', 'k', '2')\" 0");
        assert!(refused.to_string().starts_with(&format!("{READONLY} script: ")), "{refused}");
        // For clients that are allowed to write, expired keys do not exist.
        pair.write("SET due 1 PXAT 1");
        pair.check(&[
            ("CONFIG SET replica-read-only no", "OK"),
            ("SET own 1", "OK"),
            ("APPEND due 2", "(integer) 1"),
            ("GET due", "\"2\""),
            ("TTL due", "(integer) -1"),
        ]);
        assert_reply!(pair.at_primary, "EXISTS own", "(integer) 0");
    });
}

/// Keys to which clients gave a TTL are removed when they expire. Those with a TTL from the primary stay.
#[test]
fn keys_that_clients_of_a_writable_replica_let_expire_are_removed() {
    each_replica(|mut pair| {
        pair.write("MSET theirs 1 changed 1 copied 1 renamed 1");
        let conn = &mut pair.at_replica;
        assert_reply!(conn, "CONFIG SET replica-read-only no", "OK");
        for line in [
            "SET by:set 1 PX 150",
            "SET by:pexpire 1",
            "PEXPIRE by:pexpire 150",
            "PEXPIRE changed 150",
            "PEXPIRE renamed 150",
            "RENAME renamed by:rename",
            "PEXPIRE copied 150",
            "COPY copied by:copy",
            "EVAL \"return redis.call('PSETEX', KEYS[1], 150, 'v')\" 1 by:script",
            "SET stays 1 EX 1000",
            "SET persistent 1 PX 150",
            "PERSIST persistent",
            "SELECT 3",
            "SET elsewhere 1 PX 150",
            "SELECT 0",
        ] {
            let reply = conn.cmd(line);
            assert!(!reply.is_error(), "{line}: {reply}");
        }
        // Whether or not this key has already expired, only the primary removes it.
        pair.write("PEXPIRE theirs 100");
        let conn = &mut pair.at_replica;
        wait_until("theirs to have expired", || conn.cmd("EXISTS theirs").integer() == 0);
        wait_until("what is due to be gone", || conn.cmd("DBSIZE").integer() == 3);
        assert_reply!(conn, "EXISTS stays persistent", "(integer) 2");
        assert_reply!(conn, "SELECT 3", "OK");
        wait_until("what is due to be gone", || conn.cmd("DBSIZE").integer() == 0);
        assert_eq!(conn.info("expired_keys"), "8");
        // On the primary, these keys are unchanged.
        assert_reply!(pair.at_primary, "EXISTS changed renamed copied", "(integer) 3");
    });
}

/// If a key exists on both, the last TTL determines which side removes the key. Redis removes the key even if the TTL
/// is from the primary.
#[test]
fn a_ttl_of_the_primary_replaces_that_of_a_client_of_the_replica() {
    let mut pair = Pair::start(Launch::new(Program::Brisk));
    assert_reply!(pair.at_replica, "CONFIG SET replica-read-only no", "OK");
    assert_reply!(pair.at_replica, "SET both 1 PX 100000", "OK");
    pair.write("SET both 1 PX 1");
    assert_reply!(pair.at_replica, "SET own 1 PX 20", "OK");
    let conn = &mut pair.at_replica;
    wait_until("its own to be gone", || conn.cmd("DBSIZE").integer() == 1);
    assert_reply!(conn, "EXISTS both", "(integer) 0");
    assert_eq!(conn.info("expired_keys"), "1");
}

/// An error as a string.
fn quoted(error: &str) -> String {
    format!("\"{}\"", error.trim_start_matches("(error) "))
}

#[test]
fn a_replica_without_its_primary_serves_stale_data_only_if_allowed() {
    each_replica(|mut pair| {
        pair.write("SET k 1");
        pair.primary.kill();
        let conn = &mut pair.at_replica;
        wait_for_link(conn, "down");
        let refused = [
            "GET k",
            "PING",
            "WAIT 0 0",
            "SAVE",
            "DBSIZE",
            "OBJECT ENCODING k",
            "FUNCTION LIST",
            "SCRIPT EXISTS a",
            "EVAL \"return 1\" 0",
            "EVAL \"#!lua flags=no-writes\\nreturn 1\" 0",
        ];
        let admitted = [
            "ECHO a",
            "SELECT 0",
            "PUBLISH a b",
            "TIME",
            "ROLE",
            "MULTI",
            "DISCARD",
            "UNWATCH",
            "LASTSAVE",
            "CLIENT ID",
            "OBJECT HELP",
            "CONFIG GET dir",
            "LATENCY LATEST",
            "INFO",
            "ACL WHOAMI",
            "SLOWLOG LEN",
            "COMMAND COUNT",
            "EVAL \"#!lua flags=allow-stale,no-writes\\nreturn redis.call('ECHO', 'a')\" 0",
        ];
        assert_reply!(conn, "GET k", "\"1\"");
        assert_reply!(conn, "CONFIG SET replica-serve-stale-data no", "OK");
        for line in refused {
            assert_eq!(conn.cmd(line).to_string(), MASTERDOWN, "{line}");
        }
        for line in admitted {
            let reply = conn.cmd(line).to_string();
            assert!(!reply.starts_with("(error)"), "{line}: {reply}");
        }
        assert_reply!(conn, "SET k 2", READONLY);
        let reads = "EVAL \"#!lua flags=allow-stale,no-writes\\nreturn redis.call('GET', 'k')\" 0";
        let refused = conn.cmd(reads).to_string();
        let want = "(error) ERR Can not execute the command on a stale replica script: ";
        assert!(refused.starts_with(want), "{refused}");
        assert_reply!(conn, "CONFIG SET replica-serve-stale-data yes", "OK");
        assert_reply!(conn, "GET k", "\"1\"");
    });
}

#[test]
fn a_replica_reports_its_primary_and_link_state() {
    const TAIL: &[&str] = &[
        "slave_priority",
        "slave_read_only",
        "replica_announced",
        "connected_slaves",
        "master_failover_state",
        "master_replid",
        "master_replid2",
        "master_repl_offset",
        "second_repl_offset",
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_first_byte_offset",
        "repl_backlog_histlen",
    ];
    const HEAD: &[&str] = &[
        "role",
        "master_host",
        "master_port",
        "master_link_status",
        "master_last_io_seconds_ago",
        "master_sync_in_progress",
        "slave_read_repl_offset",
        "slave_repl_offset",
    ];
    each_replica(|mut pair| {
        pair.write("SET k 1");
        let port = pair.primary.port();
        let conn = &mut pair.at_replica;
        assert_eq!(fields(conn), [HEAD, TAIL].concat());
        let at = conn.info("slave_repl_offset");
        assert_eq!(conn.info("master_replid"), pair.at_primary.info("master_replid"));
        let role = |phase: &str, at: &str| {
            format!(
                "1) \"slave\"\n2) \"127.0.0.1\"\n3) (integer) {port}\n4) \"{phase}\"\n5) (integer) {at}"
            )
        };
        assert_eq!(conn.cmd("ROLE").to_string(), role("connected", &at));
        for (field, want) in
            [("role", "slave"), ("master_host", "127.0.0.1"), ("slave_priority", "100")]
        {
            assert_eq!(conn.info(field), want);
        }
        assert_reply!(conn, "CONFIG SET replica-priority 7 replica-announced no", "OK");
        assert_eq!(
            (conn.info("slave_priority"), conn.info("replica_announced")),
            ("7".into(), "0".into())
        );
        pair.primary.kill();
        wait_for_link(conn, "down");
        let down = ["master_link_down_since_seconds"].as_slice();
        assert_eq!(fields(conn), [HEAD, down, TAIL].concat());
        assert_eq!(conn.info("master_last_io_seconds_ago"), "-1");
        assert_eq!(conn.info("slave_repl_offset"), at);
        let Reply::Array(role) = conn.cmd("ROLE") else { panic!("no role") };
        assert_eq!(role[4].to_string(), "(integer) -1");
        assert!(pair.replica.log().contains(":S "), "the letter of a replica");
    });
}

#[test]
fn the_connection_to_the_primary_is_listed_and_can_be_closed() {
    each_replica(|mut pair| {
        pair.write("SET k 1");
        pair.at_primary.cmd("SELECT 3");
        pair.write("SET k 1");
        let conn = &mut pair.at_replica;
        let line = conn.cmd("CLIENT LIST TYPE master").text();
        for part in
            [" flags=M ", " name= ", " db=3 ", " multi=-1 ", " cmd=set ", " user=(superuser) "]
        {
            assert!(line.contains(part), "{part}: {line}");
        }
        let address = format!("127.0.0.1:{}", pair.primary.port());
        assert!(line.contains(&format!(" addr={address} ")), "{line}");
        assert!(!line.contains(" fd=-1 ") && !line.contains(" laddr=127.0.0.1:0 "), "{line}");
        assert_reply!(conn, "CLIENT LIST TYPE replica", "\"\"");
        let id = line.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).expect("an id");
        assert!(conn.cmd("CLIENT LIST TYPE normal").text().lines().count() == 1);
        assert!(conn.cmd(&format!("CLIENT LIST ID {id}")).text().contains(" flags=M "));
        // The connection is counted, but does not belong to a user.
        assert_eq!(conn.info("connected_clients"), "2");
        assert_reply!(conn, "CLIENT KILL USER default SKIPME yes", "(integer) 0");
        let before = pair.at_primary.info("sync_partial_ok");
        let laddr =
            |line: &str| line.split(' ').find(|word| word.starts_with("laddr=")).map(str::to_owned);
        let mut known = laddr(&line);
        for kill in [
            "CLIENT KILL TYPE master".to_owned(),
            format!("CLIENT KILL ID {id}"),
            format!("CLIENT KILL ADDR {address}"),
        ] {
            assert_reply!(conn, &kill, "(integer) 1");
            // The session continues on another connection, with the same ID.
            wait_until("there is another one", || {
                let now = conn.cmd("CLIENT LIST TYPE master").text();
                let is_another = now.starts_with(&format!("id={id} ")) && laddr(&now) != known;
                if is_another {
                    known = laddr(&now);
                }
                is_another
            });
            wait_for_link(conn, "up");
        }
        let after: u64 = pair.at_primary.info("sync_partial_ok").parse().expect("a count");
        assert_eq!(after, before.parse::<u64>().expect("a count") + 3);
        // A new primary has no connection of this kind.
        assert_reply!(pair.at_replica, "REPLICAOF NO ONE", "OK");
        assert_reply!(pair.at_replica, "CLIENT LIST TYPE master", "\"\"");
        pair.at_primary.cmd("SELECT 0");
    });
}

#[test]
fn the_bytes_of_replication_are_counted_on_both_sides() {
    let count = |conn: &mut Conn, name: &str| conn.info(name).parse::<u64>().expect("a count");
    let launches = || [Launch::redis(), Launch::new(Program::Brisk)];
    for primary in launches() {
        for replica in launches() {
            let primary = primary.clone().set("repl-diskless-sync-delay", "0");
            let primary = primary.set("rdbcompression", "no").start();
            let mut at_primary = primary.connect();
            // A full copy and the stream have a megabyte each.
            let value = "v".repeat(1 << 20);
            at_primary.cmd(&format!("SET copied {value}"));
            let address = format!("127.0.0.1 {}", primary.port());
            let replica = replica.set("replicaof", &address).start();
            let mut at_replica = replica.connect();
            wait_for_link(&mut at_replica, "up");
            at_primary.cmd(&format!("SET streamed {value}"));
            wait_until("the replica to have both", || at_replica.cmd("DBSIZE").text() == "2");
            let sent = count(&mut at_primary, "total_net_repl_output_bytes");
            let received = count(&mut at_replica, "total_net_repl_input_bytes");
            assert!(sent > 2 << 20 && received > 2 << 20, "{sent} {received}");
            // Brisk updates this sum of its workers' counts `hz` times per second.
            wait_until("the sum of all output to have them", || {
                count(&mut at_primary, "total_net_output_bytes") >= sent
            });
            assert!(count(&mut at_replica, "total_net_input_bytes") >= received);
            assert_eq!(count(&mut at_primary, "total_net_repl_input_bytes"), 0);
            assert_eq!(count(&mut at_replica, "total_net_repl_output_bytes"), 0);
        }
    }
}

#[test]
fn a_replica_connects_from_its_bind_source_addr() {
    for launch in [Launch::redis(), Launch::new(Program::Brisk)] {
        // The primary considers 127.0.0.2 the address of another machine.
        let primary = Launch::redis().set("protected-mode", "no");
        let primary = primary.set("repl-diskless-sync-delay", "0").start();
        let replica = launch.set("bind-source-addr", "127.0.0.2").start();
        let (mut at_primary, mut at_replica) = (primary.connect(), replica.connect());
        let line = format!("REPLICAOF 127.0.0.1 {}", primary.port());
        assert_reply!(at_replica, &line, "OK");
        wait_for_link(&mut at_replica, "up");
        assert!(at_primary.info("slave0").starts_with("ip=127.0.0.2,"));
        // An address that does not belong to this machine is ignored.
        assert_reply!(at_replica, "CONFIG SET bind-source-addr 192.0.2.1", "OK");
        assert_reply!(at_replica, "REPLICAOF NO ONE", "OK");
        assert_reply!(at_replica, &line, "OK");
        wait_for_link(&mut at_replica, "up");
    }
}

#[test]
fn monitors_of_a_replica_see_what_its_primary_sends() {
    each_replica(|mut pair| {
        let mut monitor = pair.replica.connect();
        assert_reply!(monitor, "MONITOR", "OK");
        pair.write("SET shown 1");
        let from = format!("127.0.0.1:{}] \"SET\" \"shown\" \"1\"", pair.primary.port());
        wait_until("it is shown", || {
            monitor.reply().text().to_lowercase().contains(&from.to_lowercase())
        });
    });
}
