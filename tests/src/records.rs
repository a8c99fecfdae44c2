//! Clients that write numbered records to the current primary, and remember which were acknowledged. They show which
//! records are lost in a failover.
//!
//! A record consists of a key, an element of a list and a member of a set, written by one transaction. Each existing
//! record must be in all three, in the order of the numbers, and must have been sent. A record that was not
//! acknowledged may or may not exist.

use brisk_testkit::reply::Reply;
use brisk_testkit::wait::holds_within;
use brisk_testkit::{Conn, Server, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock, RwLockWriteGuard};
use std::time::Duration;

/// Clients give up on a primary that does not reply for this long.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long replicas may take to acknowledge a record.
const WAIT_MS: u32 = 200;

/// How clients wait until replicas have a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Every second client waits, by sending WAIT after each record.
    Wait,
    /// All clients that are connected to Brisk wait, because CLIENT DURABILITY delays their replies.
    Durability,
}

/// The errors with which EXEC may be rejected, because a queued command was rejected, or because the state of the
/// server has changed after that.
const REFUSALS: &[&str] =
    &["EXECABORT ", "NOREPLICAS ", "READONLY ", "LOADING ", "MASTERDOWN ", "UNBLOCKED "];

#[derive(Debug, Default)]
struct Client {
    sent: u64,
    /// Acknowledged records, each with the number of replicas that had the record at that time.
    acknowledged: BTreeMap<u64, i64>,
}

/// The records that several clients have written.
#[derive(Debug)]
pub struct Records {
    clients: Vec<Mutex<Client>>,
    replicas: i64,
    promise: Promise,
    /// Held by a client while it writes a record.
    pause: RwLock<()>,
    is_over: AtomicBool,
}

/// The number of acknowledged records that exist and that are lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fate {
    pub present: usize,
    pub lost: usize,
}

impl Records {
    /// Records of `clients` clients, some of which wait for each record until `replicas` replicas have it.
    pub fn new(clients: usize, replicas: i64, promise: Promise) -> Records {
        let clients = (0..clients).map(|_| Mutex::default()).collect();
        let (pause, is_over) = (RwLock::default(), AtomicBool::new(false));
        Records { clients, replicas, promise, pause, is_over }
    }

    /// Writes as one of the clients until [`Records::end`]. `find` returns the address of the primary, if it is known.
    ///
    /// # Panics
    /// If a reply is not one that a primary or a former primary can send.
    pub fn write(&self, number: usize, find: impl Fn() -> Option<String>) {
        let mut conn: Option<Conn> = None;
        while !self.is_over.load(Ordering::SeqCst) {
            if conn.is_none() {
                holds_within(REPLY_TIMEOUT, || {
                    conn = find().and_then(|address| self.connect(&address));
                    conn.is_some()
                });
            }
            let Some(known) = conn.as_mut() else { continue };
            let is_paused = self.pause.read();
            let goes_on = self.record(number, known);
            drop(is_paused);
            // A blocking command on the server sets the pace, so that failures are detected in time on a busy machine.
            if goes_on != Some(true) || known.try_cmd("BLPOP pace 0.01").is_err() {
                conn = None;
            }
        }
    }

    /// Writes one record. Returns `None` if the connection is broken, and `false` if the server is not a primary.
    fn record(&self, number: usize, conn: &mut Conn) -> Option<bool> {
        let n = {
            let mut client = self.client(number);
            client.sent += 1;
            client.sent
        };
        let lines = [
            "MULTI".to_owned(),
            format!("SET record:{number}:{n} {n}"),
            format!("RPUSH list:{number} {n}"),
            format!("SADD set:{number} {n}"),
            "EXEC".to_owned(),
        ];
        let mut request = String::new();
        lines.iter().for_each(|line| request.extend([line, "\r\n"]));
        conn.try_send_raw(request.as_bytes()).ok()?;
        let mut last = Reply::Null;
        for _ in &lines {
            last = conn.try_reply().ok()?;
            if self.promise == Promise::Durability && last.is_error() {
                // The server may close the connection after this error.
                break;
            }
        }
        if last.is_error() {
            // The server is a replica, a primary without replicas, or a primary that is failing over.
            let text = last.text();
            assert!(REFUSALS.iter().any(|refusal| text.starts_with(refusal)), "{text}");
            return Some(false);
        }
        assert_eq!(last.elements().len(), 3, "{last}");
        let replicas = match self.promise {
            Promise::Durability => self.replicas,
            Promise::Wait if !waits(number) => 0,
            // The server may have become a replica in the meantime, which does not know what other replicas have.
            Promise::Wait => match conn.try_cmd(&format!("WAIT {} {WAIT_MS}", self.replicas)) {
                Ok(Reply::Integer(replicas)) => replicas,
                Ok(_) => 0,
                Err(_) => {
                    // Drop the connection, because later bytes would be taken for another reply.
                    self.client(number).acknowledged.insert(n, 0);
                    return None;
                }
            },
        };
        self.client(number).acknowledged.insert(n, replicas);
        Some(true)
    }

