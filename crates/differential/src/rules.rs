//! Every legitimate difference between two correct servers, as data. Each row has a reason.
//!
//! There are four lists: commands that are left out of streams ([`EXCLUDED`]), commands that are drawn less often
//! ([`WEIGHTS`]), how replies may differ ([`COMPARISONS`]), and arguments that are replaced because their effect
//! depends on the clock or needs gigabytes ([`GUARDS`]). Remove rows that are no longer needed, because each row hides
//! a class of bugs.

use super::settings;
use brisk_engine::command::{Origin, Spec};
use brisk_testkit::random::Random;

/// How two replies are compared when their bytes differ. Errors must always be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Exact,
    /// The same elements in any order.
    Unordered,
    /// The same keys with the same values in any order.
    Pairs,
    /// The same kind of reply with the same number of elements.
    Count,
    /// The same number of texts, each the same up to its first NUL.
    ToNul,
    /// The same kind of reply.
    Kind,
    /// Two non-negative integers that differ by at most this number.
    Near(i64),
    /// Like [`How::Near`], but expiry times that were given as absolute times must be equal.
    Deadline(i64),
    /// Equal, except for the integers under these map keys, which may differ by at most this number.
    Fields(&'static [&'static str], i64),
    /// Equal, except for the integers in one column of a table, which may differ by at most this number.
    Column(usize, i64),
    /// Equal, except for integers that are Unix times in milliseconds, which may differ by at most this number.
    Moments(i64),
    /// Equal, or a reference count that shows that only Brisk shares the integer.
    Shared,
    /// Equal, except for the text of `notes`.
    Notes,
    /// Equal, or encodings that the same set or list can have in Redis 7.2 and in 7.0.
    Encoding,
    /// Equal, or Brisk replies with an error.
    Refused,
    /// Equal, or Brisk replies with this error.
    RefusedAs(&'static str),
    /// Equal, or the reference server rejects a feature that is newer than its version.
    Younger,
    /// Like the inner rule, or the reference server reports a number that is not out of range as out of range.
    OrRange(&'static How),
    /// Equal, with three exceptions: pairs with keys of the first list, which only Brisk returns, integers under keys
    /// of the second list, and Unix times. The integers and times may differ by at most the given number.
    Grown(&'static [&'static str], &'static [&'static str], i64),
}

/// An excluded command. A name that ends with `*` stands for all commands with this prefix, and one that begins with
/// `*` for all commands with this suffix.
#[derive(Debug)]
pub struct Excluded {
    pub name: &'static str,
    pub reason: &'static str,
}

const fn out(name: &'static str, reason: &'static str) -> Excluded {
    Excluded { name, reason }
}

const OWN_TEXT: &str = "text or metrics of the server itself; has a separate test";
const ENDS: &str = "ends or stalls the server or the connection";
const REPEATED: &str = "the real server returns a different key from the one that the command \
                        uses if STORE, STOREDIST or STREAMS occurs twice";
const YOUNGER: &str = "accepts the arguments of later versions, so arity and arguments differ";
const TABLES: &str =
    "lists the whole command table, and one side has commands that the other lacks";
const FRAMES: &str = "changes the number of replies";
const SCRIPTS: &str =
    "random text is not a valid script; the generator writes valid scripts itself";
const LISTENS: &str = "changes the number of replies; the stream's listener does it";

