//! A client that sends many requests and reads late uses bounded memory, and still gets every reply. (P4)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, each_backend, wait_until, words};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Writes to `stream` until the peer accepts nothing for a while. Returns the number of bytes written.
fn write_until_refused(stream: &mut TcpStream, request: &[u8], times: usize) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let bytes = request.repeat(times);
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(n) => written += n,
            Err(_) => break,
        }
    }
    written
}

#[test]
fn a_client_that_never_reads_costs_little_and_blocks_no_other() {
    each_backend(Launch::subject, |server| {
        let mut other = server.connect();
        let value = "v".repeat(1024);
        assert_reply!(other, &format!("SET k {value}"), "OK");
        let before = server.rss();

        let mut deaf = TcpStream::connect(server.address()).unwrap();
        let request = words::encode(&["GET", "k"]);
        write_until_refused(&mut deaf, &request, 200_000);

        assert_reply!(other, "GET k", format!("\"{value}\""));
        assert_reply!(other, "SET other 1", "OK");
        if !subject_is_redis() {
            // 200 MB of replies are due. The server may hold one output limit and one input buffer, plus memory that
            // the allocator retains after serving `other`.
            let grown = server.rss().saturating_sub(before);
            assert!(grown < 8 * MIB, "grew by {grown} bytes");
        }
    });
}

#[test]
fn a_client_that_reads_late_gets_every_reply_in_order() {
    const REQUESTS: usize = 60_000;
    each_backend(Launch::subject, |server| {
        let late = TcpStream::connect(server.address()).unwrap();
        let mut sender = late.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let padding = "p".repeat(500);
            for i in 0..REQUESTS {
                sender.write_all(&words::encode(&["ECHO", &format!("{i}{padding}")])).unwrap();
            }
        });
        // Start reading when the server accepts no more requests, so that its counters no longer change.
        let mut control = server.connect();
        let mut last = 0;
        wait_until("the server takes no more", || {
            let now: u64 = control.info("total_net_input_bytes").parse().unwrap();
            // The INFO requests themselves are counted too, with a few dozen bytes each.
            let has_stopped = now > MIB && now - last < 1_000;
            last = now;
            has_stopped || sending.is_finished()
        });
        let mut input = std::io::BufReader::with_capacity(1 << 16, late);
        let padding = "p".repeat(500);
        for i in 0..REQUESTS {
            let text = format!("{i}{padding}");
            let wanted = format!("${}\r\n{text}\r\n", text.len());
            let mut got = vec![0; wanted.len()];
            input.read_exact(&mut got).unwrap();
            assert!(got == wanted.as_bytes(), "reply {i}: {}", String::from_utf8_lossy(&got));
        }
        sending.join().unwrap();
    });
}

#[test]
fn many_clients_that_never_read_stay_below_the_limit_of_all_together() {
    const CLIENTS: usize = 64;
    if subject_is_redis() {
        return; // holds all replies
    }
    each_backend(
        || Launch::subject().set("output-total-limit", "8mb"),
        |server| {
            let mut other = server.connect();
            assert_reply!(other, &format!("SET k {}", "v".repeat(8192)), "OK");
            let before = server.rss();
            // Each client causes eight megabytes of replies. The kernel buffers some of it, and the soft limit allows
            // one megabyte per client, 64 MB in total.
            let batch = words::encode(&["GET", "k"]).repeat(1_000);
            let deaf: Vec<TcpStream> = (0..CLIENTS)
                .map(|_| {
                    let mut socket = TcpStream::connect(server.address()).unwrap();
                    socket.write_all(&batch).unwrap();
                    socket
                })
                .collect();
            wait_until("all have asked and nothing moves any more", || {
                let metric = |conn: &mut brisk_testkit::Conn, name| -> u64 {
                    conn.info(name).parse().unwrap()
                };
                metric(&mut other, "connected_clients") == CLIENTS as u64 + 1
                    && metric(&mut other, "output_stalls") >= CLIENTS as u64
                    && metric(&mut other, "instantaneous_ops_per_sec") < 500
            });
            // In addition to the limit, there are 16 KiB and the rest of a receive for each client, and memory that the
            // allocator retains.
            let grown = server.rss().saturating_sub(before);
            assert!(grown < 32 * MIB, "grew by {grown} bytes");
            drop(deaf);
            wait_until("they are gone", || other.info("connected_clients") == "1");
        },
    );
}

/// Maximum memory for one client that does not read: the limit, a 64 KiB buffer for each of its queues, and the rest of
/// a receive.
const CLIENT_BYTES_MAX: u64 = 4 * MIB;

