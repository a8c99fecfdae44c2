//! A primary that can send anything: damaged snapshots, offsets at the limits of their type, and commands that no real
//! primary sends. It may close the connection after any byte.

use super::clients::encoded;
use super::{Round, limit};
use brisk_differential::generate::Generator;
use brisk_testkit::random::Random;
use brisk_testkit::server::rdb_fixtures;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::{fs, thread};

/// A dataset without keys; its checksum is not verified.
const EMPTY: &[u8] = b"REDIS0009\xff\0\0\0\0\0\0\0\0";
/// Maximum size of a fixture that is sent.
const SNAPSHOT_BYTES_MAX: u64 = 100_000;
const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// Numbers at which arithmetic may overflow.
pub(super) const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "15",
    "16",
    "20",
    "127",
    "128",
    "255",
    "256",
    "9999",
    "16383",
    "16384",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775808",
    "-",
    "x",
    "",
    "1e3",
    "00",
];

/// Serves every connection in its own thread until the round is over.
pub(super) fn accept(round: &Round<'_>, listener: &TcpListener, random: &Random) {
    let snapshots = snapshots();
    thread::scope(|scope| {
        let mut random = random.clone();
        for stream in listener.incoming() {
            if round.is_over() {
                return;
            }
            let Ok(stream) = stream else { continue };
            let number = round.links.fetch_add(1, Ordering::Relaxed);
            let own = Random::derived(random.bits(), number);
            let snapshots = &snapshots;
            if limit(&stream) {
                scope.spawn(move || serve(round, &stream, own, snapshots));
            }
        }
    });
}

fn snapshots() -> Vec<Vec<u8>> {
    let small = |path: &std::path::PathBuf| {
        fs::metadata(path).is_ok_and(|data| data.len() <= SNAPSHOT_BYTES_MAX)
    };
    let files = rdb_fixtures().into_iter().filter(small).filter_map(|path| fs::read(path).ok());
    [EMPTY.to_vec()].into_iter().chain(files).collect()
}

/// Serves one connection: the handshake, possibly a snapshot, and a stream.
fn serve(
    round: &Round<'_>,
    stream: &TcpStream,
    mut random: Random,
    snapshots: &[Vec<u8>],
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut out = stream;
    loop {
        let request = request(&mut reader)?;
        let reply = match request.first()?.to_ascii_uppercase().as_str() {
            "PSYNC" | "SYNC" => break,
            _ if random.percent(95) => *random.pick(&[
                "+PONG\r\n",
                "+OK\r\n",
                "+OK brisk-compare/1\r\n",
                "-ERR no\r\n",
                "-NOAUTH x\r\n",
            ]),
            _ => *random.pick(&[
                "$5\r\nhello\r\n",
                "*1\r\n",
                "-MISCONF x\r\n",
                ":1\r\n",
                "\r\n\r\n",
                "+",
            ]),
        };
        out.write_all(reply.as_bytes()).ok()?;
    }
    let number = *random.pick(NUMBERS);
    let head = match random.below(10) {
        0..6 => format!("+FULLRESYNC {ID} {}\r\n", random.below(1 << 20)),
        6 => format!("+FULLRESYNC {ID} {number}\r\n"),
        7 => "+CONTINUE\r\n".to_owned(),
        8 => format!("+CONTINUE {ID}\r\n"),
        _ => format!("-NOMASTERLINK {number}\r\n"),
    };
    out.write_all(head.as_bytes()).ok()?;
    if head.starts_with("+FULL") {
        out.write_all(&snapshot(&mut random, snapshots)).ok()?;
    }
    let mut calls = Generator::of_all(round.table, Random::new(random.bits()));
    for _ in 0..random.below(400) {
        if round.is_over() {
            return None;
        }
        let mut bytes = piece(&mut random, &mut calls);
        if random.percent(1) {
            bytes.truncate(random.below(bytes.len() + 1));
        }
        out.write_all(&bytes).ok()?;
    }
    Some(())
}

/// Reads a request of the server, as an array or inline.
fn request(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then_some(())?;
    let Some(count) = line.strip_prefix('*') else {
        return Some(line.split_whitespace().map(str::to_owned).collect());
    };
    let count: usize = count.trim().parse().ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = String::new();
        reader.read_line(&mut word).ok()?;
        word.clear();
        reader.read_line(&mut word).ok()?;
        words.push(word.trim_end().to_owned());
    }
    Some(words)
}

/// A snapshot with its header. In some cases it is damaged or truncated, or the header announces a different length.
fn snapshot(random: &mut Random, snapshots: &[Vec<u8>]) -> Vec<u8> {
    let mut data = random.pick(snapshots).clone();
    match random.below(8) {
        0 => data.truncate(random.below(data.len() + 1)),
        1 => {
            for _ in 0..=random.below(8) {
                let at = random.below(data.len());
                data[at] = random.bits() as u8;
            }
        }
        2 => {
            // The auxiliary field with the database that the stream has selected.
            let number = random.pick(NUMBERS);
            let mut field = b"\xfa\x0erepl-stream-db".to_vec();
            field.push(number.len() as u8);
            field.extend_from_slice(number.as_bytes());
            data = [b"REDIS0009", &*field, b"\xff\0\0\0\0\0\0\0\0"].concat();
        }
        _ => {}
    }
    let mark = "e".repeat(40);
    match random.below(8) {
        0 => format!("${}\r\n", random.pick(NUMBERS)).into_bytes(),
        1 | 2 => [format!("$EOF:{mark}\r\n").as_bytes(), &data, mark.as_bytes()].concat(),
        _ => [format!("${}\r\n", data.len()).as_bytes(), &data].concat(),
    }
}

/// A piece of the stream.
fn piece(random: &mut Random, calls: &mut Generator<'_>) -> Vec<u8> {
    let number = *random.pick(NUMBERS);
    match random.below(20) {
        0 => encoded(&["SELECT", number]),
        1 => encoded(&["MULTI"]),
        2 => encoded(&["EXEC"]),
        3 => encoded(&[
            *random.pick(&["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "MONITOR"]),
            "c",
        ]),
        4 => encoded(&["REPLCONF", *random.pick(&["GETACK", "ACK", "nonsense"]), number]),
        5 => encoded(&["PING", &marker(random)]),
        6 => b"\n".to_vec(),
        7 => encoded(&["NOSUCH", number]),
        8 => (0..random.below(40)).map(|_| random.bits() as u8).collect(),
        9 => format!("*{number}\r\n").into_bytes(),
        _ => encoded(&calls.words()),
    }
}

/// A marker of a comparison, with numbers of any size.
fn marker(random: &mut Random) -> String {
    let kind = *random.pick(&["slots", "large", "end", "keep", "other"]);
    let mut text = format!("brisk-compare/1 {kind}");
    for field in 0..random.below(8) {
        text.push(' ');
        match (kind, field) {
            ("slots", 1) | ("keep", 0) => text += &"0".repeat(32),
            _ => text += *random.pick(NUMBERS),
        }
    }
    text
}
