//! The checks and measurements that start servers. `cargo xtask TASK …` builds this program and runs it. The gate runs
//! the program that its own build has produced. `cargo xtask help` lists the tasks.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool speaks on standard output")]

mod access;
mod bench;
mod book;
mod cargo;
mod cluster;
mod diff;
mod documents;
mod hostile;
mod instructions;
mod options;
mod outcome;
mod package;
mod race;
mod readme;
mod references;

use options::Options;
use outcome::Outcome;
use std::process::ExitCode;

const HELP: &str = "\
checks diff [--seed N] …       sends the same commands to our server and to Redis, and compares the replies
checks acl [--pairs N] …       compares the permissions of random users in both servers
checks cluster failover …      kills primaries: time without a primary, lost writes, digests
checks cluster nemesis …       kills, stops and cuts off nodes and members of etcd while clients write
checks cluster formation …     time until nodes form a cluster, and until all nodes see a change
checks race [--operations N] … checks that the histories of clients on shared keys are linearizable
checks hostile [--minutes N] …  runs one server with a hostile primary, hostile replicas and hostile clients
checks instructions [--update] compares instructions per operation with the recorded numbers
checks package [--check]       builds packages, archive, SBOM and checksums; installs them in a clean Debian
checks documents               runs the command lines of the user documents in a clean Debian
checks readme                  checks that the README's first command starts a server
checks book                    builds the book from the pages in docs and checks its links
checks references              writes the references for users from the tables in the code
checks bench <case|all> …      compares our server with a peer; `bench list` lists the cases
checks speed                   compares every data command with the build of a recorded commit

diff options:
  --seed N | --seeds A..B   random seeds (B excluded); default 1
  --commands M              commands per seed; default 100000
  --sample                  as in CI: 4 seeds, 20000 commands in total
  --resp 2|3|both           protocol; default both, alternating by episode
  --pipeline N              commands sent before replies are read; default 100
  --episode N               starts with this episode, to reproduce a failure
  --only a,b*               only these commands
  --without a,b*            all but these commands
  --ours  redis|brisk|PATH|HOST:PORT    default brisk
  --theirs …                            default redis
  --table brisk|reference   table to draw commands from; default brisk
acl options:
  --seed N (1)  --pairs M (100000)  --ours, --theirs, --only, --without as for diff
cluster options:
  --rounds N (20; formation: 5)  --ttl SECONDS (5)  --coordinator local|etcd (local)
  --members N (3)           members of etcd
  failover: --seed N (1)    --peer redis: alternates with a cluster of redis-server
  formation: --changes N (200)
  nemesis: --seed N (1); always on 3 members of etcd, --ttl 3
race options:
  --operations N (100000)   a transaction or script counts as one
  --workers W (2,4)         one run for each number
  --seed N (1)  --groups G (3)  --clients C (5, per group)  --ours redis|brisk
hostile options:
  --minutes N (1)  --seed N (1): of the first round; each round has its own seed
bench options:
  --rounds N (5)  --ours PROGRAM  --scale X (1.0)
  --peer PROGRAM (redis-server): repeated, the cases are measured next to each peer
  --save FILE               writes all results, from which `references` generates tables
  --resume                  continues an interrupted run: measures only the cases that FILE lacks
  --part NAME, --only a,b*  selects a part of a case; see `bench list`
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let task = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    let result = match task.as_str() {
        // The package and document checks call these two in a clean Debian.
        "inside" => package::inside(&words).map(Outcome::from),
        "systemctl" => package::unit::systemctl(&words).map(Outcome::from),
        _ => chosen(&task, words.into_iter()),
    };
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            eprintln!("checks {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the named task.
fn chosen(task: &str, words: impl Iterator<Item = String>) -> anyhow::Result<Outcome> {
    let options = Options::parse(words)?;
    let passed = match task {
        "cluster" => return cluster::main(&options),
        "documents" => return documents::main(),
        "instructions" => return instructions::main(&options),
        "package" => return package::main(&options),
        "acl" => access::main(&options),
        "bench" => bench::main(&options),
        "book" => book::main(),
        "diff" => diff::main(&options),
        "hostile" => hostile::main(&options),
        "race" => race::main(&options),
        "readme" => readme::main(),
        "references" => references::main(),
        "speed" => bench::recorded::compare_with_recorded(),
        _ => {
            println!("{HELP}");
            Ok(task == "help")
        }
    };
    passed.map(Outcome::from)
}
