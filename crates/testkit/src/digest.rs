//! Compares the datasets of two servers and finds the first difference. If both servers compute digests in the same
//! way, the digests of the whole datasets are compared; otherwise each key is.
//!
//! Parts that a digest does not cover are compared separately: the libraries of functions, the groups of streams, and
//! the TTLs of keys.

use crate::conn::Conn;
use crate::kind::Kind;
use crate::reply::Reply;
use crate::words::quoted;
use std::collections::BTreeSet;

const DATABASES: usize = 16;
/// The COUNT of SCAN.
const SCAN_COUNT: &str = "500";

/// A server and its kind.
#[derive(Debug, Clone)]
pub struct Holder {
    pub kind: Kind,
    pub address: String,
}

impl Holder {
    pub fn new(kind: Kind, address: &str) -> Holder {
        Holder { kind, address: address.to_owned() }
    }

    /// The digest of the whole dataset.
    #[track_caller]
    pub fn digest(&self) -> String {
        Conn::tcp(&self.address).cmd("DEBUG DIGEST").text()
    }
}

/// Panics with the first difference, if there is one. No client may write during the call.
#[track_caller]
pub fn assert_same(one: &Holder, other: &Holder) {
    if let Some(difference) = first_difference(one, other) {
        let (one, other) = (described(one), described(other));
        panic!("{one} and {other} hold not the same: {difference}");
    }
}

fn described(holder: &Holder) -> String {
    format!("{} at {}", holder.kind, holder.address)
}

/// The first difference: the database, the key, and the values on both servers.
pub fn first_difference(one: &Holder, other: &Holder) -> Option<String> {
    let mut pair = Pair {
        conns: [one, other].map(|holder| Conn::tcp(&holder.address)),
        has_one_digest: one.kind.has_digest_of(other.kind),
        replicates_idle_consumers: ![one.kind, other.kind].contains(&Kind::Valkey),
    };
    if let Some(difference) = pair.libraries() {
        return Some(difference);
    }
    for db in 0..DATABASES {
        if let Some(difference) = pair.database(db) {
            return Some(format!("database {db}, {difference}"));
        }
    }
    let digests = pair.request(&["DEBUG", "DIGEST"]);
    // This should be impossible, because every key was the same.
    (pair.has_one_digest && digests[0] != digests[1])
        .then(|| format!("DEBUG DIGEST alone: {} and {}", digests[0], digests[1]))
}

struct Pair {
    conns: [Conn; 2],
    has_one_digest: bool,
    /// False if one of the servers is Valkey, which does not replicate a consumer that was created by an XCLAIM that
    /// claimed nothing.
    replicates_idle_consumers: bool,
}

impl Pair {
    fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> [Reply; 2] {
        self.conns.each_mut().map(|conn| conn.call(words))
    }

    fn differ<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Option<String> {
        let [one, other] = self.request(words);
        let command = String::from_utf8_lossy(words[0].as_ref()).into_owned();
        (one != other).then(|| format!("{command}: {one}\nand: {other}"))
    }

    fn libraries(&mut self) -> Option<String> {
        let [one, other] = self.request(&["FUNCTION", "LIST", "WITHCODE"]).map(|reply| {
            let code = |library: &&Reply| library.field("library_code").map(Reply::to_string);
            reply.elements().iter().map(code).collect::<BTreeSet<_>>()
        });
        (one != other).then(|| format!("libraries {one:?}\nand: {other:?}"))
    }

    fn database(&mut self, db: usize) -> Option<String> {
        self.request(&["SELECT", &db.to_string()]);
        let [one, other] = self.conns.each_mut().map(keys);
        if let Some(key) = one.symmetric_difference(&other).next() {
            let only = if one.contains(key) { "first" } else { "second" };
            let dumps = self.request(&[b"DUMP".as_slice(), key]);
            let deadlines = self.request(&[b"PEXPIRETIME".as_slice(), key]);
            return Some(format!(
                "key {}: the {only} has it alone: {dumps:?}, {deadlines:?}",
                quoted(key)
            ));
        }
        one.iter().find_map(|key| {
            let difference = self.key(key)?;
            let [one, other] = self.request(&[b"DUMP".as_slice(), key]);
            Some(format!("key {}: {difference}\nDUMP {one}\nand {other}", quoted(key)))
        })
    }