/// The values of one field of CLIENT LIST, for all clients with this name.
fn fields(conn: &mut Conn, name: &str, field: &str) -> Vec<u64> {
    let list = conn.cmd("CLIENT LIST").text();
    let of_name = list.lines().filter(|line| line.contains(&format!(" name={name} ")));
    let value = |line: &str| -> Option<u64> {
        line.split(' ').find_map(|word| word.strip_prefix(field)?.strip_prefix('='))?.parse().ok()
    };
    of_name.filter_map(value).collect()
}

/// A client with this name that sends some commands and then stops reading.
fn deaf(server: &Server, name: &str, commands: &[&str]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut setup = words::encode(&["CLIENT", "SETNAME", name]);
    for command in commands {
        setup.extend(words::encode(&command.split(' ').collect::<Vec<_>>()));
    }
    stream.write_all(&setup).unwrap();
    stream
}

/// Repeats a request until the client is stalled: the server executes no more commands, and the kernel accepts no more
/// bytes. Fails after `most` bytes.
fn send_until_stalled(server: &Server, stream: &mut TcpStream, request: &[u8], most: usize) {
    let mut control = server.connect();
    stream.set_nonblocking(true).unwrap();
    let bytes = request.repeat((256 * 1024_usize).div_ceil(request.len()));
    let (mut sent, mut at, mut executed) = (0, 0, u64::MAX);
    wait_until("it has its name", || !fields(&mut control, "deaf", "id").is_empty());
    wait_until("the client is stalled", || {
        let before = sent;
        loop {
            match stream.write(&bytes[at..]) {
                Ok(written) => {
                    sent += written;
                    at = (at + written) % bytes.len();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
            assert!(sent < most, "{sent} bytes were taken");
        }
        let now = fields(&mut control, "deaf", "tot-cmds")[0];
        let moves = std::mem::replace(&mut executed, now) != now || sent != before;
        !moves && fields(&mut control, "deaf", "omem")[0] > 0
    });
}

/// The pipelines are such that a receive causes less than 64 KiB of replies, or that a single command causes a large
/// reply.
#[test]
fn output_held_for_a_pipeline_is_bounded() {
    if subject_is_redis() {
        return; // holds all replies
    }
    let (small, large) = ("v".repeat(1000), "n".repeat(4000));
    let loads: &[&[&[&str]]] = &[
        &[&["SET", "other", &small], &["GET", "string"]],
        &[&["GETSET", "string", &small]],
        &[&["SET", "string", &small, "GET"]],
        &[&["INCRBY", "number", "1000000000"]],
        &[&["PING", &small]],
        &[&["HSET", "hash", "a", &small, "b", &small], &["HGETALL", "hash"]],
        &[&["LRANGE", "list", "0", "-1"], &["SET", "other", &small]],
        &[&["MGET", "string", &large]],
        &[&["SUBSCRIBE", "news"], &["PING", &small]],
        &[&["MULTI"], &["SET", "other", &small], &["GET", "string"], &["EXEC"]],
    ];
    each_backend(Launch::subject, |server| {
        let mut control = server.connect();
        control.call(&["SET", "string", &small]);
        control.call(&["RPUSH", "list", "one", "two", "three"]);
        for load in loads {
            let request: Vec<u8> = load.iter().flat_map(|words| words::encode(words)).collect();
            let mut stream = deaf(server, "deaf", &[]);
            send_until_stalled(server, &mut stream, &request, 256 << 20);
            let held = fields(&mut control, "deaf", "tot-mem")[0];
            assert!(held < CLIENT_BYTES_MAX, "{held} for {:?}", load[0][0]);
            drop(stream);
            wait_until("it is gone", || fields(&mut control, "deaf", "id").is_empty());
        }
    });
}

/// Runs `load` with a dataset that leaves little memory, and returns how many of its keys are left.
fn keys_left(server: &Server, load: impl FnOnce(&Server, &mut Conn) -> Vec<TcpStream>) -> String {
    const KEYS: usize = 200;
    let mut control = server.connect();
    for at in 0..KEYS {
        control.call(&["SET", &format!("key:{at}"), &"v".repeat(50_000)]);
    }
    let used: u64 = control.info("used_memory").parse().unwrap();
    // The input and the replies of the test's own requests use some memory.
    let max = (used + 6 * MIB).to_string();
    assert_eq!(control.call(&["CONFIG", "SET", "maxmemory", &max]).text(), "OK");
    assert_reply!(control, "CONFIG SET maxmemory-policy allkeys-lru", "OK");
    let deaf = load(server, &mut control);
    // This write evicts keys if memory is needed.
    assert_reply!(control, "SET key:0 v", "OK");
    let left = format!("{} keys, {} evicted", control.cmd("DBSIZE"), control.info("evicted_keys"));
    drop(deaf);
    left
}

#[test]
#[expect(clippy::too_many_lines, reason = "five loads, each of a few lines")]
fn unread_replies_evict_no_keys() {
    if subject_is_redis() {
        return; // counts output like data
    }
    type Load = fn(&Server, &mut Conn) -> Vec<TcpStream>;
    let large_replies: Load = |server, control| {
        let mut request = vec!["MGET".to_owned()];
        request.extend((0..100).map(|at| format!("key:{at}")));
        let request = words::encode(&request);
        let deaf = (0..30).map(|_| {
            let mut stream = deaf(server, "deaf", &[]);
            stream.write_all(&request).unwrap();
            stream
        });
        let deaf: Vec<_> = deaf.collect();
        // Each client sends two commands: CLIENT SETNAME and MGET.
        wait_until("all have a reply", || fields(control, "deaf", "tot-cmds") == [2; 30]);
        deaf
    };
    let trackers: Load = |server, control| {
        let tracking = ["HELLO 3", "CLIENT TRACKING ON BCAST"];
        let deaf: Vec<_> = (0..3).map(|_| deaf(server, "deaf", &tracking)).collect();
        wait_until("they track", || control.info("tracking_clients") == "3");
        let padding = "y".repeat(2000);
        for _ in 0..20 {
            let keys: Vec<_> = (0..200).map(|at| format!("short:{at}:{padding}")).collect();
            let changes: Vec<_> = keys.iter().map(|key| format!("SETEX {key} 1000 v")).collect();
            let removals = keys.iter().map(|key| format!("UNLINK {key}"));
            let lines: Vec<_> = changes.into_iter().chain(removals).collect();
            control.pipeline(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
        for held in fields(control, "deaf", "tot-mem") {
            assert!(held < CLIENT_BYTES_MAX, "{held}");
        }
        deaf
    };
    let monitor: Load = |server, control| {
        let deaf = vec![deaf(server, "deaf", &["MONITOR"])];
        wait_until("it monitors", || control.cmd("CLIENT LIST").text().contains(" flags=O "));
        let line = format!("ECHO {}", "y".repeat(10_000));
        for _ in 0..20 {
            control.pipeline(&[line.as_str(); 100]);
        }
        deaf
    };
    let subscribers: Load = |server, control| {
        let deaf: Vec<_> = (0..3).map(|_| deaf(server, "deaf", &["SUBSCRIBE news"])).collect();
        wait_until("they listen", || control.cmd("PUBLISH news a").integer() == 3);
        for length in [500, 5000] {
            let line = format!("PUBLISH news {}", "m".repeat(length));
            for _ in 0..20 {
                control.pipeline(&vec![line.as_str(); 500_000 / length]);
            }
        }
        deaf
    };
    let replaced: Load = |server, control| {
        let request = [
            words::encode(&["SET", "key:1", &"v".repeat(400_000)]),
            words::encode(&["GET", "key:1"]),
        ];
        let mut deaf: Vec<_> = (0..10).map(|_| deaf(server, "deaf", &[])).collect();
        for stream in &mut deaf {
            // The kernel buffers several megabytes of the replies.
            write_until_refused(stream, &request.concat(), 30);
        }
        wait_until("all are stalled", || {
            fields(control, "deaf", "omem").iter().filter(|omem| **omem > 900_000).count() == 10
        });
        deaf
    };
    let loads: [(&str, Load); 5] = [
        ("replies of many values", large_replies),
        ("invalidations", trackers),
        ("lines of MONITOR", monitor),
        ("published messages", subscribers),
        ("values that were replaced", replaced),
    ];
    for (name, load) in loads {
        each_backend(
            || Launch::subject().set("save", ""),
            |server| assert_eq!(keys_left(server, load), "(integer) 200 keys, 0 evicted", "{name}"),
        );
    }
}

#[test]
fn a_monitor_that_does_not_read_is_closed_at_the_limit_of_subscribers() {
    if subject_is_redis() {
        return; // MONITOR has no limit there
    }
    let server = Launch::subject().set("client-output-buffer-limit", "pubsub 1mb 1mb 60").start();
    let mut control = server.connect();
    let stream = deaf(&server, "deaf", &["MONITOR"]);
    wait_until("it monitors", || control.cmd("CLIENT LIST").text().contains(" flags=O "));
    let line = format!("ECHO {}", "y".repeat(10_000));
    wait_until("it is closed", || {
        control.pipeline(&[line.as_str(); 100]);
        fields(&mut control, "deaf", "id").is_empty()
    });
    assert_eq!(control.info("client_output_buffer_limit_disconnections"), "1");
    drop(stream);
}
