//! `cargo xtask instructions`: compares instruction counts per operation with a record. Unlike times, the counts do not
//! depend on the clock or on other load.
//!
//! The server runs under callgrind with one worker, and one client sends a fixed sequence of requests. The numbers of
//! instructions per operation are compared with those in `instructions.tsv`. An increase by more than [`TOLERANCE`]
//! fails. A decrease must be recorded, so that it is kept. `--update` writes the record. Commit the new record together
//! with the change that caused it.
//!
//! Only user-mode code is counted, including the C library and the allocator. Compilers and C libraries differ, so the
//! record names the versions with which it was made. With other versions, nothing is compared.

use crate::bench::sides::release_binary;
use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::{Context, Result, bail, ensure};
use brisk_testkit::server::{Launch, Program, workspace_root};
use brisk_testkit::{Conn, Server};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The relative increase that is accepted. Two counts of the same program differ by less than a third of this.
const TOLERANCE: f64 = 0.03;
/// Number of keys from which `{n}` is drawn.
const KEYS: u64 = 10_000;
/// Number of pipelines that are sent before the counted ones.
const WARM_UP: usize = 2;

/// One operation at one pipeline depth.
struct Case {
    name: &'static str,
    /// `{n}` is a new random number each time.
    request: &'static str,
    pipeline: usize,
    operations: usize,
}

const fn case(
    name: &'static str,
    request: &'static str,
    pipeline: usize,
    operations: usize,
) -> Case {
    Case { name, request, pipeline, operations }
}

/// The cases. They have enough operations to make the instructions of timers, which depend on the clock, negligible.
const CASES: &[Case] = &[
    case("PING P1", "PING", 1, 5_000),
    case("GET P1", "GET key:{n}", 1, 5_000),
    case("GET P16", "GET key:{n}", 16, 16_000),
    case("GET P100", "GET key:{n}", 100, 30_000),
    case("SET P1", "SET key:{n} xxx", 1, 5_000),
    case("SET P16", "SET key:{n} xxx", 16, 16_000),
    case("SET P100", "SET key:{n} xxx", 100, 30_000),
    case("INCR P100", "INCR counter:{n}", 100, 30_000),
    case("MSET of 3 P100", "MSET key:{n} a other:{n} b third:{n} c", 100, 10_000),
    case("LPUSH P100", "LPUSH list xxx", 100, 30_000),
    case("RPOP P100", "RPOP list", 100, 20_000),
    case("LRANGE of 100 P16", "LRANGE list:100 0 99", 16, 1_600),
    case("SADD P100", "SADD set member:{n}", 100, 30_000),
    case("HSET P100", "HSET hash field:{n} xxx", 100, 30_000),
    case("HGETALL of 100 P16", "HGETALL hash:100", 16, 1_600),
    case("ZADD P100", "ZADD zset {n} member:{n}", 100, 30_000),
    case("ZRANGEBYSCORE of 100 P16", "ZRANGEBYSCORE zset 1000 1e9 LIMIT 0 100", 16, 1_600),
    case("XADD P100", "XADD stream MAXLEN 1000 * field xxx", 100, 20_000),
    case("EVAL of GET P16", "EVAL \"return redis.call('GET', KEYS[1])\" 1 key:{n}", 16, 4_800),
    case("INFO P1", "INFO", 1, 1_000),
];

