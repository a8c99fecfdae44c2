//! Clients that change values of every type, by every command of Redis 7.0 that is not replicated as it was sent:
//! random commands, commands with relative times, blocking commands, and commands that depend on the dataset.
//!
//! A client sends the same commands for the same seed. The server determines the order in which the commands of several
//! clients are executed. There are few keys, so that commands often use the same values. Only keys that begin with
//! `fleeting:` expire while a test runs.

use crate::conn::Conn;
use crate::random::Random;
use crate::reply::Reply;

/// Databases that are written to.
pub const DATABASES: usize = 4;
/// Number of keys of each kind.
const KEYS: usize = 5;
/// Percentages of all steps: transactions, and commands that are sent without waiting for replies.
const TRANSACTIONS: usize = 12;
const PIPELINES: usize = 10;

/// Placeholders: `{n}` and `{m}` are key numbers, `{d}` a database number, `{c}` the client's number, `{i}` a number
/// that changes, and `{f}` a fraction with many digits.
const LINES: &[&str] = &[
    "INCR counter:{n}",
    "DECRBY counter:{n} {i}",
    "INCRBYFLOAT float:{n} {f}",
    "APPEND text:{n} {c}x{i}",
    "SETRANGE text:{n} {i} abc",
    r#"SET plain:{n} "{i} \x00\xff\r\n""#,
    "SET plain:{n} {i} EX 1000",
    "SET plain:{n} {i} KEEPTTL GET",
    "SET plain:{n} {i} PX 900{i}00 XX",
    "SETNX plain:{n} {c}",
    "SETEX plain:{n} 2000 {i}",
    "PSETEX plain:{n} 3000000 {i}",
    "GETEX plain:{n} EX 4000",
    "GETEX plain:{n} PERSIST",
    "GETEX plain:{n} PXAT 1000",
    "GETDEL plain:{n}",
    "GETSET plain:{n} {i}",
    "MSET plain:{n} {i} plain:{m} {c}",
    "MSETNX plain:{n} {i} new:{m} {c}",
    "SET fleeting:{n} {i} PX 2{n}",
    "PEXPIRE fleeting:list:{n} 3{n}",
    "RPUSH fleeting:list:{n} {i}",
    "SETBIT bits:{n} {i} 1",
    "BITFIELD bits:{n} INCRBY u5 {i} 7 OVERFLOW SAT SET i9 3 {i}",
    "BITOP XOR bits:{n} bits:{m} text:{n}",
    "PFADD hll:{n} {c}:{i} {i}",
    "PFMERGE hll:{n} hll:{m}",
    "PFCOUNT hll:{n}",
    "RPUSH list:{n} {c}:{i} b",
    "LPUSH list:{n} {i}",
    "LPUSHX list:{n} {f}",
    "LPOP list:{n}",
    "RPOP list:{n} 2",
    "LMOVE list:{n} list:{m} LEFT RIGHT",
    "RPOPLPUSH list:{n} list:{m}",
    "LINSERT list:{n} BEFORE b inserted",
    "LSET list:{n} 0 {i}",
    "LREM list:{n} 1 b",
    "LTRIM list:{n} 0 20",
    "BLPOP list:{n} list:{m} 0.01",
    "BRPOP list:{n} 0.01",
    "BLMOVE list:{n} list:{m} LEFT LEFT 0.01",
    "BRPOPLPUSH list:{n} list:{m} 0.01",
    "LMPOP 2 list:{n} list:{m} RIGHT COUNT 3",
    "BLMPOP 0.01 1 list:{n} LEFT COUNT 2",
    "SORT list:{n} ALPHA STORE sorted:{n}",
    "HSET hash:{n} f{i} {c} g{c} {i}",
    "HSETNX hash:{n} once {i}",
    "HINCRBY hash:{n} count {i}",
    "HINCRBYFLOAT hash:{n} sum {f}",
    "HDEL hash:{n} f11 f12 f13 once",
    "SADD set:{n} {i} m{c} {f}",
    "SREM set:{n} {i}",
    "SPOP set:{n}",
    "SPOP set:{n} 3",
    "SMOVE set:{n} set:{m} {i}",
    "SUNIONSTORE union:{n} set:{n} set:{m}",
    "SDIFFSTORE set:{n} set:{m} union:{n}",
    "SINTERSTORE inter:{n} set:{n} set:{m}",
    "ZADD zset:{n} {i} m{c} {f} x{i} {c} y",
    "ZADD zset:{n} GT CH {f} m{c}",
    "ZADD zset:{n} INCR 0.1 y",
    "ZINCRBY zset:{n} {f} m{c}",
    "ZREM zset:{n} x{i}",
    "ZPOPMIN zset:{n}",
    "ZPOPMAX zset:{n} 2",
    "BZPOPMIN zset:{n} zset:{m} 0.01",
    "ZMPOP 2 zset:{n} zset:{m} MAX COUNT 2",
    "BZMPOP 0.01 1 zset:{n} MIN",
    "ZREMRANGEBYRANK zset:{n} 10 -1",
    "ZREMRANGEBYSCORE zset:{n} 20 40",
    "ZRANGESTORE ranged:{n} zset:{m} 0 5",
    "ZUNIONSTORE zunion:{n} 2 zset:{n} zset:{m} WEIGHTS 0.3 1.7",
    "ZDIFFSTORE zdiff:{n} 2 zset:{n} zset:{m}",
    "ZINTERSTORE zinter:{n} 2 zset:{n} zset:{m} AGGREGATE MAX",
    "XADD stream:{n} MAXLEN ~ 50 * f {i} g {c}",
    "XADD stream:{n} NOMKSTREAM MINID ~ 5 * f {i}",
    "XTRIM stream:{n} MAXLEN 30",
    "XGROUP CREATE stream:{n} group 0 MKSTREAM",
    "XGROUP CREATECONSUMER stream:{n} group c{c}",
    "XGROUP DELCONSUMER stream:{n} group c{m}",
    "XGROUP SETID stream:{n} group 0",
    "XGROUP DESTROY stream:{n} group",
    "XREADGROUP GROUP group c{c} COUNT 3 STREAMS stream:{n} >",
    "XREADGROUP GROUP group c{c} COUNT 2 BLOCK 10 NOACK STREAMS stream:{n} >",
    "XAUTOCLAIM stream:{n} group c{m} 0 0 COUNT 2",
    "XACK stream:{n} group 0-1",
    "XSETID stream:{n} 9999999999999-{i}",
    "DEL stream:{n}",
    "GEOADD geo:{n} 13.{i} 38.{c} p{i}",
    "GEOSEARCHSTORE near:{n} geo:{n} FROMLONLAT 13 38 BYRADIUS 500 km ASC COUNT 5",
    "GEORADIUS geo:{n} 13 38 400 km STOREDIST distances:{n}",
    "RENAME plain:{n} plain:{m}",
    "RENAMENX text:{n} text:{m}",
    "COPY text:{n} copy:{m} REPLACE",
    "COPY hash:{n} hash:{m} DB {d} REPLACE",
    "MOVE union:{n} {d}",
    "DEL copy:{n} new:{m}",
    "UNLINK bits:{n} inter:{m}",
    "EXPIRE text:{n} 5000",
    "PEXPIRE hash:{n} 6000{i}00 NX",
    "EXPIREAT zunion:{n} 4000000000",
    "EXPIRE sorted:{n} -1",
    "PERSIST text:{n}",
    "PUBLISH channel {i}",
    "SPUBLISH shard {i}",
    "SELECT {d}",
    r#"EVAL "for _, m in ipairs(redis.call('spop', KEYS[1], 2)) do redis.call('rpush', KEYS[2], m) end" 2 set:{n} list:{m}"#,
    r#"EVAL "local t = redis.call('time')[2] redis.call('set', KEYS[1], t, 'EX', 5000) redis.call('hset', KEYS[2], 'time', t)" 2 plain:{n} hash:{m}"#,
    r#"EVAL "local m = redis.call('srandmember', KEYS[1]) if m then redis.call('srem', KEYS[1], m) redis.call('sadd', KEYS[2], m) end return m" 2 set:{n} set:{m}"#,
    r#"EVAL "redis.call('incr', KEYS[1]) redis.pcall('lpush', KEYS[1], 1) redis.call('zpopmin', KEYS[2]) redis.call('incrbyfloat', KEYS[3], ARGV[1])" 3 counter:{n} zset:{m} float:{n} {f}"#,
    r#"EVAL "redis.call('incr', KEYS[1]) return redis.call('lpush', KEYS[1], 1)" 1 counter:{n}"#,
    r#"EVAL "redis.call('select', ARGV[1]) redis.call('incr', 'elsewhere')" 0 {d}"#,
    r##"FUNCTION LOAD REPLACE "#!lua name=lib{n}\nredis.register_function('f{n}', function(keys, args) redis.call('set', keys[1], args[1]) redis.call('lpush', keys[2], args[1], '{i}') end)""##,
    "FCALL f{n} 2 plain:{n} list:{m} {i}",
    "FUNCTION DELETE lib{n}",
];

