//! Every data command of the command table, measured once on small, typical values and compared with the peer. (M4)
//!
//! The commands are taken from the table: a command without a case here, and without a reason in [`UNMEASURED`], is an
//! error. Collections have 100 elements; keys and values have about ten bytes. Commands that remove elements get new
//! ones before each run.

use super::Setup;
use super::load::{Rate, Run, benchmark, send_commands};
use super::report::{Limit, Report, Row, median};
use super::sides::Sides;
use anyhow::{Result, bail};
use brisk_differential::peer::Peer;
use brisk_testkit::server::Server;

/// A command to measure.
struct Case {
    /// In redis-benchmark's format; `__rand_int__` is less than the number of operations.
    command: &'static str,
    operations: u64,
    /// Run once per operation before each run. `{i}` takes the values of `__rand_int__`, and `{n}` counts from 1.
    before: Option<&'static str>,
}

/// Number of spare elements: testing whether a command is known removes some, and redis-benchmark may send one more
/// pipeline than requested.
const SPARE: u64 = 200;

const QUICK: u64 = 40_000;
const MIDDLING: u64 = 10_000;
const SLOW: u64 = 3_000;

const fn quick(command: &'static str) -> Case {
    Case { command, operations: QUICK, before: None }
}

const fn middling(command: &'static str) -> Case {
    Case { command, operations: MIDDLING, before: None }
}

const fn slow(command: &'static str) -> Case {
    Case { command, operations: SLOW, before: None }
}

const fn taking(command: &'static str, before: &'static str) -> Case {
    Case { command, operations: QUICK, before: Some(before) }
}

