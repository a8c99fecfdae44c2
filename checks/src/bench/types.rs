//! Lists, sets, sorted sets, hashes, streams: CPU time per command and memory per element. (M1-M3)

use super::Setup;
use super::load::{Rate, Run, benchmark, send_commands};
use super::report::{Limit, Report, Row, median};
use super::sides::Sides;
use anyhow::Result;
use brisk_testkit::server::Server;

/// A command to measure, with the preparation of its keys.
struct Measured {
    name: &'static str,
    prepare: fn(&Server) -> Result<()>,
    /// In redis-benchmark's format; `__rand_int__` is less than [`NUMBERS`].
    command: &'static str,
    operations: u64,
    limit: f64,
}

const PIPELINE: u32 = 100;
const NUMBERS: u64 = 1_000_000;

/// Creates a key of each type with 100 elements, for read commands.
fn hundred(server: &Server) -> Result<()> {
    let members = || (0..100).map(|i| format!("member:{i:04}"));
    send_commands(server, members().map(|m| vec!["RPUSH".into(), "list".into(), m]))?;
    send_commands(server, members().map(|m| vec!["HSET".into(), "hash".into(), m.clone(), m]))?;
    let scored = members().enumerate();
    send_commands(
        server,
        scored.map(|(i, m)| vec!["ZADD".into(), "zset".into(), i.to_string(), m]),
    )?;
    let entries = members().enumerate();
    let entry =
        |(i, m)| vec!["XADD".into(), "stream".into(), format!("{}-1", i + 1), "f".into(), m];
    send_commands(server, entries.map(entry))
}

fn thousands(server: &Server) -> Result<()> {
    let words = |key: &'static str, step: usize| {
        (0..1000).map(move |i| vec!["SADD".into(), key.into(), format!("member:{}", i * step)])
    };
    send_commands(server, words("set:a", 2).chain(words("set:b", 3)))?;
    send_commands(
        server,
        (0..1000u64)
            .map(|i| vec!["RPUSH".into(), "numbers".into(), (i * 7919 % 100_003).to_string()]),
    )
}

fn places(server: &Server) -> Result<()> {
    let place = |i: u64| {
        let east = 2.0 + (i * 7919 % 10_000) as f64 / 2500.0;
        let north = 46.0 + (i * 104_729 % 10_000) as f64 / 2500.0;
        vec![
            "GEOADD".into(),
            "geo".into(),
            east.to_string(),
            north.to_string(),
            format!("place:{i}"),
        ]
    };
    send_commands(server, (0..10_000).map(place))
}

fn million_members(server: &Server) -> Result<()> {
    let member = |i: u64| {
        let score = (i * 7919 % 1_000_003).to_string();
        vec!["ZADD".into(), "large".into(), score, format!("element:{i:012}")]
    };
    send_commands(server, (0..1_000_000).map(member))
}

fn nothing(_: &Server) -> Result<()> {
    Ok(())
}

/// A list for RPOP and LPOP to consume.
fn long_list(server: &Server) -> Result<()> {
    let batch = |_| {
        let mut words = vec!["RPUSH".to_owned(), "mylist".to_owned()];
        words.extend((0..100).map(|i| format!("element-{i}")));
        words
    };
    send_commands(server, (0..60_000).map(batch))
}

