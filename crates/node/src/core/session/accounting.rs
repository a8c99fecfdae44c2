//! The numbers of a session that are included in totals and published to other threads.

use super::Session;
use crate::clients::Traffic;
use std::sync::atomic::Ordering;

/// The numbers that were last counted or published.
#[derive(Default)]
pub struct SessionAccounting {
    /// The bytes that the client sent and received, and the number of commands that ran for it. The client record has
    /// the values at the end of the last turn.
    traffic: Traffic,
    /// The number of input bytes that the client record shows.
    published_input: usize,
    /// The number of output bytes of this session that the worker's sum includes.
    counted_output: i64,
    /// Bytes of memory at the last measurement.
    weight: u64,
    /// The part of `weight` that was input waiting to be executed.
    input_weight: u64,
}

impl SessionAccounting {
    #[inline]
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Counts bytes that the client sent.
    #[inline]
    pub fn count_received(&mut self, bytes: usize) {
        self.traffic.bytes_in += bytes as u64;
    }

    /// Counts bytes of output.
    #[inline]
    pub fn count_sent(&mut self, bytes: usize) {
        self.traffic.bytes_out += bytes as u64;
    }

    /// Counts commands that ended within the session's turn.
    #[inline]
    pub fn count_commands(&mut self, commands: u64) {
        self.traffic.commands += commands;
    }

    /// The number of input bytes that the client record shows.
    pub fn published_input(&self) -> usize {
        self.published_input
    }

    /// Replaces the number of input bytes that the client record shows. Returns false if the number has not changed.
    #[inline]
    pub fn replace_published_input(&mut self, bytes: usize) -> bool {
        let changes = bytes != self.published_input;
        if changes {
            self.published_input = bytes;
        }
        changes
    }

    /// The number of output bytes that the worker's sum includes.
    #[inline]
    pub fn counted_output(&self) -> i64 {
        self.counted_output
    }

    /// Replaces the number of output bytes. Returns the change for the worker's sum.
    pub(crate) fn replace_counted_output(&mut self, bytes: i64) -> i64 {
        bytes - std::mem::replace(&mut self.counted_output, bytes)
    }

    /// Bytes of memory at the last measurement.
    #[inline]
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn set_weight(&mut self, bytes: u64) {
        self.weight = bytes;
    }

    /// The part of the memory that was input waiting to be executed.
    #[inline]
    pub(crate) fn input_weight(&self) -> u64 {
        self.input_weight
    }

    pub(crate) fn set_input_weight(&mut self, bytes: u64) {
        self.input_weight = bytes;
    }
}

impl Session {
    /// Publishes the data that CLIENT LIST shows about the session's traffic and input buffer.
    #[inline]
    pub fn publish_traffic(&self) {
        let capacity = self.connection.input().capacity() as u64;
        self.record.query_capacity.store(capacity, Ordering::Relaxed);
        let (record, Traffic { bytes_in, bytes_out, commands }) =
            (&self.record, self.accounting.traffic);
        record.bytes_in.store(bytes_in, Ordering::Relaxed);
        record.bytes_out.store(bytes_out, Ordering::Relaxed);
        record.commands.store(commands, Ordering::Relaxed);
    }
}
