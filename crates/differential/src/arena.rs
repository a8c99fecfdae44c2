//! Runs one stream of calls on both servers.

use crate::audience::{self, Audience, Mode};
use crate::difference::Difference;
use crate::generate::{By, Call, Unit};
use crate::peer::Peer;
use crate::settings::Thresholds;
use crate::table::Table;
use crate::{compare, listener, rules, state};
use anyhow::{Context, Result};
use brisk_testkit::reply::Reply;
use brisk_testkit::words::{encode, encode_into, line};

/// The two servers and how to speak to them.
#[derive(Debug)]
pub struct Arena<'a> {
    pub(crate) table: &'a Table,
    pub(crate) ours: &'a str,
    pub(crate) theirs: &'a str,
    pub(crate) resp: u8,
    pub(crate) mode: Mode,
    pub(crate) thresholds: Thresholds,
    pub(crate) pipeline: usize,
}

/// All sessions on one server.
#[derive(Debug)]
struct Sessions {
    first: Peer,
    second: Peer,
    listener: Peer,
    audience: Audience,
}

impl Sessions {
    fn of(&mut self, by: By) -> &mut Peer {
        match by {
            By::First => &mut self.first,
            By::Second => &mut self.second,
            By::Listener => &mut self.listener,
        }
    }
}

/// The difference in the messages that the listeners received after the last batch, if there is one. The listeners send
/// the requests `said` first.
fn difference_heard(
    ours: &mut Sessions,
    theirs: &mut Sessions,
    said: &[u8],
) -> Result<Option<Difference>> {
    let mine = listener::heard(&mut ours.listener, said).context("our listener")?;
    let other = listener::heard(&mut theirs.listener, said).context("their listener")?;
    if mine != other {
        let shown =
            |heard: &[Reply]| heard.iter().map(Reply::to_string).collect::<Vec<_>>().join("\n");
        let what = "what was published".to_owned();
        let (ours, theirs) = (shown(&mine), shown(&other));
        return Ok(Some(Difference { kind: what.clone(), what, ours, theirs }));
    }
    ours.audience.hear(&mut ours.first).context("our audience")?;
    theirs.audience.hear(&mut theirs.first).context("their audience")?;
    Ok(audience::difference(&ours.audience, &theirs.audience))
}

/// A batch of requests is at most this long before replies are read. The socket buffers of both sides hold as much, so
/// the two sides cannot block each other.
const BATCH_BYTES_MAX: usize = 48 * 1024;

