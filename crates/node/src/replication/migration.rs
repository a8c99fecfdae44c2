//! Transfers values to another server over the Redis protocol: the connections of MIGRATE.
//!
//! Each request has a connection of its own: AUTH and SELECT, a RESTORE for each key, then the replies. These calls
//! block, so they run on a thread that no client waits for (see `brisk_engine::long`).

use brisk_engine::transfer::{TransferError, TransferKey, TransferResult, TransferTarget};
use brisk_reactor::unix_ms;
use brisk_resp::request::encode;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Maximum length of a reply. An error is one line, which contains at most some arguments of the request.
const REPLY_BYTES_MAX: u64 = 64 * 1024;

/// Upper bound for the duration of a step, even if the request allows more: one year.
const STEP_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Transfers values to another server: see [`brisk_engine::transfer::TransferFn`].
pub fn carry(
    to: &TransferTarget,
    parcels: &mut dyn Iterator<Item = TransferKey>,
) -> TransferResult {
    let mut carried = TransferResult::default();
    if let Err(failure) = hand_over(to, parcels, &mut carried.taken) {
        carried.failure = Some(failure);
    }
    carried
}

fn hand_over(
    to: &TransferTarget,
    parcels: &mut dyn Iterator<Item = TransferKey>,
    taken: &mut Vec<Vec<u8>>,
) -> Result<(), TransferError> {
    let mut socket = connect(to)?;
    let mut preface = Vec::new();
    if let Some(password) = &to.password {
        let words = [Some(&b"AUTH"[..]), to.user.as_deref(), Some(password)];
        preface.push(words.into_iter().flatten().map(<[u8]>::to_vec).collect::<Vec<_>>());
    }
    preface.push(vec![b"SELECT".to_vec(), to.db.to_string().into_bytes()]);
    for words in &preface {
        write(&mut socket, words)?;
    }
    let mut sent = Vec::new();
    for parcel in parcels {
        if let Some((words, key)) = restore(parcel) {
            write(&mut socket, &words)?;
            sent.push(key);
        }
    }
    let mut replies = BufReader::new(socket);
    // The first error is reported, regardless of later replies.
    let mut refused = None;
    for _ in &preface {
        refused = refused.or(read_reply(&mut replies)?);
    }
    let prefaced = refused.is_none();
    for key in sent {
        match read_reply(&mut replies) {
            Ok(None) if prefaced => taken.push(key),
            Ok(error) => refused = refused.or(error),
            Err(failure) => return Err(refused.map_or(failure, TransferError::Refused)),
        }
    }
    refused.map_or(Ok(()), |text| Err(TransferError::Refused(text)))
}

fn connect(to: &TransferTarget) -> Result<Timed, TransferError> {
    let timeout = Duration::from_millis(to.timeout_ms);
    let host = std::str::from_utf8(&to.host).map_err(|_| TransferError::Connecting)?;
    // As in Redis, text that is not a number counts as 0.
    let port = std::str::from_utf8(&to.port).ok().and_then(|port| port.parse().ok());
    let address = (host, port.unwrap_or(0));
    let mut failure = TransferError::Connecting;
    for at in address.to_socket_addrs().map_err(|_| TransferError::Connecting)? {
        match TcpStream::connect_timeout(&at, timeout) {
            Ok(socket) => {
                return Timed::new(socket, timeout).map_err(|_| TransferError::Connecting);
            }
            // Redis notices a refused connection at its first write.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                failure = TransferError::Writing;
            }
            Err(_) => {}
        }
    }
    Err(failure)
}

/// A socket on which each step may take up to `timeout` in total, regardless of how many calls it makes.
struct Timed {
    socket: TcpStream,
    timeout: Duration,
    deadline: Instant,
}

impl Timed {
    fn new(socket: TcpStream, timeout: Duration) -> io::Result<Timed> {
        socket.set_nodelay(true)?;
        Ok(Timed { socket, timeout: timeout.min(STEP_MAX), deadline: Instant::now() })
    }

    /// Begins a new step.
    fn begin(&mut self) {
        self.deadline = Instant::now() + self.timeout;
    }

    /// The remaining time of the step.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// The arguments that create a key on the other server, and the key. `None` if the key has expired by now.
fn restore(parcel: TransferKey) -> Option<(Vec<Vec<u8>>, Vec<u8>)> {
    let TransferKey { key, deadline, payload, replace } = parcel;
    let now = unix_ms();
    let ttl = match deadline {
        None => 0,
        Some(deadline) if deadline < now => return None,
        // A TTL of 0 would mean no expiry.
        Some(deadline) => (deadline - now).max(1),
    };
    let mut words = vec![b"RESTORE".to_vec(), key.clone(), ttl.to_string().into_bytes(), payload];
    if replace {
        words.push(b"REPLACE".to_vec());
    }
    Some((words, key))
}

fn write(socket: &mut Timed, words: &[Vec<u8>]) -> Result<(), TransferError> {
    let mut request = Vec::new();
    encode(&mut request, words);
    socket.begin();
    socket.write_all(&request).map_err(|_| TransferError::Writing)
}

/// Reads a reply. Returns the text of an error, or `None` for any other one-line reply.
fn read_reply(replies: &mut BufReader<Timed>) -> Result<Option<Vec<u8>>, TransferError> {
    replies.get_mut().begin();
    let mut line = Vec::new();
    let mut bounded = replies.by_ref().take(REPLY_BYTES_MAX);
    bounded.read_until(b'\n', &mut line).map_err(|_| TransferError::Reading)?;
    let text = line.strip_suffix(b"\r\n").ok_or(TransferError::Reading)?;
    Ok(text.strip_prefix(b"-").map(<[u8]>::to_vec))
}