/// Commands that are not measured, and why.
const UNMEASURED: &[(&str, &str)] = &[
    ("flushall", "costs what the keys cost that it deletes; the others need the keys"),
    ("flushdb", "as FLUSHALL"),
    ("migrate", "waits for another server"),
    ("object|freq", "an error unless the eviction policy counts uses"),
    ("object|help", "fixed text"),
    ("pfdebug", "for tests of the server"),
    ("pfselftest", "for tests of the server"),
    ("restore", "its payload is binary, which redis-benchmark cannot send"),
    ("restore-asking", "as RESTORE"),
    ("xgroup|create", "an error from the second call of the same name on"),
    ("xgroup|help", "fixed text"),
    ("xinfo|help", "fixed text"),
];

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Keyspace commands, while there are few keys.
    middling("KEYS str*"), quick("DBSIZE"), quick("RANDOMKEY"), middling("SCAN 0 COUNT 10"),
    quick("SWAPDB 8 9"),
    // Strings.
    quick("GET str"), quick("SET key:__rand_int__ xxx"), quick("SETNX str xxx"),
    quick("SETEX key:__rand_int__ 1000 xxx"), quick("PSETEX key:__rand_int__ 1000000 xxx"),
    quick("GETSET str a-string-of-text"), quick("GETEX str PERSIST"),
    taking("GETDEL gone:__rand_int__", "SET gone:{i} xxx"), quick("STRLEN str"),
    taking("APPEND app:__rand_int__ xxx", "SET app:{i} xxx"), quick("SETRANGE str 3 xyz"),
    quick("GETRANGE str 2 5"), quick("SUBSTR str 2 5"), quick("MGET str str:b str:c"),
    quick("MSET str:b xxx str:c xxx"), quick("MSETNX str:b xxx str:c xxx"),
    quick("INCR number"), quick("DECR number"), quick("INCRBY number 7"),
    quick("DECRBY number 7"), quick("INCRBYFLOAT float 0.5"), slow("LCS text:a text:b"),
    // Bitmaps, HyperLogLogs.
    quick("SETBIT bits 777 1"), quick("GETBIT bits 777"), quick("BITCOUNT bits"),
    quick("BITPOS bits 1"), middling("BITOP AND bits:to bits bits"),
    quick("BITFIELD bits SET u8 100 5"), quick("BITFIELD_RO bits GET u8 100"),
    quick("PFADD hll element:__rand_int__"), quick("PFCOUNT hll"), slow("PFMERGE hll:to hll hll:b"),
    // Keys.
    quick("EXISTS str"), quick("TOUCH str"), quick("TYPE str"), quick("TTL str"), quick("PTTL str"),
    quick("EXPIRETIME str"), quick("PEXPIRETIME str"),
    taking("EXPIRE ttl:__rand_int__ 1000", "SET ttl:{i} xxx"),
    taking("PEXPIRE ttl:__rand_int__ 1000000", "SET ttl:{i} xxx"),
    taking("EXPIREAT ttl:__rand_int__ 4000000000", "SET ttl:{i} xxx"),
    taking("PEXPIREAT ttl:__rand_int__ 4000000000000", "SET ttl:{i} xxx"),
    taking("PERSIST ttl:__rand_int__", "SET ttl:{i} xxx EX 1000"),
    taking("DEL gone:__rand_int__", "SET gone:{i} xxx"),
    taking("UNLINK gone:__rand_int__", "SET gone:{i} xxx"),
    quick("RENAME str str"), quick("RENAMENX str str:b"), taking("MOVE gone:__rand_int__ 9", "SET gone:{i} xxx"),
    quick("COPY str copy:__rand_int__ REPLACE"), middling("DUMP hash"),
    quick("OBJECT ENCODING hash"), quick("OBJECT IDLETIME hash"), quick("OBJECT REFCOUNT hash"),
    middling("SORT numbers"), middling("SORT_RO numbers"),
    // Lists.
    quick("LPUSH pushed xxx"), quick("RPUSH pushed xxx"), quick("LPUSHX pushed xxx"),
    quick("RPUSHX pushed xxx"), taking("LPOP popped", "RPUSH popped element:{i}"),
    taking("RPOP popped", "RPUSH popped element:{i}"),
    taking("LMPOP 1 popped LEFT", "RPUSH popped element:{i}"),
    taking("BLPOP popped 1", "RPUSH popped element:{i}"),
    taking("BRPOP popped 1", "RPUSH popped element:{i}"),
    taking("BLMPOP 1 1 popped LEFT", "RPUSH popped element:{i}"),
    quick("LMOVE list list LEFT RIGHT"), quick("BLMOVE list list LEFT RIGHT 1"),
    quick("RPOPLPUSH list list"), quick("BRPOPLPUSH list list 1"), quick("LLEN list"),
    quick("LINDEX list 50"), middling("LRANGE list 0 99"), quick("LPOS list element:000000000050"),
    quick("LSET list 50 element:000000000050"), quick("LREM list 1 nothing"),
    quick("LTRIM list 0 -1"), quick("LINSERT list BEFORE nothing xxx"),
    // Sets.
    quick("SADD added element:__rand_int__"), taking("SREM added element:__rand_int__", "SADD added element:{i}"),
    taking("SMOVE added moved element:__rand_int__", "SADD added element:{i}"),
    quick("SISMEMBER set element:000000000050"),
    quick("SMISMEMBER set element:000000000050 nothing"), quick("SCARD set"),
    middling("SMEMBERS set"), taking("SPOP added", "SADD added element:{i}"),
    quick("SRANDMEMBER set"), middling("SSCAN set 0"), middling("SINTER set set:b"),
    middling("SUNION set set:b"), middling("SDIFF set set:b"), middling("SINTERSTORE set:to set set:b"),
    middling("SUNIONSTORE set:to set set:b"), middling("SDIFFSTORE set:to set set:b"),
    middling("SINTERCARD 2 set set:b"),
    // Hashes.
    quick("HSET hash element:000000000050 xxx"), quick("HMSET hash element:000000000050 xxx"),
    quick("HSETNX hash element:000000000050 xxx"), quick("HGET hash element:000000000050"),
    quick("HMGET hash element:000000000050 nothing"), middling("HGETALL hash"),
    middling("HKEYS hash"), middling("HVALS hash"), quick("HLEN hash"),
    quick("HEXISTS hash element:000000000050"), quick("HSTRLEN hash element:000000000050"),
    taking("HDEL fields element:__rand_int__", "HSET fields element:{i} xxx"),
    quick("HINCRBY counters a 7"), quick("HINCRBYFLOAT counters b 0.5"), quick("HRANDFIELD hash"),
    middling("HSCAN hash 0"), quick("HEXPIRE timed 1000 FIELDS 1 a"),
    quick("HPEXPIRE timed 1000000 FIELDS 1 a"), quick("HEXPIREAT timed 4000000000 FIELDS 1 a"),
    quick("HPEXPIREAT timed 4000000000000 FIELDS 1 a"), quick("HTTL timed FIELDS 1 a"),
    quick("HPTTL timed FIELDS 1 a"), quick("HEXPIRETIME timed FIELDS 1 a"),
    quick("HPEXPIRETIME timed FIELDS 1 a"), quick("HPERSIST timed FIELDS 1 b"),
    quick("HGETEX timed FIELDS 1 a"), quick("HSETEX timed FIELDS 1 c xxx"),
    taking("HGETDEL fields FIELDS 1 element:__rand_int__", "HSET fields element:{i} xxx"),
    // Sorted sets.
    quick("ZADD scored 5 element:__rand_int__"), quick("ZINCRBY zset 1 element:000000000050"),
    quick("ZINCRBY scored 1 element:__rand_int__"), quick("ZCARD zset"),
    quick("ZSCORE zset element:000000000070"), quick("ZMSCORE zset element:000000000070 nothing"),
    quick("ZRANK zset element:000000000070"), quick("ZREVRANK zset element:000000000070"),
    quick("ZCOUNT zset 10 90"), quick("ZLEXCOUNT lex - +"), middling("ZRANGE zset 0 99"),
    middling("ZREVRANGE zset 0 99"), middling("ZRANGEBYSCORE zset 0 99"),
    middling("ZREVRANGEBYSCORE zset 99 0"), middling("ZRANGEBYLEX lex - +"),
    middling("ZREVRANGEBYLEX lex + -"), middling("ZRANGESTORE zset:to zset 0 99"),
    taking("ZREM scored element:__rand_int__", "ZADD scored {n} element:{i}"),
    taking("ZREMRANGEBYRANK scored 0 0", "ZADD scored {n} element:{i}"),
    taking("ZREMRANGEBYSCORE scored __rand_int__ __rand_int__", "ZADD scored {n} element:{i}"),
    quick("ZREMRANGEBYLEX lex [zzz [zzz"), taking("ZPOPMIN scored", "ZADD scored {n} element:{i}"),
    taking("ZPOPMAX scored", "ZADD scored {n} element:{i}"),
    taking("ZMPOP 1 scored MIN", "ZADD scored {n} element:{i}"),
    taking("BZPOPMIN scored 1", "ZADD scored {n} element:{i}"),
    taking("BZPOPMAX scored 1", "ZADD scored {n} element:{i}"),
    taking("BZMPOP 1 1 scored MIN", "ZADD scored {n} element:{i}"), quick("ZRANDMEMBER zset"),
    middling("ZSCAN zset 0"), slow("ZUNION 2 zset zset:b"), slow("ZINTER 2 zset zset:b"),
    slow("ZDIFF 2 zset zset:b"), slow("ZUNIONSTORE zset:to 2 zset zset:b"),
    slow("ZINTERSTORE zset:to 2 zset zset:b"), slow("ZDIFFSTORE zset:to 2 zset zset:b"),
    slow("ZINTERCARD 2 zset zset:b"),
    // Geo.
    quick("GEOADD geo 13.361389 38.115556 place:000000000050"),
    quick("GEODIST geo place:000000000001 place:000000000002"),
    quick("GEOHASH geo place:000000000001"), quick("GEOPOS geo place:000000000001"),
    slow("GEORADIUS geo 4 48 100 km"), slow("GEORADIUS_RO geo 4 48 100 km"),
    slow("GEORADIUSBYMEMBER geo place:000000000001 100 km"),
    slow("GEORADIUSBYMEMBER_RO geo place:000000000001 100 km"),
    slow("GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 100 km ASC"),
    slow("GEOSEARCHSTORE geo:to geo FROMLONLAT 4 48 BYRADIUS 100 km ASC"),
    // Streams.
    quick("XADD events MAXLEN ~ 10000 * field value"), quick("XLEN stream"),
    middling("XRANGE stream - +"), middling("XREVRANGE stream + -"),
    middling("XREAD COUNT 10 STREAMS stream 50-1"),
    middling("XREADGROUP GROUP group me COUNT 10 STREAMS stream 0"),
    quick("XACK stream:b group 1-1"), quick("XPENDING stream group"),
    quick("XCLAIM stream group you 0 5-1"), middling("XAUTOCLAIM stream group you 0 0 COUNT 10"),
    quick("XDEL stream 1000-5"),
    quick("XTRIM stream MAXLEN 100"), quick("XSETID stream 1000-1"),
    quick("XGROUP CREATECONSUMER stream:b group one:__rand_int__"),
    quick("XGROUP DELCONSUMER stream:b group nobody"), quick("XGROUP DESTROY stream:b nothing"),
    quick("XGROUP SETID stream:b group 0"), quick("XINFO STREAM stream"),
    quick("XINFO GROUPS stream"), quick("XINFO CONSUMERS stream group"),
];

