//! Who hears of changed keys while a stream runs: what they hear must be the same on both servers.
//!
//! One session hears of every change (CLIENT TRACKING with BCAST), another of changes to what the
//! stream's first session has read (REDIRECT). After each batch both are asked what they have heard.
//! How changes are put together into messages is the server's choice, so keys are compared: as a set
//! where each is told once for some time, and each with its number where it is told for each time it
//! was read.

use super::Difference;
use super::peer::Peer;
use crate::reply::Reply;
use anyhow::{Result, bail};

/// The listening sessions of one server.
#[derive(Debug)]
pub struct Audience {
    all: Peer,
    reader: Peer,
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
        expect_ok(all.ask(&["CLIENT", "TRACKING", "ON", "BCAST"])?)?;
        expect_ok(session.ask(&["CLIENT", "TRACKING", "ON", "REDIRECT", id])?)?;
        Ok(Audience { all, reader })
    }
}

fn expect_ok(reply: &[u8]) -> Result<()> {
    if reply == b"+OK\r\n" { Ok(()) } else { bail!("{}", String::from_utf8_lossy(reply)) }
}

/// What the audiences have heard since the last call, if it is not the same.
pub fn difference(ours: &mut Audience, theirs: &mut Audience) -> Result<Option<Difference>> {
    let (mut mine, mut other) = (heard(&mut ours.all)?, heard(&mut theirs.all)?);
    mine.dedup();
    other.dedup();
    let (read, read_there) = (heard(&mut ours.reader)?, heard(&mut theirs.reader)?);
    let questions = [
        ("which keys were changed", mine, other),
        ("which read keys were changed", read, read_there),
    ];
    Ok(questions.into_iter().find(|(_, ours, theirs)| ours != theirs).map(
        |(what, ours, theirs)| Difference {
            what: what.to_owned(),
            kind: what.to_owned(),
            ours: ours.join("\n"),
            theirs: theirs.join("\n"),
        },
    ))
}

/// All keys of all messages, in order.
fn heard(peer: &mut Peer) -> Result<Vec<String>> {
    peer.send(b"PING\r\n")?;
    let mut keys = Vec::new();
    loop {
        let frame = peer.reply().map_err(anyhow::Error::msg)?;
        let Ok(Some((Reply::Push(parts), _))) = Reply::parse(frame) else { break };
        match &parts[1] {
            Reply::Array(named) => keys.extend(named.iter().map(Reply::to_string)),
            other => keys.push(other.to_string()),
        }
    }
    keys.sort();
    Ok(keys)
}
