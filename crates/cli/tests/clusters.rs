//! `--cluster` with real nodes: a cluster is created, extended, balanced, fixed and reduced, and the output is that of
//! `redis-cli`.

use crate::harness::{self, Case, assert_same, ours, run, text};
use brisk_testkit::{Launch, Server, TempDir, wait_until};
use std::process::Output;

fn node() -> Server {
    // Long enough that no node is considered failed on a loaded machine.
    Launch::redis().set("cluster-enabled", "yes").set("cluster-node-timeout", "15000").start()
}

fn cluster(args: &[&str]) -> Output {
    run(&ours(), &Case::new(&[&["--cluster"], args].concat()))
}

/// A command without colors. `redis-cli` also prints them into pipes.
fn plain<'a>(args: &[&'a str]) -> Case<'a> {
    Case::new(&[&["--cluster"], args].concat()).with_var("TERM", "dumb")
}

#[track_caller]
fn must(args: &[&str]) -> String {
    let found = cluster(args);
    let said = text(&found.stdout);
    assert_eq!(found.status.code(), Some(0), "{args:?}\n{said}\n{}", text(&found.stderr));
    said
}

fn id(server: &Server) -> String {
    text(&harness::brisk_cli(server, &["cluster", "myid"]).stdout).trim().to_owned()
}

fn slots_of(server: &Server) -> usize {
    let nodes = text(&harness::brisk_cli(server, &["cluster", "nodes"]).stdout);
    let own = nodes.lines().find(|line| line.contains("myself")).unwrap_or_default().to_owned();
    let spans = own.split(' ').skip(8).filter(|word| !word.starts_with('['));
    let count = |span: &str| -> usize {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        last.parse::<usize>().expect("a slot") - first.parse::<usize>().expect("a slot") + 1
    };
    spans.map(count).sum()
}

/// Waits until all nodes agree on all slots and nodes.
fn settle(entry: &str) {
    wait_until("the nodes agree", || cluster(&["check", entry]).status.code() == Some(0));
}

#[test]
fn a_cluster_is_created_read_changed_and_fixed() {
    let nodes: Vec<Server> = (0..6).map(|_| node()).collect();
    let places: Vec<String> = nodes.iter().map(Server::address).collect();
    let all: Vec<&str> = places.iter().map(String::as_str).collect();

    let few = cluster(&["create", all[0], all[1], "--cluster-yes"]);
    assert_eq!(few.status.code(), Some(1));
    assert_same(&plain(&["create", all[0], all[1], "--cluster-yes"]));
    let refused = run(
        &ours(),
        &Case::new(&["--cluster", "create", all[0], all[1], all[2]]).with_stdin(b"no\n"),
    );
    assert_eq!(refused.status.code(), Some(1));
    let create: Vec<&str> = ["create"]
        .into_iter()
        .chain(all.iter().copied())
        .chain(["--cluster-replicas", "1", "--cluster-yes"])
        .collect();
    let said = must(&create);
    assert!(said.contains("[OK] All 16384 slots covered."), "{said}");
    settle(all[0]);
    for node in &nodes {
        wait_until("the node serves", || {
            text(&harness::brisk_cli(node, &["cluster", "info"]).stdout)
                .contains("cluster_state:ok")
        });
    }

    let keys: Vec<String> = (0..200).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        let set = harness::brisk_cli(&nodes[1], &["-c", "set", key, key]);
        assert_eq!(text(&set.stdout), "OK\n");
    }
    let masters = &nodes[..3];
    for args in [
        &["info", all[0]][..],
        &["check", all[3]],
        &["call", all[0], "cluster", "countkeysinslot", "5"],
        &["call", all[0], "lrange", "--cluster-only-masters"],
        &["call", all[0], "ping", "--cluster-only-replicas"],
        &["info", "127.0.0.1:1"],
        &["info", "nonsense"],
        &["set-timeout", all[0], "50"],
        &["set-timeout", all[0], "15000"],
        &["rebalance", all[0]],
        &["fix", all[0]],
        &["del-node", all[0], "nonsense"],
        &["create", all[0], all[1], all[2], "--cluster-yes"],
        &["import", all[0]],
        &["reshard", all[0], "--cluster-slots", "5", "--cluster-to", "nonsense"],
    ] {
        assert_same(&plain(args).with_stdin(b"no\n"));
    }
    grows_and_shrinks(all[0], masters);
    is_repaired(all[0], masters);
    for key in &keys {
        let got = harness::brisk_cli(&nodes[2], &["-c", "get", key]);
        assert_eq!(text(&got.stdout), format!("{key}\n"));
    }
    is_backed_up(all[0]);
    takes_keys_from_outside(all[0], &nodes[0]);
}

