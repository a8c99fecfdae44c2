//! A client of a server in the simulation: its requests and their replies.

use super::model::Change;
use brisk_testkit::reply::Reply;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

/// A request whose reply is expected.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    /// Any reply is valid.
    Any,
    /// Changes that are made in one transaction, each with its database.
    Unit(Vec<(u32, Change)>),
    /// A WAIT for replicas that have this history up to this offset.
    Wait(String, u64),
    Save,
    /// A change of the backlog size to this number of bytes.
    Backlog(u64),
}

pub(super) struct Client {
    socket: UnixStream,
    heard: Vec<u8>,
    pub(super) pending: VecDeque<Pending>,
    pub(super) db: Option<u32>,
    /// The history and the offset of the client's last write.
    pub(super) wrote: Option<(String, u64)>,
    pub(super) is_closed: bool,
}

impl Client {
    /// Returns the client and the server's end of the connection.
    pub(super) fn new() -> (Client, UnixStream) {
        let (socket, other) = UnixStream::pair().expect("two sockets");
        socket.set_nonblocking(true).expect("a socket");
        other.set_nonblocking(true).expect("a socket");
        let (heard, pending) = (Vec::new(), VecDeque::new());
        let client = Client { socket, heard, pending, db: Some(0), wrote: None, is_closed: false };
        (client, other)
    }

    pub(super) fn request(&mut self, words: &[String], pending: Pending) {
        let mut bytes = Vec::new();
        brisk_resp::request::encode(&mut bytes, words);
        match (&self.socket).write(&bytes) {
            Ok(len) => assert_eq!(len, bytes.len(), "the socket takes a whole request"),
            Err(_) => self.is_closed = true,
        }
        self.pending.push_back(pending);
    }

    /// Sends changes that are made in one transaction.
    pub(super) fn change(&mut self, unit: Vec<(u32, Change)>) {
        let word = |word: &str| word.to_owned();
        let select = |db: u32| [word("SELECT"), db.to_string()];
        if self.db != Some(unit[0].0) {
            self.request(&select(unit[0].0), Pending::Any);
        }
        let mut db = unit[0].0;
        self.db = Some(db);
        if unit.len() == 1 {
            self.request(&unit[0].1.words(), Pending::Unit(unit));
            return;
        }
        self.request(&[word("MULTI")], Pending::Any);
        for (own, change) in &unit {
            if *own != db {
                self.request(&select(*own), Pending::Any);
                // If the transaction fails, SELECT has no effect, so the client's database is not known.
                (db, self.db) = (*own, None);
            }
            self.request(&change.words(), Pending::Any);
        }
        self.request(&[word("EXEC")], Pending::Unit(unit));
    }

    /// Returns the next reply that has arrived, and its request.
    pub(super) fn next_reply(&mut self) -> Option<(Pending, String)> {
        let mut bytes = [0; 4096];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => self.is_closed = true,
                Ok(len) => {
                    self.heard.extend_from_slice(&bytes[..len]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.is_closed = true,
            }
            break;
        }
        let (_, len) = Reply::parse(&self.heard).expect("replies")?;
        let text = String::from_utf8_lossy(&self.heard[..len]).into_owned();
        self.heard.drain(..len);
        Some((self.pending.pop_front()?, text))
    }

    /// Returns everything that a replica's connection has received.
    pub(super) fn heard(&mut self) -> String {
        let mut bytes = [0; 4096];
        let mut heard = String::new();
        while let Ok(len @ 1..) = self.socket.read(&mut bytes) {
            heard.push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
        heard
    }
}
