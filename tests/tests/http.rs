//! `/metrics`, `/health` and `/ready` over HTTP, with real sockets.
//!
//! A real Redis has no such port, so these tests only run with our server. TLS is tested in `crates/server/tests/tls`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::port::Port;
use brisk_testkit::server::{subject_is_redis, workspace_root};
use brisk_testkit::{Launch, Server, assert_reply, each_backend, wait_until};
use brisk_tests::exposition::{Exposition, Kind};
use brisk_tests::web::{HttpResponse, Web, basic};
use brisk_tests::with_workers;
use std::time::Duration;

/// The maximum size of a request head, as in `http::request`.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// The maximum number of connections, as in `system::HTTP_CONNECTIONS_MAX`.
const CONNECTIONS_MAX: usize = 64;

/// More unread bytes than the kernel buffers.
const UNREAD_BYTES_MAX: usize = 64 << 20;

const OPEN: &str = "Accept: application/openmetrics-text\r\n";

fn with_http(launch: Launch, port: &Port) -> Launch {
    launch.set("http-port", &port.number().to_string())
}

fn get(port: &Port, path: &str) -> HttpResponse {
    Web::connect(port).get(path, "")
}

fn ready(port: &Port) -> (u16, String) {
    let response = get(port, "/ready");
    (response.status, response.body.trim_end().to_owned())
}

/// Runs the body on two back ends.
fn each(launch: impl Fn(Launch) -> Launch, body: impl Fn(&mut Server, &Port)) {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    each_backend(|| launch(with_http(with_workers(2), &port)), |server| body(server, &port));
}

#[test]
fn each_path_returns_its_document() {
    each(
        |launch| launch,
        |_, port| {
            let health = get(port, "/health");
            assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
            assert_eq!(ready(port), (200, "ready".to_owned()));
            let metrics = get(port, "/metrics?a=b");
            assert_eq!(metrics.status, 200);
            assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
            let open = Web::connect(port).get("/metrics", OPEN);
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            assert_eq!(open.header("content-type"), kind);
            for path in ["/", "/metric", "/metrics/", "/Metrics", "*"] {
                assert_eq!(get(port, path).status, 404, "{path}");
            }
            for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", "PROPFIND"] {
                let response = Web::connect(port).request(method, "/metrics", "", b"");
                assert_eq!((response.status, response.header("allow")), (405, "GET, HEAD".into()));
            }
        },
    );
}

#[test]
fn a_connection_takes_one_request_after_the_other_however_bytes_come() {
    each(
        |launch| launch,
        |_, port| {
            let mut web = Web::connect(port);
            let length = web.request("HEAD", "/health", "", b"").header("content-length");
            assert_eq!(length, "3");
            // A request body is skipped, even if the request is rejected.
            assert_eq!(
                web.request("POST", "/health", "Content-Length: 5\r\n", b"GET /").status,
                405
            );
            for byte in b"\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n" {
                web.send(&[*byte]);
            }
            assert_eq!(web.answer(false).body, "ok\n");
            // Pipelined requests get their responses in order, even long ones.
            let request =
                "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n";
            web.send(request.repeat(30).as_bytes());
            for _ in 0..30 {
                assert!(web.answer(false).body.starts_with("# HELP redis_up "));
                assert_eq!(web.answer(false).body, "ok\n");
            }
            web.send(b"GET /health HTTP/1.0\r\n\r\n");
            assert_eq!(web.answer(false).header("connection"), "close");
            assert!(web.is_closed());
            let mut web = Web::connect(port);
            web.send(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
            web.finish_sending();
            assert_eq!(web.answer(false).body, "ok\n");
            assert!(web.is_closed());
        },
    );
}

#[test]
fn malformed_requests_are_rejected_and_close_the_connection() {
    each(
        |launch| launch,
        |server, port| {
            let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_BYTES_MAX));
            let wide = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(HEAD_BYTES_MAX / 6));
            for (bytes, status) in [
                ("*1\r\n$4\r\nPING\r\n\r\n", 400),
                ("GET /health\r\n\r\n", 400),
                ("GET /health HTTP/1.1\r\n\r\n", 400),
                ("GET /health HTTP/1.1\r\nHost: a\r\n fold\r\n\r\n", 400),
                ("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
                ("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
                (long.as_str(), 431),
                (wide.as_str(), 431),
                ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
                ("GET /health HTTP/3.0\r\n\r\n", 505),
            ] {
                let mut web = Web::connect(port);
                web.send(bytes.as_bytes());
                let response = web.answer(false);
                assert_eq!(
                    (response.status, response.header("connection")),
                    (status, "close".into())
                );
                assert!(web.is_closed(), "{bytes:?}");
            }
            assert_eq!(get(port, "/health").status, 200);
            assert_reply!(server.connect(), "PING", "PONG");
        },
    );
}

