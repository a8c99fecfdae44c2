//! Huge values: how long other clients wait while a huge value is deleted, read slowly, or created from others.
//!
//! Every result is the longest round trip of a GET on a separate connection, from before the command until some time
//! after its reply, because memory is freed after the reply.

use super::Setup;
use super::load::percentile_ms;
use super::report::{Limit, Report, Row};
use super::sides::Sides;
use anyhow::{Context, Result, ensure};
use brisk_differential::peer::Peer;
use brisk_testkit::server::Server;
use brisk_testkit::wait::holds_within;
use brisk_testkit::words::{encode, encode_into};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Elements per command; the next constant is the number of commands per write while values are built.
const ELEMENTS_PER_COMMAND: u64 = 500;
const COMMANDS_PER_SEND: u64 = 8;
/// How long other clients are measured before and after a command.
const CALM: Duration = Duration::from_millis(100);
/// The limit for the waits of other clients, in ms.
const WAIT_MS_MAX: f64 = 5.0;
/// The bytes of `$5`, `value`, and their line ends.
const GET_REPLY_BYTES: usize = 11;
const MIB: f64 = 1024.0 * 1024.0;
/// A slow reader reads this number of bytes at a time. The next constants are the number of reads and the pause between
/// them.
const SIP_BYTES: usize = 32 * 1024;
const SIPS: u32 = 300;
const BETWEEN_SIPS: Duration = Duration::from_millis(10);

/// How a kind of value is built.
struct Kind {
    name: &'static str,
    command: &'static str,
    /// Appends the arguments of element `i`.
    element: fn(&mut Vec<String>, u64),
}

const KINDS: [Kind; 4] = [
    Kind { name: "set", command: "SADD", element: |words, i| words.push(member(i)) },
    Kind {
        name: "sorted set",
        command: "ZADD",
        element: |words, i| words.extend([(i * 7919 % 1_000_003).to_string(), member(i)]),
    },
    Kind {
        name: "hash",
        command: "HSET",
        element: |words, i| words.extend([member(i), i.to_string()]),
    },
    Kind { name: "list", command: "RPUSH", element: |words, i| words.push(member(i)) },
];

fn member(i: u64) -> String {
    format!("element:{i:010}")
}

/// Puts elements `range` of a kind under `key`.
fn build(server: &Server, kind: &Kind, key: &str, range: std::ops::Range<u64>) -> Result<()> {
    let mut peer = Peer::connect(&server.address())?;
    let mut next = range.start;
    let mut bytes = Vec::new();
    while next < range.end {
        bytes.clear();
        let mut sent = 0;
        while sent < COMMANDS_PER_SEND && next < range.end {
            let mut words = vec![kind.command.to_owned(), key.to_owned()];
            let end = (next + ELEMENTS_PER_COMMAND).min(range.end);
            (next..end).for_each(|i| (kind.element)(&mut words, i));
            encode_into(&mut bytes, &words);
            (next, sent) = (end, sent + 1);
        }
        peer.send(&bytes)?;
        for _ in 0..sent {
            let reply = peer.reply().map_err(anyhow::Error::msg)?;
            ensure!(reply.starts_with(b":"), "{}", String::from_utf8_lossy(reply));
        }
    }
    Ok(())
}

/// Round trips of GET on one connection while `act` runs, and for some time before and after.
pub(super) fn watch<R: Send>(
    server: &Server,
    act: impl FnOnce() -> Result<R> + Send,
) -> Result<(Vec<Duration>, R)> {
    Peer::connect(&server.address())?.request(&["SET", "small", "value"])?;
    // There is no timeout, because a server may stall for many seconds, which must be measured.
    let mut socket = TcpStream::connect(server.address())?;
    let request = encode(&["GET", "small"]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| -> Result<Vec<Duration>> {
            let (mut times, mut reply) = (Vec::new(), [0; GET_REPLY_BYTES]);
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                socket.write_all(&request)?;
                // FLUSHALL may have deleted the key.
                socket.read_exact(&mut reply[..5])?;
                if !reply.starts_with(b"$-1\r\n") {
                    socket.read_exact(&mut reply[5..])?;
                }
                times.push(begun.elapsed());
            }
            times.sort();
            Ok(times)
        });
        pass(CALM)?;
        let acted = act();
        pass(CALM)?;
        done.store(true, Ordering::Relaxed);
        let times = watching.join().map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
        Ok((times, acted?))
    })
}

/// Waits for this long. The wait is part of the measurement.
pub(super) fn pass(span: Duration) -> Result<()> {
    ensure!(!holds_within(span, || false));
    Ok(())
}

