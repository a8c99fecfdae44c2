//! `--cluster start-local`, `stop-local` and `status`: a cluster of our servers on this machine, from its first start
//! through a failover to its second start, and every error that a user can encounter.

use crate::harness::terminal::Terminal;
use crate::harness::{Case, consecutive, ours, run, text};
use brisk_coordinate::etcd::EtcdOptions;
use brisk_coordinate::values::{ChangeOutcome, ClusterName, TopologyChange};
use brisk_testkit::etcd::EtcdLaunch;
use brisk_testkit::port::Port;
use brisk_testkit::server::{brisk_binary, signal};
use brisk_testkit::{BriskCluster, Conn, Launch, TempDir, wait_until};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A directory for a cluster, with ports that no other test uses. Dropping it stops the nodes.
struct Local {
    dir: TempDir,
    ports: Vec<Port>,
}

impl Local {
    fn new(nodes: usize) -> Local {
        Local { dir: TempDir::new(), ports: consecutive(nodes) }
    }

    fn first(&self) -> u16 {
        self.ports[0].number()
    }

    fn path(&self) -> PathBuf {
        self.dir.path("cluster")
    }

    fn address(&self, at: usize) -> String {
        format!("127.0.0.1:{}", self.ports[at].number())
    }

    fn conn(&self, at: usize) -> Conn {
        Conn::tcp(&self.address(at))
    }

    fn pid_file(&self, at: usize) -> PathBuf {
        self.path().join(self.ports[at].number().to_string()).join("brisk.pid")
    }

    fn pid(&self, at: usize) -> u32 {
        let text = std::fs::read_to_string(self.pid_file(at)).expect("a pid file");
        text.trim().parse().expect("a number")
    }

    fn start(&self, args: &[&str]) -> Output {
        let server = brisk_binary().expect("a server").display().to_string();
        self.start_program(&server, args)
    }

    fn start_program(&self, server: &str, args: &[&str]) -> Output {
        let (dir, port) = (self.path().display().to_string(), self.first().to_string());
        let own = ["start-local", "--dir", &dir, "--port", &port, "--server", server];
        cluster(&[&own, args].concat())
    }

    fn stop(&self) -> Output {
        cluster(&["stop-local", "--dir", &self.path().display().to_string()])
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.stop();
        // A node that rejects the command still has its PID file.
        for at in 0..self.ports.len() {
            if let Ok(text) = std::fs::read_to_string(self.pid_file(at))
                && let Ok(pid) = text.trim().parse()
            {
                signal(pid, "KILL");
            }
        }
    }
}

fn cluster(args: &[&str]) -> Output {
    run(&ours(), &Case::new(&[&["--cluster"], args].concat()).with_var("TERM", "dumb"))
}

#[track_caller]
fn must(output: &Output) -> String {
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", text(&output.stderr));
    said
}

#[track_caller]
fn refused(output: &Output) -> String {
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}\n{}", text(&output.stderr));
    said
}

/// Sends a command to one of the nodes, and follows redirections.
fn command(local: &Local, at: usize, words: &[&str]) -> String {
    let port = local.ports[at].number().to_string();
    text(&run(&ours(), &Case::new(&[&["-c", "-p", &port], words].concat())).stdout)
}

/// The reply of a node to a command, without redirections.
fn command_to(local: &Local, at: usize, words: &str) -> String {
    let port = local.ports[at].number().to_string();
    let words = words.split(' ').collect::<Vec<_>>();
    text(&run(&ours(), &Case::new(&[&["-p", &port], &words[..]].concat())).stdout)
}