/// The dataset before the first case.
fn prepare(conn: &mut Conn) {
    let mut lines: Vec<String> = Vec::new();
    lines.extend((0..KEYS).map(|n| format!("SET key:{n:012} xxx")));
    let many = |each: &dyn Fn(u64) -> String| -> String { (0..100).map(each).collect() };
    lines.push(format!("RPUSH list:100{}", many(&|n| format!(" element:{n}"))));
    lines.push(format!("HSET hash:100{}", many(&|n| format!(" field:{n} value:{n}"))));
    for chunk in lines.chunks(100) {
        conn.pipeline(&chunk.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Counts the instructions, and compares them with the record or writes the record. Fails if an operation takes more
/// instructions than recorded. If the record was made with different tools, nothing is compared.
#[expect(clippy::print_stdout, reason = "the report is the output of the command")]
pub(crate) fn main(options: &Options) -> Result<Outcome> {
    let counted = count()?;
    let made_with = made_with()?;
    let path = workspace_root().join("checks/src/instructions.tsv");
    if options.has("update") {
        let mut text = format!("# {made_with}\n");
        for (case, instructions) in CASES.iter().zip(&counted) {
            writeln!(text, "{}\t{instructions:.0}", case.name)?;
        }
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    let record = Record::parse(&fs::read_to_string(&path).context("no record; use --update")?)?;
    let comparable = record.made_with == made_with;
    let mut kept = true;
    println!("{:28} {:>9} {:>9}", "operation", "now", "on record");
    for (case, now) in CASES.iter().zip(counted) {
        let verdict = match record.instructions.get(case.name) {
            None => {
                kept = false;
                "is not on record".to_owned()
            }
            Some(before) => {
                let change = now / before - 1.0;
                kept &= !comparable || change <= TOLERANCE;
                let word = match change {
                    _ if !comparable => "",
                    increase if increase > TOLERANCE => "DEARER",
                    cheaper if cheaper < -TOLERANCE => "cheaper: update the record",
                    _ => "",
                };
                format!("{before:9.0} {:+5.1} % {word}", change * 100.0)
            }
        };
        println!("{:28} {now:9.0} {verdict}", case.name);
    }
    if !comparable {
        println!("nothing is compared: on record is {}, here {made_with}", record.made_with);
    }
    Ok(if kept && !comparable { Outcome::Skipped } else { kept.into() })
}

/// The earlier counts, and the tools that produced them.
struct Record {
    made_with: String,
    instructions: BTreeMap<String, f64>,
}

impl Record {
    fn parse(text: &str) -> Result<Record> {
        let (first, rest) = text.split_once('\n').context("the record is empty")?;
        let made_with = first.strip_prefix("# ").context("no first line")?.to_owned();
        let line = |line: &str| -> Result<(String, f64)> {
            let (name, number) = line.split_once('\t').with_context(|| line.to_owned())?;
            Ok((name.to_owned(), number.parse().with_context(|| line.to_owned())?))
        };
        Ok(Record { made_with, instructions: rest.lines().map(line).collect::<Result<_>>()? })
    }
}

/// The number of instructions per operation for each case.
fn count() -> Result<Vec<f64>> {
    let dir = std::env::temp_dir().join(format!("brisk-instructions-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let out = dir.join("callgrind.out");
    let option = format!("--callgrind-out-file={}", out.display());
    let valgrind = ["valgrind", "--quiet", "--tool=callgrind", &option];
    let server = Launch::new(Program::At(release_binary()?))
        .set("threads", "1")
        .set("io-backend", "epoll")
        .under(&valgrind)
        .try_start()
        .map_err(anyhow::Error::msg)
        .context("is valgrind installed?")?;
    let mut conn = server.connect();
    prepare(&mut conn);
    let mut counted = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        counted.push(count_one(&server, &mut conn, case, &out, at + 1).context(case.name)?);
    }
    drop(server);
    fs::remove_dir_all(&dir)?;
    Ok(counted)
}

/// Counts one case. `part` is the number of earlier readings of the counter, by which callgrind numbers its files.
fn count_one(
    server: &Server,
    conn: &mut Conn,
    case: &Case,
    out: &Path,
    part: usize,
) -> Result<f64> {
    let mut random = 88_172_645_463_325_252u64;
    let mut pipeline = || -> Vec<String> {
        let mut number = || {
            // Marsaglia's xorshift.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            format!("{:012}", random % KEYS)
        };
        (0..case.pipeline).map(|_| case.request.replace("{n}", &number())).collect()
    };
    let mut send = |lines: Vec<String>| -> Result<()> {
        for reply in conn.pipeline(&lines.iter().map(String::as_str).collect::<Vec<_>>()) {
            ensure!(!reply.to_string().starts_with("(error)"), "{reply}");
        }
        Ok(())
    };
    for _ in 0..WARM_UP {
        send(pipeline())?;
    }
    request_callgrind(server, "zero")?;
    let pipelines = case.operations / case.pipeline;
    for _ in 0..pipelines {
        send(pipeline())?;
    }
    request_callgrind(server, "dump")?;
    let part = PathBuf::from(format!("{}.{part}", out.display()));
    let text = fs::read_to_string(&part).with_context(|| part.display().to_string())?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    let total: f64 = total.context("callgrind reported no sum")?.trim().parse()?;
    Ok(total / (pipelines * case.pipeline) as f64)
}

fn request_callgrind(server: &Server, what: &str) -> Result<()> {
    let done = Command::new("vgdb").arg(format!("--pid={}", server.pid())).arg(what).output()?;
    if !done.status.success() {
        bail!("vgdb {what}: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}

/// The versions on which the counts depend, in addition to our code.
fn made_with() -> Result<String> {
    let first_line = |program: &str, argument: &str| -> Result<String> {
        let done = Command::new(program).arg(argument).output();
        let text = done.with_context(|| format!("cannot run {program}"))?.stdout;
        Ok(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned())
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let vectors: Vec<&str> = ["avx2", "avx512f", "erms", "fsrm"]
        .into_iter()
        .filter(|flag| cpu.split_whitespace().any(|word| word == *flag))
        .collect();
    Ok(format!(
        "{}, {}, {}, {}",
        first_line("rustc", "--version")?,
        first_line("ldd", "--version")?,
        first_line("valgrind", "--version")?,
        vectors.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_its_toolchain_and_each_count() {
        let record = Record::parse("# rustc 1, libc 2\nGET P1\t2500\nPING P1\t1200\n").unwrap();
        assert_eq!(record.made_with, "rustc 1, libc 2");
        assert_eq!(record.instructions["GET P1"], 2500.0);
        assert_eq!(record.instructions.len(), 2);
        assert!(Record::parse("").is_err() && Record::parse("# x\nGET 2500\n").is_err());
    }
}