/// Adds a node, moves slots to it and back, and removes it.
fn grows_and_shrinks(entry: &str, masters: &[Server]) {
    let new = node();
    let place = new.address();
    must(&["add-node", &place, entry]);
    wait_until("all have heard of it", || {
        masters.iter().all(|server| {
            text(&harness::brisk_cli(server, &["cluster", "nodes"]).stdout).contains(&id(&new))
        })
    });
    settle(entry);
    let (from, to) = (id(&masters[0]), id(&new));
    let plan = ["--cluster-slots", "40", "--cluster-yes"];
    let said = must(
        &[&["reshard", entry, "--cluster-from", &from, "--cluster-to", &to][..], &plan].concat(),
    );
    assert!(said.contains("Ready to move 40 slots."), "{said}");
    assert_eq!(slots_of(&new), 40);
    settle(entry);
    let said = must(&["rebalance", entry, "--cluster-simulate", "--verbose"]);
    assert!(said.contains(&format!("{place} balance is -4056 slots\n")), "{said}");
    assert!(said.contains(">>> Rebalancing across 4 nodes."), "{said}");
    // A small share, because each slot is moved individually. It is 16384 * 0.1 / 3.1 slots, apart from rounding.
    must(&["rebalance", entry, "--cluster-weight", &format!("{to}=0.1")]);
    assert!((528..=531).contains(&slots_of(&new)), "{}", slots_of(&new));
    settle(entry);
    let refused = cluster(&["del-node", entry, &to]);
    assert!(text(&refused.stdout).contains("is not empty"), "{}", text(&refused.stdout));
    let said = must(&["rebalance", entry, "--cluster-weight", &format!("{to}=0")]);
    assert!(said.contains("Total weight = 3.00"), "{said}");
    assert_eq!(slots_of(&new), 0);
    settle(entry);
    must(&["del-node", entry, &to]);
    assert_eq!(slots_of(&new), 0);
    settle(entry);

    let said = must(&["add-node", &place, entry, "--cluster-slave", "--cluster-master-id", &from]);
    assert!(said.contains("as replica of"), "{said}");
    let replica = id(&new);
    wait_until("its master has heard of it", || {
        let nodes = text(&harness::brisk_cli(&masters[0], &["cluster", "replicas", &from]).stdout);
        nodes.contains(&replica)
    });
    settle(entry);
    must(&["del-node", entry, &replica]);
    settle(entry);
    let nodes = text(&harness::brisk_cli(&masters[1], &["cluster", "nodes"]).stdout);
    assert!(!nodes.contains(&replica), "{nodes}");
}

/// Checks that `fix` completes an interrupted move, and assigns an owner to a slot without one.
fn is_repaired(entry: &str, masters: &[Server]) {
    let owner_of = |slot: usize| {
        masters
            .iter()
            .position(|server| {
                let nodes = text(&harness::brisk_cli(server, &["cluster", "nodes"]).stdout);
                let own = nodes
                    .lines()
                    .find(|line| line.contains("myself"))
                    .unwrap_or_default()
                    .to_owned();
                own.split(' ').skip(8).any(|span| {
                    let (first, last) = span.split_once('-').unwrap_or((span, span));
                    let ends = (first.parse::<usize>(), last.parse::<usize>());
                    matches!(ends, (Ok(first), Ok(last)) if (first..=last).contains(&slot))
                })
            })
            .expect("every slot has an owner")
    };
    let slot = 100;
    let from = owner_of(slot);
    let to = (from + 1) % masters.len();
    let number = slot.to_string();
    for (server, state, other) in [(to, "importing", from), (from, "migrating", to)] {
        let words = ["cluster", "setslot", &number, state, &id(&masters[other])];
        assert_eq!(text(&harness::brisk_cli(&masters[server], &words).stdout), "OK\n");
    }
    let found = cluster(&["check", entry]);
    assert_eq!(found.status.code(), Some(1));
    assert!(text(&found.stdout).contains("The following slots are open: 100."));
    must(&["fix", entry, "--cluster-yes"]);
    settle(entry);
    assert_eq!(owner_of(slot), to);

    for server in masters {
        let _ = harness::brisk_cli(server, &["cluster", "delslots", "101"]);
    }
    let found = cluster(&["check", entry]);
    assert!(text(&found.stdout).contains("Not all 16384 slots are covered"));
    must(&["fix", entry, "--cluster-yes"]);
    settle(entry);

    // A slot without an owner is assigned to the node that has its keys.
    let slot = text(&harness::brisk_cli(&masters[0], &["cluster", "keyslot", "key:7"]).stdout);
    let slot = slot.trim();
    let holder = owner_of(slot.parse().expect("it is a slot"));
    for server in masters {
        let _ = harness::brisk_cli(server, &["cluster", "delslots", slot]);
    }
    let said = must(&["fix", entry, "--cluster-yes"]);
    assert!(
        said.contains(&format!("uncovered slots have keys in just one node:\n[{slot}]\n")),
        "{said}"
    );
    settle(entry);
    assert_eq!(owner_of(slot.parse().expect("it is a slot")), holder);
}