#[test]
fn a_local_cluster_starts_survives_a_lost_primary_and_starts_again_with_its_data() {
    let local = Local::new(6);
    let said = must(&local.start(&[]));
    assert!(said.contains("[OK] The cluster of 3 shards with 1 replica each is ready."), "{said}");
    assert!(said.contains(&format!("redis-cli -c -p {}\n", local.first())), "{said}");
    assert_eq!(said.matches("  primary of slots ").count(), 3, "{said}");
    assert_eq!(said.matches("  replica of 127.0.0.1:").count(), 3, "{said}");
    let keys: Vec<String> = (0..100).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        assert_eq!(command(&local, 0, &["set", key, key]), "OK\n");
    }
    let said = must(&cluster(&["status", &local.address(4)]));
    assert!(said.contains("16384 of 16384 assigned to 3 shards"), "{said}");
    assert!(said.contains("6 of 6 reachable"), "{said}");
    assert!(said.contains("Cluster:     brisk\n"), "{said}");
    assert!(said.contains("Controller:  127.0.0.1:"), "{said}");
    assert!(said.contains("[OK] The cluster has no problem.\n"), "{said}");
    assert_eq!(said.matches("\n  replica  127.0.0.1:").count(), 3, "{said}");
    assert_eq!(must(&local.start(&[])).matches("  primary of slots ").count(), 3);

    let lost = (0..6)
        .find(|at| local.conn(*at).info("role") == "master")
        .expect("a node of the cluster is a primary");
    let entry = (lost + 1) % 6;
    // Wait, because a write that no replica has received may be lost with its primary.
    wait_until("the replicas have every key", || {
        (0..6).filter(|at| local.conn(*at).info("role") == "master").all(|at| {
            let mut conn = local.conn(at);
            let end = conn.info("master_repl_offset");
            conn.info("slave0").contains(&format!("offset={end},"))
        })
    });
    signal(local.pid(lost), "KILL");
    wait_until("each key can be read again", || {
        keys.iter().all(|key| command(&local, entry, &["get", key]) == format!("{key}\n"))
    });
    wait_until("each slot takes writes again", || {
        keys.iter().all(|key| command(&local, entry, &["set", key, "2"]) == "OK\n")
    });
    let said = refused(&cluster(&["status", &local.address(entry)]));
    assert!(said.contains(&format!("{}: this ", local.address(lost))), "{said}");
    assert!(said.contains("cannot be reached"), "{said}");

    // The killed node returns as a replica.
    let said = must(&local.start(&[]));
    assert!(said.contains("Starting 1 node of"), "{said}");
    assert_eq!(said.matches("  replica of 127.0.0.1:").count(), 3, "{said}");
    must(&cluster(&["status", &local.address(lost)]));

    let said = must(&local.stop());
    assert!(said.contains("[OK] Stopped 6 nodes."), "{said}");
    assert!((0..6).all(|at| !local.pid_file(at).exists()));
    assert!(must(&local.stop()).contains("No node of"));
    let said = must(&local.start(&[]));
    assert!(said.contains("Starting the cluster of"), "{said}");
    for key in &keys {
        assert_eq!(command(&local, 2, &["get", key]), "2\n");
    }
    must(&local.stop());
}

#[test]
fn one_node_alone_is_a_cluster_and_takes_the_settings_of_its_file() {
    let local = Local::new(1);
    let said = must(&local.start(&["--nodes", "1", "--replicas", "0"]));
    assert!(said.contains("1 shard with 0 replicas is ready"), "{said}");
    assert_eq!(command(&local, 0, &["set", "a", "1"]), "OK\n");
    must(&local.stop());
    let config = local.path().join(local.first().to_string()).join("brisk.conf");
    let changed = std::fs::read_to_string(&config).expect("a file") + "maxmemory 77mb\n";
    std::fs::write(&config, changed).expect("the file can be written");
    must(&local.start(&[]));
    assert_eq!(local.conn(0).info("maxmemory"), (77 << 20).to_string());
    assert_eq!(command(&local, 0, &["get", "a"]), "1\n");
    must(&local.stop());
}

