//! A dataset on its way from the primary: bytes up to a length that is told before, or up to a mark.
//!
//! The last bytes are held back for as long as they may be the mark, so whoever takes the others has
//! nothing but the dataset; nobody is told that it is whole before the mark has been seen.

use super::handshake::{Failure, Reader};
use super::{ACK_PERIOD, UpstreamThread};
use crate::replication::environment::Moment;
use brisk_engine::PrimaryWords;
use brisk_reactor::unix_ms;
use std::io::{self, Read};

/// Length of what marks the end of a dataset whose length is not told.
const MARK_LEN: usize = 40;

/// How the end of the dataset is known.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Length(u64),
    Mark(Vec<u8>),
}

/// One of them. Reading it shows the primary meanwhile that this replica lives.
pub(super) struct Payload<'r, 'a> {
    thread: &'r UpstreamThread,
    reader: &'r mut Reader<'a>,
    end: End,
    /// Bytes that came, the mark included.
    came: u64,
    /// What came last and may be the mark.
    held: Vec<u8>,
    /// What came and was not read, from `at` on.
    part: Vec<u8>,
    at: usize,
    told: Moment,
    /// Why no more can be read.
    failure: Option<Failure>,
}

impl<'r, 'a> Payload<'r, 'a> {
    /// Waits for its head, and tells the log that it goes `to` there.
    ///
    /// # Errors
    /// The primary sends something else, or nothing.
    pub(super) fn begin(
        thread: &'r UpstreamThread,
        reader: &'r mut Reader<'a>,
        to: &str,
    ) -> Result<Payload<'r, 'a>, Failure> {
        let primary = thread.shared.primary_words();
        let end = end_of(&reader.line()?, primary)?;
        let what = match &end {
            End::Length(bytes) => format!("{bytes} bytes from {} to {to}", primary.lower),
            End::Mark(_) => format!("streamed RDB from {} with EOF to {to}", primary.lower),
        };
        let upper = primary.upper;
        thread.shared.log.notice(format_args!("{upper} <-> REPLICA sync: receiving {what}"));
        let (held, part, told) = (Vec::new(), Vec::new(), Moment::now());
        let payload =
            Payload { thread, reader, end, came: 0, held, part, at: 0, told, failure: None };
        let total = payload.total();
        thread.upstream.note_incoming(|incoming| incoming.total = total);
        Ok(payload)
    }

    /// How long the dataset is, if that was told.
    pub(super) fn total(&self) -> Option<u64> {
        match self.end {
            End::Length(bytes) => Some(bytes),
            End::Mark(_) => None,
        }
    }

    /// The next part of it, which may be empty; `None` behind its end.
    ///
    /// # Errors
    /// The connection has ended before.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let left = match &self.end {
            End::Length(total) => total - self.came,
            End::Mark(mark) if self.held == *mark => 0,
            End::Mark(_) => u64::MAX,
        };
        if left == 0 {
            return Ok(None);
        }
        let Some(mut bytes) = self.reader.next()? else { return Ok(Some(Vec::new())) };
        match &self.end {
            End::Length(_) => {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX);
                if bytes.len() > wanted {
                    self.reader.put_back(bytes.split_off(wanted));
                }
                self.came += bytes.len() as u64;
            }
            // Nothing comes behind a mark: the primary waits for an acknowledgement.
            End::Mark(_) => {
                self.came += bytes.len() as u64;
                self.held.append(&mut bytes);
                let whole = self.held.len().saturating_sub(MARK_LEN);
                bytes = self.held.drain(..whole).collect();
            }
        }
        self.thread.upstream.note_incoming(|incoming| {
            (incoming.read, incoming.last_ms) = (self.came, unix_ms());
        });
        Ok(Some(bytes))
    }

    /// Whoever has read it as a dataset found its end: whether the primary says that this is all.
    ///
    /// # Errors
    /// It says something else, or nothing more comes.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let is_marked = matches!(self.end, End::Mark(_));
        loop {
            let is_over = self.at == self.part.len() && self.held.len() <= MARK_LEN;
            if is_marked && !is_over {
                return Err(broken_mark());
            }
            match self.next()? {
                None => return Ok(()),
                Some(part) if part.is_empty() => {
                    let is_mark = |mark: &Vec<u8>| mark.starts_with(&self.held);
                    if matches!(&self.end, End::Mark(mark) if !is_mark(mark)) {
                        return Err(broken_mark());
                    }
                }
                // What stands behind a dataset whose length was told is not looked at.
                Some(part) => (self.part, self.at) = (part, 0),
            }
        }
    }

    /// Why reading failed, if it did.
    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

impl Read for Payload<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            if self.told.elapsed() >= ACK_PERIOD {
                self.reader.show_life();
                self.told = Moment::now();
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
fn end_of(line: &[u8], primary: PrimaryWords) -> Result<End, Failure> {
    let primary = primary.upper;
    let text = String::from_utf8_lossy(line);
    if let Some(reason) = text.strip_prefix('-') {
        let text = format!("{primary} aborted replication with an error: {reason}");
        return Err(Failure::Refused(text));
    }
    let end = line.strip_prefix(b"$").and_then(|end| match end.strip_prefix(b"EOF:") {
        Some(mark) => (mark.len() == MARK_LEN).then(|| End::Mark(mark.to_vec())),
        None => std::str::from_utf8(end).ok()?.parse().ok().map(End::Length),
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
    fn a_head_says_how_the_end_is_known() {
        let mark = "0123456789012345678901234567890123456789";
        let words = brisk_engine::Dialect::Redis.primary_words();
        let of = |line: &str| end_of(line.as_bytes(), words).ok();
        assert_eq!(of("$17"), Some(End::Length(17)));
        assert_eq!(of(&format!("$EOF:{mark}")), Some(End::Mark(mark.as_bytes().to_vec())));
        for bad in ["$EOF:short", "$-1", "$", "17", "-ERR no", ""] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