#[test]
fn connections_are_bounded_and_an_idle_one_is_closed() {
    each(
        |launch| launch,
        |_, port| {
            let mut webs: Vec<Web> = (0..CONNECTIONS_MAX).map(|_| Web::connect(port)).collect();
            for web in &mut webs {
                assert_eq!(web.get("/health", "").status, 200);
            }
            // One more connection is accepted. It replaces the one that has been idle longest.
            let mut further = Web::connect(port);
            assert_eq!(further.get("/health", "").status, 200);
            assert!(webs.remove(0).is_closed());
            for web in &mut webs {
                assert_eq!(web.get("/health", "").status, 200);
            }
            // A client that opens all connections without sending requests does not lock other clients out.
            let held: Vec<Web> = (0..2 * CONNECTIONS_MAX).map(|_| Web::connect(port)).collect();
            assert_eq!(get(port, "/health").status, 200);
            assert_eq!(get(port, "/ready").status, 200);
            drop(held);
            let slow = |port: &Port| {
                let mut web = Web::connect(port);
                web.send(b"GET /health HTT");
                web
            };
            assert!(slow(port).is_closed());
        },
    );
}

#[test]
fn a_client_that_does_not_read_is_not_read_and_delays_no_other() {
    each(
        |launch| launch,
        |server, port| {
            let before: u64 = server.info("used_memory").parse().unwrap();
            let mut web = Web::connect(port);
            let requests = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
            // The kernel buffers a few megabytes.
            let bounded = (0..UNREAD_BYTES_MAX / requests.len())
                .any(|_| !web.send_within(Duration::from_secs(1), requests.as_bytes()));
            assert!(bounded, "all was read");
            assert_eq!(get(port, "/health").status, 200);
            let after: u64 = server.info("used_memory").parse().unwrap();
            assert!(after < before + (4 << 20), "{before}, {after}");
            // A client that reads late gets complete responses.
            assert!(web.answer(false).body.starts_with("# HELP redis_up "));
        },
    );
}

/// Asserts that samples of `/metrics` agree with INFO, for values that do not change on their own.
fn agree(server: &Server, exposition: &Exposition) {
    for (field, metric) in [
        ("connected_slaves", "redis_connected_slaves"),
        ("maxmemory", "redis_memory_max_bytes"),
        ("maxclients", "redis_max_clients"),
        ("keyspace_hits", "redis_keyspace_hits_total"),
        ("keyspace_misses", "redis_keyspace_misses_total"),
        ("expired_keys", "redis_expired_keys_total"),
        ("rdb_changes_since_last_save", "redis_rdb_changes_since_last_save"),
        ("total_error_replies", "redis_total_error_replies"),
        ("master_repl_offset", "redis_master_repl_offset"),
        ("process_id", "redis_process_id"),
        ("aof_enabled", "redis_aof_enabled"),
        ("rdb_last_save_time", "redis_rdb_last_save_timestamp_seconds"),
        ("workers", "brisk_workers"),
    ] {
        let shown: f64 = server.info(field).parse().unwrap();
        assert_eq!(exposition.value(metric, &[]), shown, "{metric}");
    }
    let family = &exposition.families["redis_instance_info"];
    let labels = &family.samples[0].labels;
    for name in ["role", "redis_version", "os", "maxmemory_policy", "tcp_port", "run_id"] {
        assert_eq!(labels[name], server.info(name), "{name}");
    }
}

