//! The cost of commands on values of 10,000 elements, compared with the peer.
//!
//! `every` measures all commands on values of 100 elements. This case has the commands whose cost may depend on the
//! size, each in a form that does not change the value. The limit is that of `every`: no command may cost more than in
//! the peer.

use super::Setup;
use super::load::{Run, benchmark, send_commands};
use super::report::{Limit, Report, Row, median};
use super::sides::Sides;
use anyhow::Result;
use brisk_testkit::server::Server;

const ELEMENTS: u64 = 10_000;

/// The intended CPU time of the server per run, in µs.
const RUN_US: f64 = 150_000.0;
/// The number of operations of the first run, from which the number for the other runs is computed. The next constant
/// is the maximum.
const OPERATIONS_MIN: u64 = 50;
const OPERATIONS_MAX: u64 = 200_000;

#[rustfmt::skip]
const CASES: &[&str] = &[
    "LINDEX list 5000", "LSET list 5000 element:000000005000", "LRANGE list 5000 5009",
    "LRANGE list 0 -1", "LPOS list element:000000005000", "LPOS list nothing",
    "LINSERT list BEFORE nothing xxx", "LREM list 1 nothing", "LTRIM list 0 -1",
    "LMOVE list list LEFT RIGHT",
    "SISMEMBER set element:000000005000", "SRANDMEMBER set 10", "SRANDMEMBER set 1000",
    "SRANDMEMBER set 8000", "SRANDMEMBER set -100", "SRANDMEMBER numbers 100", "SMEMBERS set",
    "SMEMBERS numbers", "SSCAN set 0 COUNT 100", "SINTER set set:b", "SINTERCARD 2 set set:b",
    "SINTERCARD 2 set set:b LIMIT 10", "SUNION set set:b", "SDIFF set set:b",
    "SINTERSTORE set:to set set:b", "SUNIONSTORE set:to set set:b", "SDIFFSTORE set:to set set:b",
    "HGET hash element:000000005000", "HSET hash element:000000005000 value:000000005000",
    "HGETALL hash", "HKEYS hash", "HVALS hash", "HRANDFIELD hash 10", "HRANDFIELD hash 1000",
    "HRANDFIELD hash 8000 WITHVALUES", "HRANDFIELD hash -100", "HSCAN hash 0 COUNT 100",
    "ZSCORE zset element:000000005000", "ZRANK zset element:000000005000",
    "ZADD zset 5001 element:000000005000", "ZINCRBY zset:moved 1 element:000000005000",
    "ZRANGE zset 5000 5009", "ZREVRANGE zset 5000 5009 WITHSCORES", "ZRANGE zset 0 -1",
    "ZRANGEBYSCORE zset 5000 5100 LIMIT 10 10", "ZRANGEBYSCORE zset -inf +inf LIMIT 5000 10",
    "ZCOUNT zset 2500 7500", "ZLEXCOUNT lex [element:000000002500 [element:000000007500",
    "ZRANGEBYLEX lex [element:000000005000 + LIMIT 0 10", "ZREVRANGEBYLEX lex + - LIMIT 5000 10",
    "ZRANDMEMBER zset 10", "ZRANDMEMBER zset 1000", "ZRANDMEMBER zset 8000",
    "ZSCAN zset 0 COUNT 100", "ZRANGESTORE zset:to zset 0 -1", "ZUNION 2 zset zset:b",
    "ZINTER 2 zset zset:b", "ZDIFF 2 zset zset:b", "ZUNIONSTORE zset:to 2 zset zset:b",
    "ZINTERSTORE zset:to 2 zset zset:b", "ZINTERCARD 2 zset zset:b", "ZINTER 2 set zset:b",
    "XRANGE stream - + COUNT 10", "XRANGE stream 5000-1 + COUNT 10",
    "XREVRANGE stream 5000-1 - COUNT 10", "XREAD COUNT 10 STREAMS stream 5000-1",
    "XADD capped MAXLEN 10000 * field value", "XADD capped MINID 1-0 * field value",
    "XREADGROUP GROUP group me COUNT 10 STREAMS stream 5000-1", "XPENDING stream group - + 10",
    "XPENDING stream group 5000-1 + 10 me", "XCLAIM stream group you 0 5000-1",
    "XAUTOCLAIM stream group you 0 5000-1 COUNT 10", "XINFO STREAM stream FULL COUNT 10",
    "GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 5 km", "GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 50 km",
    "GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 50 km ASC COUNT 10",
    "GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 50 km COUNT 10 ANY",
    "GEOSEARCH geo FROMLONLAT 4 48 BYBOX 100 100 km",
    "GEOSEARCHSTORE geo:to geo FROMLONLAT 4 48 BYRADIUS 50 km",
    "PFCOUNT hll", "PFCOUNT hll hll:b", "PFMERGE hll:to hll hll:b",
    "BITCOUNT bits", "BITPOS bits 1", "BITOP AND bits:to bits bits", "BITOP NOT bits:to bits",
    "GETRANGE bits 0 -1", "GETBIT bits 500000", "SETBIT bits 500000 1",
    "SORT shuffled", "SORT shuffled LIMIT 0 10", "SORT shuffled ALPHA",
    "SORT shuffled BY weight:*", "SORT shuffled BY weight:* LIMIT 0 10",
    "SORT shuffled BY nosort GET weight:* LIMIT 0 100", "SORT set ALPHA LIMIT 0 10",
    "DUMP list", "DUMP set", "DUMP hash", "DUMP zset", "DUMP stream",
    "COPY list copy REPLACE", "COPY hash copy REPLACE", "COPY zset copy REPLACE",
    "MEMORY USAGE hash", "MEMORY USAGE hash SAMPLES 0", "MEMORY USAGE list",
    "SCAN 0 COUNT 100", "SCAN 0 MATCH weight:*99 COUNT 1000", "KEYS weight:*99", "RANDOMKEY",
];