/// The number of rare commands in a thousand steps.
const RARE_PER_THOUSAND: usize = 8;
const RARE: &[&str] = &[
    "FLUSHDB",
    "FLUSHDB ASYNC",
    "SWAPDB 0 {d}",
    "SWAPDB {d} 2",
    "FUNCTION FLUSH",
    "FLUSHALL ASYNC",
];

/// Errors that indicate a mistake in the lines above.
const MISTAKES: &[&str] = &["ERR unknown", "ERR syntax", "ERR wrong number", "ERR Protocol"];

/// Clients that write.
#[derive(Debug, Clone)]
pub struct Writers {
    address: String,
    seed: u64,
    /// Lines per thousand that change whole databases.
    rare_per_thousand: usize,
}

/// The counts of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    pub commands: u64,
    /// The number of error replies to these commands.
    pub errors: u64,
}

impl Writers {
    /// Writers with this seed, which write to the server at `address`.
    pub fn to(address: &str, seed: u64) -> Writers {
        let rare_per_thousand = RARE_PER_THOUSAND;
        Writers { address: address.to_owned(), seed, rare_per_thousand }
    }

    /// These writers, without commands that empty or swap databases, so that keys of other clients stay unchanged.
    #[must_use]
    pub fn sparing_databases(mut self) -> Writers {
        self.rare_per_thousand = 0;
        self
    }

