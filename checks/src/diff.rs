//! `cargo xtask diff`: the differential runner from the command line.

use crate::options::Options;
use anyhow::{Context, Result, bail};
use brisk_differential::{self as diff, reference, table::Table};
use brisk_testkit::server::{Launch, Program, Server, workspace_root};
use std::path::Path;
use std::time::Instant;

/// A server to compare: one that this program started, or one that is already running.
pub(crate) enum Side {
    Started(Server),
    Running(String),
}

impl Side {
    pub(crate) fn of(text: &str) -> Result<Side> {
        let program = match text {
            "brisk" => Program::Brisk,
            "redis" => Program::Redis,
            path if Path::new(path).is_file() => Program::At(path.into()),
            address if address.contains(':') => return Ok(Side::Running(address.to_owned())),
            other => bail!("{other} is neither brisk, redis, a program nor HOST:PORT"),
        };
        let is_redis = program == Program::Redis;
        let mut launch = Launch::new(program);
        if is_redis {
            // Blocked clients of Redis time out only when its timer runs next.
            launch = launch.set("hz", "500");
        }
        launch.try_start().map(Side::Started).map_err(anyhow::Error::msg)
    }

    pub(crate) fn address(&self) -> String {
        match self {
            Side::Started(server) => server.address(),
            Side::Running(address) => address.clone(),
        }
    }

    fn log(&self) -> String {
        match self {
            Side::Started(server) => server.log(),
            Side::Running(_) => String::new(),
        }
    }
}

/// Runs the requested streams; `Ok(false)` after a finding.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let (seeds, commands) = if options.has("sample") {
        (1..5, 5_000)
    } else {
        let seeds = match options.text("seeds") {
            Some(range) => {
                let (from, to) = range.split_once("..").context("--seeds wants A..B")?;
                from.parse()?..to.parse()?
            }
            None => {
                let seed: u64 = options.number("seed", 1)?;
                seed..seed + 1
            }
        };
        (seeds, options.number("commands", 100_000)?)
    };
    let mut run = diff::Options {
        commands,
        pipeline: options.number("pipeline", 100)?,
        first_episode: options.number("episode", 0)?,
        ..diff::Options::default()
    };
    run.resp = match options.text("resp").unwrap_or("both") {
        "2" => vec![2],
        "3" => vec![3],
        "both" => vec![2, 3],
        other => bail!("--resp {other}: wants 2, 3 or both"),
    };
    let table = table(options)?;
    let ours = Side::of(options.text("ours").unwrap_or("brisk")).context("our server")?;
    let theirs = Side::of(options.text("theirs").unwrap_or("redis")).context("their server")?;
    println!("drawing from {} commands", table.rows.len());
    let begun = Instant::now();
    let mut total = 0;
    for seed in seeds {
        run.seed = seed;
        let found = diff::run(&table, &ours.address(), &theirs.address(), &run, |_| {})?;
        if let Some(finding) = found {
            println!("{finding}");
            let log = ours.log();
            let tail: Vec<&str> = log.lines().rev().take(10).collect();
            println!(
                "end of our server's log:\n{}",
                tail.into_iter().rev().collect::<Vec<_>>().join("\n")
            );
            println!(
                "If both servers are right, add a row with its reason to crates/differential/src/rules.rs."
            );
            return Ok(false);
        }
        total += commands;
        println!("seed {seed}: {commands} commands, no difference");
    }
    let rate = total as f64 / begun.elapsed().as_secs_f64();
    println!("{total} commands agree ({rate:.0} per second)");
    Ok(true)
}

pub(crate) fn table(options: &Options) -> Result<Table> {
    let mut table = match options.text("table").unwrap_or("brisk") {
        "brisk" => {
            let mut table = Table::default();
            table.add(brisk_engine::commands::all());
            table.add(brisk_server::commands::all());
            table
        }
        "reference" => {
            reference::read(&workspace_root().join("tests/data/redis-7.0.15.commands.json"))?
        }
        other => bail!("--table {other}: wants brisk or reference"),
    };
    let listed = |name: &str, list: &str| {
        list.split(',').any(|row| match row.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == row,
        })
    };
    if let Some(list) = options.text("only") {
        table.retain(|name| listed(name, list));
    }
    if let Some(list) = options.text("without") {
        table.retain(|name| !listed(name, list));
    }
    Ok(table)
}
