//! One pipelined connection of the differential runner. It sends bytes and returns reply frames without copying them.

use super::settings::{self, Thresholds};
use anyhow::{Context, Result, bail};
use brisk_testkit::reply::frame_len;
use brisk_testkit::words::{encode, line};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time limit for a reply. A reply that takes longer counts as missing. The slowest calls of a stream take
/// milliseconds, but on a busy machine a reply has taken 5 s.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// The time within which a server must notice that the listeners of an earlier stream are gone.
const LISTENERS_GO_MAX: Duration = Duration::from_secs(20);

/// A connection, and what has arrived on it.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    input: Vec<u8>,
    filled: usize,
    taken: usize,
    /// Messages that arrived between replies, if they are set aside.
    pushes: Option<Vec<Vec<u8>>>,
}

impl Peer {
    /// Connects with RESP2.
    pub fn connect(address: &str) -> Result<Peer> {
        let stream = TcpStream::connect(address).with_context(|| format!("no one at {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Peer { stream, input: vec![0; 64 * 1024], filled: 0, taken: 0, pushes: None })
    }

    /// Connects, empties the server, gives the settings their initial values
    /// and switches to `resp`.
    pub fn fresh(address: &str, resp: u8, thresholds: Thresholds) -> Result<Peer> {
        let mut peer = Peer::connect(address)?;
        peer.wait_for_silence()?;
        let reset = settings::reset(thresholds);
        for words in [vec![&b"FLUSHALL"[..]], reset, vec![b"SLOWLOG", b"RESET"]] {
            let reply = peer.request(&words)?;
            if reply != b"+OK\r\n" {
                bail!("{}: {}", line(&words), String::from_utf8_lossy(reply));
            }
        }
        let newer = settings::reset_newer(thresholds);
        let reply = peer.request(&newer)?;
        if reply != b"+OK\r\n" && !reply.starts_with(b"-ERR Unknown option") {
            bail!("{}: {}", line(&newer), String::from_utf8_lossy(reply));
        }
        if resp != 2 {
            let hello = peer.request(&[&b"HELLO"[..], resp.to_string().as_bytes()])?;
            if hello.starts_with(b"-") {
                bail!("HELLO {resp}: {}", String::from_utf8_lossy(hello));
            }
        }
        Ok(peer)
    }

    /// Waits until the server has noticed that earlier listeners are gone: on a busy machine, PUBLISH may still count
    /// them.
    fn wait_for_silence(&mut self) -> Result<()> {
        let is_silent = |peer: &mut Peer| -> Result<bool> {
            Ok(peer.request(&["PUBSUB", "NUMPAT"])? == b":0\r\n"
                && peer.request(&["PUBSUB", "CHANNELS"])? == b"*0\r\n"
                && peer.request(&["PUBSUB", "SHARDCHANNELS"])? == b"*0\r\n")
        };
        let until = Instant::now() + LISTENERS_GO_MAX;
        while !is_silent(self)? {
            if Instant::now() > until {
                bail!("listeners of an earlier stream are still connected");
            }
        }
        Ok(())
    }

    /// Sends one command and waits for its reply.
    pub fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<&[u8]> {
        self.send(&encode(words))?;
        self.reply().map_err(anyhow::Error::msg)
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        // If the server has closed the connection, reading the next reply reports this, after any last reply.
        match self.stream.write_all(bytes) {
            Err(e) if !matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Err(e.into())
            }
            _ => Ok(()),
        }
    }

    /// The bytes of the next reply, or a text that explains why there is none.
    pub fn reply(&mut self) -> Result<&[u8], String> {
        loop {
            let Some(len) = frame_len(&self.input[self.taken..self.filled])? else {
                self.receive()?;
                continue;
            };
            let start = self.taken;
            self.taken += len;
            match &mut self.pushes {
                Some(pushes) if self.input[start] == b'>' => {
                    pushes.push(self.input[start..self.taken].to_vec());
                }
                _ => return Ok(&self.input[start..self.taken]),
            }
        }
    }

    /// The next `len` bytes, unparsed.
    pub fn bytes(&mut self, len: usize) -> Result<&[u8], String> {
        while self.filled - self.taken < len {
            self.receive()?;
        }
        let start = self.taken;
        self.taken += len;
        Ok(&self.input[start..self.taken])
    }

    /// From now on, messages that arrive between replies are set aside.
    pub fn set_pushes_aside(&mut self) {
        self.pushes = Some(Vec::new());
    }

    /// The messages set aside since the last call.
    pub fn pushes_aside(&mut self) -> Vec<Vec<u8>> {
        self.pushes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn receive(&mut self) -> Result<(), String> {
        if self.taken > 0 {
            self.input.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => Err("(connection closed)".to_owned()),
            Ok(n) => {
                self.filled += n;
                Ok(())
            }
            // The caller tries again.
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(format!("(no reply within {REPLY_TIMEOUT:?})"))
            }
            Err(e) => Err(format!("(connection lost: {e})")),
        }
    }
}