#[test]
fn metrics_have_the_values_of_info_in_both_formats() {
    each(
        |launch| launch.set("maxmemory", "100mb").set("appendonly", "yes"),
        |server, port| {
            let mut conn = server.connect();
            for number in 0..7 {
                assert_reply!(conn, &format!("SET key{number} x"), "OK");
            }
            assert_reply!(conn, "EXPIRE key1 1000", "(integer) 1");
            assert_reply!(conn, "GET key0", "\"x\"");
            assert_reply!(conn, "GET nokey", "(nil)");
            assert_reply!(conn, "SELECT 3", "OK");
            assert_reply!(conn, "SET only x", "OK");
            conn.cmd("LPUSH only x");
            conn.cmd("GET");
            for open in [false, true] {
                let response = Web::connect(port).get("/metrics", if open { OPEN } else { "" });
                let seen = Exposition::parse(&response.body, open);
                agree(server, &seen);
                let cmd = |name: &str, cmd: &str| seen.value(name, &[("cmd", cmd)]);
                assert_eq!(cmd("redis_commands_total", "set"), 8.0);
                assert_eq!(cmd("redis_commands_failed_calls_total", "lpush"), 1.0);
                assert_eq!(cmd("redis_commands_rejected_calls_total", "get"), 1.0);
                assert!(cmd("redis_commands_duration_seconds_total", "set") > 0.0);
                assert_eq!(cmd("redis_commands_latencies_usec_count", "set"), 8.0);
                assert_eq!(cmd("redis_latency_percentiles_usec_count", "set"), 8.0);
                assert_eq!(seen.value("redis_db_keys", &[("db", "db0")]), 7.0);
                assert_eq!(seen.value("redis_db_keys_expiring", &[("db", "db0")]), 1.0);
                assert_eq!(seen.value("redis_db_keys", &[("db", "db3")]), 1.0);
                assert_eq!(seen.value("redis_db_keys", &[("db", "db15")]), 0.0);
                assert_eq!(seen.value("redis_errors_total", &[("err", "WRONGTYPE")]), 1.0);
                assert_eq!(seen.value("redis_up", &[]), 1.0);
                let commands = seen.sum("brisk_worker_commands_total");
                // The INFO that `agree` calls is executed after the metrics have been read.
                assert!(commands >= 13.0, "{commands}");
                assert!(seen.families.len() > 120, "{}", seen.families.len());
            }
            wait_until("all is on the disk", || {
                let response = get(port, "/metrics");
                Exposition::parse(&response.body, false).value("brisk_aof_unsynced_bytes", &[])
                    == 0.0
            });
        },
    );
}

#[test]
fn promtool_has_no_objection() {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    let server = with_http(with_workers(2), &port).start();
    assert_reply!(server.connect(), "SET a b", "OK");
    let body = get(&port, "/metrics").body;
    let Some(said) = brisk_tests::web::piped("promtool", &["check", "metrics"], &body) else {
        brisk_testkit::skipped("no promtool on this machine");
        return;
    };
    assert_eq!(said, "");
}

#[test]
fn names_of_metrics_follow_the_conventions_of_prometheus() {
    if subject_is_redis() {
        return;
    }
    for seen in full_metrics() {
        assert_eq!(seen.lint(), Vec::<String>::new());
        // INFO has these fields in milliseconds. They are 0 on a server that has evicted and expired nothing.
        for name in [
            "redis_eviction_exceeded_time_seconds_total",
            "redis_current_eviction_exceeded_time_seconds",
        ] {
            assert_eq!(seen.value(name, &[]), 0.0, "{name}");
        }
        assert_eq!(seen.value("redis_rdb_current_bgsave_duration_seconds", &[]), -1.0);
    }
}

/// The responses of a primary that has done something for every metric, and of its replica.
fn full_metrics() -> [Exposition; 2] {
    let ports = [Port::claim(), Port::claim()];
    let primary = with_http(with_workers(2), &ports[0])
        .set("appendonly", "yes")
        .set("slowlog-log-slower-than", "0")
        .set("latency-monitor-threshold", "1")
        .start();
    let replica = with_http(with_workers(1), &ports[1])
        .set("replicaof", &format!("127.0.0.1 {}", primary.port()))
        .start();
    replica.wait_for_info("master_link_status", |status| status == "up");
    let mut conn = primary.connect();
    conn.cmd("SET a b");
    conn.cmd("LPUSH a b");
    conn.cmd("DEBUG SLEEP 0.01");
    ports.map(|port| Exposition::parse(&get(&port, "/metrics").body, false))
}

