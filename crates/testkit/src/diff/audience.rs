//! Who hears of changed keys while a stream runs: what they hear must be the same on both servers.
//!
//! One session hears of every change (CLIENT TRACKING with BCAST), another of changes to what the
//! stream's first session has read (REDIRECT). After each batch both are asked what they have heard.
//! How changes are put together into messages is the server's choice, so keys are compared: as a set
//! where each is told once for some time, and each with its number where it is told for each time it
//! was read. Keys that have expired on one of the servers are left out from then on: which command
//! meets them first, even one that then fails, is the server's choice too.

use super::Difference;
use super::peer::Peer;
use crate::reply::Reply;
use anyhow::{Result, bail};
use std::collections::BTreeSet;

/// The listening sessions of one server.
#[derive(Debug)]
pub struct Audience {
    all: Peer,
    reader: Peer,
    /// Keys that have expired, or of which the servers may tell differently for another reason.
    excused: BTreeSet<String>,
}

impl Audience {
    /// Lets sessions listen: to everything, and to what `session` reads.
    pub fn gather(address: &str, session: &mut Peer) -> Result<Audience> {
        let listener = || -> Result<Peer> {
            let mut peer = Peer::connect(address)?;
            peer.ask(&["HELLO", "3"])?;
            Ok(peer)
        };
        let (mut all, mut reader) = (listener()?, listener()?);
        let id = String::from_utf8_lossy(reader.ask(&["CLIENT", "ID"])?).into_owned();
        let id = id.trim_matches(|c: char| !c.is_ascii_digit());
        // Keys that are past their deadline go when a command meets them, not when a timer does.
        expect_ok(all.ask(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"])?)?;
        expect_ok(all.ask(&["CONFIG", "SET", "notify-keyspace-events", "Ex"])?)?;
        all.ask(&["PSUBSCRIBE", "__keyevent@*__:expired"])?;
        expect_ok(all.ask(&["CLIENT", "TRACKING", "ON", "BCAST"])?)?;
        expect_ok(session.ask(&["CLIENT", "TRACKING", "ON", "REDIRECT", id])?)?;
        Ok(Audience { all, reader, excused: BTreeSet::new() })
    }
}

fn expect_ok(reply: &[u8]) -> Result<()> {
    if reply == b"+OK\r\n" { Ok(()) } else { bail!("{}", String::from_utf8_lossy(reply)) }
}

/// What the audiences have heard since the last call, if it is not the same.
pub fn difference(ours: &mut Audience, theirs: &mut Audience) -> Result<Option<Difference>> {
    let (mut mine, mut other) = (ours.changed()?, theirs.changed()?);
    mine.dedup();
    other.dedup();
    let (read, read_there) = (ours.changed_reads()?, theirs.changed_reads()?);
    let judged = |keys: Vec<String>| -> Vec<String> {
        let excused = |key: &String| ours.excused.contains(key) || theirs.excused.contains(key);
        keys.into_iter().filter(|key| !excused(key)).collect()
    };
    let questions = [
        ("which keys were changed", judged(mine), judged(other)),
        ("which read keys were changed", judged(read), judged(read_there)),
    ];
    let found = questions.into_iter().find(|(_, ours, theirs)| ours != theirs);
    Ok(found.map(|(what, ours, theirs)| Difference {
        what: what.to_owned(),
        kind: what.to_owned(),
        ours: ours.join("\n"),
        theirs: theirs.join("\n"),
    }))
}

impl Audience {
    /// From now on the servers may tell differently of this key.
    pub fn excuse(&mut self, key: &[u8]) {
        self.excused.insert(Reply::Bulk(key.to_vec()).to_string());
    }

    fn changed(&mut self) -> Result<Vec<String>> {
        heard(&mut self.all, &mut self.excused)
    }

    fn changed_reads(&mut self) -> Result<Vec<String>> {
        heard(&mut self.reader, &mut self.excused)
    }
}

/// All keys of all messages since the last call, in order; those of events go to `excused`.
fn heard(peer: &mut Peer, excused: &mut BTreeSet<String>) -> Result<Vec<String>> {
    peer.send(b"*1\r\n$4\r\nPING\r\n")?;
    let mut keys = Vec::new();
    loop {
        let frame = peer.reply().map_err(anyhow::Error::msg)?;
        let Ok(Some((Reply::Push(parts), _))) = Reply::parse(frame) else { break };
        match &parts[..] {
            [_, Reply::Array(named)] => keys.extend(named.iter().map(Reply::to_string)),
            [_, null] => keys.push(null.to_string()),
            event => excused.extend(event.last().map(Reply::to_string)),
        }
    }
    keys.sort();
    Ok(keys)
}
