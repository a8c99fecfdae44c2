//! CLIENT LIST, CLIENT INFO: one line for each connection. `brisk_node::core::client_lines` writes the lines.

use super::{ADMIN, Kind, ROW};
use brisk_engine::command::{Arg, Spec};
use brisk_engine::long::LongCommand;
use brisk_engine::number::parse_i64;
use brisk_engine::{Args, CommandError, Outcome, Result};
use brisk_node::clients::{ClientRecord, Clients};
use brisk_node::core::Core;
use brisk_node::core::call::{Call, Command};
use brisk_node::core::client_lines::Writer;
use std::sync::Arc;

pub(super) const INFO: Command = Command {
    spec: Spec {
        name: "info",
        summary: "Describes the connection in one line.",
        since: "6.2.0",
        arity: 2,
        tips: &["nondeterministic_output"],
        ..ROW
    },
    run: info,
    subcommands: &[],
};

fn info(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let record = Arc::clone(&call.session.record);
    let text = Writer::new(call, args).lines(&[record]);
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

pub(super) const LIST: Command = Command {
    spec: Spec {
        name: "list",
        summary: "Describes connections, one per line.",
        since: "2.4.0",
        complexity: "O(N) in the number of connections.",
        arity: -2,
        flags: ADMIN,
        tips: &["nondeterministic_output"],
        args: &[
            Arg::one_of(
                "normal_master_replica_pubsub",
                &[
                    Arg::token("normal", "NORMAL"),
                    Arg::token("master", "MASTER"),
                    Arg::token("replica", "REPLICA"),
                    Arg::token("pubsub", "PUBSUB"),
                ],
            )
            .after("TYPE")
            .optional()
            .since("5.0.0"),
            Arg::block("id", &[Arg::integer("client-id").multiple()])
                .after("ID")
                .optional()
                .since("6.2.0"),
        ],
        history: &[
            ("2.8.12", "Lines have `id`."),
            ("5.0.0", "Accepts the filter `TYPE`."),
            ("6.0.0", "Lines have `user`."),
            (
                "6.2.0",
                "Lines have `argv-mem`, `tot-mem`, `laddr` and `redir`. Accepts the filter `ID`.",
            ),
            ("7.0.0", "Lines have `resp`, `multi-mem`, `rbs` and `rbp`."),
            ("7.0.3", "Lines have `ssub`."),
        ],
        ..ROW
    },
    run: list,
    subcommands: &[],
};

/// Maximum number of lines that the worker writes itself. If there are more clients, another thread writes the lines,
/// because a line takes some microseconds.
const LINES_AT_ONCE_MAX: u64 = 256;

fn list(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let selection = Selection::of_words(&mut args.clone(), call.core)?;
    let writer = Writer::new(call, args);
    let shared = call.core.shared;
    if call.in_exec() || selection.is_short() || shared.clients.count() <= LINES_AT_ONCE_MAX {
        let text = writer.lines(&selection.find(&shared.clients));
        return Ok(call.reply.verbatim(*b"txt", text.as_bytes()));
    }
    let client = call.client();
    let words: Vec<&[u8]> = args.arguments().collect();
    let row = (call.row.spec, call.row.parent);
    let long = LongCommand::reply_with(row, call.session.db(), &words, client, move |reply| {
        let text = writer.lines(&selection.find(&shared.clients));
        reply.verbatim(*b"txt", text.as_bytes())
    });
    call.core.env.leave_long(long);
    Ok(Outcome::Elsewhere)
}

/// The clients that the command's options select.
enum Selection {
    All,
    Kind(Kind),
    Ids(Vec<u64>),
}

impl Selection {
    fn of_words(args: &mut Args<'_>, core: &Core) -> Result<Selection> {
        if args.remaining() == 0 {
            return Ok(Selection::All);
        }
        if args.remaining() == 2 && args.take("TYPE") {
            return Ok(Selection::Kind(Kind::of_word(args.bytes()?, core)?));
        }
        if args.remaining() < 2 || !args.take("ID") {
            return Err(CommandError::Syntax);
        }
        let mut ids = Vec::new();
        while let Some(word) = args.optional() {
            let id = parse_i64(word).ok_or_else(|| CommandError::text("ERR Invalid client ID"))?;
            ids.extend(u64::try_from(id));
        }
        Ok(Selection::Ids(ids))
    }

    fn is_short(&self) -> bool {
        matches!(self, Selection::Ids(ids) if ids.len() as u64 <= LINES_AT_ONCE_MAX)
    }

    /// Returns the selected clients. O(clients), or O(ids x workers) for ids.
    fn find(&self, clients: &Clients) -> Vec<Arc<ClientRecord>> {
        match self {
            Selection::All => clients.list(),
            Selection::Kind(kind) => {
                let mut all = clients.list();
                all.retain(|record| Kind::of(record) == *kind);
                all
            }
            Selection::Ids(ids) => ids.iter().filter_map(|id| clients.find(*id)).collect(),
        }
    }
}