/// If a name is in the source but not in any response, it belongs to a field that INFO does not have.
#[test]
fn every_metric_in_the_source_is_in_a_real_response() {
    if subject_is_redis() {
        return;
    }
    let directory = workspace_root().join("crates/server/src/http/metrics");
    let files = ["mod.rs", "fields/process.rs", "fields/data.rs"];
    let sources = files.map(|file| std::fs::read_to_string(directory.join(file)).unwrap()).concat();
    let names: Vec<&str> = sources
        .split('"')
        .filter(|word| word.starts_with("redis_") || word.starts_with("brisk_"))
        // These are labels, which are named after fields of INFO.
        .filter(|name| {
            !name.ends_with("_version") && !["redis_build_id", "redis_mode"].contains(name)
        })
        .collect();
    assert!(names.len() > 150, "{}", names.len());
    let shown = full_metrics();
    for name in names {
        assert!(shown.iter().any(|seen| seen.families.contains_key(name)), "{name} is missing");
    }
}

#[test]
fn every_metric_of_the_dashboard_is_in_a_real_response() {
    if subject_is_redis() {
        return;
    }
    let shown = full_metrics();
    let path = workspace_root().join("packaging/grafana/brisk.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        expressions.extend(targets.map(|target| target["expr"].as_str().unwrap().to_owned()));
    }
    assert!(expressions.len() > 40);
    for expression in &expressions {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names: Vec<&str> = expression
            .split(|c| !is_of_name(c))
            .filter(|name| name.starts_with("redis_") || name.starts_with("brisk_"))
            .collect();
        assert!(!names.is_empty(), "{expression}");
        for name in names {
            let is_there = |seen: &Exposition| seen.has_sample(name);
            assert!(shown.iter().any(is_there), "{name} is in no answer");
        }
    }
    // The metrics that the published dashboards of redis_exporter use.
    for name in [
        "redis_blocked_clients",
        "redis_commands_duration_seconds_total",
        "redis_commands_total",
        "redis_connected_clients",
        "redis_connected_slaves",
        "redis_db_keys",
        "redis_db_keys_expiring",
        "redis_evicted_keys_total",
        "redis_expired_keys_total",
        "redis_keyspace_hits_total",
        "redis_keyspace_misses_total",
        "redis_master_last_io_seconds_ago",
        "redis_memory_fragmentation_ratio",
        "redis_memory_max_bytes",
        "redis_memory_used_bytes",
        "redis_memory_used_rss_bytes",
        "redis_net_input_bytes_total",
        "redis_net_output_bytes_total",
        "redis_up",
        "redis_uptime_in_seconds",
    ] {
        assert!(shown.iter().any(|seen| seen.has_sample(name)), "{name} is in no answer");
    }
    let lag = &shown[0].families["brisk_replica_behind_seconds"];
    assert_eq!((lag.kind, lag.samples.len()), (Kind::Gauge, 1));
}

#[test]
fn metrics_need_the_password_and_probes_do_not() {
    each(
        |launch| launch.set("http-password", "\"open sesame\"").set("http-user", "Aladdin"),
        |server, port| {
            for header in ["", &basic("Aladdin", "x"), &basic("default", "open sesame")] {
                let response = Web::connect(port).get("/metrics", header);
                let challenge = response.header("www-authenticate");
                assert_eq!((response.status, challenge.starts_with("Basic realm=")), (401, true));
            }
            let admitted = basic("Aladdin", "open sesame");
            assert_eq!(Web::connect(port).get("/metrics", &admitted).status, 200);
            assert_eq!(get(port, "/health").status, 200);
            assert_eq!(ready(port).0, 200);
            let mut conn = server.connect();
            assert_reply!(conn, "CONFIG SET http-password other", "OK");
            assert_eq!(Web::connect(port).get("/metrics", &admitted).status, 401);
            assert_eq!(Web::connect(port).get("/metrics", &basic("Aladdin", "other")).status, 200);
            assert_reply!(conn, "CONFIG SET http-password \"\"", "OK");
            assert_eq!(get(port, "/metrics").status, 200);
        },
    );
}

