//! Checks that INFO has the sections and fields of a real Redis server, with correct values.

use brisk_testkit::server::Program;
use brisk_testkit::{Conn, Launch, Server, wait_until};

fn brisk() -> Launch {
    Launch::new(Program::At(env!("CARGO_BIN_EXE_brisk-server").into())).set("threads", "2")
}

/// Fields that the reference server lacks, by section.
const OWN_FIELDS: &[(&str, &[&str])] = &[
    ("Server", &["brisk_version"]),
    // Fields of version 7.2.
    ("Server", &["listener0", "listener1"]),
    (
        "Stats",
        &[
            "acl_access_denied_auth",
            "acl_access_denied_cmd",
            "acl_access_denied_key",
            "acl_access_denied_channel",
            "client_query_buffer_limit_disconnections",
            "client_output_buffer_limit_disconnections",
            "eventloop_cycles",
            "eventloop_duration_sum",
            "eventloop_duration_cmd_sum",
            "instantaneous_eventloop_cycles_per_sec",
            "instantaneous_eventloop_duration_usec",
        ],
    ),
    ("Clients", &["total_blocking_keys", "total_blocking_keys_on_nokey"]),
    // Fields of version 7.4.
    ("Stats", &["expired_subkeys", "evicted_scripts"]),
    ("Clients", &["pubsub_clients", "watching_clients", "total_watched_keys"]),
    // Brisk's own fields.
    ("Stats", &["pubsub_congestions"]),
    ("Clients", &["admin_clients", "admin_maxclients"]),
    // Field names of older versions, which tools still read.
    ("Clients", &["client_longest_output_list", "client_biggest_input_buf"]),
];
/// Sections whose fields depend on the commands that ran.
const VARYING: &[&str] = &["Commandstats", "Errorstats", "Latencystats", "Keyspace"];

/// Returns the section titles with the names of their fields, in the order of the text.
fn shape(conn: &mut Conn, command: &str) -> Vec<(String, Vec<String>)> {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for line in conn.cmd(command).text().split("\r\n") {
        if let Some(title) = line.strip_prefix("# ") {
            sections.push((title.to_owned(), Vec::new()));
        } else if let Some((name, _)) = line.split_once(':') {
            let (_, fields) = sections.last_mut().expect("a title comes before fields");
            fields.push(name.to_owned());
        }
    }
    sections
}