/// Commands that never appear in a stream.
pub const EXCLUDED: &[Excluded] = &[
    out("*|help", OWN_TEXT),
    out("acl*", OWN_TEXT),
    out("command", TABLES),
    out("command|count", TABLES),
    out("command|docs", OWN_TEXT),
    out("command|list", TABLES),
    out("info", OWN_TEXT),
    out("latency|doctor", OWN_TEXT),
    out("latency|histogram", OWN_TEXT),
    out("lolwut", OWN_TEXT),
    out("memory|doctor", OWN_TEXT),
    out("memory|malloc-stats", OWN_TEXT),
    out("memory|stats", OWN_TEXT),
    out("module*", OWN_TEXT),
    out("client|info", OWN_TEXT),
    out("client|list", OWN_TEXT),
    out("client|kill", ENDS),
    out("client|pause", ENDS),
    out("debug", ENDS),
    out("failover", ENDS),
    out("acl*", "would change what the stream may do; compared by `access`"),
    out("monitor", FRAMES),
    out("psync", FRAMES),
    out("quit", ENDS),
    out("replconf", FRAMES),
    out("replicaof", ENDS),
    out("shutdown", ENDS),
    out("slaveof", ENDS),
    out("sync", FRAMES),
    out("client|reply", FRAMES),
    out("psubscribe", LISTENS),
    out("punsubscribe", LISTENS),
    out("ssubscribe", LISTENS),
    out("subscribe", LISTENS),
    out("sunsubscribe", LISTENS),
    out("unsubscribe", LISTENS),
    out("bgrewriteaof", "writes files; whether one is being written is a matter of time"),
    out("bgsave", "writes files; whether one is being written is a matter of time"),
    out("save", "writes files"),
    out("migrate", "connects to other servers"),
    out("multi", "is generated with its EXEC, as one unit"),
    out("pfdebug", "shows internals"),
    out("pfselftest", "takes seconds"),
    out("client|tracking", "each episode has its own mode; see `audience`"),
    out("eval*", SCRIPTS),
    out("fcall*", SCRIPTS),
    out("function*", SCRIPTS),
    out("script*", SCRIPTS),
];

/// Reports whether the command appears in streams.
pub fn admitted(name: &str) -> bool {
    !EXCLUDED.iter().any(|row| match (row.name.strip_suffix('*'), row.name.strip_prefix('*')) {
        (Some(start), _) => name.starts_with(start),
        (_, Some(end)) => name.ends_with(end),
        _ => name == row.name,
    })
}

/// The weight of a command without a row.
pub const WEIGHT: u32 = 100;

/// Commands to draw less often than [`WEIGHT`], with the reason.
pub const WEIGHTS: &[(&str, u32, &str)] = &[
    ("flushall", 2, "an empty keyspace shows little"),
    ("flushdb", 4, "an empty keyspace shows little"),
    ("swapdb", 10, "moves keys to a database that the stream rarely uses"),
    ("restore", 30, "the type of a key should match its name"),
    ("restore-asking", 10, "is RESTORE"),
    ("select", 20, "one database should fill up"),
    ("move", 40, "moves keys to a database that the stream rarely uses"),
    ("reset", 5, "leaves RESP3"),
    ("hello", 10, "changes the protocol of the episode"),
    ("memory|purge", 2, "shows nothing and takes long"),
    ("config|resetstat", 10, "shows nothing"),
    ("wait", 5, "no replica acknowledges, so it blocks until its timeout"),
    ("blpop", 25, "blocks until its timeout if the keys do not exist"),
    ("brpop", 25, "blocks until its timeout if the keys do not exist"),
    ("blmove", 25, "blocks until its timeout if the keys do not exist"),
    ("brpoplpush", 25, "blocks until its timeout if the keys do not exist"),
    ("blmpop", 25, "blocks until its timeout if the keys do not exist"),
    ("bzpopmin", 25, "blocks until its timeout if the keys do not exist"),
    ("bzpopmax", 25, "blocks until its timeout if the keys do not exist"),
    ("bzmpop", 25, "blocks until its timeout if the keys do not exist"),
    ("del", 60, "keys should live"),
    ("unlink", 60, "keys should live"),
];

/// The weight of a command. Containers, which only return errors, and cluster commands, which always return the same
/// error here, need few samples.
pub fn weight(name: &str) -> u32 {
    if let Some(row) = WEIGHTS.iter().find(|row| row.0 == name) {
        return row.1;
    }
    if name.starts_with("cluster") { 3 } else { WEIGHT }
}

/// Reports whether a row applies to a call, given as its arguments.
pub type When = fn(&[Vec<u8>]) -> bool;

/// A rule about replies that may differ.
#[derive(Debug)]
pub struct Comparison {
    pub name: &'static str,
    /// If set, the row applies only to calls for which this returns true.
    pub when: Option<When>,
    pub how: How,
    pub reason: &'static str,
}

const fn may(name: &'static str, how: How, reason: &'static str) -> Comparison {
    Comparison { name, when: None, how, reason }
}

const HASHED: &str = "the order of members is that of a hash table with a random seed";
const CHOSEN: &str = "the server chooses at random";
const CLOCK: &str = "returns a time, which the servers read at different moments";
const CURSOR: &str = "one step of an iteration; whole iterations are compared with the states";
const TIES: &str = "places at equal distance have no fixed order, so COUNT may cut off any of them";
const LEX: &str = "members with different scores are not in lexicographic order, so the result depends \
    on the random heights of a skip list";