#[test]
fn responses_arrive_while_every_worker_is_quiesced() {
    each(
        |launch| launch.set("busy-reply-threshold", "5000"),
        |server, port| {
            let [mut one, mut other] = server.connections();
            // A script that accesses undeclared keys quiesces all workers until it counts as slow. On a slow machine,
            // the test may miss this period. In this case the script is killed and started again.
            let mut runs = false;
            wait_until("replies during quiescence", || {
                if !std::mem::replace(&mut runs, true) {
                    one.send("EVAL \"redis.call('get', 'undeclared') while true do end\" 0");
                }
                other.send("PING");
                let mut statuses = None;
                if !other.has_reply_within(Duration::from_millis(100)) {
                    let found =
                        ["/health", "/ready", "/metrics"].map(|path| get(port, path).status);
                    statuses = (!other.has_reply_within(Duration::from_millis(1))).then_some(found);
                }
                let reply = other.reply().text();
                if reply == "PONG" {
                    return false;
                }
                assert!(reply.starts_with("BUSY "), "{reply}");
                assert_reply!(other, "SCRIPT KILL", "OK");
                one.reply();
                runs = false;
                statuses.is_some_and(|statuses| {
                    assert_eq!(statuses, [200, 200, 200]);
                    true
                })
            });
            one.send("DEBUG SLEEP 2");
            assert_eq!(get(port, "/metrics").status, 200);
            assert!(!one.has_reply_within(Duration::from_millis(1)), "the sleep was over before");
            assert_reply!(one, "PING", "OK");
            one.reply();
        },
    );
}

#[test]
fn ready_says_why_clients_should_not_be_sent_here() {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    let unused = Port::claim();
    let launch = with_http(with_workers(1), &port).set("save", "3600 1");
    let mut server = launch.clone().start();
    let mut conn = server.connect();
    assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {}", unused.number()), "OK");
    assert_eq!(ready(&port), (503, "no link to the primary".to_owned()));
    assert_eq!(get(&port, "/health").status, 200);
    assert_reply!(conn, "REPLICAOF NO ONE", "OK");
    assert_eq!(ready(&port).0, 200);
    // A snapshot cannot replace a directory.
    let dump = server.dir().join("dump.rdb");
    std::fs::create_dir_all(dump.join("inside")).unwrap();
    assert_reply!(conn, "SET a b", "OK");
    conn.cmd("BGSAVE");
    server.wait_for_info("rdb_last_bgsave_status", |status| status == "err");
    assert_eq!(ready(&port), (503, "the disk rejects writes".to_owned()));
    assert!(conn.cmd("SET a b").to_string().contains("MISCONF"));
    std::fs::remove_dir_all(&dump).unwrap();
    assert_reply!(conn, "CONFIG SET stop-writes-on-bgsave-error no", "OK");
    assert_eq!(ready(&port).0, 200);
    conn.cmd("DEBUG POPULATE 3000");
    assert_reply!(conn, "SAVE", "OK");
    server.kill_for_now();
    let launch = launch.set("key-load-delay", "1000").while_loading();
    launch.start_again(&mut server);
    assert_eq!(ready(&port), (503, "loading the dataset".to_owned()));
    assert_eq!(get(&port, "/health").status, 200);
    let seen = Exposition::parse(&get(&port, "/metrics").body, false);
    assert_eq!(seen.value("redis_loading_dump_file", &[]), 1.0);
    assert_reply!(server.connect(), "CONFIG SET key-load-delay 0", "OK");
    wait_until("the dataset is loaded", || ready(&port).0 == 200);
}

#[test]
fn without_the_directive_nothing_listens_and_there_is_no_thread() {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    let server = with_workers(1).start();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port.number())).is_err());
    assert!(!server.thread_names().contains(&"brisk-http".to_owned()));
    let server = with_http(with_workers(1), &port).start();
    assert!(server.thread_names().contains(&"brisk-http".to_owned()));
    // A clean shutdown closes the listener.
    drop(Web::connect(&port));
    assert_eq!(server.terminate(), Some(0));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port.number())).is_err());
}
