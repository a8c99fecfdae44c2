//! The layers within a crate: the allowed imports of each directory. A part of `cargo xtask tidy`.
//!
//! [`LAYERS`] has a row for each crate, read from the bottom up: its directories and files in that order. An import
//! from a higher layer is reported. So is an import whose target is not in the row, for example a name that the crate
//! root exports for other crates.
//!
//! The check covers paths that begin with `crate::` or `super::` in non-test code. It does not detect methods that a
//! higher file adds to a type.

use crate::tidy::{Finding, first_test_line};

/// The layers of one crate, from the bottom up.
pub(crate) struct Layers {
    /// The directory of its sources.
    pub(crate) sources: &'static str,
    /// Each layer is one place, or a few places that may import one another. A place is a directory or a file below
    /// `sources`, without `.rs`. The longest place that matches a path applies, so a file can be in a different layer
    /// from the rest of its directory.
    pub(crate) order: &'static [&'static [&'static str]],
}

/// The crates that are checked.
pub(crate) const LAYERS: &[Layers] = &[
    ENGINE,
    NODE,
    SERVER,
    CLI,
    STRUCTURES,
    RESP,
    REACTOR,
    OBSERVE,
    PERSIST,
    SCRIPT,
    ANALYZE,
    CHECK,
    BENCHMARK,
    CLIENT,
    CLUSTER,
    COORDINATE,
    TESTKIT,
    ACL,
    CONFIG,
    DERIVE,
    DIAL,
    DIFFERENTIAL,
    FINDINGS,
    NET,
    CHECKS,
    XTASK,
];

const ENGINE: Layers = Layers {
    sources: "crates/engine/src",
    order: &[
        &["base"],
        &["types"],
        &["command"],
        &["reply"],
        &["env/settings", "env/effect", "env/tap", "env/garbage", "env/journal", "env/transfer"],
        // A blocked client is stored with its call, which works on the keyspace on behalf of a thread.
        &["env", "keyspace", "call"],
        &["run"],
        &["dataset"],
        &["commands"],
        &["testing"],
        &["lib"],
    ],
};

const NODE: Layers = Layers {
    sources: "crates/node/src",
    order: &[
        // The states of features, which do not depend on workers.
        &["cluster"],
        &["tracking"],
        &["pubsub"],
        &["clients"],
        &["monitor"],
        &[
            "persistence/state",
            "persistence/disk",
            "persistence/replace",
            "persistence/aof/state",
            "persistence/aof/file",
            "persistence/aof/home",
            // The state contains this.
            "persistence/aof/lock",
            "persistence/aof/held_replies",
        ],
        &["replication", "replication/upstream/received", "replication/upstream/state"],
        &["script"],
        &["transactions"],
        // A worker contains its interpreters and its suspended script, which in turn act on the worker.
        &[
            "core",
            "script/runner",
            "script/machine",
            "script/eval_interpreter",
            "script/function_interpreter",
        ],
        // Functions that use these states on a worker.
        &["persistence"],
        &[
            "monitor/lines",
            "pubsub/publish",
            "pubsub/subscribe",
            "replication/compare",
            "replication/follow",
            "replication/full_sync",
            "replication/spilling",
            "tracking/invalidate",
            "tracking/session",
        ],
        // From bytes to commands. Scripts and transactions run commands, and some commands start scripts and
        // transactions.
        &[
            "run",
            "script/calls",
            "script/host",
            "script/invoked",
            "script/run",
            "script/source",
            "transactions/execute",
        ],
        // Loading executes the commands in a file.
        &[
            "persistence/loading/aof",
            "persistence/loading/discard",
            "persistence/loading/replay",
            "persistence/loading/steps",
        ],
        // A primary that hands over becomes a replica, and may become a primary again while it connects to the new
        // primary.
        &["replication/handover", "replication/role", "replication/upstream"],
        // Connects in the same way as an upstream.
        &["cluster/peers"],
        &["lib"],
    ],
};

const SERVER: Layers = Layers {
    sources: "crates/server/src",
    order: &[
        &["info"],
        &["http"],
        &["doctor"],
        &["commands"],
        &["topology"],
        &["worker"],
        &["boot"],
        &["simulation"],
        &["lib", "main"],
    ],
};

const CLI: Layers = Layers {
    sources: "crates/cli/src",
    // SYNC as a command starts a mode, and a script in the debugger starts a session with a prompt.
    order: &[
        &["quote"],
        &["amount"],
        &["info"],
        &["slowlog"],
        &["screen", "pause"],
        &["progress"],
        &["format"],
        &["options"],
        &["link"],
        &["password", "docs"],
        &["keyspec"],
        &["session", "debugger", "modes", "repl"],
        &["cluster"],
        &["about"],
        &["main"],
    ],
};

const STRUCTURES: Layers = Layers {
    sources: "crates/structures/src",
    order: &[
        &["slab"],
        &["lent"],
        &["fiber"],
        &["decimal"],
        &["malformed"],
        &["listpack"],
        &["hash"],
        &["places"],
        &["lzf"],
        &["bits"],
        &["wheel"],
        &["hyperloglog"],
        &["poison"],
        &["reclaim"],
        &["entry"],
        &["prefetch"],
        &["table"],
        &["intset"],
        &["fuzzing"],
        &["chunk"],
        &["sha1"],
        &["base64"],
        &["geohash"],
        &["list"],
        &["alloc"],
        &["growing"],
        &["shared"],
        &["chunked"],
        &["sequence"],
        &["segments"],
        &["ordered"],
        &["slot"],
        &["stream"],
        &["quicklist"],
        &["lib"],
    ],
};

const RESP: Layers = Layers {
    sources: "crates/resp/src",
    order: &[
        &["notation"],
        &["slot"],
        &["number"],
        &["error"],
        &["reply"],
        &["request"],
        &["fuzzing"],
        &["lib"],
    ],
};

const REACTOR: Layers = Layers {
    sources: "crates/reactor/src",
    order: &[
        &["unread"],
        &["output"],
        &["message"],
        &["listen"],
        &["sys"],
        &["coalesce"],
        &["process"],
        &["token"],
        &["clock"],
        &["counters"],
        &["waker"],
        &["connection", "control", "handler"],
        &["accept", "epoll", "reactor", "uring"],
        &["crash"],
        &["lib"],
    ],
};

const OBSERVE: Layers = Layers {
    sources: "crates/observe/src",
    order: &[
        &["stats"],
        &["errors"],
        &["version"],
        &["memory"],
        &["metrics"],
        &["text"],
        &["latency"],
        &["log"],
        &["slowlog"],
        &["lib"],
    ],
};

const PERSIST: Layers = Layers {
    sources: "crates/persist/src",
    order: &[&["crc64"], &["error"], &["rdb"], &["aof"], &["fuzzing"], &["lib"]],
};

const SCRIPT: Layers = Layers {
    sources: "crates/script/src",
    order: &[
        &["room"],
        &["to_lua"],
        &["texts"],
        &["header"],
        &["host"],
        &["random"],
        &["eval_words"],
        &["confined"],
        &["brief"],
        &["pairs"],
        &["api", "interpreter", "libraries", "lua51", "to_reply"],
        &["fuzzing"],
        &["lib"],
    ],
};

const ANALYZE: Layers = Layers {
    sources: "crates/analyze/src",
    order: &[
        &["record"],
        &["model"],
        &["args"],
        &["lengths"],
        &["advice", "analysis", "group", "measure", "pattern"],
        &["progress"],
        &["source"],
        &["report"],
        &["run"],
        &["lib"],
    ],
};

const CHECK: Layers = Layers {
    sources: "crates/check/src",
    order: &[&["check_aof"], &["check_rdb"], &["report"], &["rdb"], &["aof"], &["lib"]],
};

const BENCHMARK: Layers = Layers {
    sources: "crates/benchmark/src",
    order: &[
        &["monitor"],
        &["scan"],
        &["error"],
        &["clock"],
        &["load"],
        &["cluster", "engine", "library", "outcome", "requester"],
        &["resources"],
        &["subject"],
        &["report"],
        &["delay"],
        &["noise"],
        &["options"],
        &["compare"],
        &["experiments", "html"],
        &["lib", "main"],
    ],
};

const CLIENT: Layers = Layers {
    sources: "crates/client/src",
    order: &[
        &["error"],
        &["arg"],
        &["tls"],
        &["wait"],
        &["reply"],
        &["poison"],
        &["address", "credentials"],
        &["sync"],
        &[
            "batch",
            "blocking",
            "client",
            "command",
            "commands",
            "effects",
            "lane",
            "observe",
            "request",
            "session",
            "subscriber",
        ],
        &["mock"],
        &["streamed"],
        &["json"],
        &["derived"],
        &["guides"],
        &["script"],
        &["scan"],
        &["cache"],
        &["recipes"],
        &["consumer"],
        &["lib"],
    ],
};

const CLUSTER: Layers = Layers {
    sources: "crates/cluster/src",
    order: &[
        &["id"],
        &["slots"],
        &["document"],
        &["change"],
        &["map"],
        &["view"],
        &["failover"],
        &["lib"],
    ],
};

const COORDINATE: Layers = Layers {
    sources: "crates/coordinate/src",
    order: &[
        &["clock", "stop"],
        // An error contains nodes, and the outcome of a change contains an error.
        &["error", "values"],
        &["coordinator"],
        &["setting"],
        &["local/files", "local/filesystem"],
        &["local/journal"],
        &["local/directory"],
        &["local/watch"],
        &["etcd/http"],
        &["etcd/messages", "etcd/version"],
        // The module file contains the options, the keys and the coordinator, which its submodules use.
        &["etcd"],
        &["fixed", "local", "model"],
        &["open"],
        &["lib"],
    ],
};

const TESTKIT: Layers = Layers {
    sources: "crates/testkit/src",
    order: &[
        &["wait"],
        &["words"],
        &["reply"],
        &["conn"],
        &["random"],
        &["writers"],
        &["port"],
        &["temp_dir"],
        &["hang"],
        &["server"],
        &["skip"],
        &["kind"],
        &["digest"],
        &["cluster"],
        &["sentinels"],
        &["matrix"],
        &["crowd"],
        &["proxy"],
        &["etcd"],
        &["brisk_cluster"],
        &["race"],
        &["lib"],
    ],
};

const ACL: Layers = Layers {
    sources: "crates/acl/src",
    order: &[&["rule"], &["selector"], &["user"], &["check"], &["file", "journal"], &["lib"]],
};

const CONFIG: Layers = Layers {
    sources: "crates/config/src",
    // A directive's row refers to the functions that parse, show and write its value, and these functions read the row.
    order: &[
        &["glob", "words"],
        &["include", "args", "value", "error"],
        &["choice", "config", "directive", "directives", "notify", "special"],
        // Loading a file creates the store, which contains the included files.
        &["file", "rewrite", "store"],
        &["system", "template"],
        &["fuzzing"],
        &["tests"],
        &["lib"],
    ],
};

const DERIVE: Layers =
    Layers { sources: "crates/derive/src", order: &[&["fields"], &["hash", "word"], &["lib"]] };

const DIAL: Layers =
    Layers { sources: "crates/dial/src", order: &[&["address"], &["tls"], &["stream"], &["lib"]] };

const FINDINGS: Layers =
    Layers { sources: "crates/findings/src", order: &[&["report"], &["rules"], &["lib"]] };

const DIFFERENTIAL: Layers = Layers {
    sources: "crates/differential/src",
    order: &[
        &["settings"],
        &["payloads", "rules", "table"],
        &["peer", "values", "reference"],
        &["listener", "compare"],
        &["generate", "scripts"],
        &["difference"],
        &["audience"],
        &["state"],
        &["arena"],
        &["access", "shrink"],
        &["lib"],
    ],
};

const NET: Layers =
    Layers { sources: "crates/net/src", order: &[&["tls"], &["listeners"], &["lib"]] };

const CHECKS: Layers = Layers {
    sources: "checks/src",
    order: &[
        &["outcome", "options", "cargo", "race", "diff"],
        &["bench"],
        &["cluster/nodes", "cluster/writer"],
        &["cluster"],
        &["documents", "package"],
        &["readme"],
        &["book/links"],
        &["book"],
        &["references/text"],
        &["references/differences", "references/facts", "references/replies", "references/syntax"],
        &["references/commands"],
        &["references/index"],
        &[
            "references/benchmarks",
            "references/configuration",
            "references/metrics",
            "references/ratios",
        ],
        &["references"],
        &["access", "hostile", "instructions"],
        &["main"],
    ],
};

const XTASK: Layers = Layers {
    sources: "xtask/src",
    order: &[
        &["cpu", "prose", "verified", "steps"],
        &["artifacts"],
        &["forward", "layers", "runner", "tidy"],
        &["ci", "nightly"],
        &["main"],
    ],
};

/// Finds imports of a file that its layer does not allow.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    // This file contains paths in strings.
    if path == "xtask/src/layers.rs" {
        return Vec::new();
    }
    let Some(layers) = LAYERS.iter().find(|layers| within(path, layers.sources).is_some()) else {
        return Vec::new();
    };
    layers.check(path, text)
}

