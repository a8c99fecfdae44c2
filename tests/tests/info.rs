//! INFO: every field of Redis 7 exists in its section and has the correct value. (I1, I2)

use brisk_testkit::server::{brisk_binary, redis_binary, subject_is_redis};
use brisk_testkit::{Launch, assert_reply, each_config, each_protocol, wait_until};
use brisk_tests::facts;
use std::collections::BTreeMap;
use std::process::Command;

/// Fields of the reference that Brisk does not have, each with the reason.
const ABSENT: &[(&str, &str)] = &[];

/// Field names by section.
fn sections(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut sections = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            current = title.trim_end().to_owned();
            sections.insert(current.clone(), Vec::new());
        } else if let Some((field, _)) = line.split_once(':') {
            sections.get_mut(&current).expect("a field before any section").push(field.to_owned());
        }
    }
    sections
}

/// The value of the field with this name in the output of `--version`.
fn version_field<'l>(line: &'l str, name: &str) -> &'l str {
    let mut fields = line.split_whitespace().filter_map(|field| field.split_once('='));
    fields.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

#[test]
fn the_version_option_prints_the_version_that_info_reports_in_the_fields_of_redis() {
    let real = Command::new(redis_binary()).arg("-v").output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let subject = if subject_is_redis() { redis_binary() } else { brisk_binary().unwrap().into() };
    let server = Launch::subject().start();
    for option in ["-v", "--version"] {
        let output = Command::new(&subject).arg(option).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let line = String::from_utf8(output.stdout).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let names = |line: &str| -> Vec<String> {
            let words = line.split_whitespace().map(|word| word.split('=').next().unwrap());
            words.map(str::to_owned).collect()
        };
        assert!(names(&line).starts_with(&names(&real)), "{line}");
        assert_eq!(version_field(&line, "v"), server.info("redis_version"), "{line}");
        assert_eq!(version_field(&line, "malloc"), server.info("mem_allocator"), "{line}");
        assert_eq!(version_field(&line, "bits"), server.info("arch_bits"), "{line}");
        if !subject_is_redis() {
            assert_eq!(version_field(&line, "brisk"), server.info("brisk_version"), "{line}");
        }
    }
}

#[test]
fn every_field_of_the_reference_is_in_its_section() {
    each_config(|server| {
        let ours = sections(&server.connect().cmd("INFO everything").text());
        let reference = facts("redis-7.0.15.info");
        let mut missing = Vec::new();
        for (section, fields) in reference["fields"].as_object().unwrap() {
            let have = ours.get(section).unwrap_or_else(|| panic!("no section {section}"));
            for field in fields.as_array().unwrap() {
                let field = field.as_str().unwrap();
                let excused = ABSENT.iter().any(|row| row.0 == field);
                if !have.iter().any(|f| f == field) && !excused {
                    missing.push(format!("{section}/{field}"));
                }
            }
        }
        assert!(missing.is_empty(), "missing: {missing:?}");
    });
}

#[test]
fn sections_come_in_the_order_of_the_reference() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.pipeline(&["SET k v", "GET", "nosuch"]); // so that no section is empty
        let reference = facts("redis-7.0.15.info");
        for (argument, list) in [("", "default_sections"), ("everything", "all_sections")] {
            let text = conn.cmd(&format!("INFO {argument}")).text();
            let titles: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("# ")).collect();
            let wanted: Vec<&str> =
                reference[list].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
            // A server may have additional sections, but the known ones keep their order.
            let known: Vec<&str> = titles.into_iter().filter(|t| wanted.contains(t)).collect();
            assert_eq!(known, wanted, "INFO {argument}");
        }
    });
}

#[test]
fn single_sections_can_be_requested() {
    each_protocol(|server| {
        let mut conn = server.connect();
        let names = |text: &str| sections(text).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&conn.cmd("INFO clients").text()), ["Clients"]);
        assert_eq!(names(&conn.cmd("INFO CPU clients").text()), ["CPU", "Clients"]);
        assert_eq!(conn.cmd("INFO nosuch").text(), "");
    });
}