const LATER_NUMBERS: &str =
    "7.2 has one more field with a time, and each server reads its own clock";
const JUDGED: &str = "later versions check arguments before they look up the key";
const NAMED: &str = "the message of 7.2 names the command and its special ID, `$` or `>`";
const LAG: &str = "later versions count only entries that are left to read";
const STRICTER: &str = "7.2 requires an ID above those deleted";
const BELOW_DELETED: &str =
    "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
const UNBALANCED: &str = "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' \
    must be specified.";
const UNBALANCED_IN_GROUP: &str = "ERR Unbalanced 'xreadgroup' list of streams: for each stream \
    key an ID or '>' must be specified.";
const INTERNAL: &str = "describes how a value is stored, which servers may choose";

const ERRNO: &str = "Redis checks errno, which may be left from the number of an earlier command";
const TIED: &str =
    "C compares texts only up to a NUL, so equal ones stay in the order of their table";
const UNSORTED: How = How::OrRange(&How::Count);

/// The largest difference, in milliseconds, between the instants at which both servers execute a command.
pub const GAP_MS: i64 = 5_000;
/// [`GAP_MS`] in seconds, plus one for rounding.
const GAP_S: i64 = 6;

/// A time in ms that is longer than any episode. Since 7.2, every attempt to read updates `seen-time` of a consumer;
/// before, only successful ones did.
const EPISODE_MS: i64 = 3_600_000;

/// How XINFO STREAM is compared.
pub const STREAM_INFO: How = How::Grown(&["active-time"], &["seen-time"], EPISODE_MS);

