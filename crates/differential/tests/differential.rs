//! Tests of the differential runner: equal servers show no difference, and an injected difference is found and shrunk.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_differential::{Options, reference, table::Table};
use brisk_testkit::reply::frame_len;
use brisk_testkit::server::{Launch, workspace_root};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

fn table(only: &[&str]) -> Table {
    let path = workspace_root().join("tests/data/redis-7.0.15.commands.json");
    let mut table = reference::read(&path).unwrap();
    table.retain(|name| only.is_empty() || only.contains(&name));
    table
}

fn options(seed: u64, commands: u64) -> Options {
    Options { seed, commands, episode: 2_000, ..Options::default() }
}

fn redis() -> Launch {
    Launch::redis().set("hz", "500")
}

#[test]
fn two_real_servers_agree_over_all_commands() {
    let (one, other) = (redis().start(), redis().start());
    let options = options(20, 8_000);
    let found =
        brisk_differential::run(&table(&[]), &one.address(), &other.address(), &options, |_| {})
            .unwrap();
    assert!(found.is_none(), "{}", found.unwrap());
}

#[test]
fn a_corrupted_reply_is_found_and_shrunk_to_what_causes_it() {
    let (upstream, theirs) = (redis().start(), redis().start());
    let liar = lying_proxy(upstream.address());
    let table = table(&["set", "append", "strlen", "get", "del", "rpush", "lpop", "multi", "exec"]);
    let options = options(3, 10_000);
    let finding =
        brisk_differential::run(&table, &liar, &theirs.address(), &options, |_| {}).unwrap();

    let finding = finding.expect("the runner believed a lie");
    assert_eq!(finding.difference.kind, "strlen", "{finding}");
    assert_ne!(finding.difference.ours, finding.difference.theirs);
    // One command to create a string, one to read its length, and sometimes one to select it by
    // type.
    assert!(finding.transcript.len() <= 3, "{finding}");
    let last = finding.transcript.last().unwrap().to_lowercase();
    assert!(last.starts_with("strlen") || last.starts_with("exec"), "{finding}");
    assert!(finding.to_string().contains("seed 3, episode "));
}

#[test]
fn a_lost_write_is_found_in_the_state_even_if_no_reply_shows_it() {
    let (upstream, theirs) = (redis().start(), redis().start());
    let table = table(&["hset"]);
    // "Our" server immediately converts every hash with more than one field to a table: the replies are the same, but
    // the state differs.
    let liar = lying_proxy(upstream.address());
    let options = options(5, 4_000);
    let found =
        brisk_differential::run(&table, &liar, &theirs.address(), &options, |_| {}).unwrap();

    let finding = found.expect("the states differ");
    assert_eq!(finding.difference.ours, "\"hashtable\"", "{finding}");
    assert_eq!(finding.difference.theirs, "\"listpack\"", "{finding}");
    assert!(finding.transcript.len() <= 2, "{finding}");
}

/// A server that forwards everything to `upstream`, with two exceptions: it adds one to every STRLEN reply above 3, and
/// it sets the limit of small hashes to one field if it receives the usual 128.
fn lying_proxy(upstream: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&upstream).unwrap();
            relay(client, server);
        }
    });
    address
}

fn relay(client: TcpStream, server: TcpStream) {
    let names = Arc::new(Mutex::new(VecDeque::new()));
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    let requested = Arc::clone(&names);
    std::thread::spawn(move || {
        each_frame(&mut from_client, |frame| {
            // The name follows the lines `*n` and `$len`.
            let name = frame.split(|&b| b == b'\n').nth(2).unwrap_or_default();
            requested.lock().unwrap().push_back(name.trim_ascii().to_ascii_lowercase());
            to_server.write_all(&misheard(frame))
        });
        let _ = to_server.shutdown(std::net::Shutdown::Both);
    });
    let (mut from_server, mut to_client) = (server, client);
    std::thread::spawn(move || {
        each_frame(&mut from_server, |frame| {
            if frame.starts_with(b">") {
                // An unsolicited message.
                return to_client.write_all(frame);
            }
            let name = names.lock().unwrap().pop_front().unwrap_or_default();
            let length = std::str::from_utf8(frame).ok().and_then(|f| f.trim().strip_prefix(':'));
            match length.and_then(|n| n.parse::<i64>().ok()) {
                Some(n) if name == b"strlen" && n > 3 => {
                    to_client.write_all(format!(":{}\r\n", n + 1).as_bytes())
                }
                _ => to_client.write_all(frame),
            }
        });
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
}

fn misheard(frame: &[u8]) -> Vec<u8> {
    let (sent, heard) = (&b"-entries\r\n$3\r\n128\r\n"[..], b"-entries\r\n$1\r\n1\r\n");
    let name = b"hash-max-listpack";
    let whole = [&name[..], sent].concat();
    match frame.windows(whole.len()).position(|piece| piece == whole) {
        Some(at) => {
            let (before, after) = (&frame[..at + name.len()], &frame[at + whole.len()..]);
            [before, heard, after].concat()
        }
        None => frame.to_vec(),
    }
}

/// Requests are arrays of bulk strings, so one function frames both directions.
fn each_frame(from: &mut TcpStream, mut take: impl FnMut(&[u8]) -> std::io::Result<()>) {
    let mut input = Vec::new();
    let mut chunk = [0; 16 * 1024];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        input.extend_from_slice(&chunk[..n]);
        let mut at = 0;
        while let Ok(Some(len)) = frame_len(&input[at..]) {
            if take(&input[at..at + len]).is_err() {
                return;
            }
            at += len;
        }
        input.drain(..at);
    }
}