    fn key(&mut self, key: &[u8]) -> Option<String> {
        if let Some(difference) = self
            .differ(&[b"TYPE".as_slice(), key])
            .or_else(|| self.differ(&[b"PEXPIRETIME".as_slice(), key]))
        {
            return Some(difference);
        }
        let kind = self.conns[0].call(&[b"TYPE".as_slice(), key]).text();
        match kind.as_str() {
            "zset" if !self.has_one_digest => self.scores(key),
            "stream" => self.stream(key),
            _ => self.differ(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", key]),
        }
    }

    /// Compares members with their scores as numbers, because servers may format the same score differently.
    fn scores(&mut self, key: &[u8]) -> Option<String> {
        let [one, other] = self.request(&[b"ZRANGE".as_slice(), key, b"0", b"-1", b"WITHSCORES"]);
        let pairs = |reply: &Reply| -> Vec<(String, f64)> {
            let items = reply.elements();
            let score = |score: &Reply| score.text().parse().unwrap_or(f64::NAN);
            items.chunks_exact(2).map(|pair| (pair[0].to_string(), score(pair[1]))).collect()
        };
        (pairs(&one) != pairs(&other)).then(|| format!("ZRANGE: {one}\nand: {other}"))
    }

    /// Compares entries, the last ID, and groups with the pending entries of each consumer. Ignores when a consumer was
    /// last seen.
    fn stream(&mut self, key: &[u8]) -> Option<String> {
        if let Some(difference) = self.differ(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", key]) {
            return Some(difference);
        }
        let [one, other] =
            self.request(&[b"XINFO".as_slice(), b"STREAM", key, b"FULL", b"COUNT", b"0"]);
        for field in ["last-generated-id", "length"] {
            if one.field(field) != other.field(field) {
                return Some(format!("XINFO STREAM, {field}: {one}\nand: {other}"));
            }
        }
        let replicates_idle = self.replicates_idle_consumers;
        let groups = |reply: &Reply| {
            let group = |group: &&Reply| {
                let id = group.field("last-delivered-id").map(Reply::to_string);
                let consumers = group.field("consumers").map(Reply::elements).unwrap_or_default();
                let consumer = |consumer: &&Reply| {
                    // The field is `pending` in Redis 7.0 and `pel` in Valkey.
                    let pending = consumer.field("pending").or_else(|| consumer.field("pel"));
                    let pending = pending.expect("XINFO tells what is pending");
                    let counts = replicates_idle || !pending.elements().is_empty();
                    counts.then(|| (consumer.field("name").map(Reply::to_string), pending.clone()))
                };
                let consumers: BTreeSet<_> = consumers.iter().filter_map(consumer).collect();
                (group.field("name").map(Reply::to_string), id, consumers)
            };
            let groups = reply.field("groups").map(Reply::elements).unwrap_or_default();
            groups.iter().map(group).collect::<BTreeSet<_>>()
        };
        let [one, other] = [groups(&one), groups(&other)];
        (one != other).then(|| format!("groups: {one:?}\nand: {other:?}"))
    }
}

fn keys(conn: &mut Conn) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = conn.call(&["SCAN", &cursor, "COUNT", SCAN_COUNT]);
        let [next, keys] = reply.elements()[..] else { panic!("no reply to SCAN: {reply}") };
        for key in keys.elements() {
            if let Reply::Bulk(key) = key {
                found.insert(key.clone());
            }
        }
        cursor = next.text();
        if cursor == "0" {
            return found;
        }
    }
}