/// How to compare replies that need not be equal. The first matching row applies.
pub const COMPARISONS: &[Comparison] = &[
    may("keys", How::Unordered, HASHED),
    may("smembers", How::Unordered, HASHED),
    may("sdiff", How::Unordered, HASHED),
    may("sinter", How::Unordered, HASHED),
    may("sunion", How::Unordered, HASHED),
    may("hkeys", How::Unordered, HASHED),
    may("hvals", How::Unordered, HASHED),
    may("hgetall", How::Pairs, HASHED),
    Comparison { name: "sort", when: Some(unsorted), how: UNSORTED, reason: HASHED },
    Comparison { name: "sort_ro", when: Some(unsorted), how: UNSORTED, reason: HASHED },
    Comparison { name: "sort", when: Some(text_gets), how: How::Count, reason: TIED },
    Comparison { name: "sort_ro", when: Some(text_gets), how: How::Count, reason: TIED },
    Comparison { name: "sort", when: Some(by_text), how: How::ToNul, reason: TIED },
    Comparison { name: "sort_ro", when: Some(by_text), how: How::ToNul, reason: TIED },
    may("sort", How::OrRange(&How::Exact), ERRNO),
    may("sort_ro", How::OrRange(&How::Exact), ERRNO),
    may("scan", How::Kind, CURSOR),
    may("hscan", How::Kind, CURSOR),
    may("sscan", How::Kind, CURSOR),
    may("zscan", How::Kind, CURSOR),
    may("pubsub|channels", How::Unordered, HASHED),
    may("pubsub|shardchannels", How::Unordered, HASHED),
    may("randomkey", How::Kind, CHOSEN),
    may("srandmember", How::Count, CHOSEN),
    may("hrandfield", How::Count, CHOSEN),
    may("zrandmember", How::Count, CHOSEN),
    may("spop", How::Count, CHOSEN),
    Comparison { name: "geosearch", when: Some(cut_off), how: How::Count, reason: TIES },
    Comparison { name: "georadius", when: Some(cut_off), how: How::Count, reason: TIES },
    Comparison { name: "georadius_ro", when: Some(cut_off), how: How::Count, reason: TIES },
    Comparison { name: "georadiusbymember", when: Some(cut_off), how: How::Count, reason: TIES },
    Comparison { name: "georadiusbymember_ro", when: Some(cut_off), how: How::Count, reason: TIES },
    may("zlexcount", How::Kind, LEX),
    may("zrangebylex", How::Kind, LEX),
    may("zrevrangebylex", How::Kind, LEX),
    may("zremrangebylex", How::Kind, LEX),
    Comparison { name: "zrange", when: Some(by_lex), how: How::Kind, reason: LEX },
    Comparison { name: "zrangestore", when: Some(by_lex), how: How::Kind, reason: LEX },
    may("ttl", How::Near(GAP_S), CLOCK),
    may("pttl", How::Near(GAP_MS), CLOCK),
    may("expiretime", How::Deadline(GAP_S), CLOCK),
    may("pexpiretime", How::Deadline(GAP_MS), CLOCK),
    may("object|idletime", How::Kind, "small integers are one object with one clock in Redis"),
    may("xpending", How::Column(2, GAP_MS), CLOCK),
    may("xinfo|consumers", How::Grown(&["inactive"], &["idle"], EPISODE_MS), LATER_NUMBERS),
    may("xinfo|stream", STREAM_INFO, LATER_NUMBERS),
    may("xinfo|groups", How::Grown(&[], &[], 0), LAG),
    may("xsetid", How::RefusedAs(BELOW_DELETED), STRICTER),
    may("time", How::Count, CLOCK),
    may("lastsave", How::Kind, CLOCK),
    may("client|id", How::Kind, "ids count the connections a server has seen"),
    may("client|getredir", How::Kind, "the same"),
    may("client|trackinginfo", How::Kind, "the same"),
    may(
        "hello",
        How::Count,
        "returns the name and version of the server and the ID of the connection",
    ),
    may("config|get", How::Pairs, HASHED),
    Comparison { name: "command|info", when: Some(nameless), how: How::Kind, reason: TABLES },
    Comparison { name: "command|info", when: Some(of_longer), how: How::Kind, reason: YOUNGER },
    Comparison {
        name: "command|getkeys",
        when: Some(repeats_key_option),
        how: How::Kind,
        reason: REPEATED,
    },
    Comparison {
        name: "command|getkeysandflags",
        when: Some(repeats_key_option),
        how: How::Kind,
        reason: REPEATED,
    },
    Comparison {
        name: "command|getkeys",
        when: Some(of_longer),
        how: How::Younger,
        reason: YOUNGER,
    },
    Comparison {
        name: "command|getkeysandflags",
        when: Some(of_longer),
        how: How::Younger,
        reason: YOUNGER,
    },
    may("command|info", How::Notes, "notes on key specifications are texts of the server"),
    may("memory|usage", How::Kind, INTERNAL),
    may("dump", How::Kind, "compression, order and encodings differ; tests exchange payloads"),
    may("object|encoding", How::Encoding, "sets and lists have encodings of 7.2 that 7.0 lacks"),
    may("xread", How::RefusedAs(UNBALANCED), NAMED),
    may("xreadgroup", How::RefusedAs(UNBALANCED_IN_GROUP), NAMED),
    Comparison { name: "bitcount", when: Some(with_range), how: How::Refused, reason: JUDGED },
    Comparison { name: "bitpos", when: Some(with_range), how: How::Refused, reason: JUDGED },
    may("object|refcount", How::Shared, "a copy of a shared integer is itself shared in Brisk"),
];

/// Reports whether a call has a range. Without a range, there are no arguments that later versions could reject.
fn with_range(words: &[Vec<u8>]) -> bool {
    words.len() > 2
}

/// Reports whether a SORT call has the option BY. It then returns a set's members in the order of the set's hash table
/// if the pattern has no `*`, or, with ALPHA, if weights are equal.
fn unsorted(words: &[Vec<u8>]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(b"BY"))
}

/// Reports whether a SORT call has the option ALPHA without BY. It then needs no numbers and compares whole elements.
fn by_text(words: &[Vec<u8>]) -> bool {
    !unsorted(words) && words.iter().any(|word| word.eq_ignore_ascii_case(b"ALPHA"))
}

/// Reports whether a SORT call has the options ALPHA and GET without BY. GET returns values of other keys for the
/// elements.
fn text_gets(words: &[Vec<u8>]) -> bool {
    by_text(words) && words.iter().any(|word| word.eq_ignore_ascii_case(b"GET"))
}

fn by_lex(words: &[Vec<u8>]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(b"BYLEX"))
}

/// Reports whether a COMMAND INFO call has no arguments. It then returns the same as COMMAND.
fn nameless(words: &[Vec<u8>]) -> bool {
    words.len() == 2
}