#[test]
fn a_topology_that_the_coordinator_has_lost_is_restored_from_the_file_of_a_node() {
    let local = Local::new(1);
    must(&local.start(&["--nodes", "1", "--replicas", "0"]));
    assert_eq!(command(&local, 0, &["set", "a", "1"]), "OK\n");
    must(&local.stop());
    let coordinator = local.path().join("coordinator");
    let setting = format!("local:{}", coordinator.display());
    let file = local.path().join(local.first().to_string()).join("topology.json");
    let file = file.display().to_string();
    let said = refused(&cluster(&["restore-topology", &setting, &file]));
    assert!(said.contains("cluster brisk has a topology of epoch "), "{said}");
    std::fs::remove_dir_all(&coordinator).expect("the directory exists");
    let said = refused(&cluster(&["restore-topology", &setting, "/nonexistent/file"]));
    assert!(said.contains("Cannot read /nonexistent/file"), "{said}");
    let other = Local::new(1);
    must(&other.start(&["--nodes", "1", "--replicas", "0"]));
    must(&other.stop());
    let foreign = other.path().join(other.first().to_string()).join("topology.json");
    let foreign = foreign.display().to_string();
    for files in [[&*file, &*foreign], [&*foreign, &*file]] {
        let said = refused(&cluster(&["restore-topology", &setting, files[0], files[1]]));
        assert!(said.contains("are of different clusters"), "{said}");
    }
    let said = must(&cluster(&["restore-topology", &setting, &file, &file]));
    assert!(said.contains(", 1 node."), "{said}");
    must(&local.start(&[]));
    assert_eq!(command(&local, 0, &["get", "a"]), "1\n");
    must(&local.stop());
    damage_topology(&setting, b"{\"format\":1,\"epoch\":99999}");
    let said = refused(&cluster(&["restore-topology", &setting, &file]));
    assert!(said.contains("of epoch 99999 that is not valid"), "{said}");
    damage_topology(&setting, b"{\"format\":1");
    let said = must(&cluster(&["restore-topology", &setting, &file]));
    assert!(said.contains(", 1 node."), "{said}");
    must(&local.start(&[]));
    assert_eq!(command(&local, 0, &["get", "a"]), "1\n");
    must(&local.stop());
}

/// Replaces the document in the coordinator with one that no node accepts.
fn damage_topology(setting: &str, document: &[u8]) {
    let setting = setting.parse().expect("a setting");
    let name = ClusterName::parse("brisk").expect("a name");
    let coordinator = brisk_coordinate::open(&setting, &name, &EtcdOptions::default());
    let coordinator = coordinator.expect("a coordinator");
    let expected = coordinator.read().expect("a topology").revision;
    let change = TopologyChange { expected, document, controller: None };
    let outcome = coordinator.change(&change);
    assert!(matches!(outcome, ChangeOutcome::Changed(_)), "{outcome:?}");
}

#[test]
fn errors_of_start_local_name_the_port_the_directory_and_the_program() {
    let local = Local::new(3);
    let said = refused(&local.start_program("/nonexistent/server", &[]));
    assert_eq!(said, "[ERR] There is no program /nonexistent/server\n");
    let busy = TcpListener::bind(local.address(1)).expect("the port is free");
    let said = refused(&local.start(&["--nodes", "3", "--replicas", "0"]));
    let port = local.ports[1].number();
    assert_eq!(
        said,
        format!(
            "[ERR] Port {port} is in use by another process: use --port to specify another first port\n"
        )
    );
    drop(busy);
    assert!(!local.path().exists(), "a start that did nothing leaves nothing");
    for (args, expected) in [
        (&["--nodes", "0"][..], "--nodes must be at least 1"),
        (&["--nodes", "60"], "60 shards with 1 replica each are 120 nodes"),
        (&["--port", "65535"], "ports 65535 to 65540 are not between 1 and 65535"),
        (&["--port", "abc"], "--port: 'abc' is not a number"),
        (&["--replicas", "x"], "--replicas: 'x' is not a number"),
        (&["--replicas", "-1"], "--replicas must be at least 0"),
        (&["--nodes", "3x"], "--nodes: '3x' is not a number"),
    ] {
        let said = refused(&local.start(args));
        assert!(said.contains(expected), "{said}");
    }
    std::fs::create_dir(local.path()).expect("the directory can be made");
    std::fs::write(local.path().join("mine"), "").expect("a file can be written");
    let said = refused(&local.start(&[]));
    assert!(said.contains("has files, but no cluster of start-local"), "{said}");
    let said = refused(&local.stop());
    assert!(said.contains("start-local.conf is missing there"), "{said}");
}

