//! XADD, XLEN, XSETID.

use super::entries::reply_id;
use super::id::{self, ParsedId, Seq};
use super::trim::{TrimOptions, TrimResult};
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::env::effect::EventClass;
use crate::keyspace::UnixMs;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::stream::{Stream, StreamId, block_limits};

/// Maximum size of an entry, as in Redis: the capacity of a block.
const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The ID argument of XADD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdArgument {
    Auto,
    Id(ParsedId),
}

impl IdArgument {
    /// The ID of the new entry.
    fn choose(self, last: StreamId, now: UnixMs) -> Result<StreamId> {
        if last == StreamId::MAX {
            let text =
                "ERR The stream has exhausted the last possible ID, unable to add more items";
            return Err(CommandError::text(text));
        }
        let chosen = match self {
            IdArgument::Auto if now.0 > last.ms => Some(StreamId { ms: now.0, seq: 0 }),
            IdArgument::Auto => last.next(),
            IdArgument::Id(ParsedId { ms, seq: Seq::Auto }) if ms == last.ms => {
                last.seq.checked_add(1).map(|seq| StreamId { ms, seq })
            }
            IdArgument::Id(ParsedId { ms, seq: Seq::Given(seq) }) => Some(StreamId { ms, seq }),
            IdArgument::Id(ParsedId { ms, .. }) => Some(StreamId { ms, seq: 0 }),
        };
        chosen.filter(|id| *id > last).ok_or_else(|| {
            let text = "ERR The ID specified in XADD is equal or smaller than the target stream \
                        top item";
            CommandError::text(text)
        })
    }
}

fn xadd(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let mut options = TrimOptions::default();
    let mut make = true;
    let mut id_argument = None;
    let mut id_at = 0;
    while args.remaining() > 0 {
        id_at = args.position();
        if args.take("*") {
            id_argument = Some(IdArgument::Auto);
            break;
        } else if options.take(args)? {
        } else if args.take("NOMKSTREAM") {
            make = false;
        } else {
            id_argument = Some(IdArgument::Id(id::parse_written(args.bytes()?)?));
            break;
        }
    }
    let trimming = options.finish(ctx.keys.env().is_replay())?;
    let id_argument =
        id_argument.filter(|_| args.remaining() >= 2 && args.remaining().is_multiple_of(2));
    let id_argument = id_argument.ok_or_else(|| ctx.wrong_arity())?;
    if id_argument == IdArgument::Id(ParsedId { ms: 0, seq: Seq::Given(0) })
        || id_argument == IdArgument::Id(ParsedId { ms: 0, seq: Seq::Missing })
    {
        return Err(CommandError::text("ERR The ID specified in XADD must be greater than 0-0"));
    }
    if !make && ctx.keys.open_mut::<Stream>(&key)?.is_none() {
        return Ok(ctx.reply.null());
    }
    let words = args.rest();
    if words.clone().map(<[u8]>::len).sum::<usize>() > ENTRY_BYTES_MAX {
        return Err(CommandError::text("ERR Elements are too large to be stored"));
    }
    let now = ctx.now();
    let (id, trimmed, remains) = ctx.keys.upsert::<Stream, _>(&key, |stream, limits| {
        let id = id_argument.choose(stream.last_id, now)?;
        stream.append(id, words, &block_limits(limits));
        let trimmed = trimming.map_or(0, |trimming| trimming.run(stream, limits));
        Ok(Edit::new((id, trimmed, TrimResult::of(stream)), 1, "xadd"))
    })?;
    if trimmed > 0 {
        ctx.keys.notify_event(&key, EventClass::STREAM, "xtrim");
    }
    let approximate = trimming.filter(|trimming| trimming.approximate);
    let chosen =
        matches!(id_argument, IdArgument::Auto | IdArgument::Id(ParsedId { seq: Seq::Auto, .. }));
    if chosen || approximate.is_some() {
        ctx.keys.propagate(|| {
            let mut words: Vec<Vec<u8>> = args.arguments().map(<[u8]>::to_vec).collect();
            words[id_at] = id::word(id);
            if let Some(trimming) = approximate {
                trimming.make_exact(&mut words, remains);
            }
            words
        });
    }
    Ok(reply_id(&mut ctx.reply, id))
}

