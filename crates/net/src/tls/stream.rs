//! One encrypted connection: bytes in, bytes out, no socket.
//!
//! Invariants
//!  1. After each call nothing that `rustls` has to send is left in it: it stands in the output.
//!  2. After `receive` no plaintext is left in it either; what it keeps is less than one record or
//!     handshake message, whose sizes it bounds (18 KiB, 64 KiB).

use brisk_reactor::Output;
use rustls::{Error, ServerConfig, ServerConnection};
use std::io::{BufRead, Write};
use std::sync::Arc;

/// How long a client may take for the handshake.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// Plaintext encrypted before the ciphertext moves on: one record, the most TLS allows.
const SLICE_BYTES: usize = 16 * 1024;

/// What `TlsStream::receive` has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// The handshake has come to its end just now.
    pub connected: bool,
    /// The client says that it sends nothing more.
    pub finished: bool,
}

/// The server's end of one connection.
#[derive(Debug)]
pub struct TlsStream {
    connection: ServerConnection,
    /// Nothing more is sent.
    closed: bool,
}

impl TlsStream {
    /// # Errors
    /// The settings cannot serve a connection.
    pub fn new(settings: Arc<ServerConfig>) -> Result<TlsStream, Error> {
        Ok(TlsStream { connection: ServerConnection::new(settings)?, closed: false })
    }

    /// Reports whether the handshake is still in progress.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Takes what came from the client: plaintext goes to the end of `plain`, what is to be sent in
    /// return to `output`. At most a record more of plaintext than `ciphertext` has bytes.
    ///
    /// # Errors
    /// The connection is broken: `output` has the alert to send, and then it is to be closed. What
    /// was decrypted before stands in `plain`.
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
                // Only after the client has closed; what follows is not looked at.
                Ok(0) => break,
                Ok(_) => self.connection.process_new_packets(),
                Err(error) => Err(Error::General(error.to_string())),
            };
            self.read_plaintext(plain);
            self.drain(output);
            // The alert was the last that can be sent.
            self.closed |= step.is_err();
            seen.finished = step?.peer_has_closed();
        }
        seen.connected = was_handshaking && !self.connection.is_handshaking();
        Ok(seen)
    }

    fn read_plaintext(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        // An error says that nothing is there, or that the peer has closed: `receive` knows.
        while let Ok(chunk) = reader.fill_buf()
            && !chunk.is_empty()
        {
            plain.extend_from_slice(chunk);
            let len = chunk.len();
            reader.consume(len);
        }
    }

    /// Encrypts `bytes` to the end of `output`; after the end of the connection they are dropped.
    /// Not to be called before the handshake is over.
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
                // An output takes everything; this is for the compiler.
                return;
            }
        }
    }
}