/// The keys that the commands use.
fn fixtures(server: &Server) -> Result<()> {
    let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let hundred = |template: &'static str| (0..100).map(move |i| split(&fill_in(template, i)));
    let text = |step: usize| {
        let letters: String = (0..100).map(|i| char::from(b'a' + (i * step % 23) as u8)).collect();
        letters
    };
    let single = [
        "SET str a-string-of-text".to_owned(),
        "MSET str:b xxx str:c xxx number 1 float 1.5".to_owned(),
        format!("MSET text:a {} text:b {}", text(7), text(5)),
        "SETBIT bits 8000 1".to_owned(),
        "HSET counters a 1 b 1.5".to_owned(),
        "HSET timed a xxx b xxx".to_owned(),
        "SADD set:b nothing".to_owned(),
    ];
    send_commands(server, single.iter().map(|line| split(line)))?;
    for template in [
        "PFADD hll first:{i}",
        "PFADD hll:b second:{i}",
        "RPUSH list element:{i}",
        "RPUSH numbers {n}",
        "SADD set element:{i}",
        "SADD set:b element:{i}",
        "HSET hash element:{i} value:{i}",
        "ZADD zset {n} element:{i}",
        "ZADD lex 0 element:{i}",
        "ZADD zset:b {n} element:{i}",
        "XADD stream {n}-1 field value",
        "XADD stream:b {n}-1 field value",
    ] {
        send_commands(server, hundred(template))?;
    }
    let place = |i: u64| {
        let (east, north) = (i * 7919 % 10_000, i * 104_729 % 10_000);
        split(&format!(
            "GEOADD geo {}.{east:04} {}.{north:04} place:{i:012}",
            2 + i % 4,
            46 + i / 4 % 4
        ))
    };
    send_commands(server, (0..100).map(place))?;
    let groups = [
        "XGROUP CREATE stream group 0",
        "XGROUP CREATE stream:b group 0",
        "XREADGROUP GROUP group me STREAMS stream >",
    ];
    send_commands(server, groups.iter().map(|line| split(line)))
}

