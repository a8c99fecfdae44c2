//! The kinds of socket: a reading and a writing side. Where the system allows it any thread may write, so
//! that a caller need not wake the driver; with TLS only the driver does.

use bytes::BytesMut;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, tcp};
#[cfg(unix)]
use tokio::net::{UnixStream, unix};

pub(crate) enum ReadSide {
    Tcp(tcp::OwnedReadHalf),
    #[cfg(unix)]
    Unix(unix::OwnedReadHalf),
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "TLS is what needs it"))]
    Other(Box<dyn AsyncRead + Send + Unpin>),
}

pub(crate) enum WriteSide {
    /// Anybody may write.
    Shared(Writer),
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "TLS is what needs it"))]
    Other(Box<dyn AsyncWrite + Send + Unpin>),
}

/// The writing side of a socket of the system.
#[derive(Clone, Debug)]
pub(crate) enum Writer {
    Tcp(Arc<tcp::OwnedWriteHalf>),
    #[cfg(unix)]
    Unix(Arc<unix::OwnedWriteHalf>),
}

impl Writer {
    /// Writes what the system takes now.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Tcp(half) => half.try_write(bytes),
            #[cfg(unix)]
            Writer::Unix(half) => half.try_write(bytes),
        }
    }

    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Writer::Tcp(half) => half.as_ref().as_ref().poll_write_ready(cx),
            #[cfg(unix)]
            Writer::Unix(half) => half.as_ref().as_ref().poll_write_ready(cx),
        }
    }
}

pub(crate) fn of_tcp(stream: TcpStream) -> (ReadSide, WriteSide) {
    let (read, write) = stream.into_split();
    (ReadSide::Tcp(read), WriteSide::Shared(Writer::Tcp(Arc::new(write))))
}

#[cfg(unix)]
pub(crate) fn of_unix(stream: UnixStream) -> (ReadSide, WriteSide) {
    let (read, write) = stream.into_split();
    (ReadSide::Unix(read), WriteSide::Shared(Writer::Unix(Arc::new(write))))
}

impl ReadSide {
    /// Appends what has come. 0 is the end.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match self {
            ReadSide::Tcp(half) => pin!(half.read_buf(buffer)).poll(cx),
            #[cfg(unix)]
            ReadSide::Unix(half) => pin!(half.read_buf(buffer)).poll(cx),
            ReadSide::Other(half) => pin!(half.read_buf(buffer)).poll(cx),
        }
    }
}

impl WriteSide {
    /// Writes a part; if nothing can be written now, the task is woken when it can.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            WriteSide::Shared(writer) => loop {
                match writer.try_write(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    done => return Poll::Ready(done),
                }
                match writer.poll_ready(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            },
            WriteSide::Other(half) => {
                let written = match Pin::new(&mut *half).poll_write(cx, bytes) {
                    Poll::Ready(Ok(written)) => written,
                    other => return other,
                };
                // What is encrypted may wait in a buffer of its own.
                match Pin::new(half).poll_flush(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    _ => Poll::Ready(Ok(written)),
                }
            }
        }
    }

    /// What callers may write to.
    pub(crate) fn shared(&self) -> Option<Writer> {
        match self {
            WriteSide::Shared(writer) => Some(writer.clone()),
            WriteSide::Other(_) => None,
        }
    }
}