/// Waits until the server has freed all deleted values.
fn wait_until_freed(server: &Server) {
    server.wait_for_info("lazyfree_pending_objects", |pending| pending == "0");
}

fn request(server: &Server, words: &[&str]) -> Result<()> {
    let mut socket = TcpStream::connect(server.address())?;
    socket.write_all(&encode(words))?;
    let mut byte = [0];
    // There is no time limit. The rest of the reply is dropped with the connection.
    socket.read_exact(&mut byte)?;
    ensure!(byte[0] != b'-', "{} failed", words.join(" "));
    Ok(())
}

/// A way to remove a huge value. `big` is the huge value, `other` a small one.
struct Loss {
    name: &'static str,
    words: &'static [&'static str],
}

const LOSSES: &[Loss] = &[
    Loss { name: "DEL", words: &["DEL", "big"] },
    Loss { name: "UNLINK", words: &["UNLINK", "big"] },
    Loss { name: "expiry", words: &["PEXPIRE", "big", "20"] },
    Loss { name: "RENAME replacing it", words: &["RENAME", "other", "big"] },
    Loss { name: "SET replacing it", words: &["SET", "big", "value"] },
    Loss { name: "SUNIONSTORE replacing it", words: &["SUNIONSTORE", "big", "members"] },
    Loss { name: "FLUSHALL", words: &["FLUSHALL"] },
];

/// The longest wait of other clients while each kind of value is removed in each way.
fn losses(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let count = setup.scaled(10_000_000);
    let only = setup.options.text("only").map(str::to_ascii_lowercase);
    for kind in &KINDS {
        let sides = Sides::start(setup)?;
        for loss in LOSSES {
            let what = format!("longest GET, {} of a {} of {count} elements", loss.name, kind.name);
            if only.as_ref().is_some_and(|only| !what.to_ascii_lowercase().contains(only)) {
                continue;
            }
            let mut waits = Vec::new();
            for server in sides.all() {
                build(server, kind, "big", 0..count)?;
                request(server, &["SET", "other", "value"])?;
                request(server, &["SADD", "members", "a", "b"])?;
                let (times, ()) = watch(server, || {
                    request(server, loss.words)?;
                    pass(CALM)?;
                    wait_until_freed(server);
                    Ok(())
                })?;
                waits.push(percentile_ms(&times, 100));
                request(server, &["FLUSHALL"])?;
                wait_until_freed(server);
            }
            report.add(Row {
                what,
                unit: "ms",
                ours: waits[0],
                theirs: waits.last().copied(),
                limit: Limit::Most(WAIT_MS_MAX),
            });
        }
    }
    Ok(())
}

/// HGETALL by a client that reads slowly: its memory, and the waits of other clients, including those that write to the
/// same hash.
fn slow_hgetall(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let count = setup.scaled(1_000_000);
    let sides = Sides::start(setup)?;
    let server = &sides.ours[0].1;
    build(server, &KINDS[2], "big", 0..count)?;
    // The buffers of this connection must not count as growth.
    let mut control = server.connect();
    control.cmd("HGET big nothing");
    let quiet = watch(server, || pass(CALM * 10))?.0;
    let before = server.rss();
    let sip = |writer: Option<&mut Peer>| -> Result<u64> {
        let mut socket = TcpStream::connect(server.address())?;
        socket.write_all(&encode(&["HGETALL", "big"]))?;
        let (mut buffer, mut most, mut writer) = (vec![0; SIP_BYTES], 0, writer);
        for i in 0..SIPS {
            socket.read_exact(&mut buffer)?;
            pass(BETWEEN_SIPS)?;
            if let Some(writer) = &mut writer {
                writer.request(&[
                    "HSET",
                    "big",
                    &member(u64::from(i) * 7919 % count),
                    "changed",
                ])?;
            }
            most = most.max(server.rss());
        }
        Ok(most.saturating_sub(before))
    };
    let (times, grown) = watch(server, || sip(None))?;
    let mut writer = Peer::connect(&server.address())?;
    let (busy, copied) = watch(server, || sip(Some(&mut writer)))?;
    let hash = format!("HGETALL of {count} read slowly");
    let megabytes = |bytes: u64| bytes as f64 / MIB;
    report.ours(format!("memory, {hash}"), "MiB", megabytes(grown), Limit::Most(4.0));
    report.ours("p99 of GET before it", "ms", percentile_ms(&quiet, 99), Limit::None);
    report.ours("p99 of GET during it", "ms", percentile_ms(&times, 99), Limit::None);
    report.ours(
        "longest GET during it",
        "ms",
        percentile_ms(&times, 100),
        Limit::Most(WAIT_MS_MAX),
    );
    let what = format!("memory, the same while {SIPS} of its fields are written");
    report.ours(what, "MiB", megabytes(copied), Limit::None);
    report.ours("longest GET during it", "ms", percentile_ms(&busy, 100), Limit::Most(WAIT_MS_MAX));
    Ok(())
}