/// Reports whether a COMMAND INFO call names a command that accepts more arguments in Brisk.
fn of_longer(words: &[Vec<u8>]) -> bool {
    words
        .iter()
        .any(|word| LENGTHS.iter().any(|(name, ..)| word.eq_ignore_ascii_case(name.as_bytes())))
}

/// Reports whether an option that is followed by keys occurs more than once, perhaps as the name of a key. In this case
/// Redis 7.0 extracts different keys from those that the command uses.
pub fn repeats_key_option(words: &[Vec<u8>]) -> bool {
    let count = |names: &[&str]| {
        let is =
            |word: &Vec<u8>| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
        words.iter().filter(|word| is(word)).count()
    };
    count(&["STORE", "STOREDIST"]) > 1 || count(&["STREAMS"]) > 1
}

/// How to compare the replies to this call.
pub fn comparison(name: &str, words: &[Vec<u8>]) -> How {
    COMPARISONS
        .iter()
        .find(|row| row.name == name && row.when.is_none_or(|when| when(words)))
        .map_or(How::Exact, |row| row.how)
}

/// Commands that both servers run before a call, without comparing the replies. Keys that were set with an expiry time
/// in the past are counted until they are accessed, so these commands access every key.
pub fn prelude(name: &str) -> Option<&'static [&'static [u8]]> {
    matches!(name, "dbsize" | "memory|usage").then_some(SWEEP)
}

/// Accesses every key of a database.
pub const SWEEP: &[&[u8]] = &[b"SCAN", b"0", b"COUNT", b"1000000"];

/// The version of Redis that defines the expected behavior.
const MEASURE: [u32; 3] = [7, 0, 15];

/// Reports whether a version is newer than that of the reference server.
pub fn newer(since: &str) -> bool {
    let mut parts = since.split('.').map(|part| part.parse().unwrap_or(0));
    let version: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    version > MEASURE
}

/// Reports whether the reference server lacks a command.
pub fn is_missing(spec: &Spec) -> bool {
    spec.origin == Origin::Brisk || newer(spec.since)
}

/// Keys that both servers delete after this call, without comparing the replies, because their values may now
/// legitimately differ. These are collections from which random members or ranges of texts have been removed; sorted
/// sets that SORT has read (Redis then converts them to the encoding of large sorted sets); keys that SORT … STORE
/// wrote or did not write; streams that are read together by a consumer that may be new to some of them; and streams
/// for which one of the servers rejects an ID.
pub fn resynced<'w>(name: &str, words: &'w [Vec<u8>]) -> Vec<&'w [u8]> {
    let key = words.get(1).map(Vec::as_slice);
    match name {
        "spop" | "zremrangebylex" | "sort_ro" | "xsetid" => key.into_iter().collect(),
        "zrangestore" if by_lex(words) => key.into_iter().collect(),
        "sort" => {
            let is_store = |pair: &&[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"STORE");
            let stored = words.windows(2).filter(is_store).map(|pair| &pair[1][..]);
            key.into_iter().chain(stored.filter(|_| !by_text(words))).collect()
        }
        "xreadgroup" => streams_of(words),
        "geosearchstore" if cut_off(words) => key.into_iter().collect(),
        "georadius" | "georadiusbymember" if cut_off(words) => {
            words.windows(2).filter(|pair| stores(&pair[0])).map(|p| &p[1][..]).collect()
        }
        _ => Vec::new(),
    }
}

fn stores(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"STORE") || word.eq_ignore_ascii_case(b"STOREDIST")
}

/// Reports whether a search has the option COUNT, with which it returns only the nearest results.
fn cut_off(words: &[Vec<u8>]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(b"COUNT"))
}

/// A command that both servers run after a call that names a consumer, without comparing the replies. Since 7.2, the
/// first attempt to read creates a consumer; before, the first successful read did.
pub fn consumer_met<'w>(name: &str, words: &'w [Vec<u8>]) -> Option<Vec<&'w [u8]>> {
    let (key, group, consumer) = match (name, words) {
        ("xclaim" | "xautoclaim", [_, key, group, consumer, ..]) => (&key[..], group, consumer),
        ("xreadgroup", _) => {
            let at = words.iter().position(|word| word.eq_ignore_ascii_case(b"GROUP"))?;
            let [key] = streams_of(words)[..] else { return None };
            (key, words.get(at + 1)?, words.get(at + 2)?)
        }
        _ => return None,
    };
    Some(vec![b"XGROUP", b"CREATECONSUMER", key, group, consumer])
}