fn is_backed_up(entry: &str) {
    let home = TempDir::new();
    let directory = home.path("").display().to_string();
    must(&["backup", entry, &directory]);
    let layout = std::fs::read_to_string(home.path("nodes.json")).expect("it was written");
    assert!(layout.contains("\"slots_count\""), "{layout}");
    let files = std::fs::read_dir(home.path("")).expect("it is there");
    assert_eq!(files.count(), 4);
    assert_same(&plain(&["check", entry]));
}

fn takes_keys_from_outside(entry: &str, node: &Server) {
    let outside = Launch::redis().start();
    for number in 0..20 {
        outside.connect().cmd(&format!("SET outside:{number} {number}"));
    }
    let place = outside.address();
    outside.connect().cmd("CONFIG SET requirepass secret");
    let refused = cluster(&["import", entry, "--cluster-from", &place]);
    assert_eq!(refused.status.code(), Some(1));
    let from = ["import", entry, "--cluster-from", &place, "--cluster-from-pass", "secret"];
    let said = must(&[&from[..], &["--cluster-copy"]].concat());
    assert!(said.contains("*** Importing 20 keys from DB 0\n"), "{said}");
    let size = ["-a", "secret", "--no-auth-warning", "dbsize"];
    assert_eq!(text(&harness::brisk_cli(&outside, &size).stdout), "20\n");
    // Existing keys of the cluster stay, unless the option to replace them is given.
    let busy = cluster(&from);
    assert_eq!(busy.status.code(), Some(1));
    assert!(text(&busy.stdout).contains("BUSYKEY"), "{}", text(&busy.stdout));
    must(&[&from[..], &["--cluster-replace"]].concat());
    assert_eq!(text(&harness::brisk_cli(node, &["-c", "get", "outside:7"]).stdout), "7\n");
    assert_eq!(text(&harness::brisk_cli(&outside, &size).stdout), "0\n");
}

/// Three nodes that share the slots.
pub(crate) fn masters() -> Vec<Server> {
    let nodes: Vec<Server> = (0..3).map(|_| node()).collect();
    let places: Vec<String> = nodes.iter().map(Server::address).collect();
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    must(&[&["create"], &places[..], &["--cluster-yes"]].concat());
    settle(places[0]);
    for node in &nodes {
        wait_until("the node serves", || {
            node.connect().cmd("CLUSTER INFO").text().contains("cluster_state:ok")
        });
    }
    nodes
}

fn piped(entry: &Server, input: &[u8]) -> Output {
    let port = entry.port().to_string();
    run(&ours(), &Case::new(&["-p", &port, "-c", "--pipe"]).with_stdin(input))
}

/// The output of a complete transfer.
fn transferred(errors: u64, replies: u64) -> String {
    format!(
        "All data transferred. Waiting for the last reply...\n\
         Last reply received from server.\nerrors: {errors}, replies: {replies}\n"
    )
}

