//! The memory that incomplete requests take. (Like P4, for input instead of output.)

use super::finding::Measurement;
use super::stage::{Stage, connect, info, request};
use super::{Experiment, Found};
use crate::engine::allow_descriptors;
use crate::requester::Requester;
use crate::subject::Subject;
use brisk_dial::address::Address;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "unfinished",
    title: "Clients that send the beginning of a large value",
    what: "1,000 clients each announce a SET of 512 MiB, then send 10 KB of the value, then 30 KB \
           more. The value is the memory that the server uses for each of them beyond that of an \
           idle client. An announcement should cost nothing; the bytes that were sent must be kept. \
           Not from the articles.",
    run,
};

const CLIENTS: usize = 1000;
const HEADER: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\nxxxx";
/// The bytes of the value that each client sends in a stage, and the name of the stage.
const STAGES: [(usize, &str); 3] = [
    (0, "per client that announced a value"),
    (10_000, "per client that sent 10 KB of it"),
    (30_000, "per client that sent 40 KB of it"),
];
/// Open files in addition to the clients.
const DESCRIPTORS_RESERVED: usize = 64;
/// How long the server may take to read the sent bytes.
const TIMEOUT: Duration = Duration::from_secs(60);

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    Ok(stage.alone(&[], |subject, _, _| measurements(subject))?.into())
}

fn measurements(subject: &Subject) -> Result<Vec<Measurement>, String> {
    let Address::Tcp { resolved, .. } = &subject.target.address else {
        return Err("the clients use TCP: specify a server by host and port".to_owned());
    };
    allow_descriptors(CLIENTS + DESCRIPTORS_RESERVED).map_err(|error| error.to_string())?;
    let describe = |error: std::io::Error| format!("a client: {error}");
    let mut requester = connect(subject)?;
    let clients = (0..CLIENTS).map(|_| TcpStream::connect(resolved));
    let mut clients: Vec<TcpStream> = clients.collect::<Result<_, _>>().map_err(describe)?;
    // Serve every client once first, so that the cost of a connection is not measured.
    send(&mut clients, b"PING\r\n", &mut requester)?;
    let before = resident(subject);
    let mut measurements = Vec::new();
    for (bytes, what) in STAGES {
        let piece = if bytes == 0 { HEADER.to_vec() } else { vec![b'x'; bytes] };
        send(&mut clients, &piece, &mut requester)?;
        let grown = resident(subject).zip(before);
        let each =
            grown.map(|(now, before)| now.saturating_sub(before) as f64 / CLIENTS as f64 / 1024.0);
        measurements.push(Measurement::less(what, "KiB", each));
    }
    Ok(measurements)
}

/// Sends these bytes from each client, and waits until the server has read them.
fn send(clients: &mut [TcpStream], bytes: &[u8], requester: &mut Requester) -> Result<(), String> {
    let read_before = bytes_read(requester)?;
    for client in clients.iter_mut() {
        client.write_all(bytes).map_err(|error| format!("a client: {error}"))?;
    }
    let sent = (clients.len() * bytes.len()) as u64;
    let begun = Instant::now();
    while bytes_read(requester)? < read_before + sent {
        if begun.elapsed() > TIMEOUT {
            return Err(format!("the server has not read {sent} bytes in {TIMEOUT:?}"));
        }
    }
    // When the server has replied to this PING, it has also handled what it read earlier.
    request(requester, &["PING"]).map(|_| ())
}

fn bytes_read(requester: &mut Requester) -> Result<u64, String> {
    let text = info(requester, "stats", "total_net_input_bytes")?;
    text.parse().map_err(|_| format!("total_net_input_bytes:{text}"))
}

fn resident(subject: &Subject) -> Option<u64> {
    subject.usage().map(|usage| usage.rss_bytes)
}
