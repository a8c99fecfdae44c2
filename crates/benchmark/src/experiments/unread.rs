//! The memory that the server uses for clients that do not read, by kind of load. (Like P4, for all kinds of output.)

use super::finding::Measurement;
use super::stage::{MIB, Size, Stage, connect, info, request, used_bytes};
use super::{Experiment, Found};
use crate::requester::Requester;
use crate::subject::Subject;
use brisk_dial::address::Address;
use brisk_resp::request;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "unread",
    title: "Clients that do not read, by type of output",
    what: "A client sends up to 128 MiB of requests (16 MiB short) and reads nothing, or other \
           clients cause as much output for it: invalidations, lines of MONITOR, published \
           messages, the stream of a replica. The value is the growth of the server's memory. In \
           parentheses: the bound in MiB that Brisk guarantees with default settings; for a replica \
           it is the backlog, which all replicas share, plus the output of the replica. CLIENT \
           DURABILITY exists only in Brisk. Not from the articles.",
    run,
};

/// Bytes sent per load, in a short run and in a full run.
const BYTES: (usize, usize) = (16 << 20, 128 << 20);
/// Bytes sent with one write.
const PIECE_BYTES: usize = 256 << 10;
/// A client is considered stalled if no bytes have moved for this long. A server that waits for a CPU on a busy
/// machine, or for memory, may not read for more than half a second.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// The connection that causes output.
enum Cause {
    /// The client itself, which repeatedly sends these requests.
    Itself(&'static [&'static [&'static str]]),
    /// Another client, which sends this command.
    Other(&'static [&'static str]),
}

struct Load {
    name: &'static str,
    /// Requests that the client sends first.
    setup: &'static [&'static str],
    cause: Cause,
    bound_mib: f64,
}

/// Placeholder for a 1,000-byte value in a command.
const VALUE: &str = "<value>";

const fn pipeline(name: &'static str, requests: &'static [&'static [&'static str]]) -> Load {
    Load { name, setup: &[], cause: Cause::Itself(requests), bound_mib: 4.0 }
}

const LOADS: &[Load] = &[
    pipeline("GET", &[&["GET", "string"]]),
    pipeline("SET and GET", &[&["SET", "other", VALUE], &["GET", "string"]]),
    pipeline("GETSET", &[&["GETSET", "string", VALUE]]),
    pipeline("INCR", &[&["INCR", "number"]]),
    pipeline("PING", &[&["PING", VALUE]]),
    pipeline("HSET and HGETALL", &[&["HSET", "hash", "f", VALUE], &["HGETALL", "hash"]]),
    pipeline("LRANGE and SET", &[&["LRANGE", "list", "0", "-1"], &["SET", "other", VALUE]]),
    Load {
        name: "GET, replies held for a replica that is not connected",
        setup: &["CLIENT DURABILITY REPLICAS 1"],
        cause: Cause::Itself(&[&["SET", "other", VALUE], &["GET", "string"]]),
        bound_mib: 4.0,
    },
    Load {
        name: "invalidations",
        setup: &["HELLO 3", "CLIENT TRACKING ON BCAST"],
        cause: Cause::Other(&["UNLINK", VALUE]),
        bound_mib: 4.0,
    },
    Load {
        name: "MONITOR",
        setup: &["MONITOR"],
        cause: Cause::Other(&["PING", VALUE]),
        bound_mib: 33.0,
    },
    Load {
        name: "published messages",
        setup: &["SUBSCRIBE news"],
        cause: Cause::Other(&["PUBLISH", "news", VALUE]),
        bound_mib: 33.0,
    },
    Load {
        name: "the stream of a replica",
        setup: &["PSYNC ? -1"],
        cause: Cause::Other(&["SET", "other", VALUE]),
        bound_mib: 257.0,
    },
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    Ok(stage.alone(&[("save", "")], |subject, size, _| measurements(subject, size))?.into())
}

