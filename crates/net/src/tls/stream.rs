//! One encrypted connection: bytes in, bytes out, no socket.
//!
//! Invariants
//!  1. After each call, `rustls` holds nothing that is still to be sent. Everything is in the
//!     output.
//!  2. After `receive`, `rustls` holds no plaintext either. It keeps less than one record or
//!     handshake message, whose sizes it limits to 18 KiB and 64 KiB.

use brisk_reactor::Output;
use rustls::{Error, ServerConfig, ServerConnection};
use std::io::{BufRead, Write};
use std::sync::Arc;

/// Maximum time that a client may take for the handshake.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// Maximum number of plaintext bytes that are encrypted before the ciphertext is moved on: the
/// maximum size of a TLS record.
const SLICE_BYTES: usize = 16 * 1024;

/// The events that `TlsStream::receive` has detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// True if this call completed the handshake.
    pub connected: bool,
    /// True if the client has announced that it will send nothing more.
    pub finished: bool,
}

/// The server's end of one connection.
#[derive(Debug)]
pub struct TlsStream {
    connection: ServerConnection,
    /// True if nothing more is sent.
    closed: bool,
}

impl TlsStream {
    /// Creates the server's end of a new connection.
    ///
    /// # Errors
    /// The settings cannot serve a connection.
    pub fn new(settings: Arc<ServerConfig>) -> Result<TlsStream, Error> {
        Ok(TlsStream { connection: ServerConnection::new(settings)?, closed: false })
    }

    /// Reports whether the handshake is still in progress.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Processes bytes from the client. Appends the plaintext to `plain`, and bytes to send in
    /// return to `output`. The plaintext exceeds the length of `ciphertext` by at most one record.
    ///
    /// # Errors
    /// The connection is broken. `output` contains the alert to send, and then the connection must
    /// be closed. Bytes that were decrypted before the error are in `plain`.
    pub fn receive(
        &mut self,
        mut ciphertext: &[u8],
        plain: &mut Vec<u8>,
        output: &mut Output,
    ) -> Result<Received, Error> {
        let was_handshaking = self.connection.is_handshaking();
        let mut seen = Received::default();
        while !ciphertext.is_empty() && !seen.finished {
            let step = match self.connection.read_tls(&mut ciphertext) {
                // This happens only after the client has closed the connection. The remaining bytes
                // are ignored.
                Ok(0) => break,
                Ok(_) => self.connection.process_new_packets(),
                Err(error) => Err(Error::General(error.to_string())),
            };
            self.read_plaintext(plain);
            self.drain(output);
            // Nothing can be sent after the alert.
            self.closed |= step.is_err();
            seen.finished = step?.peer_has_closed();
        }
        seen.connected = was_handshaking && !self.connection.is_handshaking();
        Ok(seen)
    }

    fn read_plaintext(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        // An error means that there is no more plaintext, or that the peer has closed the
        // connection, which `receive` detects itself.
        while let Ok(chunk) = reader.fill_buf()
            && !chunk.is_empty()
        {
            plain.extend_from_slice(chunk);
            let len = chunk.len();
            reader.consume(len);
        }
    }

    /// Encrypts `bytes` and appends them to `output`. Drops them if the connection has ended. Must
    /// not be called before the handshake is complete.
    pub fn send(&mut self, bytes: &[u8], output: &mut Output) {
        if self.closed {
            return;
        }
        debug_assert!(!self.is_handshaking(), "no reply is sent before the handshake");
        for slice in bytes.chunks(SLICE_BYTES) {
            let taken = self.connection.writer().write(slice);
            debug_assert!(taken.is_ok_and(|taken| taken == slice.len()), "the buffer was empty");
            self.drain(output);
        }
    }

    /// Sends close_notify, once; nothing is sent after it.
    pub fn close(&mut self, output: &mut Output) {
        if !self.closed {
            self.closed = true;
            self.connection.send_close_notify();
            self.drain(output);
        }
    }

    fn drain(&mut self, output: &mut Output) {
        while self.connection.wants_write() {
            if self.connection.write_tls(output).is_err() {
                // Writing to an output cannot fail, but the compiler does not know that.
                return;
            }
        }
    }
}
