//! The environment of an upstream thread in the simulation: time, threads and connections.

use super::thread_group::{self, Dial, Group, PathState, Wait};
use brisk_node::replication::environment::{Environment, Moment, Socket};
use brisk_reactor::unix_ms;
use brisk_structures::poison::EvenPoisoned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The port of the first server. The other servers have the following ports.
pub(super) const FIRST_PORT: u16 = 7000;

/// How often connecting is retried if there is no response.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The environment of one server.
pub(super) struct SimulatedEnvironment(pub(super) Arc<Group>);

impl Environment for SimulatedEnvironment {
    fn spawn(&self, _: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.0.spawn(run);
        Ok(())
    }

    fn sleep(&self, time: Duration) {
        thread_group::pause(Wait { until_ms: Some(after(time)), signal: Some(Arc::default()) });
    }

    fn wait(&self, timeout: Duration, condition: &mut dyn FnMut(Duration) -> bool) -> bool {
        let until_ms = after(timeout);
        loop {
            if condition(Duration::ZERO) {
                return true;
            }
            if unix_ms() >= until_ms {
                return false;
            }
            thread_group::pause(Wait { until_ms: Some(until_ms), signal: None });
        }
    }

    fn connect(
        &self,
        at: SocketAddr,
        _: Option<IpAddr>,
        timeout: Duration,
    ) -> io::Result<Box<dyn Socket>> {
        let to = usize::from(at.port() - FIRST_PORT);
        let until = Moment::now() + timeout;
        loop {
            let state = self.0.paths.lock().even_poisoned()[to];
            match state {
                PathState::Open => break,
                PathState::Refused => return Err(ErrorKind::ConnectionRefused.into()),
                PathState::Silent if Moment::now() >= until => {
                    return Err(ErrorKind::TimedOut.into());
                }
                PathState::Silent => self.sleep(RETRY_PERIOD),
            }
        }
        let (end, other) = UnixStream::pair()?;
        end.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        let signal = Arc::new(AtomicBool::new(false));
        let dial = Dial { to, end: other, signal: Arc::clone(&signal) };
        self.0.dials.lock().even_poisoned().push(dial);
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, at.port()));
        Ok(Box::new(SimulatedSocket { end, to, signal, timeout_ms: AtomicU64::new(0) }))
    }
}

/// Returns the time at which this duration will have passed, in Unix ms.
fn after(time: Duration) -> u64 {
    unix_ms() + time.as_millis() as u64
}

/// A connection whose bytes the simulation delivers.
struct SimulatedSocket {
    end: UnixStream,
    to: SocketAddr,
    signal: Arc<AtomicBool>,
    timeout_ms: AtomicU64,
}

impl Socket for SimulatedSocket {
    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let until_ms = unix_ms().saturating_add(self.timeout_ms.load(Ordering::SeqCst));
        loop {
            self.signal.store(false, Ordering::SeqCst);
            match (&self.end).read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && unix_ms() < until_ms => {
                    let signal = Some(Arc::clone(&self.signal));
                    thread_group::pause(Wait { until_ms: Some(until_ms), signal });
                }
                read => return read,
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.end).write(bytes)
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.timeout_ms.store(timeout.as_millis() as u64, Ordering::SeqCst);
        Ok(())
    }

    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.to)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    fn shutdown(&self) -> io::Result<()> {
        self.signal.store(true, Ordering::SeqCst);
        self.end.shutdown(Shutdown::Both)
    }
}

impl AsFd for SimulatedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
