//! Compares invalidation messages while a stream runs: both servers must send the same ones.
//!
//! One session tracks every change (CLIENT TRACKING with BCAST). The stream's first session tracks the keys that it
//! reads, in a [`Mode`] of the episode; the messages go to another session, or arrive between the first session's
//! replies. After each batch, the received messages of all sessions are collected. A server may choose how it combines
//! changes into messages, so only the keys are compared. Broadcast keys are compared as a set, because one report may
//! cover several writes. Keys reported after reads are compared with their counts. Keys that have expired on one of the
//! servers are ignored from then on, because a server may choose which command finds them expired, even a command that
//! then fails.

use super::difference::Difference;
use super::peer::Peer;
use anyhow::{Result, bail};
use brisk_testkit::random::Random;
use brisk_testkit::reply::Reply;
use std::collections::BTreeSet;
use std::fmt;

/// Options of CLIENT TRACKING for the first session.
const OPTIONS: &[&[&str]] = &[
    &[],
    &["OPTIN"],
    &["OPTOUT"],
    &["NOLOOP"],
    &["OPTIN", "NOLOOP"],
    &["BCAST"],
    &["BCAST", "NOLOOP"],
    &["BCAST", "PREFIX", "s", "PREFIX", "{t}"],
];
/// Options of CLIENT TRACKING for the session that tracks every change. They follow BCAST.
const ALL_OPTIONS: &[&[&str]] =
    &[&[], &["NOLOOP"], &["PREFIX", ""], &["PREFIX", "l", "PREFIX", "z"]];

/// How the first session tracks.
#[derive(Debug, Clone, Copy)]
pub struct Mode {
    options: &'static [&'static str],
    /// Messages go to another session.
    redirects: bool,
    all: &'static [&'static str],
    /// True if scripts call several commands. In this case Redis 7.0 considers all declared keys read as soon as one of
    /// the commands reads. Later versions consider only the keys that were read. So invalidations for reads are not
    /// compared.
    pub scripts: bool,
}

impl Mode {
    /// The mode of an episode. In RESP2, a session cannot receive its own messages.
    pub fn of(resp: u8, random: &mut Random) -> Mode {
        let redirects = resp == 2 || random.percent(50);
        let (options, all) = (*random.pick(OPTIONS), *random.pick(ALL_OPTIONS));
        Mode { options, redirects, all, scripts: random.percent(50) }
    }

    /// Reports whether scripts may run. With BCAST and NOLOOP, Redis notifies a client of changes made by its own
    /// script, because the script runs in a separate client. The exception is a key that the client itself has already
    /// changed in the same iteration of the event loop. In Brisk, NOLOOP applies to scripts as well.
    pub fn may_run_scripts(self) -> bool {
        !(self.is_broadcast() && self.options.contains(&"NOLOOP"))
    }

    /// Reports whether the session gets messages about all keys, whether it has read them or not.
    fn is_broadcast(self) -> bool {
        self.options.contains(&"BCAST")
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CLIENT TRACKING ON")?;
        self.options.iter().try_for_each(|word| write!(f, " {word}"))?;
        f.write_str(if self.redirects { " REDIRECT (another)" } else { "" })
    }
}

/// The listening sessions of one server, and the keys in their messages.
#[derive(Debug)]
pub struct Audience {
    mode: Mode,
    all: Peer,
    reader: Peer,
    /// Keys reported to all tracking clients, and to clients that read them.
    changed: Vec<String>,
    changed_reads: Vec<String>,
    /// The session has ended its tracking in the current batch.
    ended: bool,
    /// Keys that have expired, or for which the servers may differ for another reason.
    excused: BTreeSet<String>,
}

