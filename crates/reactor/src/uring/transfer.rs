//! The operations of one connection: receives, sends, and polls for a hang-up. SAFETY notes refer
//! to the invariants of the parent module.

use super::{KIND_POLL, KIND_RECEIVE, KIND_SEND, Uring, buffers, datum};
use crate::control::Control;
use crate::handler::{CloseReason, Handler};
use crate::message::Message;
use crate::output::Output;
use crate::token::Token;
use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use std::os::fd::{AsRawFd, OwnedFd};

/// Flag of a receive: wait until the socket is readable before the first attempt
/// (IORING_RECVSEND_POLL_FIRST).
const POLL_FIRST: u16 = 1;

/// The io_uring state of a connection.
#[derive(Default)]
pub(super) struct Operations {
    pub(super) generation: u32,
    pub(super) receiving: bool,
    /// True if bytes are probably available: the last receive left some, or the connection is new.
    pub(super) more_waits: bool,
    pub(super) send_busy: bool,
    pub(super) polling: bool,
    /// True if a receive found the end of the stream while the handler could not be notified.
    pub(super) ended: bool,
    /// Bytes that arrived while reading was paused.
    pub(super) held: Vec<u8>,
    pub(super) sending: Output,
    pub(super) message: Option<Box<Message>>,
    /// The descriptor of a connection that was reported as closed while operations are in progress.
    pub(super) retired: Option<OwnedFd>,
}

impl Operations {
    pub(super) fn busy(&self) -> bool {
        self.receiving || self.send_busy || self.polling
    }
}