fn xlen(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let len = ctx.keys.open::<Stream>(&key)?.map_or(0, Stream::len);
    Ok(ctx.reply.count(len))
}

fn xsetid(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let last_id = id::parse(args.bytes()?, 0)?;
    let mut entries_added = None;
    let mut max_deleted_id = None;
    while args.remaining() > 0 {
        if args.remaining() >= 2 && args.take("ENTRIESADDED") {
            let positive = || CommandError::text("ERR entries_added must be positive");
            entries_added = Some(u64::try_from(args.integer()?).map_err(|_| positive())?);
        } else if args.remaining() >= 2 && args.take("MAXDELETEDID") {
            let id = id::parse(args.bytes()?, 0)?;
            if last_id < id {
                return Err(CommandError::text(
                    "ERR The ID specified in XSETID is smaller than the provided \
                     max_deleted_entry_id",
                ));
            }
            max_deleted_id = Some(id);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let done = ctx.keys.update::<Stream, _>(&key, |stream, _| {
        let refuse = |text: &'static str| Err(CommandError::text(text));
        if last_id < stream.max_deleted_id {
            return refuse(
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
            );
        }
        if stream.entries().last().is_some_and(|last| last_id < last.id) {
            return refuse(
                "ERR The ID specified in XSETID is smaller than the target stream top item",
            );
        }
        if entries_added.is_some_and(|added| added < stream.len() as u64) {
            return refuse(
                "ERR The entries_added specified in XSETID is smaller than the target stream \
                 length",
            );
        }
        stream.last_id = last_id;
        stream.entries_added = entries_added.unwrap_or(stream.entries_added);
        stream.max_deleted_id = max_deleted_id.unwrap_or(stream.max_deleted_id);
        Ok(Edit::new((), 1, "xsetid").metadata_only())
    })?;
    done.ok_or(CommandError::NoSuchKey)?;
    Ok(ctx.reply.ok())
}

const XADD: Command = Command {
    spec: Spec {
        name: "xadd",
        group: Group::Stream,
        summary: "Appends an entry to a stream. Creates the key if it does not exist.",
        since: "5.0.0",
        complexity: "O(1) for the new entry, and O(N) for N entries that are trimmed.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::token("nomkstream", "NOMKSTREAM").optional().since("6.2.0"),
            Arg::block(
                "trim",
                &[
                    Arg::one_of(
                        "strategy",
                        &[
                            Arg::token("maxlen", "MAXLEN"),
                            Arg::token("minid", "MINID").since("6.2.0"),
                        ],
                    ),
                    Arg::one_of(
                        "operator",
                        &[Arg::token("equal", "="), Arg::token("approximately", "~")],
                    )
                    .optional(),
                    Arg::string("threshold"),
                    Arg::integer("count").after("LIMIT").optional().since("6.2.0"),
                ],
            )
            .optional(),
            Arg::one_of("id_or_auto", &[Arg::token("auto_id", "*"), Arg::string("id")]),
            Arg::block("field_value", &[Arg::string("field"), Arg::string("value")]).multiple(),
        ],
        history: &[
            ("6.2.0", "Accepts the options `NOMKSTREAM`, `MINID` and `LIMIT`."),
            ("7.0.0", "Accepts IDs of the form `<ms>-*`."),
        ],
        ..Spec::EMPTY
    },
    run: xadd,
    subcommands: &[],
};

const XLEN: Command = Command {
    spec: Spec {
        name: "xlen",
        group: Group::Stream,
        summary: "Returns the number of entries in a stream.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::at(1).read_only(KeyFlags::empty())],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: xlen,
    subcommands: &[],
};

const XSETID: Command = Command {
    spec: Spec {
        name: "xsetid",
        group: Group::Stream,
        summary: "Sets the last ID of a stream.",
        since: "5.0.0",
        complexity: "O(1)",
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::string("last-id"),
            Arg::integer("entries_added").after("ENTRIESADDED").optional().since("7.0.0"),
            Arg::string("max_deleted_entry_id").after("MAXDELETEDID").optional().since("7.0.0"),
        ],
        history: &[("7.0.0", "Accepts the options `ENTRIESADDED` and `MAXDELETEDID`.")],
        ..Spec::EMPTY
    },
    run: xsetid,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[XADD, XLEN, XSETID];