/// Removes Brisk's own fields.
fn without_own(mut sections: Vec<(String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
    sections.retain(|(title, _)| title != "Brisk");
    for (title, fields) in &mut sections {
        for (_, own) in OWN_FIELDS.iter().filter(|(name, _)| name == title) {
            fields.retain(|field| !own.contains(&field.as_str()));
        }
    }
    sections
}

fn without_varying(mut sections: Vec<(String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
    for (title, fields) in &mut sections {
        if VARYING.contains(&title.as_str()) {
            fields.clear();
        }
    }
    sections
}

#[test]
fn sections_and_fields_are_those_of_the_reference_in_its_order() {
    let (ours, theirs) = (brisk().start(), Launch::redis().start());
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    for command in [
        "INFO",
        "INFO default",
        "INFO all",
        "INFO everything",
        "info SERVER",
        "INFO keyspace cpu keyspace",
        "INFO default commandstats",
        "INFO nonsense",
        "INFO nonsense memory",
        "INFO latencystats errorstats modules",
    ] {
        let (ours, theirs) = (shape(&mut ours, command), shape(&mut theirs, command));
        let (ours, theirs) = (without_varying(without_own(ours)), without_varying(theirs));
        assert_eq!(ours, theirs, "{command}");
    }
}

#[test]
fn empty_lines_separate_sections_as_in_the_reference() {
    let (ours, theirs) = (brisk().start(), Launch::redis().start());
    for command in ["INFO cluster modules", "INFO modules", "INFO nonsense"] {
        let text_of = |server: &Server| server.connect().cmd(command).text();
        assert_eq!(text_of(&ours), text_of(&theirs), "{command}");
    }
}

#[test]
fn own_metrics_are_shown_with_everything_and_by_name_only() {
    let server = brisk().start();
    let mut conn = server.connect();
    assert!(!conn.cmd("INFO").text().contains("# Brisk"));
    for command in ["INFO all", "INFO everything", "INFO brisk"] {
        let text = conn.cmd(command).text();
        for field in ["time_us_parse:", "syscalls_send:", "slot_conflicts:", "worker1:"] {
            assert!(text.contains(field), "{command}: {field}");
        }
        assert!(text.contains("workers:2\r\n"), "{command}");
    }
}

#[test]
fn metrics_count_events() {
    let server = brisk().start();
    let mut conn = server.connect();
    wait_until("the kit's own first connection is closed", || {
        conn.info("connected_clients") == "1"
    });
    conn.cmd("CONFIG RESETSTAT");
    for line in ["SET a 1", "SET b 2 EX 1000", "GET a", "GET a", "GET none", "NOSUCH", "GET"] {
        conn.cmd(line);
    }
    conn.cmd("INCR b x");
    for (field, value) in [
        ("keyspace_hits", "2"),
        ("keyspace_misses", "1"),
        ("total_error_replies", "3"),
        ("connected_clients", "1"),
        ("rdb_changes_since_last_save", "2"),
        ("maxmemory", "0"),
        ("maxmemory_policy", "noeviction"),
        ("redis_mode", "standalone"),
    ] {
        assert_eq!(conn.info(field), value, "{field}");
    }
    let text = conn.cmd("INFO commandstats errorstats keyspace").text();
    let line = |begin: &str| {
        let found = text.split("\r\n").find(|line| line.starts_with(begin));
        found.unwrap_or_else(|| panic!("no {begin} in {text}")).to_owned()
    };
    assert!(line("cmdstat_get:calls=3,usec=").ends_with(",rejected_calls=1,failed_calls=0"));
    assert!(line("cmdstat_set:calls=2,usec=").ends_with(",rejected_calls=0,failed_calls=0"));
    assert!(line("cmdstat_config|resetstat:calls=1,").contains("usec_per_call="));
    assert_eq!(line("errorstat_ERR:"), "errorstat_ERR:count=3");
    assert!(line("db0:").starts_with("db0:keys=2,expires=1,avg_ttl=9"));
    let latency = conn.cmd("INFO latencystats").text();
    assert!(latency.contains("latency_percentiles_usec_get:p50="), "{latency}");
    assert!(latency.contains(",p99="), "{latency}");
}

#[test]
fn resetting_statistics_keeps_current_values() {
    let server = brisk().start();
    let mut conn = server.connect();
    conn.pipeline(&["SET a 1", "GET a", "GET none", "NOSUCH"]);
    assert_eq!(conn.cmd("CONFIG RESETSTAT").text(), "OK");
    for field in ["keyspace_hits", "keyspace_misses", "total_error_replies", "expired_keys"] {
        assert_eq!(conn.info(field), "0", "{field}");
    }
    // The connection that was used to wait for the startup may still be closing.
    wait_until("one client", || conn.info("connected_clients") == "1");
    assert_eq!(conn.info("rdb_changes_since_last_save"), "1");
    assert_eq!(conn.cmd("DBSIZE").integer(), 1);
    let text = conn.cmd("INFO everything").text();
    assert!(text.contains("db0:keys=1,") && !text.contains("cmdstat_get:"), "{text}");
    assert!(!text.contains("errorstat_"), "{text}");
}

#[test]
fn traffic_is_counted_to_the_byte() {
    let server = brisk().start();
    let mut conn = server.connect();
    let mut counted = || -> u64 {
        let text = conn.cmd("INFO stats").text();
        let line = text.split("\r\n").find_map(|line| line.strip_prefix("total_net_input_bytes:"));
        line.expect("the field is there").parse().unwrap()
    };
    // A request is counted at the end of its round, so each INFO shows only the requests before it.
    let (before, after) = (counted(), counted());
    assert_eq!(after - before, b"*2\r\n$4\r\nINFO\r\n$5\r\nstats\r\n".len() as u64);
}

#[test]
fn the_longest_buffers_of_the_last_seconds_are_remembered() {
    let server = brisk().start();
    let (mut conn, mut other) = (server.connect(), server.connect());
    other.send_raw(b"*2\r\n$4\r\nECHO\r\n$100000\r\n");
    other.send_raw(&[b'x'; 50_000]);
    wait_until("half a request is held", || {
        let longest: u64 = conn.info("client_recent_max_input_buffer").parse().unwrap();
        longest >= 50_000
    });
    assert!(conn.info("mem_clients_normal").parse::<u64>().unwrap() >= 50_000);
}

#[test]
fn allocator_memory_follows_used_memory() {
    let server = brisk().start();
    let mut conn = server.connect();
    let value = "v".repeat(100_000);
    for i in 0..300 {
        conn.cmd(&format!("SET k{i} {value}"));
    }
    let metric = |conn: &mut Conn, name: &str| conn.info(name).parse::<u64>().unwrap();
    wait_until("the values are in the allocator's pages", || {
        let [active, held] =
            ["allocator_active", "allocator_resident"].map(|name| metric(&mut conn, name));
        active >= 30_000_000 && held >= active
    });
    let in_stats = |conn: &mut Conn, name: &str| {
        conn.cmd("MEMORY STATS").field(name).unwrap().integer() as u64
    };
    let held = in_stats(&mut conn, "allocator.resident");
    assert!(in_stats(&mut conn, "allocator.active") >= 30_000_000 && held >= 30_000_000);
    conn.cmd("FLUSHALL SYNC");
    // Pages that the allocator retains do not count as active.
    wait_until("they are given up", || metric(&mut conn, "allocator_active") < 20_000_000);
    assert!(in_stats(&mut conn, "allocator.active") < 20_000_000);
}

#[test]
fn cpu_time_and_resident_memory_are_those_of_the_process() {
    let server = brisk().start();
    let mut conn = server.connect();
    let rss: u64 = conn.info("used_memory_rss").parse().unwrap();
    let seen = server.rss();
    assert!(rss > seen / 4 && rss < seen * 4, "{rss} {seen}");
    wait_until("some time was used", || {
        let user: f64 = conn.info("used_cpu_user").parse().unwrap();
        let system: f64 = conn.info("used_cpu_sys").parse().unwrap();
        user + system > 0.0
    });
}
