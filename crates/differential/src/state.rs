//! Compares two whole keyspaces: the keys with their types, encodings, TTLs and contents. Also checks that a full
//! iteration finds every key and element.

use super::compare::{same, shown};
use super::difference::Difference;
use super::peer::Peer;
use super::rules::{GAP_MS, How, STREAM_INFO, SWEEP};
use anyhow::{Result, anyhow};
use brisk_testkit::reply::Reply;
use brisk_testkit::words::line;
use std::collections::BTreeSet;

const DATABASES: u32 = 16;

/// If the cursor is not 0 after this number of steps, the iteration is assumed never to end: keyspaces have a few dozen
/// keys with a few thousand elements.
const STEPS_MAX: usize = 100_000;

/// How to compare TTLs: the servers set relative ones at slightly different instants.
const DEADLINES: How = How::Deadline(GAP_MS);

/// The first difference between the keyspaces of two servers, if any.
pub fn first_difference(ours: &str, theirs: &str) -> Result<Option<Difference>> {
    let mut pair = Pair { ours: Peer::connect(ours)?, theirs: Peer::connect(theirs)?, db: 0 };
    for db in 0..DATABASES {
        pair.db = db;
        pair.select()?;
        pair.ours.request(SWEEP)?;
        pair.theirs.request(SWEEP)?;
        if let Some(difference) = pair.request(&["KEYS", "*"], How::Unordered)? {
            return Ok(Some(difference));
        }
        if let Some(difference) = pair.request(&["DBSIZE"], How::Exact)? {
            return Ok(Some(difference));
        }
        let keys = pair.keys()?;
        if let Some(difference) = pair.iteration(&["SCAN"], keys.iter().cloned().collect())? {
            return Ok(Some(difference));
        }
        for key in keys {
            if let Some(difference) = pair.key(&key)? {
                return Ok(Some(difference));
            }
        }
    }
    Ok(None)
}

struct Pair {
    ours: Peer,
    theirs: Peer,
    db: u32,
}

impl Pair {
    fn select(&mut self) -> Result<()> {
        let number = self.db.to_string();
        self.ours.request(&["SELECT", &number])?;
        self.theirs.request(&["SELECT", &number])?;
        Ok(())
    }

    /// Sends a command to both servers. Returns a difference if the replies are not the same under `how`.
    fn request<W: AsRef<[u8]>>(&mut self, words: &[W], how: How) -> Result<Option<Difference>> {
        let ours = self.ours.request(words).map_err(|e| anyhow!("ours at {}: {e}", line(words)))?;
        let theirs = self.theirs.request(words)?;
        if same(how, ours, theirs) {
            return Ok(None);
        }
        let kind = String::from_utf8_lossy(words[0].as_ref()).into_owned();
        Ok(Some(Difference {
            what: format!("state of database {}: {}", self.db, line(words)),
            kind: format!("state: {kind}"),
            ours: shown(ours),
            theirs: shown(theirs),
        }))
    }

    fn keys(&mut self) -> Result<Vec<Vec<u8>>> {
        let reply = parsed(self.theirs.request(&["KEYS", "*"])?)?;
        let mut keys: Vec<Vec<u8>> = reply.elements().iter().map(|key| bytes(key)).collect();
        keys.sort();
        Ok(keys)
    }

    fn key(&mut self, key: &[u8]) -> Result<Option<Difference>> {
        let kind = parsed(self.theirs.request(&[b"TYPE", key])?)?.text();
        let score_order: (&[&[u8]], How) =
            (&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], How::Exact);
        let (content, how): (&[&[u8]], How) = match kind.as_str() {
            "string" => (&[b"GET", key], How::Exact),
            "list" => (&[b"LRANGE", key, b"0", b"-1"], How::Exact),
            "set" => (&[b"SMEMBERS", key], How::Unordered),
            "hash" => (&[b"HGETALL", key], How::Pairs),
            "zset" => score_order,
            "stream" => (&[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"], STREAM_INFO),
            _ => return Ok(None), // expired since KEYS
        };
        let by_version = matches!(kind.as_str(), "set" | "list");
        let encoding = if by_version { How::Encoding } else { How::Exact };
        for (words, how) in [
            (&[&b"TYPE"[..], key][..], How::Exact),
            (&[b"OBJECT", b"ENCODING", key], encoding),
            (&[b"PEXPIRETIME", key], DEADLINES),
            (content, how),
        ] {
            if let Some(difference) = self.request(words, how)? {
                return Ok(Some(difference));
            }
        }
        let (command, members): (&str, BTreeSet<Vec<u8>>) = match kind.as_str() {
            "set" => ("SSCAN", self.elements_of(content, 1)?),
            "hash" => ("HSCAN", self.elements_of(content, 2)?),
            "zset" => ("ZSCAN", self.elements_of(content, 2)?),
            _ => return Ok(None),
        };
        self.iteration(&[command.as_bytes(), key], members)
    }

    /// Every `step`-th element of the reference server's reply.
    fn elements_of(&mut self, words: &[&[u8]], step: usize) -> Result<BTreeSet<Vec<u8>>> {
        let reply = parsed(self.theirs.request(words)?)?;
        Ok(reply.elements().iter().step_by(step).map(|item| bytes(item)).collect())
    }

    /// Runs a full iteration on our server, until the cursor is 0 again, and compares the result with `wanted`.
    fn iteration<W: AsRef<[u8]>>(
        &mut self,
        command: &[W],
        wanted: BTreeSet<Vec<u8>>,
    ) -> Result<Option<Difference>> {
        let step = if command.len() > 1 && !command[0].as_ref().starts_with(b"SS") { 2 } else { 1 };
        let mut found = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        for _ in 0..STEPS_MAX {
            let mut words: Vec<&[u8]> = command.iter().map(AsRef::as_ref).collect();
            words.extend([&cursor[..], b"COUNT", b"50"]);
            let reply = parsed(self.ours.request(&words)?)?;
            let parts = reply.elements();
            let [next, items] = parts[..] else {
                return Ok(Some(self.lost(
                    command,
                    reply.to_string(),
                    "a cursor and items".into(),
                )));
            };
            found.extend(items.elements().iter().step_by(step).map(|item| bytes(item)));
            cursor = bytes(next);
            if cursor == b"0" {
                break;
            }
        }
        if cursor == b"0" && found == wanted {
            return Ok(None);
        }
        let shown = |set: &BTreeSet<Vec<u8>>| line(&set.iter().collect::<Vec<_>>());
        Ok(Some(self.lost(command, shown(&found), shown(&wanted))))
    }

    fn lost<W: AsRef<[u8]>>(&self, command: &[W], ours: String, theirs: String) -> Difference {
        Difference {
            what: format!("full iteration in database {}: {}", self.db, line(command)),
            kind: format!("state: {}", String::from_utf8_lossy(command[0].as_ref())),
            ours,
            theirs,
        }
    }
}

fn parsed(frame: &[u8]) -> Result<Reply> {
    let reply = Reply::parse(frame).map_err(anyhow::Error::msg)?;
    reply.map(|(reply, _)| reply).ok_or_else(|| anyhow!("half a reply"))
}

fn bytes(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Bulk(bytes) | Reply::Status(bytes) => bytes.clone(),
        other => other.text().into_bytes(),
    }
}
