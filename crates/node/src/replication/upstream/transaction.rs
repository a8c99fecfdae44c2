//! Finds the end of a transaction in the primary's stream, and encodes requests for the append-only file.

use crate::core::shared::Shared;
use crate::run::repeated;
use brisk_engine::command::InMulti;
use brisk_engine::keyspace::DbIndex;
use brisk_engine::table::Row;
use brisk_resp::Limits;
use brisk_resp::request;
use brisk_resp::request::{RequestDecoder, Spans, Step};

/// The log mentions an incomplete transaction if it has more bytes than this.
const LARGE_BYTES: usize = 64 << 20;

/// When this many bytes of an incomplete transaction have been searched, they are moved from the input to the held
/// pieces.
const CHUNK_BYTES: usize = 1 << 20;

/// The search for the end of a transaction that has not arrived completely. Until the end arrives, the transaction is
/// held as it was sent and none of its commands is queued. So it is in memory only once.
#[derive(Default)]
pub(super) struct TransactionSearch {
    state: SearchState,
    /// Complete requests that have been searched, from MULTI on. Later bytes are still in the input.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
    /// Number of bytes of the input that were searched.
    searched: usize,
    decoder: RequestDecoder,
    is_logged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SearchState {
    #[default]
    Off,
    On,
    /// The input begins with a complete transaction.
    Found,
}

impl TransactionSearch {
    /// True while a search is in progress.
    pub(super) fn is_on(&self) -> bool {
        self.state == SearchState::On
    }

    /// Returns true if the input begins with a complete transaction. The caller then executes it.
    pub(super) fn take_found(&mut self) -> bool {
        let has_found = self.state == SearchState::Found;
        self.state = SearchState::Off;
        has_found
    }

    /// Begins a search. The input begins with MULTI.
    pub(super) fn begin(&mut self) {
        self.state = SearchState::On;
    }

    /// Searches `input`, which grows between calls, for the end. Returns true if the end is found. The input then
    /// begins with the transaction. O(new bytes), and O(transaction) when the end is found.
    pub(super) fn advance(
        &mut self,
        input: &mut Vec<u8>,
        limits: &Limits,
        shared: &Shared,
    ) -> bool {
        if self.finds_end(input, limits) {
            if !self.held.is_empty() {
                let mut whole = Vec::with_capacity(self.held_bytes + input.len());
                self.held.drain(..).for_each(|chunk| whole.extend_from_slice(&chunk));
                whole.append(input);
                *input = whole;
            }
            *self = TransactionSearch { state: SearchState::Found, ..TransactionSearch::default() };
            return true;
        }
        if self.searched >= CHUNK_BYTES {
            self.held.push(input[..self.searched].to_vec());
            self.held_bytes += self.searched;
            input.drain(..self.searched);
            input.shrink_to(CHUNK_BYTES);
            self.searched = 0;
        }
        if self.held_bytes + input.len() > LARGE_BYTES && !self.is_logged {
            self.is_logged = true;
            shared.log.warning(format_args!(
                "A transaction of the primary has more than {LARGE_BYTES} bytes and is not complete: it is \
                 kept in memory until its EXEC arrives"
            ));
        }
        false
    }

    fn finds_end(&mut self, input: &[u8], limits: &Limits) -> bool {
        let mut spans = Spans::new();
        loop {
            let rest = &input[self.searched..];
            spans.clear();
            match self.decoder.decode(rest, limits, &mut spans) {
                Ok(Step::Request { consumed, .. }) => {
                    self.searched += consumed;
                    let name = spans.as_slice().first().map(|span| spans.bytes(rest, *span));
                    let ends = |name: &[u8]| {
                        name.eq_ignore_ascii_case(b"exec") || name.eq_ignore_ascii_case(b"discard")
                    };
                    if name.is_some_and(ends) {
                        return true;
                    }
                }
                Ok(Step::Empty { consumed }) => self.searched += consumed,
                Ok(Step::Incomplete { .. }) => return false,
                // The protocol error is reported when the request is executed.
                Err(_) => return true,
            }
        }
    }
}

/// Encodes the requests of `part` in the form of the append-only file. Leaves out bytes that are not part of a request,
/// and requests for which `is_left_out` returns true. O(bytes).
pub(super) fn encoded(
    mut part: &[u8],
    limits: &Limits,
    mut is_left_out: impl FnMut(&[&[u8]]) -> bool,
) -> Vec<u8> {
    let (mut out, mut spans) = (Vec::with_capacity(part.len()), Spans::new());
    while !part.is_empty() {
        spans.clear();
        let consumed = match RequestDecoder::new().decode(part, limits, &mut spans) {
            Ok(Step::Request { consumed, .. }) => {
                let words = spans.as_slice().iter().map(|span| spans.bytes(part, *span));
                let words = words.collect::<Vec<&[u8]>>();
                if !is_left_out(&words) {
                    request::encode(&mut out, &words);
                }
                consumed
            }
            Ok(Step::Empty { consumed }) => consumed,
            Ok(Step::Incomplete { .. }) | Err(_) => break,
        };
        part = &part[consumed..];
    }
    out
}

/// Returns a function that must be called with each request of a command or transaction, in order. The function returns
/// true if the request was not executed. The append-only file does not get these requests:
///
/// - requests for a database that this server lacks, because the loader would change another database;
/// - requests that fail between MULTI and EXEC, because the loader rejects a MULTI within a transaction.
///
/// `lacks_db` is true if the database that is selected before the first request does not exist.
pub(super) fn not_executed(shared: &Shared, mut lacks_db: bool) -> impl FnMut(&[&[u8]]) -> bool {
    let mut in_transaction = false;
    move |words| {
        let Some(row) = words.first().and_then(|name| shared.table.find(name)) else {
            return false;
        };
        if in_transaction && fails_in_transaction(row) {
            return true;
        }
        in_transaction |= begins_transaction(row);
        if selects(row) {
            lacks_db = selects_missing(shared, words.get(1).copied().unwrap_or_default());
            return lacks_db;
        }
        lacks_db && repeated::works_on_selected(row)
    }
}

pub(super) fn selects(row: &Row) -> bool {
    row.spec.in_multi == InMulti::Selects
}

/// True if the command begins a transaction.
pub(super) fn begins_transaction(row: &Row) -> bool {
    row.spec.in_multi == InMulti::Rejects && row.name == "multi"
}

/// True if a command is never queued and fails within a transaction, which then continues to its EXEC. DISCARD and QUIT
/// end a transaction, so no EXEC follows them.
pub(super) fn fails_in_transaction(row: &Row) -> bool {
    matches!(row.spec.in_multi, InMulti::Rejects | InMulti::Ends)
}

/// True if SELECT with this argument selects a database that does not exist.
pub(super) fn selects_missing(shared: &Shared, number: &[u8]) -> bool {
    let number = std::str::from_utf8(number).ok().and_then(|text| text.parse::<u32>().ok());
    let count = shared.keyspace.database_count();
    number.and_then(|number| DbIndex::checked(number, count)).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_requests_in_one_form() {
        let sent = b"*0\r\nSET \"a b\" 1\r\n\r\n*1\r\n$4\r\nEXEC\r\n";
        let want = b"*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$1\r\n1\r\n*1\r\n$4\r\nEXEC\r\n";
        assert_eq!(encoded(sent, &Limits::default(), |_| false), want);
        let cut_off = &want[..want.len() - 1];
        assert_eq!(encoded(cut_off, &Limits::default(), |_| false), want[..29]);
        assert_eq!(encoded(sent, &Limits::default(), |words| words[0] == b"SET"), want[29..]);
    }
}