/// The keys after STREAMS.
fn streams_of(words: &[Vec<u8>]) -> Vec<&[u8]> {
    let at = words.iter().position(|word| word.eq_ignore_ascii_case(b"STREAMS"));
    let after = at.map_or(&[][..], |at| &words[at + 1..]);
    after[..after.len() / 2].iter().map(Vec::as_slice).collect()
}

/// The arguments that a guard checks. The command name is argument 0.
#[derive(Debug)]
pub enum Place {
    At(usize),
    Last,
    Any,
    /// The argument after one of these words.
    After(&'static [&'static str]),
}

/// An argument that is replaced if it is not admitted.
#[derive(Debug)]
pub struct Guard {
    pub name: &'static str,
    pub place: Place,
    pub admits: fn(&[u8]) -> bool,
    pub instead: &'static str,
    pub reason: &'static str,
}

const fn guard(
    name: &'static str,
    place: Place,
    admits: fn(&[u8]) -> bool,
    instead: &'static str,
    reason: &'static str,
) -> Guard {
    Guard { name, place, admits, instead, reason }
}

const RACES: &str = "one server sees an expiry time that passes during the run before the other";
const WAITS: &str = "would block for long or for ever";
const COSTS: &str = "would allocate or send hundreds of megabytes";
const PROCESS: &str = "would show directives of the process, for example its port";
const TTL_WORDS: Place = Place::After(&["EX", "PX", "EXAT", "PXAT"]);

/// Arguments that never appear, even after mutations.
pub const GUARDS: &[Guard] = &[
    guard("expire", Place::At(2), no_near_deadline, "100000", RACES),
    guard("pexpire", Place::At(2), no_near_deadline_ms, "100000000", RACES),
    guard("setex", Place::At(2), no_near_deadline, "100000", RACES),
    guard("psetex", Place::At(2), no_near_deadline_ms, "100000000", RACES),
    guard("restore", Place::At(2), no_near_deadline_ms, "100000000", RACES),
    guard("restore-asking", Place::At(2), no_near_deadline_ms, "100000000", RACES),
    guard("set", TTL_WORDS, no_near_deadline_ms, "100000000", RACES),
    guard("getex", TTL_WORDS, no_near_deadline_ms, "100000000", RACES),
    guard("blpop", Place::Last, brief_seconds, "0.001", WAITS),
    guard("brpop", Place::Last, brief_seconds, "0.001", WAITS),
    guard("brpoplpush", Place::Last, brief_seconds, "0.001", WAITS),
    guard("blmove", Place::Last, brief_seconds, "0.001", WAITS),
    guard("bzpopmin", Place::Last, brief_seconds, "0.001", WAITS),
    guard("bzpopmax", Place::Last, brief_seconds, "0.001", WAITS),
    guard("blmpop", Place::At(1), brief_seconds, "0.001", WAITS),
    guard("bzmpop", Place::At(1), brief_seconds, "0.001", WAITS),
    // This row comes before the next one, which checks the replacement.
    guard("xread", Place::Any, no_plus, "0", "later versions read the last entry"),
    guard("xread", Place::After(&["BLOCK"]), brief_ms, "1", WAITS),
    guard("xreadgroup", Place::After(&["BLOCK"]), brief_ms, "1", WAITS),
    guard("lpos", Place::After(&["RANK"]), negatable, "-1", "rejected since 7.2"),
    guard("wait", Place::Last, brief_ms, "1", WAITS),
    guard("setbit", Place::At(2), modest_or_refused, "4294967296", COSTS),
    guard("setrange", Place::At(2), modest_or_refused, "4294967296", COSTS),
    guard("bitfield", Place::Any, modest_or_refused, "1048577", COSTS),
    guard("srandmember", Place::At(2), few_repeats, "-9", COSTS),
    guard("hrandfield", Place::At(2), few_repeats, "-9", COSTS),
    guard("zrandmember", Place::At(2), few_repeats, "-9", COSTS),
    guard("xadd", Place::Any, no_auto_id, "900-*", "an ID derived from the clock"),
    guard("config|get", Place::Any, settings::is_comparable, "nosuch", PROCESS),
    guard("xclaim", Place::At(4), no_near_idle, "0", RACES),
    guard("xautoclaim", Place::After(&["COUNT"]), affordable_or_refused, "100", COSTS),
    guard("xautoclaim", Place::At(4), no_near_idle, "0", RACES),
    guard("xpending", Place::After(&["IDLE"]), no_near_idle, "0", RACES),
    guard("xclaim", Place::After(&["IDLE", "TIME"]), no_near_idle, "0", RACES),
];