#[test]
fn a_node_that_ends_is_named_with_the_end_of_its_log_and_the_others_end_too() {
    let local = Local::new(2);
    let server = script(local.dir.path("server"), "echo 'Bad directive' >&2; exit 3");
    let said = refused(&local.start_program(&server, &["--nodes", "2", "--replicas", "0"]));
    // Both nodes exit. The error names the one that is noticed first.
    let names = |port: &Port| {
        said.contains(&format!("[ERR] Node {} has exited (exit status: 3)", port.number()))
    };
    assert!(local.ports.iter().any(names), "{said}");
    assert!(said.contains("    Bad directive\n"), "{said}");
    assert!(must(&local.stop()).contains("No node of"));
    let said = refused(&local.start(&["--nodes", "3", "--replicas", "0"]));
    assert!(
        said.contains("has another cluster: 2 shards with 0 replicas each from port"),
        "{said}"
    );
}

#[test]
fn a_node_that_is_in_no_shard_keeps_running_and_can_be_added() {
    let local = Local::new(2);
    must(&local.start(&["--nodes", "1", "--replicas", "1"]));
    let (entry, outside) = (local.address(0), local.address(1));
    let id = local.conn(1).cmd("CLUSTER MYID").text();
    must(&cluster(&["del-node", &entry, &id]));
    let add = format!("add-node {outside} {entry} --cluster-slave");
    let expect_outside = |said: &str| {
        assert!(said.contains("[OK] The cluster is ready with 1 of its 2 nodes."), "{said}");
        assert!(said.contains(&format!("{outside} is not a member of the cluster.")), "{said}");
        assert!(said.contains(&format!("brisk-cli --cluster {add}\n")), "{said}");
    };
    expect_outside(&must(&local.start(&[])));
    must(&local.stop());
    expect_outside(&must(&local.start(&[])));

    // Each node shows the cluster, even the one that is in no shard.
    for address in [&entry, &outside] {
        let said = must(&cluster(&["status", address]));
        assert!(said.contains("16384 of 16384 assigned to 1 shard\n"), "{said}");
        assert!(said.contains("shard 0-16383 has no replica\n"), "{said}");
        let registered = format!("{outside} is registered, but it is in no shard.");
        assert!(said.contains(&registered) && said.contains(&add), "{said}");
        assert!(!said.contains("[OK]"), "{said}");
    }
    must(&cluster(&add.split(' ').collect::<Vec<_>>()));
    wait_until("the node to be a replica", || {
        text(&cluster(&["status", &outside]).stdout).contains("[OK] The cluster has no problem.")
    });
    let said = must(&local.start(&[]));
    assert!(said.contains("[OK] The cluster of 1 shard with 1 replica is ready."), "{said}");
}

#[test]
fn a_lost_shard_gets_a_new_owner_and_start_local_names_the_forgotten_node() {
    let local = Local::new(4);
    must(&local.start(&["--nodes", "2", "--replicas", "1"]));
    // The nodes with the lowest ports are the primaries.
    let (survivor, port) = (1, local.first().to_string());
    let replica = if local.conn(2).info("master_port") == port { 2 } else { 3 };
    let lost = local.conn(0).cmd("CLUSTER MYID").text();
    // The machine of the primary is lost, and the replica has lost its data.
    for at in [replica, 0] {
        signal(local.pid(at), "KILL");
    }
    let directory = |at: usize| local.path().join(local.ports[at].number().to_string());
    std::fs::remove_dir_all(directory(0)).expect("the directory exists");
    std::fs::remove_dir_all(directory(replica).join("appendonlydir")).expect("there is a file");
    let mut command = Command::new(brisk_binary().expect("a server"));
    command.arg("brisk.conf").current_dir(directory(replica)).process_group(0);
    let mut process = command.stdout(Stdio::null()).spawn().expect("the server starts");
    let reply = |at: usize, words: &str| command_to(&local, at, words);
    wait_until("the replica to be rejected", || {
        reply(replica, "cluster failover force").contains("no full copy")
    });
    assert_eq!(reply(replica, "cluster reset"), "OK\n");
    assert_eq!(reply(survivor, &format!("cluster forget {lost}")), "OK\n");
    assert_eq!(reply(replica, "cluster addslotsrange 0 8191"), "OK\n");
    // The first node starts with a new ID.
    let said = must(&local.start(&[]));
    assert!(said.contains("[OK] The cluster is ready with 3 of its 4 nodes."), "{said}");
    let words = said.lines().find_map(|line| line.strip_prefix("  brisk-cli --cluster "));
    let words = words.expect("the command that adds it");
    assert!(words.starts_with(&format!("add-node {} ", local.address(0))), "{words}");
    must(&cluster(&words.split(' ').collect::<Vec<_>>()));
    must(&local.start(&[]));
    must(&cluster(&["status", &local.address(0)]));
    must(&local.stop());
    process.wait().expect("the process has ended");
}