impl Arena<'_> {
    /// Runs `units` from an empty keyspace. Returns the first difference and the index of its command.
    pub fn first_difference(&mut self, units: &[Unit]) -> Result<Option<(usize, Difference)>> {
        let mut ours = self.sessions(self.ours).context("our server")?;
        let mut theirs = self.sessions(self.theirs).context("their server")?;
        let calls: Vec<&Call> = units.iter().flatten().collect();
        let mut bytes = Vec::with_capacity(BATCH_BYTES_MAX);
        let mut done = 0;
        while done < calls.len() {
            let (by, batch) = (calls[done].by, self.batch(&calls[done..], &mut bytes));
            let end = done + batch.len();
            let listens = by == By::Listener;
            let mut refused = Vec::new();
            if !listens {
                let (mine, other) = (ours.of(by), theirs.of(by));
                mine.send(&bytes)?;
                other.send(&bytes)?;
                for (index, call) in batch.iter().enumerate() {
                    let mut is_refused = false;
                    if let Some(difference) = self.one(call, mine, other, &mut is_refused) {
                        // The requests sent so far must be executed before the next ones are sent, because a server
                        // with several threads may serve the next connection first.
                        drain(mine);
                        drain(other);
                        return Ok(Some((done + index, difference)));
                    }
                    refused.extend(is_refused.then_some(index));
                }
            }
            for (index, call) in batch.iter().enumerate() {
                if rules::ends_tracking(self.name(call)) {
                    ours.audience.end();
                    theirs.audience.end();
                }
                if rules::notifies_differently(self.name(call)) || refused.contains(&index) {
                    call.words.iter().for_each(|word| ours.audience.excuse(word));
                }
            }
            let said = if listens { &bytes[..] } else { &[] };
            if let Some(difference) = difference_heard(&mut ours, &mut theirs, said)? {
                return Ok(Some((end - 1, difference)));
            }
            done = end;
        }
        let found = state::first_difference(self.ours, self.theirs)?;
        Ok(found.map(|difference| (calls.len(), difference)))
    }

    /// The longest prefix of `calls` that can be sent together. Their requests are written to `bytes`.
    fn batch<'c>(&self, calls: &'c [&'c Call], bytes: &mut Vec<u8>) -> &'c [&'c Call] {
        bytes.clear();
        let by = calls[0].by;
        let fits = |call: &Call, at: usize, bytes: &[u8]| {
            call.by == by && at < self.pipeline && bytes.len() < BATCH_BYTES_MAX
        };
        let mut end = 0;
        while end < calls.len() && fits(calls[end], end, bytes) {
            let call = calls[end];
            if let Some(prelude) = rules::prelude(self.name(call)) {
                encode_into(bytes, prelude);
            }
            encode_into(bytes, &call.words);
            if let Some(resync) = call.resync(self.name(call)) {
                encode_into(bytes, &resync);
            }
            end += 1;
        }
        &calls[..end]
    }

    /// The sessions of a stream; the server is empty.
    fn sessions(&self, address: &str) -> Result<Sessions> {
        let mut first = Peer::fresh(address, self.resp, self.thresholds)?;
        let mut listener = Peer::connect(address)?;
        if self.resp == 3 {
            listener.request(&["HELLO", "3"])?;
        }
        let audience = Audience::gather(address, &mut first, self.mode)?;
        Ok(Sessions { first, second: Peer::connect(address)?, listener, audience })
    }

    fn name(&self, call: &Call) -> &str {
        self.table.rows.get(call.row).map_or("unknown command", |row| row.name.as_str())
    }

    /// Compares the replies to one call, and reports whether its arguments are rejected.
    fn one(
        &self,
        call: &Call,
        ours: &mut Peer,
        theirs: &mut Peer,
        is_refused: &mut bool,
    ) -> Option<Difference> {
        let name = self.name(call);
        let difference = |ours, theirs| {
            Some(Difference { what: line(&call.words), kind: name.to_owned(), ours, theirs })
        };
        if rules::prelude(name).is_some() {
            let (mine, other) = (ours.reply().err(), theirs.reply().err());
            if mine.is_some() || other.is_some() {
                return difference(mine.unwrap_or_default(), other.unwrap_or_default());
            }
        }
        match (ours.reply(), theirs.reply()) {
            (Ok(mine), Ok(other)) if mine == other => *is_refused = rules::refuses_words(mine),
            (Ok(mine), Ok(other)) => {
                let how = rules::comparison(name, &call.words);
                if !compare::same(how, mine, other) {
                    return difference(compare::shown(mine), compare::shown(other));
                }
            }
            (mine, other) => {
                let text = |r: Result<&[u8], String>| r.map_or_else(|e| e, compare::shown);
                return difference(text(mine), text(other));
            }
        }
        if call.resync(name).is_some() {
            // The number of keys that DEL has deleted does not matter.
            let (mine, other) = (ours.reply().err(), theirs.reply().err());
            if mine.is_some() || other.is_some() {
                return difference(mine.unwrap_or_default(), other.unwrap_or_default());
            }
        }
        None
    }
}

/// Waits until everything sent has been executed.
fn drain(peer: &mut Peer) {
    let mark: &[u8] = b"no more to come";
    if peer.send(&encode(&[&b"ECHO"[..], mark])).is_ok() {
        // ECHO returns the marker, possibly in the error of a transaction, or the connection ends.
        while peer.reply().is_ok_and(|reply| !reply.ends_with(b"no more to come\r\n")) {}
    }
}