const COMMANDS: &[Measured] = &[
    row("LPUSH", nothing, "LPUSH mylist xxx", 1_000_000, 0.5),
    row("RPUSH", nothing, "RPUSH mylist xxx", 1_000_000, 0.5),
    row("RPOP", long_list, "RPOP mylist", 500_000, 0.5),
    row("LPOP", nothing, "LPOP mylist", 500_000, 0.5),
    row("SADD", nothing, "SADD myset element:__rand_int__", 1_000_000, 0.5),
    row("SPOP", nothing, "SPOP myset", 500_000, 1.0),
    row("HSET", nothing, "HSET myhash element:__rand_int__ xxx", 1_000_000, 0.5),
    row("HGET", nothing, "HGET myhash element:__rand_int__", 1_000_000, 1.0),
    row("HINCRBY", nothing, "HINCRBY counters field:__rand_int__ 1", 500_000, 1.0),
    row(
        "ZADD, 1,000,000 members",
        million_members,
        "ZADD large 50000 element:__rand_int__",
        500_000,
        0.4,
    ),
    row("ZSCORE", nothing, "ZSCORE large element:__rand_int__", 500_000, 1.0),
    row("ZRANK", nothing, "ZRANK large element:__rand_int__", 500_000, 1.0),
    row("ZINCRBY", nothing, "ZINCRBY large 3 element:__rand_int__", 500_000, 1.0),
    row("LRANGE of 100", hundred, "LRANGE list 0 99", 100_000, 0.7),
    row("HGETALL of 100", nothing, "HGETALL hash", 50_000, 0.7),
    row("ZRANGEBYSCORE of 100", nothing, "ZRANGEBYSCORE zset 0 99", 50_000, 0.7),
    row("XRANGE of 100", nothing, "XRANGE stream - +", 20_000, 0.7),
    row("XADD", nothing, "XADD events MAXLEN ~ 100000 * field value", 500_000, 0.7),
    row("SMEMBERS of 1,000", thousands, "SMEMBERS set:a", 5_000, 1.0),
    row("SINTER of 2 x 1,000", nothing, "SINTER set:a set:b", 5_000, 0.7),
    row("SUNION of 2 x 1,000", nothing, "SUNION set:a set:b", 3_000, 1.0),
    row("SORT of 1,000", nothing, "SORT numbers", 3_000, 0.7),
    row("GEOSEARCH", places, "GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 20 km ASC", 10_000, 0.7),
    row("SETBIT", nothing, "SETBIT bits 7999999 1", 1_000_000, 1.0),
    row("BITCOUNT", nothing, "BITCOUNT bits", 20_000, 1.0),
    row("PFADD", nothing, "PFADD hll element:__rand_int__", 500_000, 1.0),
    row("PFCOUNT", nothing, "PFCOUNT hll", 500_000, 1.0),
];

const fn row(
    name: &'static str,
    prepare: fn(&Server) -> Result<()>,
    command: &'static str,
    operations: u64,
    limit: f64,
) -> Measured {
    Measured { name, prepare, command, operations, limit }
}

/// Every command of the table, pipelined, compared with the peer.
pub(crate) fn commands(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sides = Sides::start(setup)?;
    let servers = sides.all();
    let only = setup.options.text("only").map(str::to_ascii_lowercase);
    for measured in COMMANDS {
        // Prepare even commands that are not selected, because later ones may need their keys.
        servers.iter().try_for_each(|server| (measured.prepare)(server))?;
        if only.as_ref().is_some_and(|only| !measured.name.to_ascii_lowercase().contains(only)) {
            continue;
        }
        let command: Vec<&str> = measured.command.split(' ').collect();
        let run = Run {
            command: &command,
            operations: setup.scaled(measured.operations),
            clients: 50,
            pipeline: PIPELINE,
            keep_alive: true,
            keys: NUMBERS,
        };
        let mut rates: Vec<Vec<Rate>> = servers.iter().map(|_| Vec::new()).collect();
        for round in 0..setup.rounds {
            for i in 0..servers.len() {
                let i = (i + round) % servers.len();
                rates[i].push(benchmark(servers[i], &run)?);
            }
        }
        let cpu = |i: usize| median(&rates[i].iter().map(|r| r.cpu_us).collect::<Vec<_>>());
        report.add(Row {
            what: measured.name.to_owned(),
            unit: "µs of CPU time",
            ours: cpu(0),
            theirs: Some(cpu(servers.len() - 1)),
            limit: Limit::Ratio(measured.limit),
        });
    }
    Ok(())
}

