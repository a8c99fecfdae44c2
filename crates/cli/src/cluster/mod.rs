//! `--cluster`: creates and maintains clusters, and moves slots between their nodes.
//!
//! | file | contents |
//! |---|---|
//! | `node.rs` | one node: its connection, and its report about itself |
//! | `view.rs` | all nodes from the viewpoint of one of them; the summary, and the check |
//! | `create.rs` | `create` |
//! | `membership.rs` | `add-node`, `del-node` |
//! | `slots.rs` | moving one slot with its keys; planning which slots to move |
//! | `reshard.rs`, `rebalance.rs` | `reshard`, `rebalance` |
//! | `fix.rs` | `fix` |
//! | `import.rs`, `backup.rs` | `import`, `backup` |
//! | `each.rs` | `call`, `set-timeout` |
//! | `status/` | `status` |
//! | `local/` | `start-local`, `stop-local` |
//! | `etcd_plan.rs` | `etcd-plan` |
//! | `restore.rs` | `restore-topology` |
//! | `messages.rs` | colored messages, and prompts |

mod backup;
mod create;
mod each;
mod etcd_plan;
mod fix;
mod import;
mod local;
mod membership;
mod messages;
mod node;
mod rebalance;
mod reshard;
mod restore;
mod slots;
mod status;
mod view;

use crate::options::ClusterOptions;
use crate::quote::leading_number;
use crate::screen;
use crate::session::{AlreadyReported, Session};

/// Number of slots in a cluster.
const SLOTS: u16 = 16_384;

/// The result of a command whose failure has already been reported.
type Done = Result<(), AlreadyReported>;

/// The arguments and options of a command.
struct Task<'a> {
    session: &'a Session,
    options: &'a ClusterOptions,
    arguments: Vec<String>,
}

impl Task<'_> {
    /// The node that the first argument names. Host and port may also be two arguments.
    fn entry(&self) -> Result<(String, i64), AlreadyReported> {
        let place = match self.arguments.as_slice() {
            [host, port, ..] if !host.contains(':') => Some((host.clone(), port.clone())),
            [place, ..] => split_place(place),
            [] => None,
        };
        place.map(|(host, port)| (host, leading_number(port.as_bytes()))).ok_or_else(|| {
            screen::flush();
            screen::warn(
                "[ERR] Invalid arguments: you need to pass either a valid address (ie. \
                 120.0.0.1:7000) or space separated IP and port (ie. 120.0.0.1 7000)\n",
            );
            AlreadyReported
        })
    }
}

/// Host and port. A bus port after an at sign is ignored.
fn split_place(place: &str) -> Option<(String, String)> {
    let place = place.split('@').next()?;
    let (host, port) = place.rsplit_once(':')?;
    Some((host.to_owned(), port.to_owned()))
}

/// `1 node`, `2 nodes`
fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

type Command = fn(&Task<'_>) -> Done;

/// Each command with its minimum number of arguments.
const COMMANDS: &[(&str, usize, Command)] = &[
    ("create", 2, create::run),
    ("check", 1, view::check_command),
    ("info", 1, view::info_command),
    ("fix", 1, fix::run),
    ("reshard", 1, reshard::run),
    ("rebalance", 1, rebalance::run),
    ("add-node", 2, membership::add),
    ("del-node", 2, membership::delete),
    ("call", 2, each::call),
    ("set-timeout", 2, each::set_timeout),
    ("import", 1, import::run),
    ("backup", 2, backup::run),
    ("status", 1, status::run),
    ("start-local", 0, local::start),
    ("stop-local", 0, local::stop),
    ("etcd-plan", 1, etcd_plan::run),
    ("restore-topology", 2, restore::run),
    ("help", 0, help),
];

/// Runs the command that the options name. Returns the exit code.
pub(crate) fn run(session: &Session) -> i32 {
    let options = &session.options.cluster;
    let name = String::from_utf8_lossy(&options.command).to_ascii_lowercase();
    let Some((_, least, command)) = COMMANDS.iter().find(|(known, ..)| *known == name) else {
        screen::warn("Unknown --cluster subcommand\n");
        return 1;
    };
    if options.arguments.len() < *least {
        screen::warn("[ERR] Wrong number of arguments for specified --cluster sub command\n");
        return 1;
    }
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    let arguments = options.arguments.iter().map(text).collect();
    i32::from(command(&Task { session, options, arguments }).is_err())
}

/// The names of all commands.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| *name)
}

/// The exit code is 1, as in redis-cli.
fn help(_: &Task<'_>) -> Done {
    screen::print(HELP);
    Err(AlreadyReported)
}

/// The text that `--cluster help` prints.
pub(crate) const HELP: &str = "\
Cluster administration commands. <host:port> can be any node of the cluster.

  create <host:port> ...           Creates a cluster from empty nodes.
      --cluster-replicas <n>       Number of replicas per master.
  check <host:port>                Checks slot coverage and agreement of nodes.
      --cluster-search-multiple-owners
  info <host:port>                 Prints keys, slots and replicas per master.
  fix <host:port>                  Assigns slots without an owner, completes moves.
      --cluster-search-multiple-owners
      --cluster-fix-with-unreachable-masters
  reshard <host:port>              Moves slots to one node; prompts for missing
                                   options.
      --cluster-from <id,...|all>  --cluster-to <id>  --cluster-slots <n>
      --cluster-timeout <ms>  --cluster-pipeline <keys>  --cluster-replace
  rebalance <host:port>            Moves slots to balance the masters.
      --cluster-weight <id=weight> ...  --cluster-use-empty-masters
      --cluster-threshold <percent>  --cluster-simulate
      --cluster-timeout <ms>  --cluster-pipeline <keys>  --cluster-replace
  add-node <new host:port> <host:port>
                                   Adds an empty node.
      --cluster-slave              As a replica of the master with the fewest replicas,
      --cluster-master-id <id>     or of this master.
  del-node <host:port> <id>        Removes a node without slots.
  call <host:port> <command> ...   Runs a command on each node.
      --cluster-only-masters  --cluster-only-replicas
  set-timeout <host:port> <ms>     Sets cluster-node-timeout on each node.
  import <host:port>               Moves keys from a server without cluster mode.
      --cluster-from <host:port>   The source server.
      --cluster-from-user <user>  --cluster-from-pass <password>  --cluster-from-askpass
      --cluster-copy  --cluster-replace
  backup <host:port> <directory>   Saves a snapshot of each master, and the layout.
  status <host:port>               Prints shards, roles, lag, leases and coordinator;
                                   exit code 1 if the cluster has a problem.
  start-local                      Starts a Brisk cluster on this machine, or
                                   restarts it with its data.
      --nodes <n>  --replicas <n>  --port <port>  --dir <directory>  --server <path>
  stop-local                       Stops a cluster started by start-local.
      --dir <directory>
  etcd-plan <host> <host> <host>   Prints the configuration of etcd and of Brisk for
                                   these machines.
  restore-topology <cluster-coordinator> <topology.json> ...
                                   Restores the newest of these topologies in a
                                   coordinator that has lost its data. --user, -a and
                                   --cacert apply to etcd.
  help

  --cluster-yes                    Answers yes to all questions.
";
