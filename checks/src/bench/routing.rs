//! The cost of cluster mode per command: one node that serves every slot, compared with the same server without cluster
//! mode. Here "peer" is the server without cluster mode.

use super::Setup;
use super::load::{Run, fill};
use super::report::{Limit, Report};
use super::sides::{Sides, ours};
use super::throughput::compare;
use anyhow::{Result, ensure};
use brisk_testkit::wait::holds_within;
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const KEY: &str = "key:__rand_int__";
/// The largest ratio of the CPU time with cluster mode on to that with it off.
const LIMIT: Limit = Limit::Ratio(1.02);
/// The time limit for one node to form its cluster.
const FORMED_WITHIN: Duration = Duration::from_secs(30);

/// SET and GET, pipelined and one at a time.
pub(crate) fn routing(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let on = ours(setup, 1)?.set("cluster-enabled", "yes").set("cluster-init-shards", "1");
    let on = on.try_start().map_err(anyhow::Error::msg)?;
    let off = ours(setup, 1)?.try_start().map_err(anyhow::Error::msg)?;
    let mut conn = on.connect();
    let is_ok = || conn.cmd("CLUSTER INFO").text().contains("cluster_state:ok");
    ensure!(holds_within(FORMED_WITHIN, is_ok), "no cluster:\n{}", on.log());
    let sides = Sides { ours: vec![(String::new(), on)], theirs: off };
    for server in sides.all() {
        fill(server, 0, KEYS, 3)?;
    }
    for (pipeline, operations) in [(1, 200_000), (100, 4_000_000)] {
        for (name, command) in [("SET", &["SET", KEY, "xxx"][..]), ("GET", &["GET", KEY])] {
            let operations = setup.scaled(operations);
            let run =
                Run { command, operations, clients: 50, pipeline, keep_alive: true, keys: KEYS };
            let what =
                format!("{name}, pipeline depth {pipeline}, cluster mode compared with none");
            compare(setup, &sides, &what, &run, LIMIT, report)?;
        }
    }
    Ok(())
}
