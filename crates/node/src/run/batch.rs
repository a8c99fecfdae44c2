//! A batch: up to 32 requests of one connection, parsed from its input before the first is
//! executed.
//!
//! Because the requests are known in advance, cache lines for later requests are loaded while earlier requests are
//! parsed or executed. Looking up a key touches three cache lines, one after the other: slot, bucket and entry. [`LAG`]
//! other keys are processed between two of these steps, so that the memory has time to respond:
//!
//! ```text
//! parse:       key n      prefetches the slot's line
//!              key n-8    its slot is loaded, prefetches the bucket's line
//!              key n-16   its bucket is loaded, prefetches the entry's line
//! ```

use brisk_engine::args::{Args, PreparedKey};
use brisk_engine::keyspace::{Database, DbIndex, KeyHasher, Keyspace};
use brisk_engine::table::{CommandTable, KeyPlan, Row};
use brisk_engine::{exec, keyspec};
use brisk_resp::{Limits, ProtocolError, RequestDecoder, Span, Spans, Step};
use brisk_structures::reclaim::Participant;
use std::ops::Range;

/// Maximum number of requests that are parsed ahead. Measurements show that 16 are nearly as good, and that more than
/// 32 gain nothing.
pub const REQUESTS_MAX: usize = 32;
/// Number of other keys between two prefetch steps of a key.
const LAG: usize = 8;
/// Maximum number of keys that are prefetched for one batch. More keys would evict each other from the cache.
const PREFETCHED_KEYS_MAX: usize = 512;
/// Maximum number of elements of one value that are prefetched together.
const ELEMENTS_MAX: usize = 64;
/// Minimum number of elements of one value that are prefetched. With fewer elements, it is not worth looking up their
/// key.
const ELEMENTS_MIN: usize = 4;
/// Parsing ahead stops after this many arguments.
const WORDS_MAX: usize = 4096;

/// One request of the batch.
#[derive(Clone, Copy)]
pub struct Request {
    /// `None` for an unknown command.
    pub row: Option<&'static Row>,
    /// The range of the request in the data.
    pub start: usize,
    pub end: usize,
    first_span: usize,
    spans: usize,
    first_key: usize,
    keys: usize,
}

/// The reason why the batch ends.
pub enum BatchEnd {
    /// The batch is full. The data may contain more requests.
    Full,
    /// The data ends, perhaps within a request, which then lacks at least this many bytes.
    NeedMore(usize),
    /// The following bytes are not a valid request.
    Broken(ProtocolError),
}

/// The data that parsing needs to look up and prefetch keys.
pub struct KeyLookup<'l> {
    pub table: &'static CommandTable,
    pub hasher: &'l KeyHasher,
    /// The session's database at the beginning of the batch. After a SELECT within the batch, prefetching has no
    /// effect.
    pub database: &'l Database,
    /// If it is `None`, nothing is prefetched.
    pub participant: Option<&'l Participant>,
}

