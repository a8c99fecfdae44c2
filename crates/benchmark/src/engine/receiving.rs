//! Handles data that arrives on a worker's connections, and the replies in it.

use super::plan::OnError;
use super::worker::{Worker, failed};
use crate::clock::now_ns;
use crate::cluster;
use crate::error::RunError;
use brisk_dial::tls;
use brisk_resp::{ReplyStep, Value};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;

impl Worker<'_> {
    /// Receives the bytes that have arrived on a connection. If the peer has `ended` the connection, receives all of
    /// them, because no event follows.
    pub(super) fn receive(&mut self, i: usize, ended: bool) -> Result<(), RunError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.receive_into(i, &mut buffer, ended);
        self.buffer = buffer;
        result
    }

    #[inline]
    fn receive_into(&mut self, i: usize, buffer: &mut [u8], ended: bool) -> Result<(), RunError> {
        loop {
            let lane = &mut self.lanes[i];
            let Some(socket) = &lane.socket else { return Ok(()) };
            let count = match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(RunError::Closed),
                Ok((count, _)) => count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => {
                    return Err(failed(&self.sites[lane.site].connector, lane, error.into()));
                }
            };
            if let Some(session) = &mut lane.tls {
                let mut plain = std::mem::take(&mut self.plain);
                plain.clear();
                tls::read_plain(session, &buffer[..count], &mut plain)
                    .map_err(|error| RunError::Tls(error.to_string()))?;
                let result = self.flush(i).and_then(|()| self.replies(i, &plain));
                self.plain = plain;
                result?;
            } else {
                self.replies(i, &buffer[..count])?;
            }
            // The buffer was not filled, so the socket is empty. An event follows when more data arrives.
            if count < buffer.len() && !ended {
                return Ok(());
            }
        }
    }

    /// Counts the replies in these bytes, and records their latencies.
    #[inline]
    fn replies(&mut self, i: usize, bytes: &[u8]) -> Result<(), RunError> {
        let lane = &mut self.lanes[i];
        let count = if lane.judge.is_some() {
            self.judge(i, bytes)?
        } else {
            let errors = &mut self.error_texts;
            lane.scanner.scan(bytes, &mut |text: &[u8]| errors.push(text.to_vec()))?
        };
        let now = now_ns();
        let redirected = if self.error_texts.is_empty() { 0 } else { self.errors(i, now)? };
        let for_requests = self.lanes[i].take_replies(count)?;
        if for_requests > 0 {
            self.record(i, for_requests, redirected.min(for_requests), now);
        }
        Ok(())
    }

    /// Records replies. If some were redirected, the last ones are not counted.
    #[inline]
    fn record(&mut self, i: usize, replies: usize, redirected: usize, now: u64) {
        let lane = &mut self.lanes[i];
        let (_, recorded) = &mut self.share.latency[lane.site];
        if self.schedule.is_some() {
            for due in lane.due_ns.drain(..replies).take(replies - redirected) {
                if due >= self.measure_ns {
                    let latency = now.saturating_sub(due);
                    recorded.saturating_record(latency);
                    self.share.operations += 1;
                    self.share.last_ns = now;
                    self.latency_sum_ns += latency;
                }
            }
            self.waiting -= usize::from(lane.pending == 0);
            self.list_if_due(i);
            return;
        }
        let executed = (replies - redirected) as u64;
        if lane.counts && executed > 0 {
            let latency = now.saturating_sub(lane.started_ns);
            recorded.saturating_record_n(latency, executed);
            self.share.operations += executed;
            self.share.last_ns = now;
            self.latency_sum_ns += latency * executed;
        }
        if lane.pending == 0 {
            self.waiting -= 1;
            if !self.plan.keep_alive {
                lane.socket = None;
                lane.tls = None;
                self.turns.reply_arrived(i);
            }
            #[expect(clippy::cast_possible_truncation, reason = "at most CLIENTS_MAX")]
            self.to_load.push(i as u32);
        }
    }

    /// Decodes and checks the replies. Returns their number.
    fn judge(&mut self, i: usize, bytes: &[u8]) -> Result<usize, RunError> {
        let lane = &mut self.lanes[i];
        let Some(judge) = &mut lane.judge else { return Ok(0) };
        judge.unread.extend_from_slice(bytes);
        let (mut read, mut replies) = (0, 0);
        loop {
            let step = judge.decoder.decode(&judge.unread[read..]);
            let value = match step.map_err(|error| RunError::Socket(io::Error::other(error)))? {
                ReplyStep::Incomplete { consumed, .. } => {
                    read += consumed;
                    break;
                }
                ReplyStep::Value { consumed, value } => {
                    read += consumed;
                    value
                }
            };
            if matches!(value, Value::Push(_)) {
                continue;
            }
            replies += 1;
            let is_for_request = replies > lane.prelude_pending;
            let sent = if is_for_request { lane.batch.pop_pending() } else { None };
            if let Value::Error(text) = value {
                self.error_texts.push(text);
            } else if let Some(sent) = sent {
                let workload = &self.plan.workload;
                let expect = workload.commands[sent.command].expect;
                if let Err(wanted) = expect.check(&value, sent.number, &workload.values) {
                    self.share.mismatches += 1;
                    let first = &mut self.share.first_mismatch;
                    first.get_or_insert_with(|| format!("expected {wanted}, got {value}"));
                }
            }
        }
        judge.unread.drain(..read);
        Ok(replies)
    }

    /// Handles error replies: they end the run, or are counted. Redirections of requests with a hash tag are followed.
    /// Returns the number of redirections.
    #[cold]
    fn errors(&mut self, i: usize, now: u64) -> Result<usize, RunError> {
        let follows = self.lanes[i].prelude_pending == 0 && self.plan.workload.is_tagged();
        let (mut redirected, mut first) = (0, None);
        if let Some(cluster) = self.plan.cluster.as_ref().filter(|_| follows) {
            self.error_texts.retain(|text| {
                let text = String::from_utf8_lossy(text);
                let follows = cluster::is_redirection(&text);
                redirected += usize::from(follows);
                if follows {
                    first.get_or_insert_with(|| text.into_owned());
                }
                !follows
            });
            if let Some(first) = first {
                let lane = &self.lanes[i];
                cluster.follow(self.sites[lane.site].node, lane.batch.tag(), &first)?;
                if lane.counts || (self.schedule.is_some() && now >= self.measure_ns) {
                    self.share.redirections += redirected as u64;
                    self.shared.hand_back(redirected);
                    // Requests must be sent again, unless the time is over.
                    self.exhausted_ns = None;
                }
            }
        }
        let fatal = self.plan.on_error == OnError::Stop || self.lanes[i].prelude_pending > 0;
        for text in self.error_texts.drain(..) {
            let text = String::from_utf8_lossy(&text).into_owned();
            if fatal {
                return Err(match cluster::is_redirection(&text) && self.plan.cluster.is_some() {
                    true => RunError::Untagged(text),
                    false => RunError::Reply(text),
                });
            }
            if now >= self.measure_ns {
                self.share.errors.add(&text);
            }
        }
        Ok(redirected)
    }
}