/// Elements of one kind: many keys with this number of elements each.
struct Kept {
    name: &'static str,
    keys: u64,
    elements: u64,
    /// The arguments of one element.
    words: fn(key: u64, element: u64) -> Vec<String>,
    limit: Limit,
}

const ELEMENTS: &[Kept] = &[
    Kept {
        name: "10,000 hashes of 100 fields",
        keys: 10_000,
        elements: 100,
        words: |k, i| vec!["HSET".into(), format!("h:{k}"), format!("field:{i}"), format!("v{i}")],
        limit: Limit::Ratio(1.0),
    },
    // There are ten times as many keys, over which the cost of the first key in each of the 16,384 slots is spread.
    Kept {
        name: "100,000 hashes of 100 fields",
        keys: 100_000,
        elements: 100,
        words: |k, i| vec!["HSET".into(), format!("h:{k}"), format!("field:{i}"), format!("v{i}")],
        limit: Limit::None,
    },
    Kept {
        name: "100,000 hashes of 10 fields",
        keys: 100_000,
        elements: 10,
        words: |k, i| vec!["HSET".into(), format!("h:{k}"), format!("field:{i}"), format!("v{i}")],
        limit: Limit::None,
    },
    Kept {
        name: "1,000 hashes of 1,000 fields",
        keys: 1_000,
        elements: 1_000,
        words: |k, i| vec!["HSET".into(), format!("H:{k}"), format!("field:{i}"), format!("v{i}")],
        limit: Limit::Ratio(0.6),
    },
    Kept {
        name: "1,000 sorted sets of 1,000 members",
        keys: 1_000,
        elements: 1_000,
        words: |k, i| {
            let score = (i * 7919 % 1009).to_string();
            vec!["ZADD".into(), format!("z:{k}"), score, format!("member:{i:03}")]
        },
        limit: Limit::Most(45.0),
    },
    Kept {
        name: "1,000 sets of 1,000 strings",
        keys: 1_000,
        elements: 1_000,
        words: |k, i| vec!["SADD".into(), format!("s:{k}"), format!("member:{i:03}")],
        limit: Limit::Ratio(0.6),
    },
    Kept {
        name: "1,000 lists of 1,000 small integers",
        keys: 1_000,
        elements: 1_000,
        words: |k, i| vec!["RPUSH".into(), format!("l:{k}"), i.to_string()],
        limit: Limit::Ratio(1.0),
    },
    Kept {
        name: "a list of 1,000,000 small integers",
        keys: 1,
        elements: 1_000_000,
        words: |k, i| vec!["RPUSH".into(), format!("numbers:{k}"), (i % 1000).to_string()],
        limit: Limit::Most(4.0),
    },
];

/// Number of elements of a collection that is created before memory is measured, because memory that a server maps and
/// allocates for its first commands does not belong to the elements.
const WARM_UP_ELEMENTS: u64 = 1_000;

/// RSS per element of many collections.
pub(crate) fn elements(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    for kept in ELEMENTS {
        let sides = Sides::start(setup)?;
        let bytes = sides.all().into_iter().map(|server| {
            let fill = |key, elements| {
                send_commands(server, (0..elements).map(|element| (kept.words)(key, element)))
            };
            fill(kept.keys, kept.elements.min(WARM_UP_ELEMENTS))?;
            let before = server.rss();
            (0..kept.keys).try_for_each(|key| fill(key, kept.elements))?;
            let grown = server.rss().saturating_sub(before);
            Ok(grown as f64 / (kept.keys * kept.elements) as f64)
        });
        let bytes: Vec<f64> = bytes.collect::<Result<_>>()?;
        report.add(Row {
            what: kept.name.to_owned(),
            unit: "bytes per element",
            ours: bytes[0],
            theirs: bytes.last().copied(),
            limit: kept.limit,
        });
    }
    Ok(())
}
