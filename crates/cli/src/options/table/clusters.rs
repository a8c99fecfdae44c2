//! Options for clusters, and options about the program itself.

use super::super::{Mode, parse};
use super::{Completed, InfoRequest, OptionAction, Row, Section};

pub(super) const CLUSTERS: Section = Section {
    title: "Cluster administration",
    rows: &[
        Row::value(
            &["--cluster"],
            "<command> [argument ...] [option ...]",
            "Creates and manages clusters; `brisk-cli --cluster help` lists the commands. \
             The options below belong to it.",
            |options, words| {
                options.mode = Mode::Cluster;
                options.cluster.command = words.value();
                options.cluster.arguments = parse::up_to_option(words);
                Ok(())
            },
        )
        .completed(Completed::ClusterCommand),
        Row::value(&["--cluster-replicas"], "<n>", "Number of replicas per master.", |options, words| {
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
            "Source nodes of slots, or the server whose keys are imported.",
            |options, words| {
                options.cluster.from = Some(words.text());
                Ok(())
            },
        ),
        Row::value(
            &["--cluster-from-user"],
            "<name>",
            "User name for the server whose keys are imported.",
            |options, words| {
                options.cluster.from_user = Some(words.value());
                Ok(())
            },
        ),
        Row::value(&["--cluster-from-pass"], "<password>", "Password for that server.", |options, words| {
            options.cluster.from_password = Some(words.value());
            Ok(())
        }),
        Row::flag(&["--cluster-from-askpass"], "Prompts for that password.", |options| {
            options.cluster.asks_from_password = true;
        }),
        Row::value(&["--cluster-to"], "<id>", "Destination node of slots.", |options, words| {
            options.cluster.to = Some(words.text());
            Ok(())
        }),
        Row::value(&["--cluster-slots"], "<n>", "Number of slots to move.", |options, words| {
            options.cluster.slots = words.natural();
            Ok(())
        }),
        Row::value(
            &["--cluster-weight"],
            "<id=weight> ...",
            "Relative shares of the slots per node (1 each).",
            |options, words| {
                let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
                options.cluster.weights =
                    parse::up_to_option(words).into_iter().map(text).collect();
                Ok(())
            },
        ),
        Row::flag(
            &["--cluster-use-empty-masters"],
            "Includes masters without slots.",
            |options| options.cluster.use_empty_masters = true,
        ),
        Row::value(
            &["--cluster-threshold"],
            "<percent>",
            "Moves no slots for nodes within this percentage of their share (2).",
            |options, words| {
                options.cluster.threshold = words.decimal();
                Ok(())
            },
        ),
        Row::flag(&["--cluster-simulate"], "Prints what would be moved, and moves nothing.", |options| {
            options.cluster.simulate = true;
        }),
        Row::value(
            &["--cluster-timeout"],
            "<ms>",
            "Timeout of MIGRATE (60000).",
            |options, words| {
                options.cluster.timeout_ms = words.number();
                Ok(())
            },
        ),
        Row::value(&["--cluster-pipeline"], "<n>", "Number of keys per MIGRATE (10).", |options, words| {
            options.cluster.pipeline = words.natural().max(1);
            Ok(())
        }),
        Row::flag(&["--cluster-replace"], "Overwrites existing keys of the destination.", |options| {
            options.cluster.replace = true;
        }),
        Row::flag(&["--cluster-copy"], "Keeps the imported keys on the source.", |options| {
            options.cluster.copy = true;
        }),
        Row::flag(
            &["--cluster-search-multiple-owners"],
            "Also checks for slots that several masters own.",
            |options| options.cluster.search_multiple_owners = true,
        ),
        Row::flag(
            &["--cluster-fix-with-unreachable-masters"],
            "Fixes the cluster even if masters are unreachable; their keys may be lost.",
            |options| options.cluster.fix_with_unreachable_masters = true,
        ),
        Row::flag(&["--cluster-only-masters"], "Runs the command on masters only.", |options| {
            options.cluster.only_masters = true;
        }),
        Row::flag(&["--cluster-only-replicas"], "Runs the command on replicas only.", |options| {
            options.cluster.only_replicas = true;
        }),
        Row::flag(&["--cluster-yes"], "Answers yes to all questions.", |options| options.cluster.yes = true),
        Row::value(
            &["--nodes"],
            "<n>",
            "Number of primaries for start-local (3).",
            |options, words| {
                options.cluster.local.nodes = Some(words.text());
                Ok(())
            },
        ),
        Row::value(
            &["--replicas"],
            "<n>",
            "Number of replicas per primary for start-local (1).",
            |options, words| {
                options.cluster.local.replicas = Some(words.text());
                Ok(())
            },
        ),
        Row::value(
            &["--dir"],
            "<directory>",
            "Directory for start-local and stop-local (./brisk-cluster). -p sets the first port (7000).",
            |options, words| {
                options.cluster.local.dir = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::Directory),
        Row::value(
            &["--server"],
            "<path>",
            "Server program for start-local (brisk-server next to brisk-cli, or in PATH).",
            |options, words| {
                options.cluster.local.server = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
    ],
};

/// An option that prints information about the program.
const fn prints(names: &'static [&'static str], text: &'static str, info: InfoRequest) -> Row {
    let (old_names, completed) = (&[], Completed::Nothing);
    Row { names, old_names, value: "", completed, text, does: OptionAction::Prints(info) }
}

pub(super) const PROGRAM: Section = Section {
    title: "Other options",
    rows: &[
        Row::flag(
            &["--verbose"],
            "Prints more: the balance of each node (--cluster rebalance).",
            |options| options.verbose = true,
        ),
        prints(&["--help"], "Prints this help.", InfoRequest::Help),
        prints(&["-v", "--version"], "Prints the version.", InfoRequest::Version),
        prints(&["--man"], "Prints the manual page.", InfoRequest::Manual),
        Row {
            value: "<shell>",
            completed: Completed::Word(&["bash", "zsh", "fish"]),
            ..prints(
                &["--completions"],
                "Prints the shell completions for bash, zsh or fish.",
                InfoRequest::Completions,
            )
        },
    ],
};