fn measurements(subject: &Subject, size: &Size) -> Result<Vec<Measurement>, String> {
    let Address::Tcp { resolved, .. } = &subject.target.address else {
        return Err("the clients use TCP: specify a server by host and port".to_owned());
    };
    let mut requester = connect(subject)?;
    let value = "v".repeat(1000);
    request(&mut requester, &["SET", "string", &value])?;
    request(&mut requester, &["SET", "other", &value])?;
    request(&mut requester, &["RPUSH", "list", "one", "two", "three"])?;
    let mut measurements = Vec::new();
    for load in LOADS {
        let what = format!("{} ({})", load.name, load.bound_mib);
        let needs_durability = load.setup.iter().any(|line| line.contains("DURABILITY"));
        if needs_durability
            && request(&mut requester, &["CLIENT", "DURABILITY", "DEFAULT"]).is_err()
        {
            measurements.push(Measurement::less(what, "MiB", None));
            continue;
        }
        let before = used_bytes(&mut requester)?;
        let mut client = TcpStream::connect(resolved).map_err(describe)?;
        for line in load.setup {
            client
                .write_all(&encoded(&[&line.split(' ').collect::<Vec<_>>()]))
                .map_err(describe)?;
        }
        let bytes = size.pick(BYTES.0, BYTES.1);
        let most = match load.cause {
            Cause::Itself(requests) => {
                send(&mut client, &encoded(requests), bytes, &mut requester)?
            }
            Cause::Other(words) => cause(&mut requester, words, &value, bytes)?,
        };
        measurements.push(Measurement::less(what, "MiB", (most - before).max(0.0) / MIB));
        drop(client);
        await_clients(&mut requester)?;
    }
    Ok(measurements)
}

fn describe(error: std::io::Error) -> String {
    format!("a client: {error}")
}

fn encoded(requests: &[&[&str]]) -> Vec<u8> {
    let value = "v".repeat(1000);
    let mut bytes = Vec::new();
    for words in requests {
        let words: Vec<&str> =
            words.iter().map(|word| if *word == VALUE { &value } else { *word }).collect();
        request::encode(&mut bytes, &words);
    }
    bytes
}

/// Repeats a request until `bytes` bytes are sent or the server accepts no more. Returns the peak
/// memory in use.
fn send(
    client: &mut TcpStream,
    request: &[u8],
    bytes: usize,
    requester: &mut Requester,
) -> Result<f64, String> {
    client.set_nonblocking(true).map_err(describe)?;
    let piece = request.repeat(PIECE_BYTES.div_ceil(request.len()));
    let (mut sent, mut most, mut moved) = (0, 0.0, Instant::now());
    while sent < bytes && moved.elapsed() < STALLED_AFTER {
        match client.write(&piece[sent % piece.len()..]) {
            Ok(written) => {
                sent += written;
                moved = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The server may close the connection.
            Err(_) => break,
        }
        most = f64::max(most, used_bytes(requester)?);
    }
    Ok(most)
}

/// Repeats a command until `bytes` bytes were sent. Returns the peak memory in use.
fn cause(
    requester: &mut Requester,
    words: &[&str],
    value: &str,
    bytes: usize,
) -> Result<f64, String> {
    let mut most: f64 = 0.0;
    for first in (0..bytes / value.len()).step_by(PIECE_BYTES / value.len()) {
        let (mut requests, mut replies) = (Vec::new(), 0);
        for number in first..first + PIECE_BYTES / value.len() {
            // Each change has its own key, so that several changes are not reported together.
            let value = format!("{number:08}{}", &value[8..]);
            let filled = words.iter().map(|word| if *word == VALUE { &value } else { *word });
            if words[0] == "UNLINK" {
                request::encode(&mut requests, &["SET", &value, "v"]);
                replies += 1;
            }
            request::encode(&mut requests, &filled.collect::<Vec<&str>>());
            replies += 1;
        }
        let failed = |error: crate::error::RunError| error.to_string();
        requester.send(&requests).map_err(failed)?;
        for _ in 0..replies {
            requester.reply().map_err(failed)?;
        }
        most = most.max(used_bytes(requester)?);
    }
    Ok(most)
}

/// Waits until the server has noticed that the client has disconnected.
fn await_clients(requester: &mut Requester) -> Result<(), String> {
    let begun = Instant::now();
    while info(requester, "clients", "connected_clients")? != "1"
        && begun.elapsed() < 3 * STALLED_AFTER
    {
        std::thread::park_timeout(STALLED_AFTER / 200);
    }
    Ok(())
}
