//! A worker's TLS connections, from the TLS listener to the input path that all sessions share.

use super::Worker;
use brisk_engine::ReplyBuffer;
use brisk_net::tls::{Received, TlsStream};
use brisk_node::core::session::{PROTECTED_MODE, Session, Stall};
use brisk_reactor::{Control, Output, PeerAddr};
use std::cell::RefCell;
use std::sync::atomic::Ordering;

/// Encrypts replies and appends them to `output`.
pub(super) fn flush(replies: &mut ReplyBuffer, stream: &mut TlsStream, output: &mut Output) {
    let sink = RefCell::new((stream, output));
    let send = |bytes: &[u8]| {
        let (stream, output) = &mut *sink.borrow_mut();
        stream.send(bytes, output);
    };
    replies.drain(&send, |data, range| send(&data[range]));
}

impl Worker {
    /// True if protected mode rejects a client.
    pub(super) fn is_stranger(&self, peer: &PeerAddr) -> bool {
        let core = &self.core;
        core.config.network.protected_mode
            && core.shared.accounts.default_account().user().needs_no_password()
            && !peer.is_local()
    }

    /// Creates the TLS stream of a new connection; `None` if TLS is not configured.
    pub(super) fn new_stream(&self) -> Option<Box<TlsStream>> {
        let shared = &self.core.shared;
        match shared.network.new_tls_stream()? {
            Ok(stream) => Some(stream),
            Err(error) => {
                shared.log.verbose(format_args!("Error accepting a client connection: {error}"));
                None
            }
        }
    }

    /// Sends the reason to a client that protected mode rejects.
    fn deny(&mut self, session: &mut Session) {
        let metrics = &self.core.shared.observe.metrics;
        metrics.rejected_connections.fetch_add(1, Ordering::Relaxed);
        self.replies.bytes_mut().extend_from_slice(PROTECTED_MODE.as_bytes());
        session.close_after_reply();
    }

    /// Decrypts received bytes and executes the requests in them.
    pub(super) fn receive_encrypted(
        &mut self,
        io: &mut Control,
        session: &mut Session,
        bytes: &[u8],
    ) {
        let Some(stream) = session.connection.tls_mut() else { return };
        let mut plain = self.spare.take_plain();
        let shaking = stream.is_handshaking();
        let token = session.token;
        let output = io.output(session.token);
        let received = stream.receive(bytes, &mut plain, output);
        if !output.is_empty() {
            io.send(session.token);
        }
        let connected = shaking && !stream.is_handshaking();
        if shaking && self.is_stranger(&io.peer_addr(token)) {
            // Data that arrived with the end of the handshake or before an error is not executed.
            plain.clear();
            if connected {
                self.deny(session);
            }
        }
        if !plain.is_empty() {
            self.take_input(io, session, &plain);
        }
        self.spare.put_plain(plain);
        match received {
            Ok(Received { finished: true, .. }) => {
                session.connection.finish();
                if session.stall() == Stall::None {
                    session.close_after_reply();
                }
            }
            Ok(_) => {}
            Err(error) => {
                let log = &self.core.shared.log;
                if shaking {
                    log.verbose(format_args!("Error accepting a client connection: {error}"));
                } else {
                    log.verbose(format_args!("Reading from client: {error}"));
                }
                session.close_after_reply();
            }
        }
    }
}
