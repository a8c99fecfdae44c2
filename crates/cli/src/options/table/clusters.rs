//! Options of clusters, and those about the program itself.

use super::super::{Mode, parse};
use super::{Completed, Does, Row, Section, Told};

pub(super) const CLUSTERS: Section = Section {
    title: "Clusters",
    rows: &[
        Row::value(
            &["--cluster"],
            "<command> [argument ...] [option ...]",
            "Makes clusters and looks after them; `brisk-cli --cluster help` lists the commands. \
             The options below belong to it.",
            |options, words| {
                options.mode = Mode::Cluster;
                options.cluster.command = words.value();
                options.cluster.arguments = parse::up_to_option(words);
                Ok(())
            },
        )
        .completed(Completed::ClusterCommand),
        Row::value(&["--cluster-replicas"], "<n>", "Replicas of each master.", |options, words| {
            options.cluster.replicas = words.natural();
            Ok(())
        }),
        Row::value(
            &["--cluster-master-id"],
            "<id>",
            "Master of a new replica.",
            |options, words| {
                options.cluster.master_id = Some(words.text());
                Ok(())
            },
        ),
        Row::flag(&["--cluster-slave"], "The new node is a replica.", |options| {
            options.cluster.as_replica = true;
        }),
        Row::value(
            &["--cluster-from"],
            "<id,...|all|host:port>",
            "Nodes that give slots, or the server whose keys are imported.",
            |options, words| {
                options.cluster.from = Some(words.text());
                Ok(())
            },
        ),
        Row::value(
            &["--cluster-from-user"],
            "<name>",
            "User at the server whose keys are imported.",
            |options, words| {
                options.cluster.from_user = Some(words.value());
                Ok(())
            },
        ),
        Row::value(&["--cluster-from-pass"], "<word>", "Password there.", |options, words| {
            options.cluster.from_password = Some(words.value());
            Ok(())
        }),
        Row::flag(&["--cluster-from-askpass"], "Asks for that password.", |options| {
            options.cluster.asks_from_password = true;
        }),
        Row::value(&["--cluster-to"], "<id>", "Node that gets slots.", |options, words| {
            options.cluster.to = Some(words.text());
            Ok(())
        }),
        Row::value(&["--cluster-slots"], "<n>", "Slots to move.", |options, words| {
            options.cluster.slots = words.natural();
            Ok(())
        }),
        Row::value(
            &["--cluster-weight"],
            "<id=weight> ...",
            "Shares of the nodes in the slots (1 each).",
            |options, words| {
                let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
                options.cluster.weights =
                    parse::up_to_option(words).into_iter().map(text).collect();
                Ok(())
            },
        ),
        Row::flag(
            &["--cluster-use-empty-masters"],
            "Masters without slots get their share.",
            |options| options.cluster.use_empty_masters = true,
        ),
        Row::value(
            &["--cluster-threshold"],
            "<percent>",
            "Nodes that are no further off their share stay as they are (2).",
            |options, words| {
                options.cluster.threshold = words.decimal();
                Ok(())
            },
        ),
        Row::flag(&["--cluster-simulate"], "Shows what would be moved.", |options| {
            options.cluster.simulate = true;
        }),
        Row::value(
            &["--cluster-timeout"],
            "<ms>",
            "Longest time of a MIGRATE (60000).",
            |options, words| {
                options.cluster.timeout_ms = words.number();
                Ok(())
            },
        ),
        Row::value(&["--cluster-pipeline"], "<n>", "Keys of a MIGRATE (10).", |options, words| {
            options.cluster.pipeline = words.natural().max(1);
            Ok(())
        }),
        Row::flag(&["--cluster-replace"], "Overwrites keys that the target has.", |options| {
            options.cluster.replace = true;
        }),
        Row::flag(&["--cluster-copy"], "Keeps the keys that are imported.", |options| {
            options.cluster.copy = true;
        }),
        Row::flag(
            &["--cluster-search-multiple-owners"],
            "Looks for slots that several masters claim.",
            |options| options.cluster.search_multiple_owners = true,
        ),
        Row::flag(
            &["--cluster-fix-with-unreachable-masters"],
            "Mends even if masters do not answer, whose keys may be lost by it.",
            |options| options.cluster.fix_with_unreachable_masters = true,
        ),
        Row::flag(&["--cluster-only-masters"], "Calls the masters.", |options| {
            options.cluster.only_masters = true;
        }),
        Row::flag(&["--cluster-only-replicas"], "Calls the replicas.", |options| {
            options.cluster.only_replicas = true;
        }),
        Row::flag(&["--cluster-yes"], "Asks nothing.", |options| options.cluster.yes = true),
        Row::value(
            &["--nodes"],
            "<n>",
            "Primaries that start-local starts (3).",
            |options, words| {
                options.cluster.local.nodes = Some(words.natural());
                Ok(())
            },
        ),
        Row::value(
            &["--replicas"],
            "<n>",
            "Replicas that start-local starts for each of them (1).",
            |options, words| {
                options.cluster.local.replicas = Some(words.natural());
                Ok(())
            },
        ),
        Row::value(
            &["--dir"],
            "<directory>",
            "Directory of start-local and stop-local (./brisk-cluster). The first port is that of -p (7000).",
            |options, words| {
                options.cluster.local.dir = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::Folder),
        Row::value(
            &["--server"],
            "<path>",
            "Program that start-local runs (brisk-server next to brisk-cli, or in PATH).",
            |options, words| {
                options.cluster.local.server = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
    ],
};

/// Tells something about the program.
const fn tells(names: &'static [&'static str], text: &'static str, told: Told) -> Row {
    let (old_names, completed) = (&[], Completed::Nothing);
    Row { names, old_names, value: "", completed, text, does: Does::Tells(told) }
}

pub(super) const PROGRAM: Section = Section {
    title: "About the program",
    rows: &[
        Row::flag(
            &["--verbose"],
            "Says more: how far each node is off its share (--cluster rebalance).",
            |options| options.verbose = true,
        ),
        tells(&["--help"], "Prints this text.", Told::Help),
        tells(&["-v", "--version"], "Prints the version.", Told::Version),
        tells(&["--man"], "Prints the manual page.", Told::Manual),
        Row {
            value: "<shell>",
            completed: Completed::Word(&["bash", "zsh", "fish"]),
            ..tells(
                &["--completions"],
                "Prints the completions for bash, zsh or fish.",
                Told::Completions,
            )
        },
    ],
};