/// The parsed requests.
pub struct Batch {
    requests: Vec<Request>,
    spans: Spans,
    prepared: Vec<PreparedKey>,
    /// The position in the data of the only key of the last request. Pipelines often repeat a key, whose hash and slot
    /// are then known.
    last_key: Range<usize>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch {
            requests: Vec::with_capacity(REQUESTS_MAX),
            spans: Spans::new(),
            prepared: Vec::with_capacity(REQUESTS_MAX),
            last_key: 0..0,
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

    /// Parses at most `max` requests from `data`, which begins at the decoder's position. Returns how many bytes the
    /// requests have, and why parsing stopped.
    pub fn fill(
        &mut self,
        data: &[u8],
        max: usize,
        decoder: &mut RequestDecoder,
        limits: &Limits,
        look: &KeyLookup<'_>,
    ) -> (usize, BatchEnd) {
        self.requests.clear();
        self.spans.clear();
        self.prepared.clear();
        self.last_key = 0..0;
        let filled = self.parse(data, max, decoder, limits, look);
        if let Some(participant) = look.participant {
            self.settle(look.database, participant);
        }
        filled
    }

    #[inline]
    fn parse(
        &mut self,
        data: &[u8],
        max: usize,
        decoder: &mut RequestDecoder,
        limits: &Limits,
        look: &KeyLookup<'_>,
    ) -> (usize, BatchEnd) {
        let mut at = 0;
        while self.requests.len() < max && self.spans.len() < WORDS_MAX {
            if at == data.len() {
                return (at, BatchEnd::NeedMore(0));
            }
            let first_span = self.spans.len();
            match decoder.decode(&data[at..], limits, &mut self.spans) {
                Ok(Step::Request { consumed, argc }) => {
                    let keys = self.prepared.len();
                    self.add(data, at..at + consumed, first_span, argc, look);
                    if let Some(participant) = look.participant {
                        self.advance(keys, look.database, participant);
                    }
                    at += consumed;
                }
                Ok(Step::Empty { consumed }) => at += consumed,
                Ok(Step::Incomplete { need_hint }) => return (at, BatchEnd::NeedMore(need_hint)),
                Err(error) => return (at, BatchEnd::Broken(error)),
            }
        }
        (at, BatchEnd::Full)
    }

    #[inline]
    fn add(
        &mut self,
        data: &[u8],
        Range { start, end }: Range<usize>,
        first_span: usize,
        spans: usize,
        KeyLookup { table, hasher, .. }: &KeyLookup<'_>,
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
                KeyPlan::First => {
                    let bytes = word(1);
                    let known = self.prepared.last().copied();
                    match known {
                        Some(known) if is_repeated(&data[self.last_key.clone()], bytes) => {
                            self.prepared.push(known)
                        }
                        _ => {
                            self.prepared.push(exec::prepare(1, &hasher.key(bytes)));
                            let at = list[1].offset().map_or(0, |offset| start + offset);
                            self.last_key = at..if at > 0 { at + bytes.len() } else { 0 };
                        }
                    }
                }
                KeyPlan::Specs => {
                    self.last_key = 0..0;
                    keyspec::each_key(row.spec, spans, &word, |at| {
                        self.prepared.push(exec::prepare(at, &hasher.key(word(at))));
                    });
                }
            }
        }
        let keys = self.prepared.len() - first_key;
        self.requests.push(Request { row, start, end, first_span, spans, first_key, keys });
    }

    /// Advances each pending key by one prefetch step. The most recently parsed keys take their
    /// first step.
    #[inline]
    fn advance(&mut self, from: usize, database: &Database, participant: &Participant) {
        let to = self.prepared.len().min(PREFETCHED_KEYS_MAX);
        for at in from..to {
            if let Some(key) = self.new_key(at) {
                database.slot(key.slot).prefetch();
            }
            if let Some(key) = at.checked_sub(LAG).and_then(|at| self.new_key(at)) {
                database.slot(key.slot).prefetch_bucket(key.hash);
            }
            if let Some(key) = at.checked_sub(2 * LAG).and_then(|at| self.new_key(at)) {
                database.slot(key.slot).prefetch_entry(key.hash, participant);
            }
        }
    }

    /// Key `at`, unless it repeats the key before it.
    #[inline]
    fn new_key(&self, at: usize) -> Option<&PreparedKey> {
        let key = &self.prepared[at];
        (at == 0 || self.prepared[at - 1].hash != key.hash).then_some(key)
    }

    /// Completes the prefetch of the last keys. A single key is not prefetched: it is looked up immediately, so
    /// prefetching would only cost time.
    #[inline]
    fn settle(&self, database: &Database, participant: &Participant) {
        let keys = self.all_keys();
        if keys.len() < 2 {
            return;
        }
        for key in &keys[keys.len().saturating_sub(LAG)..] {
            database.slot(key.slot).prefetch_bucket(key.hash);
        }
        for key in &keys[keys.len().saturating_sub(2 * LAG)..] {
            database.slot(key.slot).prefetch_entry(key.hash, participant);
        }
    }

    /// Prefetches the buckets of a batch with so few keys that [`Batch::fill`] prefetched only
    /// their slots.
    #[inline]
    pub fn prefetch_buckets(&self, database: &Database) {
        for key in self.prepared.iter().take(LAG) {
            database.slot(key.slot).prefetch_bucket(key.hash);
        }
    }

    /// The step after [`Batch::prefetch_buckets`].
    #[inline]
    pub fn prefetch_entries(&self, database: &Database, participant: &Participant) {
        for key in self.prepared.iter().take(LAG) {
            database.slot(key.slot).prefetch_entry(key.hash, participant);
        }
    }

    /// The keys of all requests that are prefetched.
    pub fn all_keys(&self) -> &[PreparedKey] {
        &self.prepared[..self.prepared.len().min(PREFETCHED_KEYS_MAX)]
    }

    /// Prefetches the memory that looking up the elements named by request `at` will read. Does the same for the
    /// following requests if they name the same key. Returns the request up to which this was done.
    #[inline]
    pub fn prefetch_elements(
        &self,
        at: usize,
        data: &[u8],
        keyspace: &Keyspace,
        db: DbIndex,
    ) -> usize {
        let Some((first, key)) = self.names_elements(at) else { return at + 1 };
        let following = at + 1..self.requests.len();
        let same = |at: &usize| self.names_elements(*at).is_some_and(|(_, k)| k.hash == key.hash);
        let end = following.take_while(same).last().map_or(at + 1, |last| last + 1);
        if end == at + 1 && first.spans < ELEMENTS_MIN {
            return end;
        }
        self.prefetch_elements_of(at..end, key, data, keyspace.database(db))
    }

    /// The request and its key, if the request names elements of the key's value.
    #[inline]
    fn names_elements(&self, at: usize) -> Option<(&Request, &PreparedKey)> {
        let request = &self.requests[at];
        let named = request.row.is_some_and(|row| !row.spec.elements.is_none());
        (named && request.keys == 1).then(|| (request, &self.prepared[request.first_key]))
    }

    fn prefetch_elements_of(
        &self,
        requests: Range<usize>,
        key: &PreparedKey,
        data: &[u8],
        database: &Database,
    ) -> usize {
        let mut elements: [&[u8]; ELEMENTS_MAX] = [&[]; ELEMENTS_MAX];
        let mut scores: [&[u8]; ELEMENTS_MAX] = [&[]; ELEMENTS_MAX];
        let (mut count, mut scored) = (0, false);
        let mut end = requests.start;
        let word = |request: &Request, at: usize| {
            self.spans.bytes(&data[request.start..], self.list(request)[at])
        };
        for request in &self.requests[requests.clone()] {
            let Some(row) = request.row else { break };
            for at in row.spec.elements.words(request.spans).take(ELEMENTS_MAX - count) {
                elements[count] = word(request, at);
                if row.spec.elements.scored {
                    scores[count] = word(request, at - 1);
                    scored = true;
                }
                count += 1;
            }
            end += 1;
            if count == ELEMENTS_MAX {
                break;
            }
        }
        if count >= ELEMENTS_MIN {
            let name = word(&self.requests[requests.start], key.index as usize);
            let scores = if scored { &scores[..count] } else { &[] };
            database.prefetch_elements(name, key, &elements[..count], scores);
        }
        end
    }

    /// The keys of a request.
    #[inline]
    pub fn keys(&self, request: &Request) -> &[PreparedKey] {
        &self.prepared[request.first_key..request.first_key + request.keys]
    }

    fn list(&self, request: &Request) -> &[Span] {
        &self.spans.as_slice()[request.first_span..request.first_span + request.spans]
    }

    /// The arguments of a request, for a handler.
    #[inline]
    pub fn args<'a>(&'a self, data: &'a [u8], request: &Request) -> Args<'a> {
        let list = self.list(request);
        Args::new(&data[request.start..], &self.spans, list, self.keys(request))
    }

    /// Frees memory that an unusually long request took.
    #[inline]
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

/// Reports whether a key repeats the previous key. Keys with the same pattern differ at their ends, so one comparison
/// detects most different keys.
#[inline]
fn is_repeated(last: &[u8], key: &[u8]) -> bool {
    !last.is_empty() && last.last_chunk::<8>() == key.last_chunk::<8>() && last == key
}