/// Commands that work on millions of elements.
const LONG: &[&[&str]] = &[
    &["SUNIONSTORE", "result", "set:a", "set:b"],
    &["SUNION", "set:a", "set:b"],
    &["SINTER", "set:a", "set:b"],
    &["SDIFFSTORE", "result", "set:a", "set:b"],
    &["ZUNIONSTORE", "result", "2", "zset:a", "zset:b"],
    &["ZINTER", "2", "zset:a", "zset:b"],
    &["SORT", "set:a", "ALPHA", "STORE", "result"],
    &["SORT", "set:a", "ALPHA"],
    &["SORT", "zset:a", "BY", "weight:*", "STORE", "result"],
    &["SORT", "zset:a", "BY", "weight:*", "LIMIT", "0", "10", "GET", "weight:*"],
    &["ZRANGESTORE", "result", "zset:a", "0", "-1"],
    &["GEOSEARCHSTORE", "result", "zset:a", "FROMLONLAT", "0", "0", "BYRADIUS", "30000", "km"],
    &["DUMP", "set:a"],
    &["COPY", "set:a", "result", "REPLACE"],
    &["BITOP", "NOT", "result", "bits"],
    &["BITCOUNT", "bits"],
    &["KEYS", "*"],
];

/// Creates a key with a weight for each element.
fn weigh(server: &Server, count: u64) -> Result<()> {
    for start in (0..count).step_by(ELEMENTS_PER_COMMAND as usize) {
        let end = (start + ELEMENTS_PER_COMMAND).min(count);
        let pair = |i: u64| [format!("weight:{}", member(i)), (i * 31 % 1_000_003).to_string()];
        let words: Vec<String> = (start..end).flat_map(pair).collect();
        let words = std::iter::once("MSET").chain(words.iter().map(String::as_str));
        request(server, &words.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// The waits of other clients during these commands, and the duration of the commands.
fn long_commands(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let count = setup.scaled(1_000_000);
    let sides = Sides::start(setup)?;
    let servers = sides.all();
    for server in &servers {
        for (kind, name) in [(&KINDS[0], "set"), (&KINDS[1], "zset")] {
            build(server, kind, &format!("{name}:a"), 0..count)?;
            build(server, kind, &format!("{name}:b"), count / 2..count / 2 + count)?;
        }
        request(server, &["SETBIT", "bits", &(count * 512).to_string(), "1"])?;
        weigh(server, count)?;
    }
    let quiet = watch(&sides.ours[0].1, || pass(CALM * 20))?.0;
    report.ours("longest GET in two idle seconds", "ms", percentile_ms(&quiet, 100), Limit::None);
    for words in LONG {
        let name = words[0];
        let (mut waits, mut took) = (Vec::new(), Vec::new());
        for server in &servers {
            let (times, lasted) = watch(server, || {
                let begun = Instant::now();
                request(server, words).with_context(|| name)?;
                Ok(begun.elapsed())
            })?;
            waits.push(percentile_ms(&times, 100));
            took.push(lasted.as_secs_f64() * 1000.0);
            request(server, &["DEL", "result"])?;
            wait_until_freed(server);
        }
        let line = words.join(" ");
        report.add(Row {
            what: format!("longest GET during {line}"),
            unit: "ms",
            ours: waits[0],
            theirs: waits.last().copied(),
            limit: Limit::Most(WAIT_MS_MAX),
        });
        report.add(Row {
            what: format!("duration of {name}"),
            unit: "ms",
            ours: took[0],
            theirs: took.last().copied(),
            limit: Limit::None,
        });
    }
    Ok(())
}

/// Runs all parts, or one with `--part losses`, `hgetall` or `long`.
pub(crate) fn huge(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let part = setup.options.text("part");
    let wanted = |name: &str| part.is_none_or(|part| part == name);
    if wanted("long") {
        long_commands(setup, report)?;
    }
    if wanted("hgetall") {
        slow_hgetall(setup, report)?;
    }
    if wanted("losses") {
        losses(setup, report)?;
    }
    Ok(())
}
