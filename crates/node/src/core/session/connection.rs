//! A session's side of its connection: the input that has not been executed yet, its decoder, and TLS.

use crate::core::input::Input;
use brisk_net::tls::TlsStream;
use brisk_reactor::Output;
use brisk_resp::RequestDecoder;

/// The state of the connection.
pub struct ConnectionState {
    /// Bytes received and not yet executed, from the start of a request.
    input: Input,
    decoder: RequestDecoder,
    /// TLS, if the connection uses it.
    tls: Option<Box<TlsStream>>,
    /// True if the peer has shut down its sending side.
    finished: bool,
}

impl Default for ConnectionState {
    fn default() -> ConnectionState {
        ConnectionState {
            input: Input::default(),
            decoder: RequestDecoder::new(),
            tls: None,
            finished: false,
        }
    }
}

impl ConnectionState {
    /// Bytes received and not yet executed.
    #[inline]
    pub fn input(&self) -> &Input {
        &self.input
    }

    #[inline]
    pub fn input_mut(&mut self) -> &mut Input {
        &mut self.input
    }

    #[inline]
    pub fn decoder(&self) -> &RequestDecoder {
        &self.decoder
    }

    #[inline]
    pub fn decoder_mut(&mut self) -> &mut RequestDecoder {
        &mut self.decoder
    }

    /// Bytes of memory of the input.
    #[inline]
    pub(super) fn input_memory(&self) -> usize {
        self.input.capacity() + self.decoder.heap_bytes()
    }

    /// Encrypts the connection.
    pub fn begin_tls(&mut self, stream: Option<Box<TlsStream>>) {
        self.tls = stream;
    }

    #[inline]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    #[inline]
    pub fn tls(&self) -> Option<&TlsStream> {
        self.tls.as_deref()
    }

    #[inline]
    pub fn tls_mut(&mut self) -> Option<&mut TlsStream> {
        self.tls.as_deref_mut()
    }

    /// Appends bytes to the output of the connection, encrypted if it uses TLS.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], output: &mut Output) {
        match &mut self.tls {
            Some(stream) => stream.send(bytes, output),
            None => output.extend_from_slice(bytes),
        }
    }

    /// Notes that the peer has shut down its sending side.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Reports whether the peer has shut down its sending side.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
}