#[test]
fn a_pipe_to_a_cluster_sends_each_request_to_the_node_of_its_key() {
    let masters = masters();
    let pipe = |input: &[u8]| piped(&masters[1], input);
    let mut input = Vec::new();
    for number in 0..3000 {
        // Two requests for one key show whether their order is kept.
        input.extend(format!("SET piped:{number} x\r\nAPPEND piped:{number} y\r\n").into_bytes());
    }
    let key = "piped:eval";
    input.extend(format!("EVAL \"return redis.call('set', KEYS[1], 'z')\" 1 {key}\r\n").bytes());
    input.extend(b"*3\r\n$6\r\nOBJECT\r\n$8\r\nENCODING\r\n$7\r\npiped:1\r\nPING\r\n");
    let found = pipe(&input);
    assert_eq!((text(&found.stderr).as_str(), text(&found.stdout)), ("", transferred(0, 6003)));
    assert_eq!(found.status.code(), Some(0));
    let sizes: Vec<i64> =
        masters.iter().map(|master| master.connect().cmd("DBSIZE").integer()).collect();
    assert!(sizes.iter().all(|size| *size > 500), "{sizes:?}");
    for number in [0, 1, 1499, 2999] {
        let got = harness::brisk_cli(&masters[0], &["-c", "get", &format!("piped:{number}")]);
        assert_eq!(text(&got.stdout), "xy\n");
    }
    // Errors are shown and counted, and an unfinished line is one more request.
    let found = pipe(b"FOO\r\nLPUSH piped:1 a\r\nINCR piped:1\r\nSET piped:9 q");
    let error = text(&found.stderr);
    assert_eq!((text(&found.stdout), found.status.code()), (transferred(3, 4), Some(1)), "{error}");
    assert_eq!(error.lines().filter(|line| line.starts_with("WRONGTYPE ")).count(), 1, "{error}");
    assert!(pipe(b"").status.success());
    for (input, why) in [
        (&b"MULTI\r\nSET a b\r\nEXEC\r\n"[..], "MULTI cannot be routed"),
        (b"*2\r\n$3\r\nGET\r\n$5\r\nab", "The input ends in the middle of a request."),
        (b"*1\r\n:5\r\n", "The input is not a valid request"),
    ] {
        let found = pipe(input);
        assert_eq!(found.status.code(), Some(1));
        assert!(text(&found.stderr).contains(why), "{}", text(&found.stderr));
    }
}

#[test]
fn a_pipe_with_cluster_mode_to_a_server_outside_of_a_cluster_is_as_without() {
    for server in [Launch::redis().start(), Launch::subject().start()] {
        let found = piped(&server, b"SET a 1\r\nMULTI\r\nINCR a\r\nEXEC\r\nFOO\r\n");
        assert_eq!((text(&found.stdout), found.status.code()), (transferred(1, 5), Some(1)));
        assert_eq!(server.connect().cmd("GET a").text(), "2");
    }
}

#[test]
fn a_pipe_to_a_cluster_keeps_the_order_of_a_key_while_its_slot_moves() {
    let masters = masters();
    let pipe = |input: &[u8]| piped(&masters[1], input);
    // While a slot is migrating, requests to the node that does not have the key yet are preceded by ASKING.
    let slot = masters[0].connect().cmd("CLUSTER KEYSLOT moving").integer();
    let owns = |master: &&Server| !master.connect().cmd("GET moving").to_string().contains("MOVED");
    let source = masters.iter().find(owns).expect("a node has the slot");
    let target = masters.iter().find(|it| it.port() != source.port()).expect("there are three");
    let (from, to) = (id(source), id(target));
    source.connect().cmd(&format!("CLUSTER SETSLOT {slot} MIGRATING {to}"));
    target.connect().cmd(&format!("CLUSTER SETSLOT {slot} IMPORTING {from}"));
    let found = pipe(b"RPUSH moving a\r\nRPUSH moving b\r\nRPUSH moving c\r\n");
    assert_eq!((text(&found.stderr).as_str(), text(&found.stdout)), ("", transferred(0, 3)));
    for node in [target, source] {
        node.connect().cmd(&format!("CLUSTER SETSLOT {slot} NODE {to}"));
    }
    for master in &masters {
        master.connect().cmd(&format!("CLUSTER SETSLOT {slot} NODE {to}"));
    }
    let found = pipe(b"RPUSH moving d\r\nRPUSH moving e\r\n");
    assert_eq!((text(&found.stderr).as_str(), text(&found.stdout)), ("", transferred(0, 2)));
    let got = harness::brisk_cli(&masters[0], &["-c", "lrange", "moving", "0", "-1"]);
    assert_eq!(text(&got.stdout), "a\nb\nc\nd\ne\n");
}

#[test]
fn commands_that_need_no_cluster_say_what_is_wrong() {
    let alone = Launch::redis().start();
    let place = alone.address();
    let found = cluster(&["info", &place]);
    assert_eq!(found.status.code(), Some(1));
    assert!(text(&found.stdout).contains("is not configured as a cluster node"));
    let help = cluster(&["help"]);
    assert!(text(&help.stdout).contains("rebalance"));
    // This is the exit code of redis-cli.
    assert_eq!(help.status.code(), Some(1));
}
