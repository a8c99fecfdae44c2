//! A dataset that is being received from the primary: bytes up to a known length or up to a mark.
//!
//! The last bytes are held back as long as they may be the mark, so that the reader gets only bytes of the dataset. The
//! dataset is complete only when the mark has arrived.

use super::handshake::{Failure, Reader};
use super::{ACK_PERIOD, UpstreamThread};
use crate::replication::environment::Moment;
use brisk_engine::PrimaryWords;
use brisk_reactor::unix_ms;
use std::io::{self, Read};

/// Length of the mark after a dataset of unknown length.
const MARK_LEN: usize = 40;

/// How the end of the dataset is recognized.
#[derive(Debug, PartialEq, Eq)]
enum PayloadEnd {
    Length(u64),
    Mark(Vec<u8>),
}

/// A dataset that is being received. Reading it shows the primary that this replica is alive.
pub(super) struct Payload<'r, 'a> {
    thread: &'r UpstreamThread,
    reader: &'r mut Reader<'a>,
    end: PayloadEnd,
    /// The number of bytes that were received, including the mark.
    received: u64,
    /// The last bytes, which may be the mark.
    held: Vec<u8>,
    /// Received bytes. The bytes from `at` on have not been read yet.
    part: Vec<u8>,
    at: usize,
    last_sign_of_life: Moment,
    /// The reason why no more can be read.
    failure: Option<Failure>,
}

impl<'r, 'a> Payload<'r, 'a> {
    /// Waits for the header of the dataset. `to` is its destination, as named in the log.
    ///
    /// # Errors
    /// The primary sends something else or nothing.
    pub(super) fn begin(
        thread: &'r UpstreamThread,
        reader: &'r mut Reader<'a>,
        to: &str,
    ) -> Result<Payload<'r, 'a>, Failure> {
        let primary = thread.shared.primary_words();
        let end = end_of(&reader.line()?, primary)?;
        let what = match &end {
            PayloadEnd::Length(bytes) => format!("{bytes} bytes from {} to {to}", primary.lower),
            PayloadEnd::Mark(_) => format!("streamed RDB from {} with EOF to {to}", primary.lower),
        };
        let upper = primary.upper;
        thread.shared.log.notice(format_args!("{upper} <-> REPLICA sync: receiving {what}"));
        let (held, part, last_sign_of_life) = (Vec::new(), Vec::new(), Moment::now());
        let payload = Payload {
            thread,
            reader,
            end,
            received: 0,
            held,
            part,
            at: 0,
            last_sign_of_life,
            failure: None,
        };
        let total = payload.total();
        thread.upstream.note_incoming(|incoming| incoming.total = total);
        Ok(payload)
    }

    /// The length of the dataset, if the primary sent it.
    pub(super) fn total(&self) -> Option<u64> {
        match self.end {
            PayloadEnd::Length(bytes) => Some(bytes),
            PayloadEnd::Mark(_) => None,
        }
    }

    /// The next part, which may be empty, or `None` after the end.
    ///
    /// # Errors
    /// The connection ended before the end of the dataset.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let left = match &self.end {
            PayloadEnd::Length(total) => total - self.received,
            PayloadEnd::Mark(mark) if self.held == *mark => 0,
            PayloadEnd::Mark(_) => u64::MAX,
        };
        if left == 0 {
            return Ok(None);
        }
        let Some(mut bytes) = self.reader.next()? else { return Ok(Some(Vec::new())) };
        match &self.end {
            PayloadEnd::Length(_) => {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX);
                if bytes.len() > wanted {
                    self.reader.put_back(bytes.split_off(wanted));
                }
                self.received += bytes.len() as u64;
            }
            // No bytes follow the mark, because the primary waits for an acknowledgement.
            PayloadEnd::Mark(_) => {
                self.received += bytes.len() as u64;
                self.held.append(&mut bytes);
                let whole = self.held.len().saturating_sub(MARK_LEN);
                bytes = self.held.drain(..whole).collect();
            }
        }
        self.thread.upstream.note_incoming(|incoming| {
            (incoming.read, incoming.last_ms) = (self.received, unix_ms());
        });
        Ok(Some(bytes))
    }

    /// Called after the reader has found the end of the dataset. Checks that the primary's data ends there as well.
    ///
    /// # Errors
    /// The primary sends something else or nothing.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let is_marked = matches!(self.end, PayloadEnd::Mark(_));
        loop {
            let is_over = self.at == self.part.len() && self.held.len() <= MARK_LEN;
            if is_marked && !is_over {
                return Err(broken_mark());
            }
            match self.next()? {
                None => return Ok(()),
                Some(part) if part.is_empty() => {
                    let is_mark = |mark: &Vec<u8>| mark.starts_with(&self.held);
                    if matches!(&self.end, PayloadEnd::Mark(mark) if !is_mark(mark)) {
                        return Err(broken_mark());
                    }
                }
                // Bytes after a dataset of known length are ignored.
                Some(part) => (self.part, self.at) = (part, 0),
            }
        }
    }

    /// Takes the reason why reading failed, if it did.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

impl Read for Payload<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            if self.last_sign_of_life.elapsed() >= ACK_PERIOD {
                self.reader.show_life();
                self.last_sign_of_life = Moment::now();
            }
            match self.next() {
                Ok(Some(part)) => (self.part, self.at) = (part, 0),
                Ok(None) => return Ok(0),
                Err(failure) => {
                    self.failure = Some(failure);
                    return Err(io::Error::other("the connection to the primary ended"));
                }
            }
        }
        let len = into.len().min(self.part.len() - self.at);
        into[..len].copy_from_slice(&self.part[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

fn broken_mark() -> Failure {
    Failure::Refused("Replication stream EOF marker is broken".to_owned())
}

/// `$<bytes>` or `$EOF:<mark>`.
fn end_of(line: &[u8], primary: PrimaryWords) -> Result<PayloadEnd, Failure> {
    let primary = primary.upper;
    let text = String::from_utf8_lossy(line);
    if let Some(reason) = text.strip_prefix('-') {
        let text = format!("{primary} aborted replication with an error: {reason}");
        return Err(Failure::Refused(text));
    }
    let end = line.strip_prefix(b"$").and_then(|end| match end.strip_prefix(b"EOF:") {
        Some(mark) => (mark.len() == MARK_LEN).then(|| PayloadEnd::Mark(mark.to_vec())),
        None => std::str::from_utf8(end).ok()?.parse().ok().map(PayloadEnd::Length),
    });
    end.ok_or_else(|| {
        let text = text.escape_debug();
        Failure::Refused(format!(
            "Bad protocol from {primary}, the first byte is not '$' (we received '{text}'), are you \
             sure the host and port are right?"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_defines_how_the_end_is_recognized() {
        let mark = "0123456789012345678901234567890123456789";
        let words = brisk_engine::Dialect::Redis.primary_words();
        let of = |line: &str| end_of(line.as_bytes(), words).ok();
        assert_eq!(of("$17"), Some(PayloadEnd::Length(17)));
        assert_eq!(of(&format!("$EOF:{mark}")), Some(PayloadEnd::Mark(mark.as_bytes().to_vec())));
        for bad in ["$EOF:short", "$-1", "$", "17", "-ERR no", ""] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
