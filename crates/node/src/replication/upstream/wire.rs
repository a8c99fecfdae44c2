//! The connection to the primary, with or without TLS.

use crate::replication::environment::{Environment, Socket};
use crate::replication::upstream::state::UpstreamConnection;
use brisk_config::Config;
use brisk_net::tls::outgoing;
use brisk_structures::poison::EvenPoisoned;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::time::Duration;

/// Maximum number of bytes that one read returns.
pub(super) const RECEIVED_MAX: usize = 256 << 10;
/// Maximum number of bytes that wait for the kernel to take them. This is enough for the longest reports of some
/// hundred replicas of this replica.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// A connection that one thread reads and any thread may write to.
pub(crate) struct Wire {
    socket: Box<dyn Socket>,
    /// Locked by a writer, so that requests do not mix.
    out: Mutex<Out>,
    has_tls: bool,
}

/// Bytes to be sent to the primary.
#[derive(Default)]
struct Out {
    tls: Option<Box<ClientConnection>>,
    /// Bytes that the kernel has not taken yet, encrypted with TLS.
    waiting: Vec<u8>,
}

impl Out {
    /// Adds a request to the waiting bytes.
    fn push(&mut self, request: &[u8]) -> io::Result<()> {
        let Some(tls) = self.tls.as_mut() else {
            self.waiting.extend_from_slice(request);
            return Ok(());
        };
        tls.writer().write_all(request)?;
        while tls.wants_write() {
            tls.write_tls(&mut self.waiting)?;
        }
        Ok(())
    }

    fn has_room_for(&self, request: &[u8]) -> bool {
        self.waiting.len() + request.len() <= WAITING_BYTES_MAX
    }
}

impl Wire {
    /// Connects to the first address of `host` that accepts the connection, from the address `source` if it is set.
    pub(crate) fn open(
        environment: &dyn Environment,
        (host, port): (&str, u16),
        source: Option<IpAddr>,
        timeout: Duration,
    ) -> io::Result<Wire> {
        let mut failure = io::Error::from(ErrorKind::AddrNotAvailable);
        for at in (host, port).to_socket_addrs()? {
            let source = source.filter(|source| source.is_ipv4() == at.is_ipv4());
            match environment.connect(at, source, timeout) {
                Ok(socket) => return Ok(Wire { socket, out: Mutex::default(), has_tls: false }),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Returns the connection, which uses TLS from now on.
    pub(super) fn encrypted(self, tls: ClientConnection) -> Wire {
        let out = Out { tls: Some(Box::new(tls)), waiting: Vec::new() };
        Wire { out: Mutex::new(out), has_tls: true, ..self }
    }

    pub(super) fn peer_ip(&self) -> io::Result<IpAddr> {
        Ok(self.socket.peer_addr()?.ip())
    }

    /// The addresses of the primary and of this server.
    pub(super) fn ends(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.socket.peer_addr()?, self.socket.local_addr()?])
    }

    pub(super) fn fd(&self) -> i32 {
        self.socket.as_fd().as_raw_fd()
    }

    /// Sets the maximum time for which a read or a write waits.
    pub(crate) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_timeout(timeout)
    }

    /// Reads bytes, at least one unless the primary has closed the connection. The error is
    /// [`ErrorKind::WouldBlock`] if none arrived in time.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        if !self.has_tls {
            return self.socket.read(into).map_err(as_late);
        }
        loop {
            if let Some(read) = self.read_decrypted(into)? {
                return Ok(read);
            }
            let mut sealed = [0; 16 << 10];
            let len = self.socket.read(&mut sealed).map_err(as_late)?;
            if len == 0 {
                return Ok(0);
            }
            self.decrypt(&sealed[..len])?;
        }
    }

    /// Reads bytes that have already been decrypted. `None` if there are none.
    fn read_decrypted(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let mut out = self.out.lock().even_poisoned();
        let Some(tls) = out.tls.as_mut() else { return Ok(Some(0)) };
        match tls.reader().read(into) {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn decrypt(&self, mut sealed: &[u8]) -> io::Result<()> {
        let mut out = self.out.lock().even_poisoned();
        let Some(tls) = out.tls.as_mut() else { return Ok(()) };
        while !sealed.is_empty() {
            tls.read_tls(&mut sealed)?;
            tls.process_new_packets().map_err(|error| io::Error::other(error.to_string()))?;
        }
        // The TLS handshake may have to respond.
        if tls.wants_write() { self.send_all(&mut out) } else { Ok(()) }
    }

    /// Sends all bytes. Waits for the kernel to take them, up to the timeout.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = self.out.lock().even_poisoned();
        if out.tls.is_none() && out.waiting.is_empty() {
            return self.socket.write_all(bytes);
        }
        out.push(bytes)?;
        self.send_all(&mut out)
    }

    /// Sends all waiting bytes, including those of the TLS session.
    fn send_all(&self, out: &mut Out) -> io::Result<()> {
        out.push(&[])?;
        while !out.waiting.is_empty() {
            let sent = self.socket.write(&out.waiting)?;
            if sent == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            out.waiting.drain(..sent);
        }
        Ok(())
    }

    /// Sends as many of the waiting bytes as the kernel takes immediately.
    pub(super) fn send_waiting(&self) -> io::Result<()> {
        self.send_some(&mut self.out.lock().even_poisoned())
    }

    fn send_some(&self, out: &mut Out) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut sent = 0;
        let taken = loop {
            if sent == out.waiting.len() {
                break Ok(());
            }
            match rustix::net::send(&self.socket, &out.waiting[sent..], flags) {
                Ok(more) => sent += more,
                Err(Errno::AGAIN) => break Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => break Err(error.into()),
            }
        };
        out.waiting.drain(..sent);
        taken
    }

    /// Sends a request without waiting. Returns false if there is no room for bytes that the kernel does not take. If
    /// sending fails, the connection is closed.
    fn send_or_keep(&self, request: &[u8]) -> bool {
        let mut out = self.out.lock().even_poisoned();
        if !out.has_room_for(request) {
            return false;
        }
        if out.push(request).and_then(|()| self.send_some(&mut out)).is_err() {
            self.close();
        }
        true
    }
}

/// Returns the connection with TLS, according to the settings for connections to other servers.
pub(crate) fn encrypt(config: &Config, wire: Wire) -> io::Result<Wire> {
    let tls = outgoing::connection(config, wire.peer_ip()?);
    Ok(wire.encrypted(tls.map_err(|error| io::Error::other(error.to_string()))?))
}

impl UpstreamConnection for Wire {
    fn send(&self, request: &[u8]) {
        if !self.send_or_keep(request) {
            self.close();
        }
    }

    fn offer(&self, request: &[u8]) -> bool {
        self.send_or_keep(request)
    }

    fn close(&self) {
        // The socket may already be closed.
        let _ = self.socket.shutdown();
    }
}

/// Converts the errors of a read that timed out to [`ErrorKind::WouldBlock`].
fn as_late(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::Interrupted => ErrorKind::WouldBlock.into(),
        _ => error,
    }
}