fn fill_in(template: &str, i: u64) -> String {
    template.replace("{i}", &format!("{i:012}")).replace("{n}", &(i + 1).to_string())
}

/// The name of a command or subcommand in the command table.
fn name_of(command: &str) -> String {
    let mut words = command.split(' ').map(str::to_ascii_lowercase);
    let first = words.next().unwrap_or_default();
    match words.next() {
        Some(second) if ["object", "xgroup", "xinfo"].contains(&&*first) => {
            format!("{first}|{second}")
        }
        _ => first,
    }
}

/// The command's name in reports.
fn shown(command: &str) -> String {
    format!("`{}`", command.replace("__rand_int__", "N"))
}

/// Data commands with neither a case nor a reason to have none.
fn missing() -> Vec<String> {
    let names = brisk_engine::commands::all().flat_map(|command| {
        let name = command.spec.name;
        let below = command.subcommands.iter().map(move |sub| format!("{name}|{}", sub.spec.name));
        let own = command.subcommands.is_empty().then(|| name.to_owned());
        own.into_iter().chain(below)
    });
    let known = |name: &String| {
        CASES.iter().any(|case| name_of(case.command) == *name)
            || UNMEASURED.iter().any(|(other, _)| other == name)
    };
    names.filter(|name| !known(name)).collect()
}

