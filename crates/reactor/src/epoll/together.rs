//! Receives from and sends to several connections in one batch, and keeps what a batch has received
//! from a connection whose reading was paused in the meantime.

use super::{
    BATCH_RECEIVE_BYTES, BATCH_RECEIVE_STRIDE, Epoll, GONE, READ, RECEIVES_TOGETHER_MAX, batch,
    broken, is_harmless, ready_to_send, rearm, sent,
};
use crate::clock::ticks;
use crate::connection::Connection;
use crate::control::Control;
use crate::handler::Handler;
use crate::output::Output;
use crate::token::Token;
use smallvec::SmallVec;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// The result of a receive in a batch, and the buffer, which begins with the received bytes.
pub(super) struct Received<'b> {
    pub(super) result: io::Result<usize>,
    pub(super) buffer: &'b [u8],
}

impl Epoll {
    /// Receives from those connections among the events that have bytes to read, unless they are too
    /// few. The results are in the order of the events.
    pub(super) fn receive_batch<'b>(
        &mut self,
        io: &mut Control,
        events: Range<usize>,
        buffers: &'b mut [u8],
        received: &mut [Option<Received<'b>>; RECEIVES_TOGETHER_MAX],
    ) {
        let mut sockets: SmallVec<[(usize, BorrowedFd<'_>); RECEIVES_TOGETHER_MAX]> =
            SmallVec::new();
        for (position, at) in events.enumerate() {
            let (token, bits) = self.event(at);
            if let Some(connection) = io.slab.get(token)
                && let Some(fd) = &connection.fd
                && bits & (READ | GONE) != 0
                && connection.reads()
                && !connection.fills_buffers
                && !self.held.contains_key(&token)
            {
                sockets.push((position, fd.as_fd()));
            }
        }
        let Some(batch) = self.batch.as_mut().filter(|_| sockets.len() >= batch::OPERATIONS_MIN)
        else {
            return;
        };
        let since = ticks();
        let chunks = buffers.chunks_exact_mut(BATCH_RECEIVE_STRIDE);
        let slots = chunks.map(|chunk| &mut chunk[..BATCH_RECEIVE_BYTES]);
        let results = batch.receive(sockets.iter().map(|(_, fd)| *fd).zip(slots));
        let chunks = buffers.chunks_exact(BATCH_RECEIVE_STRIDE);
        for ((result, (position, _)), chunk) in results.into_iter().zip(&sockets).zip(chunks) {
            let buffer = &chunk[..BATCH_RECEIVE_BYTES];
            received[*position] = result.map(|result| Received { result, buffer });
        }
        if batch.is_broken() {
            self.batch = None;
        }
        io.counters.batches += 1;
        io.counters.receives += sockets.len() as u64;
        io.counters.ticks_receive += ticks().wrapping_sub(since);
    }

    /// Sends the output of those connections that are ready to send, unless they are too few.
    pub(super) fn send_batch(&mut self, io: &mut Control, indices: &[u32]) {
        let Some(batch) = &mut self.batch else { return };
        let mut senders: SmallVec<[u32; batch::OPERATIONS_MAX]> = SmallVec::new();
        let mut sends: SmallVec<[(BorrowedFd<'_>, &Output); batch::OPERATIONS_MAX]> =
            SmallVec::new();
        for &index in indices {
            if let Some(send) = ready_to_send(io.slab.at(index)) {
                senders.push(index);
                sends.push(send);
            }
        }
        if sends.len() < batch::OPERATIONS_MIN {
            return;
        }
        let since = ticks();
        let results = batch.send(&sends);
        drop(sends);
        for (index, result) in senders.into_iter().zip(results) {
            if let Some(result) = result {
                sent(io, index, result);
            }
        }
        io.counters.batches += 1;
        io.counters.ticks_send += ticks().wrapping_sub(since);
        if batch.is_broken() {
            self.batch = None;
        }
    }

    /// Keeps what a batch has received from a connection that no longer reads.
    pub(super) fn hold(
        &mut self,
        io: &mut Control,
        token: Token,
        result: io::Result<usize>,
        buffer: &[u8],
    ) {
        match result {
            Ok(count) => {
                io.counters.bytes_in += count as u64;
                if count > 0 && io.slab.get(token).is_some_and(Connection::reads_later) {
                    self.held.insert(token, buffer[..count].to_vec());
                    io.counters.held_max = io.counters.held_max.max(count as u64);
                }
            }
            Err(error) if is_harmless(&error) => {}
            Err(error) => io.doom(token, broken(&error)),
        }
        // There may be more, for example the end of the stream.
        rearm(io, token);
    }

    /// Delivers the held bytes to a connection that reads again.
    pub(super) fn deliver_held<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        index: u32,
    ) {
        let token = io.slab.token(index);
        if io.slab.slot(index).reads()
            && let Some(bytes) = self.held.remove(&token)
        {
            handler.received(io, token, &bytes);
        }
    }
}
