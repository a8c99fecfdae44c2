//! Runs the commands in the `sh` blocks of `docs/cluster.md`, in their order on the page. Ports 7000 to 7006 and the
//! addresses 10.0.0.x are replaced by claimed ports of this machine.

use crate::harness::{consecutive, ours, text};
use brisk_testkit::port::Port;
use brisk_testkit::server::{brisk_binary, redis_tool, workspace_root};
use brisk_testkit::wait::holds_within;
use brisk_testkit::{BriskCluster, TempDir};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// How long a command may take to succeed. A reader waits, too, until a node has noticed the last change.
const SUCCESS_WITHIN: Duration = Duration::from_secs(120);
/// The first port on the page.
const FIRST_PORT: u16 = 7000;

/// The `sh` blocks of the page.
fn blocks() -> Vec<String> {
    let page = std::fs::read_to_string(workspace_root().join("docs/cluster.md")).expect("a page");
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while lines.by_ref().any(|line| line == "```sh") {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// A directory with the programs of the page.
struct Shell {
    dir: TempDir,
}

impl Shell {
    fn new() -> Shell {
        let dir = TempDir::new();
        let bin = dir.path("bin");
        std::fs::create_dir(&bin).expect("a directory can be made");
        let server: PathBuf = brisk_binary().expect("a server").to_owned();
        let programs = [
            ("brisk-cli", ours()),
            ("brisk-server", server),
            ("redis-cli", redis_tool("redis-cli")),
        ];
        for (name, program) in programs {
            symlink(program, bin.join(name)).expect("a link can be made");
        }
        Shell { dir }
    }

    /// Runs a line in the directory, with the answer `yes` to all questions.
    fn run(&self, line: &str) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.dir.path("bin").display());
        Command::new("sh")
            .args(["-c", &format!("yes yes | {{ {line}\n}}")])
            .current_dir(self.dir.path(""))
            .env_remove("REDISCLI_AUTH")
            .env("PATH", path)
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .output()
            .expect("the shell starts")
    }

    /// Runs a line until it succeeds. After a failover, `status` also succeeds if it finds a problem.
    #[track_caller]
    fn must(&self, line: &str) -> String {
        let mut said = String::new();
        let is_status = line.contains("--cluster status") && !line.starts_with("until");
        let is_done = holds_within(SUCCESS_WITHIN, || {
            let output = self.run(line);
            said = text(&output.stdout) + &text(&output.stderr);
            let is_error = |line: &str| {
                ["[ERR] ", "ERR ", "CLUSTERDOWN", "Could not"].iter().any(|it| line.starts_with(it))
            };
            is_status || (output.status.success() && !said.lines().any(is_error))
        });
        assert!(is_done, "{line}\n{said}");
        said
    }
}

/// Replaces ports of the page by claimed ones.
fn with_ports(line: &str, ports: &[Port]) -> String {
    let mut replaced = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
        let (before, digits) = rest.split_at(at);
        let end = digits.find(|it: char| !it.is_ascii_digit()).unwrap_or(digits.len());
        let (number, after) = digits.split_at(end);
        let position = number.parse().ok().and_then(|port: u16| port.checked_sub(FIRST_PORT));
        let port = position.and_then(|position| ports.get(usize::from(position)));
        replaced += before;
        replaced += &port.map_or_else(|| number.to_owned(), |port| port.number().to_string());
        rest = after;
    }
    replaced + rest
}

#[test]
fn the_commands_for_a_laptop_work_in_their_order() {
    let shell = Shell::new();
    let ports = consecutive(7);
    let stop = Stopper { shell: &shell };
    let mut said = String::new();
    for block in blocks().iter().filter(|block| !block.contains("10.0.0.")) {
        for line in block.lines() {
            let first = format!("start-local --port {}", ports[0].number());
            let line = with_ports(line, &ports).replace("start-local", &first);
            said += &shell.must(&line);
        }
    }
    assert!(said.contains("\nhello\n"), "{said}");
    assert!(said.contains("[OK] New node added correctly."), "{said}");
    assert!(said.contains("Sending CLUSTER RESET SOFT to the deleted node."), "{said}");
    drop(stop);
}

/// Stops the nodes when it is dropped.
struct Stopper<'s> {
    shell: &'s Shell,
}

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.shell.run("brisk-cli --cluster stop-local");
        self.shell.run("for file in brisk-cluster/*/brisk.pid; do kill -9 \"$(cat $file)\"; done");
    }
}

#[test]
fn the_commands_for_several_machines_work() {
    let shell = Shell::new();
    let nodes = BriskCluster::start_apart(6, &[]);
    let mut said = String::new();
    for block in blocks().iter().filter(|block| block.contains("10.0.0.")) {
        // Other tests cover TLS, and restore-topology.
        if block.contains("--tls") || block.contains("restore-topology") {
            continue;
        }
        let mut block = block.replace("\\\n", "");
        for at in 0..6 {
            let named = format!("10.0.0.{}:{}", at % 3 + 1, 6379 + at / 3);
            block = block.replace(&named, &nodes.node(at).address());
        }
        said += &block.lines().map(|line| shell.must(line)).collect::<String>();
    }
    assert!(said.contains("ETCD_INITIAL_CLUSTER=etcd1=http://10.0.0.1:2380"), "{said}");
    assert!(said.contains("[OK] All 16384 slots covered."), "{said}");
    assert!(said.contains("[OK] The cluster has no problem."), "{said}");
}