impl Layers {
    fn check(&self, path: &str, text: &str) -> Vec<Finding> {
        let Some(own) = within(path, self.sources) else { return Vec::new() };
        let own = own.trim_end_matches(".rs").trim_end_matches("/mod");
        let found = |line, advice| Finding { path: path.to_owned(), line, advice };
        let Some(own_step) = self.step_of(own) else {
            let advice =
                "a file without a place among the layers: give it one in xtask/src/layers.rs";
            return vec![found(1, advice.to_owned())];
        };
        let mut findings = Vec::new();
        for (line, target) in imports(path, own, text) {
            match self.step_of(&target) {
                Some(step) if step <= own_step => {}
                Some(_) => findings.push(found(line, format!("`{own}` lies below `{target}`"))),
                None => findings.push(found(
                    line,
                    format!("`crate::{target}` has no place among the layers: name its directory"),
                )),
            }
        }
        findings
    }

    /// The layer of the longest place that contains a path.
    fn step_of(&self, path: &str) -> Option<usize> {
        let places = self.order.iter().enumerate();
        let places = places.flat_map(|(step, places)| places.iter().map(move |at| (step, *at)));
        let fitting = places.filter(|(_, place)| within(path, place).is_some());
        fitting.max_by_key(|(_, place)| place.len()).map(|(step, _)| step)
    }
}