#[test]
fn different_timeouts_are_recorded_and_named() {
    let local = Local::new(2);
    must(&local.start(&["--nodes", "1", "--replicas", "1"]));
    must(&local.stop());
    let config = local.path().join(local.first().to_string()).join("brisk.conf");
    let changed = std::fs::read_to_string(&config).expect("a file") + "cluster-node-timeout 8500\n";
    std::fs::write(&config, changed).expect("the file can be written");
    must(&local.start(&[]));
    let said = must(&cluster(&["status", &local.address(1)]));
    let [first, second] = [0, 1].map(|at| local.address(at));
    let named =
        format!("different values of cluster-node-timeout: 5 s on {second}; 9 s on {first}");
    assert!(said.contains(&named), "{said}");
    let topology = local.path().join(local.ports[1].number().to_string()).join("topology.json");
    wait_until("both timeouts to be in the topology", || {
        let topology = std::fs::read_to_string(&topology).unwrap_or_default();
        topology.contains(r#""ttl":5"#) && topology.contains(r#""ttl":9"#)
    });
    must(&local.stop());
}

#[test]
fn a_node_with_another_password_is_named_and_the_others_keep_running() {
    let local = Local::new(2);
    must(&local.start(&["--nodes", "1", "--replicas", "1"]));
    must(&local.stop());
    for (port, password) in local.ports.iter().zip(["first", "second"]) {
        let config = local.path().join(port.number().to_string()).join("brisk.conf");
        let lines = format!("requirepass {password}\nmasterauth {password}\n");
        let changed = std::fs::read_to_string(&config).expect("a file") + &lines;
        std::fs::write(&config, changed).expect("the file can be written");
    }
    let with_password = |args: &[&str]| {
        let case = Case::new(&[&["--cluster"], args].concat()).with_var("TERM", "dumb");
        run(&ours(), &case.with_var("REDISCLI_AUTH", "first"))
    };
    let server = brisk_binary().expect("a server").display().to_string();
    let dir = local.path().display().to_string();
    let said = refused(&with_password(&["start-local", "--dir", &dir, "--server", &server]));
    let port = local.ports[1].number();
    let rejection = "AUTH failed: WRONGPASS invalid username-password pair or user is disabled.";
    let named = format!("[ERR] Node {port} replied with error: {rejection}\n");
    assert!(said.contains(&named), "{said}");
    assert!(said.contains("The other nodes keep running."), "{said}");
    let named = format!("{}: this replica rejects the connection: {rejection}\n", local.address(1));
    wait_until("the first node to accept connections", || {
        text(&with_password(&["status", &local.address(0)]).stdout).contains(&named)
    });
    let output = with_password(&["status", &local.address(0)]);
    assert_eq!(text(&output.stderr), "");

    signal(local.pid(1), "STOP");
    let output = with_password(&["status", &local.address(0)]);
    let said = refused(&output);
    let named = format!("{}: this replica does not reply\n", local.address(1));
    assert!(said.contains(&named), "{said}");
    assert_eq!(text(&output.stderr), "");
    signal(local.pid(1), "CONT");
}

#[test]
fn colors_are_only_for_terminals() {
    let args = ["--cluster", "etcd-plan", "10.0.0.333", "b", "c"];
    let error = "[ERR] '10.0.0.333' is not a valid IPv4 address\n";
    let output = run(&ours(), &Case::new(&args).with_var("TERM", "xterm"));
    assert_eq!(refused(&output), error);
    let mut terminal = Terminal::start(&ours(), &args, &[]);
    terminal.expect("\x1b[31;1m[ERR] ");
    assert_eq!(terminal.end(), Some(1));
}

/// A program that is used in place of a server.
fn script(path: PathBuf, lines: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("a file can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("it can be made a program");
    path.display().to_string()
}

#[test]
fn status_describes_a_cluster_of_another_server_too() {
    let other = brisk_testkit::cluster::Cluster::start(3, 1);
    let entry = format!("127.0.0.1:{}", other.node(4).port());
    let said = must(&cluster(&["status", &entry]));
    assert!(said.contains("16384 of 16384 assigned to 3 shards"), "{said}");
    assert!(said.contains("[OK] The cluster has no problem."), "{said}");
    let missing = cluster(&["status", "127.0.0.1:1"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("Could not connect"), "{}", text(&missing.stderr));
}

/// Waits until the first node lists this number of nodes.
fn wait_for_members(nodes: &BriskCluster, count: usize) {
    let mut conn = nodes.connect(0);
    wait_until("the cluster to have its nodes", || {
        conn.cmd("CLUSTER NODES").text().lines().count() == count
    });
}

#[test]
fn the_tools_for_clusters_of_redis_work_on_nodes_that_share_an_etcd() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let directives = [("cluster-coordinator", &*coordinator)];
    let mut nodes = BriskCluster::start_apart(6, &directives);
    let addresses: Vec<String> = (0..6).map(|at| nodes.node(at).address()).collect();
    let first = addresses[0].clone();
    let mut words = vec!["create"];
    words.extend(addresses.iter().map(String::as_str));
    words.extend(["--cluster-replicas", "1", "--cluster-yes"]);
    let covered = "[OK] All 16384 slots covered.";
    assert!(must(&cluster(&words)).contains(covered));
    nodes.wait_until_ok();
    assert!(must(&cluster(&["check", &first])).contains(covered));
    assert_eq!(must(&cluster(&["call", &first, "PING"])).matches(": PONG").count(), 6);

    let source = Launch::subject().start();
    let mut conn = source.connect();
    for at in 0..50 {
        conn.cmd(&format!("SET key:{at} {at}"));
    }
    let words = ["import", &first, "--cluster-from", &source.address()];
    must(&cluster(&[&words[..], &["--cluster-copy"]].concat()));
    assert_eq!(conn.cmd("DBSIZE").integer(), 50);
    must(&cluster(&[&words[..], &["--cluster-replace"]].concat()));
    assert_eq!(conn.cmd("DBSIZE").integer(), 0);
    assert!(must(&cluster(&["info", &first])).contains("[OK] 50 keys in 3 masters."));

    let primary = nodes.add(&directives);
    let said = must(&cluster(&["add-node", &nodes.node(primary).address(), &first]));
    assert!(said.contains("[OK] New node added correctly."), "{said}");
    wait_for_members(&nodes, 7);
    let replica = nodes.add(&directives);
    let follow = ["add-node", &nodes.node(replica).address(), &first, "--cluster-slave"];
    must(&cluster(&follow));
    wait_until("the new replica to follow", || {
        nodes.node(replica).info("master_link_status") == "up"
    });
    for at in [replica, primary] {
        let id = nodes.connect(at).cmd("CLUSTER MYID").text();
        must(&cluster(&["del-node", &first, &id]));
    }
    wait_for_members(&nodes, 6);

    assert_eq!(nodes.connect(0).cmd("CLUSTER DELSLOTS 1 2 3").to_string(), "OK");
    let fixed = run(&ours(), &Case::new(&["--cluster", "fix", &first]).with_stdin(b"yes\n"));
    assert!(text(&fixed.stdout).contains("Covering slot"), "{}", text(&fixed.stdout));
    wait_until("all slots to have owners", || cluster(&["check", &first]).status.code() == Some(0));
}
