//! The header and the pieces of a gathered send that a ring executes.
//!
//! Invariant (a SAFETY note cites it)
//!  1. An all-zero `msghdr` is valid.

use crate::output::Output;
use smallvec::SmallVec;
use std::io::IoSlice;

/// Maximum number of pieces in one gathered send.
pub(crate) const PIECES_MAX: usize = 64;

/// The memory that the kernel reads when it executes a gathered send.
pub(crate) struct Message {
    header: libc::msghdr,
    pieces: [libc::iovec; PIECES_MAX],
}

impl Message {
    /// Fills the boxed message with the first pieces of `output`, and creates it if there is none.
    /// The pointer is valid as long as the box and the output are, and neither changes.
    pub(crate) fn gather(
        output: &Output,
        message: &mut Option<Box<Message>>,
    ) -> *const libc::msghdr {
        let mut slices: SmallVec<[IoSlice<'_>; PIECES_MAX]> = SmallVec::new();
        output.gather(&mut slices);
        let message = message.get_or_insert_with(|| {
            let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
            // SAFETY: invariant 1.
            let header = unsafe { std::mem::zeroed() };
            Box::new(Message { header, pieces: [empty; PIECES_MAX] })
        });
        for (piece, slice) in message.pieces.iter_mut().zip(&slices) {
            *piece =
                libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
        }
        message.header.msg_iov = message.pieces.as_mut_ptr();
        message.header.msg_iovlen = slices.len();
        &raw const message.header
    }
}