/// The rest of a path after `directory`; empty if the path is `directory`.
fn within<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(directory)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// The paths that a file imports, each with its line. `crate::a::b` gives `a/b`, as does `super::b` in the file `a/c`.
fn imports(path: &str, own: &str, text: &str) -> Vec<(usize, String)> {
    let tests = first_test_line(path, text);
    let code: String = text
        .lines()
        .take(tests)
        .flat_map(|line| [if line.trim_start().starts_with("//") { "" } else { line }, "\n"])
        .collect();
    let mut found = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        // This must be the crate itself, not a macro's `$crate` or a visibility such as `in crate::x`.
        let before = &code[..at];
        let is_path = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        if is_path && !before.ends_with("pub(in ") {
            let line = before.matches('\n').count() + 1;
            let paths = expand(&code[at + start.len()..]);
            found.extend(paths.into_iter().map(|path| (line, path)));
        }
    }
    for (at, start) in code.match_indices("super::") {
        let before = &code[..at];
        // This must be the first of several `super`, and not a visibility. An indented import is in a module within the
        // file, for which `super` is the file.
        let is_path = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        if is_path && !before.ends_with("pub(in ") && !before.ends_with("    use ") {
            let above = |directory: &str| {
                directory.rsplit_once('/').map_or("", |(above, _)| above).to_owned()
            };
            let (mut after, mut directory) = (&code[at + start.len()..], above(own));
            while let Some(rest) = after.strip_prefix("super::") {
                (after, directory) = (rest, above(&directory));
            }
            let line = before.matches('\n').count() + 1;
            let within = |path: String| format!("{directory}/{path}").trim_matches('/').to_owned();
            found.extend(expand(after).into_iter().map(|path| (line, within(path))));
        }
    }
    found
}

