//! What stands in for the system's time, threads, channels and connections in the thread of a link. Outside
//! of a simulation a thread is one of the system's.

use super::strand::{self, Dial, Wait, Way};
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::ops::Add;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The port of the first server; the others have those that follow.
pub(crate) const FIRST_PORT: u16 = 7000;

/// How often a connection is tried that nothing comes back for.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A moment of the simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) fn now() -> Instant {
        Instant(unix_ms())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Duration::from_millis(unix_ms().saturating_sub(self.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0 + rhs.as_millis() as u64)
    }
}

/// Waits until `is_so`, at most so long; whether it is.
pub(crate) fn wait(most: Duration, is_so: impl Fn() -> bool) -> bool {
    let until = Instant::now() + most;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        strand::pause(Wait { until_ms: Some(until.0), signal: None });
    }
}

/// In place of `std::thread`.
pub(crate) mod thread {
    use super::*;

    #[derive(Default)]
    pub(crate) struct Builder(String);

    impl Builder {
        pub(crate) fn new() -> Builder {
            Builder::default()
        }

        pub(crate) fn name(self, name: String) -> Builder {
            Builder(name)
        }

        pub(crate) fn spawn(self, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
            match strand::group() {
                Some(group) => drop(group.spawn(run)),
                None => drop(std::thread::Builder::new().name(self.0).spawn(run)?),
            }
            Ok(())
        }
    }

    pub(crate) fn park_timeout(most: Duration) {
        let until = Instant::now() + most;
        strand::pause(Wait { until_ms: Some(until.0), signal: Some(Arc::default()) });
    }
}

/// In place of `std::sync::mpsc::Receiver`.
pub(crate) struct Channel<T>(Receiver<T>);

pub(crate) fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Channel<T>) {
    let (sender, receiver) = mpsc::sync_channel(bound);
    (sender, Channel(receiver))
}

impl<T> Channel<T> {
    pub(crate) fn recv_timeout(&self, most: Duration) -> Result<T, RecvTimeoutError> {
        if strand::group().is_none() {
            return self.0.recv_timeout(most);
        }
        let until = Instant::now() + most;
        loop {
            match self.0.try_recv() {
                Ok(message) => return Ok(message),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) if Instant::now() >= until => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => {}
            }
            strand::pause(Wait { until_ms: Some(until.0), signal: None });
        }
    }
}

/// In place of `std::net::TcpStream`: the bytes go to the simulation, which carries them on.
pub(crate) struct TcpStream {
    end: UnixStream,
    to: SocketAddr,
    signal: Arc<AtomicBool>,
    patience_ms: OnceLock<AtomicU64>,
}

impl TcpStream {
    pub(crate) fn connect_timeout(at: &SocketAddr, most: Duration) -> io::Result<TcpStream> {
        let group = strand::group().ok_or(ErrorKind::Unsupported)?;
        let to = usize::from(at.port() - FIRST_PORT);
        let until = Instant::now() + most;
        loop {
            let way = group.ways.lock().even_poisoned()[to];
            match way {
                Way::Open => break,
                Way::Refused => return Err(ErrorKind::ConnectionRefused.into()),
                Way::Silent if Instant::now() >= until => return Err(ErrorKind::TimedOut.into()),
                Way::Silent => thread::park_timeout(ASK_AGAIN),
            }
        }
        let (end, other) = UnixStream::pair()?;
        end.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        let signal = Arc::new(AtomicBool::new(false));
        let dial = Dial { to, end: other, signal: Arc::clone(&signal) };
        group.dials.lock().even_poisoned().push(dial);
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, at.port()));
        Ok(TcpStream { end, to, signal, patience_ms: OnceLock::new() })
    }

    pub(crate) fn set_nodelay(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.to)
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    pub(crate) fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn set_read_timeout(&self, most: Option<Duration>) -> io::Result<()> {
        let ms = most.map_or(u64::MAX, |most| most.as_millis() as u64);
        self.patience_ms.get_or_init(AtomicU64::default).store(ms, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.signal.store(true, Ordering::SeqCst);
        self.end.shutdown(how)
    }
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let patience = self.patience_ms.get().map_or(0, |ms| ms.load(Ordering::SeqCst));
        let until_ms = unix_ms().saturating_add(patience);
        loop {
            self.signal.store(false, Ordering::SeqCst);
            match (&self.end).read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && unix_ms() < until_ms => {
                    let signal = Some(Arc::clone(&self.signal));
                    strand::pause(Wait { until_ms: Some(until_ms), signal });
                }
                read => return read,
            }
        }
    }
}

impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.end).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