/// Reports whether the server knows the command. Other errors are errors of the case.
fn is_known(server: &Server, command: &[&str]) -> Result<bool> {
    let mut peer = Peer::connect(&server.address())?;
    let words: Vec<String> =
        command.iter().map(|word| word.replace("__rand_int__", "000000000000")).collect();
    let reply = peer.request(&words)?;
    if reply.starts_with(b"-ERR unknown command") {
        return Ok(false);
    }
    if reply.starts_with(b"-") {
        bail!("{command:?}: {}", String::from_utf8_lossy(reply));
    }
    Ok(true)
}

/// Compares every data command with the peer; no command may cost more.
pub(crate) fn every(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    measure(setup, report, Limit::Ratio(1.0), &|_| true)
}

/// Measures the cases whose command `wanted` accepts; each must be within `limit`.
pub(crate) fn measure(
    setup: &Setup<'_>,
    report: &mut Report,
    limit: Limit,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let missing = missing();
    if !missing.is_empty() {
        bail!("commands without a case: {}", missing.join(" "));
    }
    let sides = Sides::start(setup)?;
    let servers = sides.all();
    servers.iter().try_for_each(|server| fixtures(server))?;
    let only = setup.options.text("only").map(str::to_ascii_uppercase);
    for case in CASES {
        if only.as_ref().is_some_and(|only| !case.command.split(' ').any(|word| word == only)) {
            continue;
        }
        let name = shown(case.command);
        if !wanted(&name) {
            continue;
        }
        let operations = setup.scaled(case.operations);
        let command: Vec<&str> = case.command.split(' ').collect();
        let run = Run {
            command: &command,
            operations,
            clients: 50,
            pipeline: 100,
            keep_alive: true,
            keys: operations,
        };
        let mut rates: Vec<Vec<Rate>> = servers.iter().map(|_| Vec::new()).collect();
        for round in 0..setup.rounds {
            for i in 0..servers.len() {
                let i = (i + round) % servers.len();
                if let Some(template) = case.before {
                    let words = |i| fill_in(template, i).split(' ').map(str::to_owned).collect();
                    // If the peer does not know the command, it needs no elements for it.
                    send_commands(servers[i], (0..operations + SPARE).map(words))?;
                }
                if is_known(servers[i], &command)? {
                    rates[i].push(benchmark(servers[i], &run)?);
                }
            }
        }
        let cpu = |i: usize| median(&rates[i].iter().map(|r| r.cpu_us).collect::<Vec<_>>());
        let theirs = servers.len() - 1;
        report.add(Row {
            what: name,
            unit: "µs of CPU time",
            ours: cpu(0),
            theirs: (!rates[theirs].is_empty()).then(|| cpu(theirs)),
            limit,
        });
    }
    for (name, reason) in UNMEASURED {
        eprintln!("bench: not measured: {name}: {reason}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_command_has_a_case_or_a_reason_to_have_none() {
        assert_eq!(missing(), Vec::<String>::new());
    }
}
