//! Stand-ins for both ends of a replication link: a replica that reads and discards, and a primary that sends given
//! bytes. This way the cost of the other end is not measured, and is the same for all servers.

use crate::bench::load::Lines;
use anyhow::{Context, Result, bail, ensure};
use brisk_testkit::server::Server;
use brisk_testkit::words::encode;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long either end waits for the other.
const TIMEOUT: Duration = Duration::from_secs(60);
/// An empty dataset, with a checksum of 0, which turns the check off.
const EMPTY: &[u8] = b"REDIS0010\xff\0\0\0\0\0\0\0\0";
const ACK_PERIOD: Duration = Duration::from_secs(1);
/// How soon a reader notices that the test is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const BUFFER_BYTES: usize = 1 << 20;

/// A replica that reads and discards.
pub(super) struct Drain {
    reader: BufReader<TcpStream>,
    /// The replication offset reached.
    offset: u64,
}

impl Drain {
    /// Attaches to `server` and reads its dataset.
    pub(super) fn follow(server: &Server) -> Result<Drain> {
        let socket = TcpStream::connect(server.address())?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        let mut drain = Drain { reader: BufReader::with_capacity(BUFFER_BYTES, socket), offset: 0 };
        drain.say(&["REPLCONF", "capa", "psync2"])?;
        let reply = drain.line()?;
        ensure!(reply == "+OK", "REPLCONF: {reply}");
        drain.say(&["PSYNC", "?", "-1"])?;
        let reply = drain.line()?;
        let offset = reply.strip_prefix("+FULLRESYNC ").and_then(|rest| rest.split(' ').nth(1));
        drain.offset = offset.and_then(|text| text.parse().ok()).context("no full copy")?;
        let length = drain.line()?;
        let length = length.strip_prefix('$').and_then(|text| text.parse().ok());
        let length: u64 = length.context("the primary sent no length of the dataset")?;
        let copied = std::io::copy(&mut (&mut drain.reader).take(length), &mut std::io::sink())?;
        ensure!(copied == length, "the dataset ends early");
        drain.acknowledge()?;
        Ok(drain)
    }

    /// Reads until the test is over or the server closes the connection.
    pub(super) fn read_on(&mut self, over: &AtomicBool) -> Result<()> {
        self.reader.get_ref().set_read_timeout(Some(LOOK_EVERY))?;
        let mut acknowledged_at = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let read = match self.reader.fill_buf() {
                Ok([]) => bail!("the primary has closed the connection"),
                Ok(bytes) => bytes.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error.into()),
            };
            self.reader.consume(read);
            self.offset += read as u64;
            if acknowledged_at.elapsed() >= ACK_PERIOD {
                self.acknowledge()?;
                acknowledged_at = Instant::now();
            }
        }
        Ok(())
    }

    fn acknowledge(&self) -> Result<()> {
        self.say(&["REPLCONF", "ACK", &self.offset.to_string()])
    }

    fn say(&self, words: &[&str]) -> Result<()> {
        Ok(self.reader.get_ref().write_all(&encode(words))?)
    }

    /// The next line that is not empty. Empty lines are keepalives.
    fn line(&mut self) -> Result<String> {
        loop {
            let mut line = String::new();
            ensure!(self.reader.read_line(&mut line)? > 0, "the primary has closed the connection");
            if !line.trim_end().is_empty() {
                return Ok(line.trim_end().to_owned());
            }
        }
    }
}

/// A primary that sends given lines to one replica.
pub(super) struct Source {
    reader: BufReader<TcpStream>,
    /// Bytes of the stream sent so far.
    sent: u64,
}

impl Source {
    /// A listener on which [`Source::accept`] waits for a replica.
    pub(super) fn listen() -> Result<TcpListener> {
        Ok(TcpListener::bind("127.0.0.1:0")?)
    }

    /// Waits for a replica and sends it an empty dataset.
    pub(super) fn accept(listener: &TcpListener) -> Result<Source> {
        let (socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let mut source = Source { reader: BufReader::new(socket), sent: 0 };
        loop {
            let request = source.request()?;
            match request.first().map(String::as_str) {
                Some("PING") => source.write(b"+PONG\r\n")?,
                Some("REPLCONF") => source.write(b"+OK\r\n")?,
                Some("PSYNC") => break,
                _ => bail!("a replica that asks {request:?}"),
            }
        }
        let id = "0123456789abcdef".repeat(3);
        source.write(format!("+FULLRESYNC {} 0\r\n${}\r\n", &id[..40], EMPTY.len()).as_bytes())?;
        source.write(EMPTY)?;
        source.send(&encode(&["SELECT", "0"]))?;
        source.wait()?;
        Ok(source)
    }

    /// Sends `count` of the lines, cycling through them, `at_once` with each system call.
    pub(super) fn send_lines(&mut self, lines: &Lines, count: usize, at_once: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let mut first = 0;
            while first + at_once <= lines.count() && left > 0 {
                let some = at_once.min(left);
                self.send(lines.some(first, some))?;
                first += at_once;
                left -= some;
            }
        }
        Ok(())
    }

    /// Waits until the replica has executed everything.
    pub(super) fn wait(&mut self) -> Result<()> {
        let until = self.sent;
        self.send(&encode(&["REPLCONF", "GETACK", "*"]))?;
        loop {
            let request = self.request()?;
            let words: Vec<&str> = request.iter().map(String::as_str).collect();
            if let ["REPLCONF", "ACK", offset, ..] = words[..]
                && offset.parse::<u64>()? >= until
            {
                return Ok(());
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.sent += bytes.len() as u64;
        self.write(bytes)
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        Ok(self.reader.get_ref().write_all(bytes)?)
    }

    /// The next request, skipping empty lines.
    fn request(&mut self) -> Result<Vec<String>> {
        let count = loop {
            let line = self.line()?;
            if !line.is_empty() {
                break line.strip_prefix('*').context("a request")?.parse::<usize>()?;
            }
        };
        (0..count)
            .map(|_| {
                self.line()?;
                self.line()
            })
            .collect()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.reader.read_line(&mut line)? > 0, "the replica has closed the connection");
        Ok(line.trim_end().to_owned())
    }
}