#[test]
fn counters_count() {
    each_config(|server| {
        let mut conn = server.connect();
        wait_until("the kit's own first connection is closed", || {
            conn.info("connected_clients") == "1"
        });
        conn.pipeline(&["SET k v", "GET k", "GET none", "SELECT 5", "SET a b EX 100", "INCR a"]);
        let text = conn.cmd("INFO everything").text();
        let field = |name: &str| {
            let found = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
            found.unwrap_or_else(|| panic!("no {name}")).to_owned()
        };
        assert_eq!(field("keyspace_hits"), "1");
        assert_eq!(field("keyspace_misses"), "1");
        assert_eq!(field("connected_clients"), "1");
        assert_eq!(field("errorstat_ERR"), "count=1");
        assert_eq!(field("tcp_port"), server.port().to_string());
        assert_eq!(field("process_id"), server.pid().to_string());
        assert_eq!(field("role"), "master");
        assert!(field("db0").starts_with("keys=1,expires=0,avg_ttl=0"), "{}", field("db0"));
        assert!(field("db5").starts_with("keys=1,expires=1,avg_ttl="), "{}", field("db5"));
        assert!(field("cmdstat_get").starts_with("calls=2,usec="), "{}", field("cmdstat_get"));
        let incr = field("cmdstat_incr");
        assert!(incr.ends_with("rejected_calls=0,failed_calls=1"), "{incr}");
    });
}

#[test]
fn an_unknown_subcommand_counts_for_no_command() {
    each_config(|server| {
        let mut conn = server.connect();
        conn.cmd("CONFIG RESETSTAT");
        for line in ["CLIENT nosuch", "CONFIG nosuch", "XGROUP nosuch k", "CONFIG", "CONFIG GET"] {
            assert!(conn.cmd(line).to_string().starts_with("(error) ERR "), "{line}");
        }
        let text = conn.cmd("INFO commandstats").text();
        let mut rejected: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("rejected_calls=1"))
            .filter_map(|line| line.split(':').next())
            .collect();
        rejected.sort_unstable();
        assert_eq!(rejected, ["cmdstat_config", "cmdstat_config|get"], "{text}");
        assert!(!text.contains("cmdstat_client:") && !text.contains("cmdstat_xgroup"), "{text}");
        assert!(conn.cmd("INFO errorstats").text().contains("errorstat_ERR:count=5"));
    });
}

#[test]
fn memory_metrics_follow_the_data() {
    each_protocol(|server| {
        let mut conn = server.connect();
        let used =
            |conn: &mut brisk_testkit::Conn| conn.info("used_memory").parse::<i64>().unwrap();
        let before = used(&mut conn);
        let value = "v".repeat(10_000);
        for i in 0..200 {
            conn.cmd(&format!("SET k{i} {value}"));
        }
        let grown = used(&mut conn) - before;
        assert!((2_000_000..6_000_000).contains(&grown), "2 MB of values count {grown}");
        assert!(conn.info("used_memory_peak").parse::<i64>().unwrap() >= before + grown);
        assert_reply!(conn, "FLUSHALL SYNC", "OK");
        assert!(used(&mut conn) - before < 600_000, "the memory is given back");
    });
}

#[test]
fn client_buffer_metrics_follow_the_clients() {
    each_protocol(|server| {
        let [mut conn, mut half] = server.connections();
        // The input buffer contains 400 kB of an incomplete request.
        half.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$800000\r\n");
        half.send_raw(&vec![b'x'; 400_000]);
        wait_until("the buffer shows", || {
            conn.info("mem_clients_normal").parse::<u64>().unwrap() > 400_000
        });
        drop(half);
        wait_until("the buffer is gone", || {
            conn.info("mem_clients_normal").parse::<u64>().unwrap() < 400_000
        });
    });
}