/// The paths after `crate::`, one for each name in a list in braces.
fn expand(after: &str) -> Vec<String> {
    let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let head = &after[..after.find(end).unwrap_or(after.len())];
    let rest = &after[head.len()..];
    let head = head.trim_end_matches(':').replace("::", "/");
    if !rest.starts_with('{') {
        return vec![head];
    }
    let join = |name: String| match (head.as_str(), name.as_str()) {
        ("", _) => name,
        (_, "self") => head.clone(),
        _ => format!("{head}/{name}"),
    };
    names_of_list(rest).into_iter().flat_map(expand).map(join).collect()
}

/// The parts of the list in braces at the beginning of `text`.
fn names_of_list(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => {
                depth += 1;
                start = if depth == 1 { at + 1 } else { start };
            }
            b',' | b'}' if depth == 1 => {
                names.push(text[start..at].trim());
                start = at + 1;
                depth -= u32::from(byte == b'}');
            }
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: Layers = Layers {
        sources: "crates/house/src",
        order: &[&["cellar"], &["flat/floor"], &["flat", "stairs"], &["roof"]],
    };

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = HOUSE.check(path, text);
        findings.into_iter().map(|f| format!("{}: {}", f.line, f.advice)).collect()
    }

    #[test]
    fn an_import_that_goes_up_is_found_and_one_that_goes_down_is_not() {
        let text = "//! x\nuse crate::roof::Tile;\nuse crate::cellar::Wine;\n";
        assert_eq!(
            found("crates/house/src/stairs.rs", text),
            ["2: `stairs` lies below `roof/Tile`"]
        );
        assert!(found("crates/house/src/roof/mod.rs", text).is_empty());
    }

    #[test]
    fn files_of_one_step_can_import_one_another() {
        assert!(found("crates/house/src/stairs.rs", "use crate::flat::Door;").is_empty());
        assert!(found("crates/house/src/flat/mod.rs", "use crate::stairs::Step;").is_empty());
    }

    #[test]
    fn a_file_can_be_lower_than_its_directory() {
        let up = found("crates/house/src/flat/floor.rs", "use crate::flat::Door;");
        assert_eq!(up, ["1: `flat/floor` lies below `flat/Door`"]);
        assert!(found("crates/house/src/flat/door.rs", "use crate::flat::floor::Tile;").is_empty());
        assert!(found("crates/house/src/flat/floor/tile.rs", "use crate::flat::floor;").is_empty());
    }

    #[test]
    fn super_paths_are_paths_of_the_crate() {
        let up = found("crates/house/src/flat/floor.rs", "use super::{Door, floor::Tile};");
        assert_eq!(up, ["1: `flat/floor` lies below `flat/Door`"]);
        let up = found("crates/house/src/cellar/wine.rs", "fn f() { super::super::roof::leak() }");
        assert_eq!(up, ["1: `cellar/wine` lies below `roof/leak`"]);
        assert!(found("crates/house/src/flat/door.rs", "use super::floor::Tile;").is_empty());
        assert!(
            found("crates/house/src/flat/door.rs", "pub(in super::x) use super::*;").is_empty()
        );
    }

    #[test]
    fn every_name_of_a_list_is_looked_at_also_over_several_lines() {
        let text = "use crate::{\n    cellar::{Wine, Coal},\n    roof::{self, Tile},\n};\n";
        let up = found("crates/house/src/stairs.rs", text);
        assert_eq!(up, ["1: `stairs` lies below `roof`", "1: `stairs` lies below `roof/Tile`"]);
    }

    #[test]
    fn a_path_within_code_is_found_and_a_name_of_the_root_has_to_be_spelled_out() {
        let up = found("crates/house/src/cellar.rs", "fn f() {\n    crate::roof::leak();\n}\n");
        assert_eq!(up, ["2: `cellar` lies below `roof/leak`"]);
        let root = found("crates/house/src/roof.rs", "use crate::Tile;");
        assert_eq!(root, ["1: `crate::Tile` has no place among the layers: name its directory"]);
    }

    #[test]
    fn comments_tests_and_visibilities_are_not_imports() {
        let text = "//! See [`crate::roof`].\npub(in crate::roof) fn f() {}\n// crate::roof\n\
                    #[cfg(test)]\nmod tests {\n    use crate::roof::Tile;\n}\n";
        assert!(found("crates/house/src/cellar.rs", text).is_empty());
        assert!(found("crates/house/src/cellar/tests.rs", "use crate::roof::Tile;").is_empty());
        assert!(
            found("crates/house/src/cellar/tests/wine.rs", "use crate::roof::Tile;").is_empty()
        );
    }

    #[test]
    fn every_crate_of_the_workspace_has_a_row() {
        let crates = std::fs::read_dir(crate::steps::workspace_root().join("crates"));
        for entry in crates.expect("the crates of the workspace") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            let sources = format!("crates/{name}/src");
            // A crate with a single file has no layers.
            let is_one_file = std::fs::read_dir(crate::steps::workspace_root().join(&sources))
                .is_ok_and(|files| files.count() == 1);
            assert!(is_one_file || LAYERS.iter().any(|row| row.sources == sources), "{sources}");
        }
    }

    #[test]
    fn a_file_without_a_place_is_found() {
        assert_eq!(found("crates/house/src/shed.rs", "").len(), 1);
        assert!(check("crates/elsewhere/src/shed.rs", "use crate::roof;").is_empty());
    }
}