/// Commands that accept more arguments in Brisk than in the reference version, with the number of arguments that both
/// accept.
const LENGTHS: &[(&str, usize, &str)] =
    &[("zrank", 3, "WITHSCORE is younger"), ("zrevrank", 3, "WITHSCORE is younger")];

fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn no_near_deadline(word: &[u8]) -> bool {
    number(word).is_none_or(|n| n <= 0 || n >= 100_000)
}

/// For times in milliseconds and absolute times. Small absolute times are long past and would need no guard, but the
/// preceding argument may be EX as well as EXAT.
fn no_near_deadline_ms(word: &[u8]) -> bool {
    number(word).is_none_or(|n| n <= 0 || n >= 100_000_000)
}

/// Reports whether a timeout in seconds is short or invalid. 0 means to wait forever, as does a value that rounds to 0
/// milliseconds.
fn brief_seconds(word: &[u8]) -> bool {
    match std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok()) {
        Some(seconds) => seconds <= -0.001 || (seconds > 0.0 && seconds <= 0.01),
        // Rust rejects hexadecimal floats, but strtold accepts them.
        None => !word.starts_with(b"0x"),
    }
}

fn brief_ms(word: &[u8]) -> bool {
    number(word).is_none_or(|n| n < 0 || (1..=10).contains(&n))
}

fn negatable(word: &[u8]) -> bool {
    number(word) != Some(i64::MIN)
}

fn modest_or_refused(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"#").unwrap_or(word);
    number(digits).is_none_or(|n| n <= 1 << 20 || n >= 1 << 32)
}

fn few_repeats(word: &[u8]) -> bool {
    number(word).is_none_or(|n| n >= -100 || n == i64::MIN)
}

fn no_auto_id(word: &[u8]) -> bool {
    word != b"*"
}

/// Reports whether the real server either always has enough memory for this count, or never.
fn affordable_or_refused(word: &[u8]) -> bool {
    number(word).is_none_or(|n| n <= 1 << 20 || n > i64::MAX / 16)
}

fn no_plus(word: &[u8]) -> bool {
    word != b"+"
}

fn no_near_idle(word: &[u8]) -> bool {
    number(word).is_none_or(|n| n <= 0 || n > 1_000_000_000)
}

/// Replaces the arguments that [`GUARDS`] and [`SETTINGS`] do not admit.
///
/// [`SETTINGS`]: super::settings::SETTINGS
pub fn guard_call(name: &str, words: &mut Vec<Vec<u8>>, random: &mut Random) {
    // A mutation may have replaced the subcommand.
    let shown = words.iter().take(2).map(|word| word.to_ascii_lowercase()).collect::<Vec<_>>();
    let shown = String::from_utf8_lossy(&shown.join(&b'|')).into_owned();
    let name = if name.contains('|') { &shown[..] } else { name };
    if name == "config|set" {
        settings::confine(words);
    }
    if name == "hello" {
        keep_one_option(words);
    }
    part_deadlines(name, words, random);
    if let Some(row) = LENGTHS.iter().find(|row| row.0 == name) {
        words.truncate(row.1);
    }
    for row in GUARDS.iter().filter(|row| row.name == name) {
        let last = words.len() - 1;
        for i in 1..words.len() {
            let meant = match row.place {
                Place::At(at) => i == at,
                Place::Last => i == last,
                Place::Any => true,
                Place::After(markers) => {
                    markers.iter().any(|m| words[i - 1].eq_ignore_ascii_case(m.as_bytes()))
                }
            };
            if meant && !(row.admits)(&words[i]) {
                words[i] = row.instead.as_bytes().to_vec();
            }
        }
    }
}

/// Redis 7.0 applies each option of HELLO as it reads it. Since 7.2, and in Brisk, no option takes effect if a later
/// one is invalid.
fn keep_one_option(words: &mut Vec<Vec<u8>>) {
    let option = words.get(2).map(|word| word.to_ascii_uppercase());
    words.truncate(match option.as_deref() {
        Some(b"AUTH") => 5,
        Some(b"SETNAME") => 4,
        _ => 3,
    });
}

