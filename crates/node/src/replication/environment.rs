//! The operating system functions that the upstream thread uses: threads, waiting and connections. A simulation
//! provides its own [`Environment`] and decides when things happen.

use brisk_reactor::monotonic_ns;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::ops::Add;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A time on the monotonic clock, which a simulation sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    pub fn now() -> Moment {
        Moment(monotonic_ns())
    }

    pub fn elapsed(self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, rhs: Duration) -> Moment {
        Moment(self.0 + rhs.as_nanos() as u64)
    }
}

/// Access to threads, waiting and connections.
pub trait Environment: Send + Sync {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system cannot create a thread.
    fn spawn(&self, name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Pauses the current thread for about this long.
    fn sleep(&self, time: Duration);

    /// Waits until `condition` returns true, but no longer than `timeout`. Returns the last result of `condition`,
    /// which itself waits for up to the time in its argument.
    fn wait(&self, timeout: Duration, condition: &mut dyn FnMut(Duration) -> bool) -> bool;

    /// Connects to an address. If `source` is an address of this machine, it is the source address of the connection.
    ///
    /// # Errors
    /// Connecting fails or takes longer than `timeout`.
    fn connect(
        &self,
        to: SocketAddr,
        source: Option<IpAddr>,
        timeout: Duration,
    ) -> io::Result<Box<dyn Socket>>;
}

/// A connection that one thread reads and any thread may write to.
pub trait Socket: AsFd + Send + Sync {
    /// Reads bytes. Waits for the first of them up to the timeout.
    ///
    /// # Errors
    /// As in [`Read::read`].
    fn read(&self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes some of the bytes. Waits for room up to the timeout.
    ///
    /// # Errors
    /// As in [`Write::write`].
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Sets the maximum time for which a read or a write waits.
    ///
    /// # Errors
    /// The socket does not accept the timeout.
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;

    /// The address of the other end.
    ///
    /// # Errors
    /// The connection is closed.
    fn peer_addr(&self) -> io::Result<SocketAddr>;

    /// The address of this end.
    ///
    /// # Errors
    /// The connection is closed.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Shuts down both directions.
    ///
    /// # Errors
    /// The connection is already closed.
    fn shutdown(&self) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// As in [`Write::write_all`].
    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Waits for a message on a channel in this environment.
///
/// # Errors
/// As in [`Receiver::recv_timeout`].
pub fn receive<T>(
    environment: &dyn Environment,
    receiver: &Receiver<T>,
    timeout: Duration,
) -> Result<T, RecvTimeoutError> {
    let mut received = Err(RecvTimeoutError::Timeout);
    environment.wait(timeout, &mut |timeout| {
        received = receiver.recv_timeout(timeout);
        !matches!(received, Err(RecvTimeoutError::Timeout))
    });
    received
}

/// The environment outside of simulations.
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    fn spawn(&self, name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        thread::Builder::new().name(name.to_owned()).spawn(run).map(|_| ())
    }

    fn sleep(&self, time: Duration) {
        thread::park_timeout(time);
    }

    fn wait(&self, timeout: Duration, condition: &mut dyn FnMut(Duration) -> bool) -> bool {
        condition(timeout)
    }

    fn connect(
        &self,
        to: SocketAddr,
        source: Option<IpAddr>,
        timeout: Duration,
    ) -> io::Result<Box<dyn Socket>> {
        let socket = match source {
            Some(source) => connect_from(source, to, timeout)?,
            None => TcpStream::connect_timeout(&to, timeout)?,
        };
        socket.set_nodelay(true)?;
        Ok(Box::new(socket))
    }
}

fn connect_from(source: IpAddr, to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    use rustix::net::sockopt::Timeout;
    use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    // As in Redis: if `source` is not an address of this machine, the system chooses one.
    let _ = net::bind(&socket, &SocketAddr::new(source, 0));
    net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

impl Socket for TcpStream {
    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut socket = self;
        Read::read(&mut socket, into)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self;
        Write::write(&mut socket, bytes)
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(timeout))?;
        self.set_read_timeout(Some(timeout))
    }

    fn peer_addr(&self) -> io::Result<SocketAddr> {
        TcpStream::peer_addr(self)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpStream::local_addr(self)
    }

    fn shutdown(&self) -> io::Result<()> {
        TcpStream::shutdown(self, Shutdown::Both)
    }
}