    /// Connects to the server at this address, if it reports that it is a primary.
    fn connect(&self, address: &str) -> Option<Conn> {
        let mut conn = Conn::try_tcp(address).ok()?;
        conn.give_up_after(REPLY_TIMEOUT);
        let role = conn.try_cmd("ROLE").ok()?;
        let is_primary = role.elements().first().is_some_and(|role| role.text() == "master");
        if self.promise == Promise::Durability {
            let line = format!("CLIENT DURABILITY REPLICAS {}", self.replicas);
            // The server may have become a replica.
            conn.try_cmd(&line).ok().filter(|reply| !reply.is_error())?;
        }
        is_primary.then_some(conn)
    }

    fn client(&self, number: usize) -> std::sync::MutexGuard<'_, Client> {
        self.clients[number].lock().expect("clients do not panic while they hold it")
    }

    /// While the guard lives, no client is writing a record.
    ///
    /// # Panics
    /// If a client has panicked.
    pub fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.pause.write().expect("no client has panicked")
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// The number of records that each client has sent so far, to mark the start of a failure.
    pub fn sent(&self) -> Vec<u64> {
        (0..self.clients.len()).map(|number| self.client(number).sent).collect()
    }

    /// Waits until each client has received acknowledgements for this number of further records.
    #[track_caller]
    pub fn wait_until_they_go_on(&self, further: usize) {
        let count = |number| self.client(number).acknowledged.len();
        let before: Vec<usize> = (0..self.clients.len()).map(count).collect();
        wait_until("clients to find the primary", || {
            (0..self.clients.len()).all(|number| count(number) >= before[number] + further)
        });
    }

    /// Asserts that on this server no record exists only in part, twice, out of order, or without having been sent. No
    /// client may write during the call. Also asserts that no record is lost if it was acknowledged
    ///
    /// - at or before `safe`, the number of records sent when all replicas had everything, or
    /// - by all replicas, because one of them became the primary.
    ///
    /// Other lost records are counted. They are not written again.
    #[track_caller]
    pub fn check(&self, server: &Server, safe: &[u64]) -> Fate {
        let mut conn = server.connect();
        let mut fate = Fate::default();
        for number in 0..self.clients.len() {
            let mut client = self.client(number);
            let mut numbers = |line: &str| -> Vec<u64> {
                let reply = conn.cmd(line);
                let number = |text: &str| text.rsplit(':').next().and_then(|n| n.parse().ok());
                let items = reply.elements().into_iter();
                items.map(|item| number(&item.text()).expect("a number")).collect()
            };
            let list = numbers(&format!("LRANGE list:{number} 0 -1"));
            assert!(list.is_sorted_by(|one, next| one < next), "client {number}: {list:?}");
            let present: BTreeSet<u64> = list.iter().copied().collect();
            for line in [format!("SMEMBERS set:{number}"), format!("KEYS record:{number}:*")] {
                let others: BTreeSet<u64> = numbers(&line).into_iter().collect();
                assert!(others == present, "{line}: half of a record is there");
            }
            assert!(list.last().is_none_or(|last| *last <= client.sent), "it was never sent");
            let safe = safe.get(number).copied().unwrap_or(0);
            client.acknowledged.retain(|n, replicas| {
                let is_present = present.contains(n);
                if is_present {
                    fate.present += 1;
                    return true;
                }
                assert!(*n > safe, "record {n} of client {number} was on all replicas");
                assert!(
                    *replicas < self.replicas,
                    "record {n} of client {number} was acknowledged by {replicas} replicas"
                );
                fate.lost += 1;
                false
            });
        }
        fate
    }
}

/// Reports whether this client waits for replicas.
const fn waits(number: usize) -> bool {
    !number.is_multiple_of(2)
}