/// If the same relative time is set twice, a millisecond decides whether the second expiry time is later. Where that
/// matters, each call gets its own time.
fn part_deadlines(name: &str, words: &mut [Vec<u8>], random: &mut Random) {
    const TOO_LATE: i64 = i64::MAX - 1; // rejected in seconds and in milliseconds
    let ms = match name {
        "expire" => 1,
        "pexpire" => 1000,
        _ => return,
    };
    let ordered =
        words.iter().any(|w| w.eq_ignore_ascii_case(b"GT") || w.eq_ignore_ascii_case(b"LT"));
    let meant = words.get(2).and_then(|word| number(word));
    if ordered && meant.is_some_and(|n| n > 0 && n < TOO_LATE) {
        words[2] = ((200_000 + random.below(1_000_000_000)) * ms).to_string().into_bytes();
    }
}

/// Commands whose invalidations differ from those of Redis, each with its reason.
const NOTIFIED_DIFFERENTLY: &[(&str, &str)] =
    &[("bitfield", "a string that only grew has changed, but Redis sends no notification")];

/// Reports whether a command ends the tracking of its session.
pub fn ends_tracking(name: &str) -> bool {
    name == "reset"
}

/// Reports whether clients that cache or watch the keys of a command may get different notifications than from Redis.
pub fn notifies_differently(name: &str) -> bool {
    NOTIFIED_DIFFERENTLY.iter().any(|(command, _)| *command == name)
}

/// Reports whether a reply says that the arguments of a call are invalid. Which keys Redis then extracts from the
/// arguments and considers read differs from command to command.
pub fn refuses_words(reply: &[u8]) -> bool {
    reply.starts_with(b"-") && !reply.starts_with(b"-WRONGTYPE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::words::{line, split};

    fn guarded(text: &str) -> String {
        let mut words = split(text).unwrap();
        let name = String::from_utf8(words[0].to_ascii_lowercase()).unwrap();
        guard_call(&name, &mut words, &mut Random::new(1));
        line(&words)
    }

    #[test]
    fn no_call_blocks_for_long() {
        assert_eq!(guarded("BLPOP a b 0"), "BLPOP a b 0.001");
        assert_eq!(guarded("BLPOP a b 1e9"), "BLPOP a b 0.001");
        assert_eq!(guarded("BLPOP a b -1"), "BLPOP a b -1");
        assert_eq!(
            guarded("XREAD COUNT 1 block 0 STREAMS s 0"),
            "XREAD COUNT 1 block 1 STREAMS s 0"
        );
        assert_eq!(guarded("XREAD BLOCK + STREAMS s 0"), "XREAD BLOCK 1 STREAMS s 0");
    }

    #[test]
    fn a_mutated_subcommand_is_judged_by_what_it_is_now() {
        let mut words = split("CONFIG GET *").unwrap();
        guard_call("config|set", &mut words, &mut Random::new(1));
        assert_eq!(line(&words), "CONFIG GET nosuch");
    }

    #[test]
    fn no_deadline_falls_into_the_run() {
        assert_eq!(guarded("SET k v px 5"), "SET k v px 100000000");
        assert_eq!(guarded("EXPIRE k -1"), "EXPIRE k -1");
    }

    #[test]
    fn no_two_relative_deadlines_are_compared_that_may_be_equal() {
        let random = &mut Random::new(1);
        let mut timed = |text: &str| {
            let mut words = split(text).unwrap();
            guard_call("expire", &mut words, random);
            line(&words)
        };
        assert_ne!(timed("EXPIRE k 100000 GT"), timed("EXPIRE k 100000 GT"));
        assert_eq!(timed("EXPIRE k 0 lt"), "EXPIRE k 0 lt");
        assert_eq!(timed("EXPIRE k 100000 XX"), "EXPIRE k 100000 XX");
    }

    #[test]
    fn versions_above_the_measured_one_are_newer() {
        assert!(newer("7.2.0") && newer("8.0.0") && newer("7.0.16"));
        assert!(!newer("") && !newer("7.0.0") && !newer("2.6.12") && !newer("7.0.15"));
    }

    #[test]
    fn exclusions_by_family_do_not_catch_neighbors() {
        assert!(!admitted("acl|setuser"));
        assert!(!admitted("xinfo|help"));
        assert!(admitted("xinfo|stream"));
        assert!(admitted("get"));
    }
}
