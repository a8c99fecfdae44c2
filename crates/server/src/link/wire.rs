//! The connection to the primary: bytes there and back, encrypted or not.

use super::outside::{TcpStream, connect_from};
use brisk_node::replication::primary::Connection;
use brisk_structures::poison::EvenPoisoned;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::time::Duration;

/// Bytes that are received at once.
pub(super) const RECEIVED_MAX: usize = 256 << 10;

/// A connection that one thread reads, and any may say something on.
pub(super) struct Wire {
    socket: TcpStream,
    /// Whoever writes has it, so that requests do not mingle.
    tls: Mutex<Option<Box<ClientConnection>>>,
    has_tls: bool,
}

impl Wire {
    /// Connects to the first address of `host` that takes it, from the address `source` if there is one.
    pub(super) fn open(
        (host, port): (&str, u16),
        source: Option<IpAddr>,
        timeout: Duration,
    ) -> io::Result<Wire> {
        let mut failure = io::Error::from(ErrorKind::AddrNotAvailable);
        for at in (host, port).to_socket_addrs()? {
            let connected = match source.filter(|source| source.is_ipv4() == at.is_ipv4()) {
                Some(source) => connect_from(source, at, timeout),
                None => TcpStream::connect_timeout(&at, timeout),
            };
            match connected {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Ok(Wire { socket, tls: Mutex::new(None), has_tls: false });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// The same connection, encrypted from here on.
    pub(super) fn encrypted(self, tls: ClientConnection) -> Wire {
        Wire { tls: Mutex::new(Some(Box::new(tls))), has_tls: true, ..self }
    }

    pub(super) fn peer_ip(&self) -> io::Result<IpAddr> {
        Ok(self.socket.peer_addr()?.ip())
    }

    /// The primary's end, and this one.
    pub(super) fn ends(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.socket.peer_addr()?, self.socket.local_addr()?])
    }

    pub(super) fn fd(&self) -> i32 {
        self.socket.as_fd().as_raw_fd()
    }

    /// How long a read waits, and a write.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.socket.set_write_timeout(Some(patience))?;
        self.socket.set_read_timeout(Some(patience))
    }

    /// Bytes that have come, at least one unless the primary has closed. [`ErrorKind::WouldBlock`] if none
    /// came in time.
    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        if !self.has_tls {
            return (&self.socket).read(into).map_err(as_late);
        }
        loop {
            if let Some(read) = self.read_decrypted(into)? {
                return Ok(read);
            }
            let mut sealed = [0; 16 << 10];
            let len = (&self.socket).read(&mut sealed).map_err(as_late)?;
            if len == 0 {
                return Ok(0);
            }
            self.decrypt(&sealed[..len])?;
        }
    }

    /// What was received and decrypted by now; `None` if nothing is.
    fn read_decrypted(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let mut tls = self.tls.lock().even_poisoned();
        let Some(tls) = tls.as_mut() else { return Ok(Some(0)) };
        match tls.reader().read(into) {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn decrypt(&self, mut sealed: &[u8]) -> io::Result<()> {
        let mut tls = self.tls.lock().even_poisoned();
        let Some(tls) = tls.as_mut() else { return Ok(()) };
        while !sealed.is_empty() {
            tls.read_tls(&mut sealed)?;
            tls.process_new_packets().map_err(|error| io::Error::other(error.to_string()))?;
        }
        // The handshake has something to say in return.
        self.send_sealed(tls)
    }

    /// Sends everything; waits for the primary to take it, as long as a read would.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut tls = self.tls.lock().even_poisoned();
        match tls.as_mut() {
            None => (&self.socket).write_all(bytes),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                self.send_sealed(tls)
            }
        }
    }

    fn send_sealed(&self, tls: &mut ClientConnection) -> io::Result<()> {
        while tls.wants_write() {
            tls.write_tls(&mut &self.socket)?;
        }
        Ok(())
    }

    /// Sends all or nothing, without waiting.
    fn try_send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut tls = self.tls.lock().even_poisoned();
        let sealed;
        let bytes = match tls.as_mut() {
            None => bytes,
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                let mut out = Vec::new();
                while tls.wants_write() {
                    tls.write_tls(&mut out)?;
                }
                sealed = out;
                &sealed[..]
            }
        };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.socket, bytes, flags) {
            Ok(sent) if sent == bytes.len() => Ok(()),
            Ok(_) => Err(Errno::AGAIN.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Connection for Wire {
    fn send(&self, request: &[u8]) {
        if self.try_send(request).is_err() {
            self.close();
        }
    }

    fn close(&self) {
        // It may be closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// What the system says of a read that waited long enough.
fn as_late(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::Interrupted => ErrorKind::WouldBlock.into(),
        _ => error,
    }
}