impl Audience {
    /// Sets up the listening sessions: one for all changes, and one for the keys that `session` reads.
    pub fn gather(address: &str, session: &mut Peer, mode: Mode) -> Result<Audience> {
        let listener = || -> Result<Peer> {
            let mut peer = Peer::connect(address)?;
            peer.request(&["HELLO", "3"])?;
            Ok(peer)
        };
        let (mut all, mut reader) = (listener()?, listener()?);
        let id = String::from_utf8_lossy(reader.request(&["CLIENT", "ID"])?).into_owned();
        let id = id.trim_matches(|c: char| !c.is_ascii_digit());
        // Delete expired keys only when a command accesses them, not by a timer.
        expect_ok(all.request(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"])?)?;
        expect_ok(all.request(&["CONFIG", "SET", "notify-keyspace-events", "Ex"])?)?;
        all.request(&["PSUBSCRIBE", "__keyevent@*__:expired"])?;
        let tracking = ["CLIENT", "TRACKING", "ON"];
        expect_ok(all.request(&[&tracking[..], &["BCAST"], mode.all].concat())?)?;
        let mut own = [&tracking[..], mode.options].concat();
        if mode.redirects {
            own.extend(["REDIRECT", id]);
        } else {
            session.set_pushes_aside();
        }
        expect_ok(session.request(&own)?)?;
        let (changed, changed_reads, excused) = Default::default();
        Ok(Audience { mode, all, reader, changed, changed_reads, ended: false, excused })
    }

    /// Collects the messages received since the last call. `session` is the tracking session.
    ///
    /// # Errors
    /// If a connection fails.
    pub fn hear(&mut self, session: &mut Peer) -> Result<()> {
        self.changed = heard(&mut self.all, &mut self.excused)?;
        self.changed.dedup();
        self.changed_reads = heard(&mut self.reader, &mut self.excused)?;
        if !self.mode.redirects {
            session.request(&["PING"])?;
            let frames = session.pushes_aside();
            let mut keys = Vec::new();
            for frame in &frames {
                keys_of(frame, &mut keys, &mut self.excused);
            }
            keys.sort();
            self.changed_reads.extend(keys);
        }
        let ended = std::mem::take(&mut self.ended);
        if self.mode.is_broadcast() {
            self.changed_reads.dedup();
            if ended {
                self.changed_reads.clear();
            }
        } else if self.mode.scripts {
            self.changed_reads.clear();
        }
        Ok(())
    }

    /// Notes that the session has ended its tracking. Redis then drops the broadcasts that it would have sent at the
    /// end of the same iteration of its event loop. So in broadcast mode, the current batch is not compared.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// From now on, the servers may differ on this key.
    pub fn excuse(&mut self, key: &[u8]) {
        self.excused.insert(Reply::Bulk(key.to_vec()).to_string());
    }
}

fn expect_ok(reply: &[u8]) -> Result<()> {
    if reply == b"+OK\r\n" { Ok(()) } else { bail!("{}", String::from_utf8_lossy(reply)) }
}

/// The messages of both sides, if they differ.
pub fn difference(ours: &Audience, theirs: &Audience) -> Option<Difference> {
    let judged = |keys: &[String]| -> Vec<String> {
        let excused = |key: &&String| ours.excused.contains(*key) || theirs.excused.contains(*key);
        keys.iter().filter(|key| !excused(key)).cloned().collect()
    };
    let pairs = [
        ("which keys were changed", &ours.changed, &theirs.changed),
        ("which read keys were changed", &ours.changed_reads, &theirs.changed_reads),
    ];
    let mut pairs =
        pairs.map(|(what, ours, theirs)| (what, judged(ours), judged(theirs))).into_iter();
    pairs.find(|(_, ours, theirs)| ours != theirs).map(|(what, ours, theirs)| Difference {
        what: what.to_owned(),
        kind: what.to_owned(),
        ours: ours.join("\n"),
        theirs: theirs.join("\n"),
    })
}

/// The keys of all messages since the last call, in order. Keys from keyspace events are added to `excused`.
fn heard(peer: &mut Peer, excused: &mut BTreeSet<String>) -> Result<Vec<String>> {
    peer.send(b"*1\r\n$4\r\nPING\r\n")?;
    let mut keys = Vec::new();
    loop {
        let frame = peer.reply().map_err(anyhow::Error::msg)?;
        if !keys_of(frame, &mut keys, excused) {
            break;
        }
    }
    keys.sort();
    Ok(keys)
}

/// Adds the keys of a message. Returns false if the frame is not a message.
fn keys_of(frame: &[u8], keys: &mut Vec<String>, excused: &mut BTreeSet<String>) -> bool {
    let Ok(Some((Reply::Push(parts), _))) = Reply::parse(frame) else { return false };
    match &parts[..] {
        [_, Reply::Array(named)] => keys.extend(named.iter().map(Reply::to_string)),
        [_, null] => keys.push(null.to_string()),
        event => excused.extend(event.last().map(Reply::to_string)),
    }
    true
}
