//! The kinds of socket, each with a reading and a writing side. Any thread may write, so that a caller need not wake
//! the driver.

#[cfg(feature = "tls")]
use super::tls::{self, Tls, TlsReader};
use bytes::BytesMut;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, tcp};
#[cfg(unix)]
use tokio::net::{UnixStream, unix};

pub(crate) enum ReadSide {
    Tcp(tcp::OwnedReadHalf),
    #[cfg(unix)]
    Unix(unix::OwnedReadHalf),
    #[cfg(feature = "tls")]
    Tls(TlsReader),
}

/// The writing side.
#[derive(Clone, Debug)]
pub(crate) enum Writer {
    Tcp(Arc<tcp::OwnedWriteHalf>),
    #[cfg(unix)]
    Unix(Arc<unix::OwnedWriteHalf>),
    #[cfg(feature = "tls")]
    Tls(Arc<Tls>),
    #[cfg(all(test, brisk_loom))]
    Model(super::model::Wire),
}

impl Writer {
    /// Writes as much as the socket accepts now.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Tcp(half) => half.try_write(bytes),
            #[cfg(unix)]
            Writer::Unix(half) => half.try_write(bytes),
            #[cfg(feature = "tls")]
            Writer::Tls(tls) => tls.try_write(bytes),
            #[cfg(all(test, brisk_loom))]
            Writer::Model(wire) => wire.write(bytes, None),
        }
    }

    /// Sets the time after which the operating system closes the connection if the peer does not acknowledge bytes. An
    /// error means that the connection has already failed, which the next read reports.
    pub(crate) fn limit_unacked(&self, limit: Duration) {
        let stream: &TcpStream = match self {
            Writer::Tcp(half) => half.as_ref().as_ref(),
            #[cfg(unix)]
            Writer::Unix(_) => return,
            #[cfg(feature = "tls")]
            Writer::Tls(tls) => tls.stream(),
            #[cfg(all(test, brisk_loom))]
            Writer::Model(_) => return,
        };
        #[cfg(target_os = "linux")]
        let _ = SockRef::from(stream).set_tcp_user_timeout(Some(limit));
        #[cfg(not(target_os = "linux"))]
        let _ = (stream, limit);
    }

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Writer::Tcp(half) => half.as_ref().as_ref().poll_write_ready(cx),
            #[cfg(unix)]
            Writer::Unix(half) => half.as_ref().as_ref().poll_write_ready(cx),
            // TLS has its own implementation.
            #[cfg(feature = "tls")]
            Writer::Tls(_) => Poll::Ready(Ok(())),
            #[cfg(all(test, brisk_loom))]
            Writer::Model(_) => Poll::Ready(Ok(())),
        }
    }
}

pub(crate) fn of_tcp(stream: TcpStream) -> (ReadSide, Writer) {
    let (read, write) = stream.into_split();
    (ReadSide::Tcp(read), Writer::Tcp(Arc::new(write)))
}

#[cfg(unix)]
pub(crate) fn of_unix(stream: UnixStream) -> (ReadSide, Writer) {
    let (read, write) = stream.into_split();
    (ReadSide::Unix(read), Writer::Unix(Arc::new(write)))
}

/// Performs the TLS handshake over this socket.
#[cfg(feature = "tls")]
pub(crate) async fn of_tls(
    stream: TcpStream,
    session: rustls::ClientConnection,
) -> io::Result<(ReadSide, Writer)> {
    let mut reader = tls::new(stream, session);
    std::future::poll_fn(|cx| reader.poll_handshake(cx)).await?;
    let writer = Writer::Tls(reader.writer());
    Ok((ReadSide::Tls(reader), writer))
}

impl ReadSide {
    /// Appends the received bytes. 0 means the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match self {
            ReadSide::Tcp(half) => pin!(half.read_buf(buffer)).poll(cx),
            #[cfg(unix)]
            ReadSide::Unix(half) => pin!(half.read_buf(buffer)).poll(cx),
            #[cfg(feature = "tls")]
            ReadSide::Tls(reader) => reader.poll_read(cx, buffer),
        }
    }
}

impl Writer {
    /// Writes as many bytes as possible. If nothing can be written now, the task is woken when the socket accepts
    /// bytes.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        #[cfg(feature = "tls")]
        if let Writer::Tls(tls) = self {
            return tls.poll_write(cx, bytes);
        }
        #[cfg(all(test, brisk_loom))]
        if let Writer::Model(wire) = self {
            return wire.poll_write(cx, bytes);
        }
        loop {
            match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => return Poll::Ready(done),
            }
            match self.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
