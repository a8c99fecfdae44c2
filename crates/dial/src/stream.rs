//! A blocking connection of any kind.

use crate::address::Address;
use crate::tls::TlsClient;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connection over TCP, with or without TLS, or over a Unix socket.
#[derive(Debug)]
pub enum Stream {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A socket in the file system.
    Unix(UnixStream),
    /// TLS over TCP.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects over TCP, within the time `timeout` if it is given. Small packets are sent immediately.
    ///
    /// # Errors
    /// No server accepts the connection.
    pub fn tcp(address: &SocketAddr, timeout: Option<Duration>) -> io::Result<Stream> {
        let stream = match timeout {
            Some(timeout) => TcpStream::connect_timeout(address, timeout)?,
            None => TcpStream::connect(address)?,
        };
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    /// Connects to a socket in the file system.
    ///
    /// # Errors
    /// No server listens on the socket.
    pub fn unix(path: &Path) -> io::Result<Stream> {
        UnixStream::connect(path).map(Stream::Unix)
    }

    /// Begins a TLS session on a TCP stream, and waits until the handshake is complete. Streams of other kinds are
    /// returned unchanged.
    ///
    /// # Errors
    /// The peers cannot agree on a session, or a certificate is not trusted.
    pub fn with_tls(self, tls: &TlsClient, address: &Address) -> io::Result<Stream> {
        let Stream::Tcp(mut socket) = self else { return Ok(self) };
        let mut session = tls.session(address).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }

    /// Sets how long one read or write may take. Without a limit, it may take forever.
    ///
    /// # Errors
    /// The limit is zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Stream::Tls(stream) => {
                stream.sock.set_read_timeout(timeout)?;
                stream.sock.set_write_timeout(timeout)
            }
        }
    }

    /// Sets whether reads and writes return immediately. A TLS session is not affected.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
            Stream::Tls(stream) => stream.sock.set_nonblocking(nonblocking),
        }
    }

    /// Returns true if a read would find bytes that have already been taken from the socket. Polling the socket does
    /// not show them.
    pub fn has_decrypted(&mut self) -> bool {
        match self {
            Stream::Tls(stream) => stream.conn.reader().fill_buf().is_ok_and(|b| !b.is_empty()),
            Stream::Tcp(_) | Stream::Unix(_) => false,
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}