    /// Runs this number of clients at once. Each writes while `goes_on` returns true for the number of its steps.
    ///
    /// # Panics
    /// If a connection fails or a command is rejected as invalid.
    pub fn run(&self, clients: u64, goes_on: impl Fn(u64) -> bool + Sync) -> Written {
        std::thread::scope(|scope| {
            let goes_on = &goes_on;
            let write = |client| scope.spawn(move || self.write(client, goes_on));
            let threads: Vec<_> = (0..clients).map(write).collect();
            let mut sum = Written::default();
            for thread in threads {
                let one = thread.join().expect("a writer says itself what went wrong");
                sum.commands += one.commands;
                sum.errors += one.errors;
            }
            sum
        })
    }

    /// Writes as the client with this number.
    fn write(&self, client: u64, goes_on: impl Fn(u64) -> bool) -> Written {
        let mut lines = Lines {
            client,
            random: Random::derived(self.seed, client),
            step: 0,
            rare_per_thousand: self.rare_per_thousand,
        };
        let mut conn = Conn::tcp(&self.address);
        let mut written = Written::default();
        while goes_on(lines.step) {
            let sent = lines.next();
            let replies = send(&mut conn, &sent);
            written.commands += sent.len() as u64;
            for (line, reply) in sent.iter().zip(replies) {
                written.errors += u64::from(reply.is_error());
                let text = reply.to_string();
                let is_mistake = |mistake: &str| text.contains(&format!("(error) {mistake}"));
                assert!(!MISTAKES.iter().any(|mistake| is_mistake(mistake)), "{line}: {text}");
            }
        }
        written
    }
}

fn send(conn: &mut Conn, lines: &[String]) -> Vec<Reply> {
    conn.pipeline(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

struct Lines {
    client: u64,
    random: Random,
    step: u64,
    rare_per_thousand: usize,
}

impl Lines {
    /// The lines that are sent next, before any reply is read.
    fn next(&mut self) -> Vec<String> {
        self.step += 1;
        let way = self.random.below(100);
        if way >= TRANSACTIONS + PIPELINES {
            return vec![self.line()];
        }
        let count = 2 + self.random.below(4);
        let mut lines: Vec<String> = (0..count).map(|_| self.line()).collect();
        if way < TRANSACTIONS {
            lines.insert(0, "MULTI".to_owned());
            lines.push("EXEC".to_owned());
        }
        lines
    }

    fn line(&mut self) -> String {
        let is_rare = self.random.below(1000) < self.rare_per_thousand;
        let line = *self.random.pick(if is_rare { RARE } else { LINES });
        let mut filled = line.to_owned();
        for (name, bound) in [("{n}", KEYS), ("{m}", KEYS), ("{d}", DATABASES)] {
            filled = filled.replace(name, &self.random.below(bound).to_string());
        }
        let fraction = self.random.bits() % 1_000_000_007;
        filled
            .replace("{f}", &format!("{}.{fraction}", self.random.below(30)))
            .replace("{c}", &self.client.to_string())
            .replace("{i}", &(10 + self.random.below(80)).to_string())
    }
}

/// Waits until all keys that expire soon are gone.
#[track_caller]
pub fn wait_until_nothing_expires(address: &str) {
    let mut conn = Conn::tcp(address);
    for db in 0..DATABASES {
        conn.cmd(&format!("SELECT {db}"));
        let names = (0..KEYS).map(|n| format!(" fleeting:{n} fleeting:list:{n}"));
        let count = format!("EXISTS{}", names.collect::<String>());
        // EXISTS also deletes expired keys. A list without a TTL would stay forever, so delete it.
        for n in 0..KEYS {
            conn.cmd(&format!("DEL fleeting:list:{n}"));
        }
        crate::wait::wait_until("fleeting keys to expire", || conn.cmd(&count).integer() == 0);
    }
}
