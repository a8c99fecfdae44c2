//! The limits that Brisk promises in comparison with Redis: server CPU time per request for many commands and loads,
//! and memory per element (`kept`).

use super::crowd::{Crowd, SETTLING};
use super::finding::Measurement;
use super::kept;
use super::stage::{Filler, Size, Stage, measure};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;
use crate::load::tag::Tag;
use crate::subject::Subject;
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "figures",
    title: "CPU per request, and memory per element",
    what: "Server CPU per request: single requests, pipelines, many clients, connections for one \
           request, and commands for all types in pipelines of 100, with 1,000,000 keys. Then the \
           growth of the process per key or element. In parentheses: Brisk's limit with one worker \
           (`--threads 1`), as a ratio to Redis or in bytes.",
    run,
};

/// Upper bound for random keys and other numbers.
const NUMBERS: u64 = 1_000_000;
const IDLE: usize = 9999;
/// A short run divides the number of requests by this.
const SHORT_PART: u64 = 8;

/// A measured load.
struct Case {
    /// The arguments, in which `__rand_int__` is a new number for every request.
    command: &'static str,
    load: Load,
    requests: u64,
    /// The maximum allowed ratio to Redis.
    at_most: f64,
}

/// The clients that send the command.
#[derive(Clone, Copy)]
enum Load {
    /// 50 clients with this pipeline depth.
    Depth(usize),
    /// This number of clients, with one request at a time.
    Clients(usize),
    /// This number of clients that connect for each request.
    Reconnecting(usize),
    /// 50 clients with one request at a time, while thousands of other clients are idle.
    NextToIdle,
}

const fn case(command: &'static str, load: Load, requests: u64, at_most: f64) -> Case {
    Case { command, load, requests, at_most }
}

/// The cases in the order in which they run. Some use data that earlier ones have written.
const CASES: &[Case] = &[
    case("PING", Load::Depth(1), 200_000, 1.0),
    case("GET key:__rand_int__", Load::Depth(1), 200_000, 0.88),
    case("SET key:__rand_int__ xxx", Load::Depth(1), 200_000, 0.88),
    case("GET key:__rand_int__", Load::Depth(16), 1_500_000, 0.55),
    case("SET key:__rand_int__ xxx", Load::Depth(16), 1_500_000, 0.55),
    case("GET key:__rand_int__", Load::Depth(100), 3_000_000, 0.25),
    case("SET key:__rand_int__ xxx", Load::Depth(100), 3_000_000, 0.25),
    case(
        "MSET key:__rand_int__ xxx key:__rand_int__ xxx key:__rand_int__ xxx key:__rand_int__ xxx \
         key:__rand_int__ xxx key:__rand_int__ xxx key:__rand_int__ xxx key:__rand_int__ xxx \
         key:__rand_int__ xxx key:__rand_int__ xxx",
        Load::Depth(100),
        400_000,
        0.3,
    ),
    case("GET key:__rand_int__", Load::Clients(8000), 300_000, 0.8),
    case("GET key:__rand_int__", Load::Reconnecting(50), 40_000, 0.85),
    case("GET key:__rand_int__", Load::Reconnecting(1000), 40_000, 0.85),
    case("GET key:__rand_int__", Load::Reconnecting(8000), 80_000, 0.85),
    case("INFO", Load::Depth(1), 60_000, 0.6),
    case("INFO", Load::NextToIdle, 60_000, 0.6),
    case("LPUSH mylist xxx", Load::Depth(100), 1_500_000, 0.5),
    case("RPUSH mylist xxx", Load::Depth(100), 1_500_000, 0.5),
    case("RPOP mylist", Load::Depth(100), 1_500_000, 0.5),
    case("LPOP mylist", Load::Depth(100), 1_500_000, 0.5),
    case("SADD myset element:__rand_int__", Load::Depth(100), 1_000_000, 0.5),
    case("HSET myhash element:__rand_int__ xxx", Load::Depth(100), 1_000_000, 0.5),
    case("ZADD large __rand_int__ element:__rand_int__", Load::Depth(100), 600_000, 0.4),
    case("LRANGE list 0 99", Load::Depth(100), 200_000, 0.7),
    case("HGETALL hash", Load::Depth(100), 100_000, 0.7),
    case("ZRANGEBYSCORE zset 0 99", Load::Depth(100), 100_000, 0.7),
    case("XRANGE stream - +", Load::Depth(100), 40_000, 0.7),
    case("XADD events MAXLEN ~ 100000 * field value", Load::Depth(100), 600_000, 0.7),
    case("SINTER set:a set:b", Load::Depth(100), 20_000, 0.7),
    case("SORT numbers", Load::Depth(100), 8_000, 0.7),
    case("GEOSEARCH geo FROMLONLAT 4 48 BYRADIUS 20 km ASC", Load::Depth(100), 30_000, 0.7),
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = stage.turns(
        &[],
        |subject, _| fill(subject),
        |subject, size| CASES.iter().map(|case| case.measurement(subject, size)).collect(),
    )?;
    rows.extend(kept::rows(stage)?);
    Ok(rows.into())
}

