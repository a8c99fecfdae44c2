//! A batch: up to 32 requests of one connection, cut out of its input before the first is executed.
//!
//! Knowing the requests ahead is what makes the keyspace fast: while the first is executed, the
//! cache lines of the others are on their way. Three passes, each over the whole batch, each
//! touching what the pass before has asked the memory for: slot, bucket, entry.

use crate::table::{CommandTable, KeyPlan, Row};
use brisk_engine::args::{Args, PreparedKey};
use brisk_engine::keyspace::{Database, KeyHasher};
use brisk_engine::{exec, keyspec};
use brisk_resp::{Limits, ProtocolError, RequestDecoder, Span, Spans, Step};
use brisk_structures::reclaim::Participant;

/// Requests cut ahead. Measured: 16 are nearly as good, more gain nothing.
pub const REQUESTS_MAX: usize = 32;
/// Keys prefetched for one batch; more would push each other out of the cache.
const PREFETCHED_KEYS_MAX: usize = 512;
/// Cutting ahead ends when this many words are at hand.
const WORDS_MAX: usize = 4096;

/// One request of the batch.
#[derive(Clone, Copy)]
pub struct Request {
    /// `None`: an unknown command.
    pub row: Option<&'static Row>,
    /// Where it begins and ends in the data.
    pub start: usize,
    pub end: usize,
    first_span: usize,
    spans: usize,
    first_key: usize,
    keys: usize,
}

/// Why the batch ends where it ends.
pub enum Stop {
    /// It is full; there may be more in the data.
    Full,
    /// The data ends, or ends within a request of which at least so many bytes are missing.
    NeedMore(usize),
    /// What follows is no request.
    Broken(ProtocolError),
}

/// The requests at hand.
pub struct Batch {
    requests: Vec<Request>,
    spans: Spans,
    prepared: Vec<PreparedKey>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch {
            requests: Vec::with_capacity(REQUESTS_MAX),
            spans: Spans::new(),
            prepared: Vec::with_capacity(REQUESTS_MAX),
        }
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn request(&self, at: usize) -> &Request {
        &self.requests[at]
    }

    /// Cuts at most `max` requests out of `data`, which begins where the decoder stands. Returns
    /// how many bytes the requests take, and why there are no more.
    pub fn fill(
        &mut self,
        data: &[u8],
        max: usize,
        decoder: &mut RequestDecoder,
        limits: &Limits,
        table: &'static CommandTable,
        hasher: &KeyHasher,
    ) -> (usize, Stop) {
        self.requests.clear();
        self.spans.clear();
        self.prepared.clear();
        let mut at = 0;
        while self.requests.len() < max && self.spans.len() < WORDS_MAX {
            if at == data.len() {
                return (at, Stop::NeedMore(0));
            }
            let first_span = self.spans.len();
            match decoder.decode(&data[at..], limits, &mut self.spans) {
                Ok(Step::Request { consumed, argc }) => {
                    self.add(data, at, at + consumed, first_span, argc, table, hasher);
                    at += consumed;
                }
                Ok(Step::Empty { consumed }) => at += consumed,
                Ok(Step::Incomplete { need_hint }) => return (at, Stop::NeedMore(need_hint)),
                Err(error) => return (at, Stop::Broken(error)),
            }
        }
        (at, Stop::Full)
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one call, in the hottest loop")]
    fn add(
        &mut self,
        data: &[u8],
        start: usize,
        end: usize,
        first_span: usize,
        spans: usize,
        table: &'static CommandTable,
        hasher: &KeyHasher,
    ) {
        let input = &data[start..];
        let list = &self.spans.as_slice()[first_span..];
        let word = |at: usize| self.spans.bytes(input, list[at]);
        let mut row = table.find(word(0));
        if let Some(container) = row
            && container.is_container()
            && spans > 1
        {
            row = container.subcommand(word(1)).or(row);
        }
        let first_key = self.prepared.len();
        if let Some(row) = row
            && row.spec.arity_admits(spans)
        {
            match row.keys {
                KeyPlan::None => {}
                KeyPlan::First => self.prepared.push(exec::prepare(1, &hasher.key(word(1)))),
                KeyPlan::Specs => {
                    for spec in row.spec.keys {
                        // A count that does not fit is the handler's to complain about.
                        let _ = keyspec::find_by(spec, spans, &word, &mut |at| {
                            self.prepared.push(exec::prepare(at, &hasher.key(word(at))));
                        });
                    }
                }
            }
        }
        let keys = self.prepared.len() - first_key;
        self.requests.push(Request { row, start, end, first_span, spans, first_key, keys });
    }

    /// Asks the memory for everything the batch will look at in `database`.
    #[inline]
    pub fn prefetch(&self, database: &Database, participant: &Participant) {
        // A single key is looked up at once; asking ahead would only cost.
        if self.prepared.len() < 2 {
            return;
        }
        let keys = &self.prepared[..self.prepared.len().min(PREFETCHED_KEYS_MAX)];
        for key in keys {
            database.slot(key.slot).prefetch();
        }
        for key in keys {
            database.slot(key.slot).prefetch_bucket(key.hash);
        }
        for key in keys {
            database.slot(key.slot).prefetch_entry(key.hash, participant);
        }
    }

    /// The keys of a request.
    #[inline]
    pub fn keys(&self, request: &Request) -> &[PreparedKey] {
        &self.prepared[request.first_key..request.first_key + request.keys]
    }

    fn list(&self, request: &Request) -> &[Span] {
        &self.spans.as_slice()[request.first_span..request.first_span + request.spans]
    }

    /// The words of a request, for a handler.
    #[inline]
    pub fn args<'a>(
        &'a self,
        data: &'a [u8],
        request: &Request,
        hasher: &'a KeyHasher,
    ) -> Args<'a> {
        let list = self.list(request);
        Args::new(&data[request.start..], &self.spans, list, self.keys(request), hasher)
    }

    /// Gives memory back that an unusually long request took.
    pub fn shrink(&mut self) {
        self.spans.shrink(WORDS_MAX);
        if self.prepared.capacity() > WORDS_MAX {
            self.prepared = Vec::with_capacity(REQUESTS_MAX);
        }
    }
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}