impl Uring {
    pub(super) fn received<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        (index, generation): (u32, u32),
        (result, flags): (i32, u32),
    ) {
        io.counters.receives += 1;
        let token = self.open_token(io, index, generation);
        let operations = &mut self.operations[index as usize];
        operations.receiving = false;
        operations.more_waits = cqueue::sock_nonempty(flags);
        if let Some(token) = token {
            io.touch(token); // starts it again, if the connection reads
        }
        if let Some(id) = cqueue::buffer_select(flags) {
            if let (Some(token), Ok(len)) = (token, usize::try_from(result)) {
                let bytes = self.buffers.filled(id, len);
                io.counters.bytes_in += len as u64;
                deliver(io, handler, token, &mut operations.held, bytes);
                let held = operations.held.len() as u64;
                io.counters.held_max = io.counters.held_max.max(held);
            }
            self.buffers.give_back(id);
        } else if result == 0 {
            operations.ended = true;
        } else if result == -libc::ENOBUFS {
            io.counters.buffers_exhausted += 1;
            self.buffers.grow();
        } else if ![-libc::ECANCELED, -libc::EINTR, -libc::EAGAIN].contains(&result)
            && let Some(token) = token
        {
            io.doom(token, CloseReason::Broken(-result));
        }
        self.release_if_done(io, index);
    }

    pub(super) fn sent(&mut self, io: &mut Control, (index, generation): (u32, u32), result: i32) {
        io.counters.sends += 1;
        let token = self.open_token(io, index, generation);
        let operations = &mut self.operations[index as usize];
        operations.send_busy = false;
        match usize::try_from(result) {
            Ok(count) => {
                io.counters.bytes_out += count as u64;
                operations.sending.consume(count);
            }
            Err(_) if [-libc::EINTR, -libc::EAGAIN].contains(&result) => {}
            Err(_) => {
                operations.sending.clear();
                if let Some(token) = token {
                    io.doom(token, CloseReason::Broken(-result));
                }
            }
        }
        if operations.sending.is_empty() {
            io.recycle(operations.sending.take_buffer());
            operations.message = None;
        }
        let left = operations.sending.len();
        if let Some(token) = token {
            let slot = io.slab.slot(index);
            slot.in_flight = left;
            if left > 0 || slot.sending || slot.low_water.is_some() || slot.closing.is_some() {
                io.touch(token);
            }
        }
        self.release_if_done(io, index);
    }

    pub(super) fn polled<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        (index, generation): (u32, u32),
        result: i32,
    ) {
        let token = self.open_token(io, index, generation);
        self.operations[index as usize].polling = false;
        if let Some(token) = token {
            io.touch(token);
            let is_error = result & i32::from(libc::POLLERR) != 0;
            if result > 0 && io.slab.slot(index).watches_hang_up() {
                if io.may_have_unread_bytes(token, is_error) {
                    io.slab.slot(index).hung_up = true;
                    handler.hung_up(io, token);
                } else {
                    io.doom(token, CloseReason::Broken(0));
                }
            }
        }
        self.release_if_done(io, index);
    }

    /// Frees a retired slot after its last operation has completed (invariant 2).
    pub(super) fn release_if_done(&mut self, io: &mut Control, index: u32) {
        let operations = &mut self.operations[index as usize];
        if operations.retired.is_some() && !operations.busy() {
            operations.retired = None; // closes the descriptor
            operations.message = None;
            io.recycle(operations.sending.take_buffer());
            io.slab.free(index);
        }
    }

    /// Starts a send of the queued output, or of the rest of the last send.
    pub(super) fn send(&mut self, io: &mut Control, index: u32) {
        let slot = io.slab.slot(index);
        let generation = slot.generation;
        let Some(fd) = &slot.fd else { return };
        let fd = Fd(fd.as_raw_fd());
        let operations = &mut self.operations[index as usize];
        if operations.send_busy {
            return;
        }
        if operations.sending.is_empty() {
            if slot.output.is_empty() || !(slot.sending || slot.closing.is_some()) {
                return;
            }
            operations.sending = std::mem::take(&mut slot.output);
            slot.sending = false;
            slot.in_flight = operations.sending.len();
        }
        operations.send_busy = true;
        let entry = if let Some(bytes) = operations.sending.as_one() {
            let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            opcode::Send::new(fd, bytes.as_ptr(), len).flags(libc::MSG_NOSIGNAL).build()
        } else {
            let message = Message::gather(&operations.sending, &mut operations.message);
            let flags = libc::MSG_NOSIGNAL as u32;
            opcode::SendMsg::new(fd, message).flags(flags).build()
        };
        self.start(entry.user_data(datum(KIND_SEND, generation, index)));
    }

    /// Starts a receive, or a poll for a hang-up, depending on the connection's state.
    pub(super) fn watch(&mut self, io: &mut Control, index: u32) {
        let slot = io.slab.slot(index);
        let (reads, hang_up) = (slot.reads(), slot.watches_hang_up());
        let generation = slot.generation;
        let Some(fd) = &slot.fd else { return };
        let fd = Fd(fd.as_raw_fd());
        let operations = &mut self.operations[index as usize];
        if reads && !operations.receiving && !operations.ended {
            operations.receiving = true;
            // The peer is usually waiting for the reply now, so an attempt would find nothing.
            let ioprio = if operations.more_waits { 0 } else { POLL_FIRST };
            let len = buffers::BYTES as u32;
            let entry = opcode::Recv::new(fd, std::ptr::null_mut(), len)
                .buf_group(buffers::GROUP)
                .ioprio(ioprio)
                .build()
                .flags(squeue::Flags::BUFFER_SELECT);
            self.start(entry.user_data(datum(KIND_RECEIVE, generation, index)));
        }
        let operations = &mut self.operations[index as usize];
        if hang_up && !operations.polling {
            operations.polling = true;
            let poll = opcode::PollAdd::new(fd, libc::POLLRDHUP as u32).build();
            self.start(poll.user_data(datum(KIND_POLL, generation, index)));
        }
    }

    /// Delivers the held bytes, and the end of the stream if it was found, to a connection that
    /// reads again.
    pub(super) fn deliver_held<H: Handler>(
        &mut self,
        io: &mut Control,
        handler: &mut H,
        index: u32,
    ) {
        let token = io.slab.token(index);
        let operations = &mut self.operations[index as usize];
        if !operations.held.is_empty() && io.slab.slot(index).reads() {
            let held = std::mem::take(&mut operations.held);
            handler.received(io, token, &held);
        }
        let operations = &self.operations[index as usize];
        if operations.ended && operations.held.is_empty() && io.slab.slot(index).reads() {
            io.slab.slot(index).finished = true;
            handler.finished(io, token);
        }
    }
}

/// Passes received bytes to the handler. Holds them if reading is paused, and drops them if the
/// connection is closing.
fn deliver<H: Handler>(
    io: &mut Control,
    handler: &mut H,
    token: Token,
    held: &mut Vec<u8>,
    bytes: &[u8],
) {
    let Some(connection) = io.slab.get_mut(token) else { return };
    if connection.closing.is_some() || connection.doomed.is_some() {
        return;
    }
    if connection.paused || !held.is_empty() {
        held.extend_from_slice(bytes);
        io.touch(token);
    } else {
        io.coalescing.record_receive(&mut connection.last_receive);
        handler.received(io, token, bytes);
    }
}