impl Case {
    fn measurement(&self, subject: &Subject, size: &Size) -> Result<Measurement, String> {
        let material = Material { keyspace: Some(NUMBERS), ..Material::default() };
        let words: Vec<&str> = self.command.split(' ').collect();
        let workload = material.own(self.command.to_owned(), &words);
        let (clients, pipeline, keep_alive) = match self.load {
            Load::Depth(depth) => (50, depth, true),
            Load::Clients(clients) => (clients, 1, true),
            Load::Reconnecting(clients) => (clients, 1, false),
            Load::NextToIdle => (50, 1, true),
        };
        let crowd = matches!(self.load, Load::NextToIdle).then(|| Crowd::connect(subject, IDLE));
        let crowd = crowd.transpose()?;
        let plan = Plan {
            clients,
            pipeline,
            keep_alive,
            warmup: if crowd.is_some() { SETTLING } else { Duration::from_millis(100) },
            end: End::Requests(size.pick(self.requests / SHORT_PART, self.requests)),
            ..size.plan(workload, &subject.target)
        };
        let cpu = measure(&plan, subject).map_err(|error| format!("{}: {error}", self.command))?;
        Ok(Measurement::less(self.title(), "us", cpu.cpu_us))
    }

    fn title(&self) -> String {
        let command = match self.command.split_once(' ') {
            Some(("MSET", _)) => "MSET of 10",
            _ => self.command,
        };
        let load = match self.load {
            Load::Depth(1) => "one at a time".to_owned(),
            Load::Depth(depth) => format!("pipelines of {depth}"),
            Load::Clients(clients) => format!("{clients} clients"),
            Load::Reconnecting(clients) => format!("{clients} clients, a connection each"),
            Load::NextToIdle => format!("next to {IDLE} idle clients"),
        };
        format!("{command}: {load} ({:.2})", self.at_most)
    }
}

/// Writes the data that the commands need.
fn fill(subject: &Subject) -> Result<(), String> {
    let material = Material { keyspace: Some(NUMBERS), ..Material::default() };
    subject.fill(&material, 1, Tag::default())?;
    let mut filler = Filler::new(subject)?;
    for i in 0..100 {
        let member = format!("member:{i:04}");
        filler.add(&["RPUSH", "list", &member])?;
        filler.add(&["HSET", "hash", &member, &member])?;
        filler.add(&["ZADD", "zset", &i.to_string(), &member])?;
        filler.add(&["XADD", "stream", &format!("{}-1", i + 1), "f", &member])?;
    }
    for i in 0..1000_u32 {
        filler.add(&["SADD", "set:a", &format!("member:{}", i * 2)])?;
        filler.add(&["SADD", "set:b", &format!("member:{}", i * 3)])?;
        filler.add(&["RPUSH", "numbers", &(i * 7919 % 100_003).to_string()])?;
    }
    for i in 0..10_000_u32 {
        let east = 2.0 + f64::from(i * 7919 % 10_000) / 2500.0;
        let north = 46.0 + f64::from(i * 104_729 % 10_000) / 2500.0;
        let place = format!("place:{i}");
        filler.add(&["GEOADD", "geo", &east.to_string(), &north.to_string(), &place])?;
    }
    for i in 0..NUMBERS {
        let score = (i * 7919 % 1_000_003).to_string();
        filler.add(&["ZADD", "large", &score, &format!("element:{i:012}")])?;
    }
    filler.flush()
}