fn split(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The keys that the commands use.
fn fixtures(server: &Server) -> Result<()> {
    let element = |i: u64| format!("element:{i:012}");
    // The second of two collections shares half of its elements with the first one.
    let other = |i: u64| element(i + ELEMENTS / 2);
    let makes: [&dyn Fn(u64) -> String; 18] = [
        &|i| format!("RPUSH list {}", element(i)),
        &|i| format!("SADD set {}", element(i)),
        &|i| format!("SADD set:b {}", other(i)),
        &|i| format!("SADD numbers {}", i * 7),
        &|i| format!("HSET hash {} value:{i:012}", element(i)),
        &|i| format!("ZADD zset {} {}", i + 1, element(i)),
        &|i| format!("ZADD zset:moved {} {}", i + 1, element(i)),
        &|i| format!("ZADD zset:b {} {}", i + 1, other(i)),
        &|i| format!("ZADD lex 0 {}", element(i)),
        &|i| format!("XADD stream {}-1 field value", i + 1),
        &|i| format!("XADD capped {}-1 field value", i + 1),
        &|i| {
            let (east, north) = (i * 7919 % 10_000, i * 104_729 % 10_000);
            format!(
                "GEOADD geo {}.{east:04} {}.{north:04} place:{i:012}",
                2 + i % 4,
                46 + i / 4 % 4
            )
        },
        &|i| format!("PFADD hll {}", element(i)),
        &|i| format!("PFADD hll:b {}", other(i)),
        &|i| format!("RPUSH shuffled {}", i * 7919 % ELEMENTS),
        &|i| format!("SET weight:{i} {}", i * 104_729 % ELEMENTS),
        // Sets every sixteenth byte.
        &|i| format!("SETRANGE bits {} x", i * 16),
        &|i| format!("SETRANGE bits {} y", i * 16 + 1),
    ];
    for make in makes {
        send_commands(server, (0..ELEMENTS).map(|i| split(&make(i))))?;
    }
    let groups = ["XGROUP CREATE stream group 0", "XREADGROUP GROUP group me STREAMS stream >"];
    send_commands(server, groups.iter().map(|line| split(line)))
}

pub(crate) fn large(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    let servers = sides.all();
    servers.iter().try_for_each(|server| fixtures(server))?;
    let only = setup.options.text("only").map(str::to_ascii_uppercase);
    for case in CASES {
        if only.as_ref().is_some_and(|only| !case.split(' ').any(|word| word == only)) {
            continue;
        }
        let command: Vec<&str> = case.split(' ').collect();
        let run = |operations| Run {
            command: &command,
            operations,
            clients: 10,
            pipeline: 10,
            keep_alive: true,
            keys: 0,
        };
        let mut counts = Vec::new();
        for server in &servers {
            let first = benchmark(server, &run(OPERATIONS_MIN))?.cpu_us.max(0.1);
            let wanted = setup.scaled((RUN_US / first) as u64);
            counts.push(wanted.clamp(OPERATIONS_MIN, OPERATIONS_MAX));
        }
        let mut cpu: Vec<Vec<f64>> = servers.iter().map(|_| Vec::new()).collect();
        for round in 0..setup.rounds {
            for i in 0..servers.len() {
                let i = (i + round) % servers.len();
                cpu[i].push(benchmark(servers[i], &run(counts[i]))?.cpu_us);
            }
        }
        report.add(Row {
            what: format!("`{case}`"),
            unit: "µs of CPU time",
            ours: median(&cpu[0]),
            theirs: Some(median(&cpu[servers.len() - 1])),
            limit: Limit::Ratio(1.0),
        });
    }
    Ok(())
}
