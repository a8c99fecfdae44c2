//! XREAD, and the part that it shares with XREADGROUP: the list of streams, and blocking.

use super::entries::{EntryRange, reply_id, reply_ranges};
use super::group::read_group::{GroupRead, read_as_consumer};
use super::id;
use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::cursor::Cursor;
use crate::command::{Arg, ArgLookup, Begin, Find, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{EmptyReply, Key};
use crate::reply::{Outcome, Reply};
use crate::types::ValueKind;
use crate::types::stream::{Entries, Stream, StreamId};
use brisk_resp::Protocol;
use smallvec::SmallVec;
use std::ops::Range;

/// The arguments of a call.
pub(super) struct ReadOptions<'a> {
    pub(super) count: Option<usize>,
    block_ms: Option<u64>,
    pub(super) group: Option<GroupRead<'a>>,
    /// Keys and IDs, in the order of the arguments.
    pub(super) streams: SmallVec<[(Key<'a>, &'a [u8]); 4]>,
    /// Index of the first ID among the arguments.
    ids_at: usize,
}

/// The start of reading in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadFrom {
    /// The entries after an ID.
    After(StreamId),
    /// The entries that the group has not delivered yet.
    New,
}

fn xread(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let call = parse(args, false)?;
    let mut starts: SmallVec<[StreamId; 4]> = SmallVec::new();
    for (key, word) in &call.streams {
        let stream = ctx.keys.open::<Stream>(key)?;
        starts.push(match *word {
            b"$" => stream.map_or(StreamId::MIN, |stream| stream.last_id),
            // The last entry itself, as in later versions of Redis.
            b"+" => {
                let last = stream.and_then(|stream| stream.entries().last());
                last.and_then(|last| last.id.prev()).unwrap_or_default()
            }
            b">" => {
                return Err(CommandError::text(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                     <group> <consumer> option.",
                ));
            }
            word => id::parse(word, 0)?,
        });
    }
    let mut served: SmallVec<[(Entries, StreamId, &[u8]); 4]> = SmallVec::new();
    for ((key, _), start) in call.streams.iter().zip(&starts) {
        // A second lookup, which Redis counts too.
        let entry = ctx.keys.peek(key);
        if let Some(stream) = entry.and_then(|entry| entry.stream())
            && let Some(start) = start.next()
            && stream.entries().last().is_some_and(|last| last.id >= start)
        {
            served.push((stream.entries().clone(), start, key.bytes));
        }
    }
    if served.is_empty() {
        return Ok(wait(ctx, args, &call, |at| id::word(starts[at])));
    }
    announce(&mut ctx.reply, served.len());
    let count = call.count;
    let ranges = served.into_iter().map(|(entries, start, key)| {
        let wanted = EntryRange { start, end: StreamId::MAX, count, reversed: false };
        (key.to_vec(), entries, wanted)
    });
    Ok(reply_ranges(&mut ctx.reply, ranges.collect(), open_stream))
}

fn xreadgroup(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let call = parse(args, true)?;
    read_as_consumer(ctx, args, &call)
}

/// Writes the header for the streams that follow.
pub(super) fn announce(reply: &mut Reply<'_>, streams: usize) {
    match reply.protocol() {
        Protocol::Resp2 => reply.array(streams),
        Protocol::Resp3 => reply.map(streams),
    };
}

/// Begins one stream with its key.
pub(super) fn open_stream(reply: &mut Reply<'_>, key: &[u8]) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

/// An ID whose entry has been deleted.
pub(super) fn reply_deleted(reply: &mut Reply<'_>, id: StreamId) {
    reply.array(2);
    reply_id(reply, id);
    reply.null_array();
}

/// There is nothing to read: the client waits if it has requested that. `id` returns the ID of each
/// stream for the repeated request.
pub(super) fn wait(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    call: &ReadOptions<'_>,
    id: impl Fn(usize) -> Vec<u8>,
) -> Outcome {
    let Some(timeout_ms) = call.block_ms else { return ctx.reply.null_array() };
    let mut words: Vec<Vec<u8>> = args.arguments().map(<[u8]>::to_vec).collect();
    for at in 0..call.streams.len() {
        words[call.ids_at + at] = id(at);
    }
    let keys: Vec<Key<'_>> = call.streams.iter().map(|(key, _)| *key).collect();
    let group = call.group.as_ref().map(|member| member.group);
    ctx.wait_in_group(&words, ValueKind::Stream, &keys, group, timeout_ms, EmptyReply::NullArray)
}

/// One option, with the arguments that belong to it.
enum ReadOption<'w> {
    Block(&'w [u8]),
    Count(&'w [u8]),
    Group {
        group: &'w [u8],
        consumer: &'w [u8],
    },
    NoAck,
    /// The last option. The keys follow, then as many IDs.
    Streams(Range<usize>),
}

/// Takes an option. The options may come in any order, and their arguments may look like options.
fn next_option<'w>(
    words: &mut Cursor<impl Fn(usize) -> &'w [u8]>,
    in_group: bool,
) -> Result<ReadOption<'w>> {
    let word = words.optional().ok_or(CommandError::Syntax)?;
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let more = words.remaining();
    if is("BLOCK") && more >= 1 {
        words.optional().map(ReadOption::Block).ok_or(CommandError::Syntax)
    } else if is("COUNT") && more >= 1 {
        words.optional().map(ReadOption::Count).ok_or(CommandError::Syntax)
    } else if is("STREAMS") && more >= 1 {
        if !more.is_multiple_of(2) {
            return Err(unbalanced(in_group));
        }
        words.take_range(more / 2).map(ReadOption::Streams).ok_or(CommandError::Syntax)
    } else if is("GROUP") && more >= 2 {
        if !in_group {
            return Err(only_in_group("GROUP"));
        }
        let [group, consumer] = words.take().ok_or(CommandError::Syntax)?;
        Ok(ReadOption::Group { group, consumer })
    } else if is("NOACK") {
        if !in_group {
            return Err(only_in_group("NOACK"));
        }
        Ok(ReadOption::NoAck)
    } else {
        Err(CommandError::Syntax)
    }
}

/// The keys of a request, for locks and access control.
fn find_streams(argc: usize, word: ArgLookup<'_, '_>, in_group: bool) -> Option<Range<usize>> {
    let mut words = Cursor::new(word, argc, 1);
    loop {
        if let ReadOption::Streams(keys) = next_option(&mut words, in_group).ok()? {
            return Some(keys);
        }
    }
}

fn streams_of_xread(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    find_streams(argc, word, false)
}

fn streams_of_xreadgroup(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    find_streams(argc, word, true)
}

fn parse<'a>(args: &mut Args<'a>, in_group: bool) -> Result<ReadOptions<'a>> {
    let mut call = ReadOptions {
        count: None,
        block_ms: None,
        group: None,
        streams: SmallVec::new(),
        ids_at: 0,
    };
    let mut no_ack = false;
    let mut member = None;
    let mut words = args.cursor();
    let keys = loop {
        match next_option(&mut words, in_group)? {
            ReadOption::Block(timeout) => call.block_ms = Some(parse_block(timeout)?),
            ReadOption::Count(count) => {
                // Zero and negative counts mean all.
                let count = parse_i64(count).ok_or(CommandError::NotAnInteger)?;
                call.count = usize::try_from(count).ok().filter(|count| *count > 0);
            }
            ReadOption::Group { group, consumer } => member = Some((group, consumer)),
            ReadOption::NoAck => no_ack = true,
            ReadOption::Streams(keys) => break keys,
        }
    };
    args.skip_to(keys.start);
    call.ids_at = keys.end;
    for at in 0..keys.len() {
        call.streams.push((args.key()?, args.argument(call.ids_at + at)));
    }
    if in_group {
        let missing = || CommandError::text("ERR Missing GROUP option for XREADGROUP");
        let (group, consumer) = member.ok_or_else(missing)?;
        call.group = Some(GroupRead { group, consumer, no_ack });
    }
    Ok(call)
}

fn unbalanced(in_group: bool) -> CommandError {
    let (name, symbol) = if in_group { ("xreadgroup", '>') } else { ("xread", '$') };
    CommandError::text(format!(
        "ERR Unbalanced '{name}' list of streams: for each stream key an ID or '{symbol}' must be \
         specified."
    ))
}

fn only_in_group(option: &str) -> CommandError {
    CommandError::text(format!(
        "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
    ))
}

/// A timeout in milliseconds; 0 means no timeout.
fn parse_block(word: &[u8]) -> Result<u64> {
    let text = "ERR timeout is not an integer or out of range";
    let ms = parse_i64(word).ok_or_else(|| CommandError::text(text))?;
    u64::try_from(ms).map_err(|_| CommandError::text("ERR timeout is negative"))
}

const XREAD: Command = Command {
    spec: Spec {
        name: "xread",
        group: Group::Stream,
        summary: "Returns the entries of streams after given IDs. May block until entries arrive.",
        since: "5.0.0",
        complexity: "For each stream mentioned: O(N) in the number of entries returned. An XADD is O(M) in the number of clients that it unblocks.",
        arity: -4,
        flags: Flags::READONLY.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
        keys: &[KeySpec {
            begin: Begin::Keyword { keyword: "STREAMS", from: 1 },
            find: Find::Range { last: -1, step: 1, limit: 2 },
            ..KeySpec::unknown()
        }
        .read_only(KeyFlags::ACCESS)
        .found_by(streams_of_xread)],
        args: &[
            Arg::integer("count").after("COUNT").optional(),
            Arg::integer("milliseconds").after("BLOCK").optional(),
            Arg::block("streams", &[Arg::key("key").multiple(), Arg::string("id").multiple()])
                .after("STREAMS"),
        ],
        ..Spec::EMPTY
    },
    run: xread,
    subcommands: &[],
};

const XREADGROUP: Command = Command {
    spec: Spec {
        name: "xreadgroup",
        group: Group::Stream,
        summary: "Returns entries to a consumer of a group. May block until entries arrive.",
        since: "5.0.0",
        complexity: "For each stream mentioned: O(M) in the number of entries returned. An XADD is O(N) in the number of clients that it unblocks.",
        arity: -7,
        flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
        keys: &[KeySpec {
            begin: Begin::Keyword { keyword: "STREAMS", from: 4 },
            find: Find::Range { last: -1, step: 1, limit: 2 },
            ..KeySpec::unknown()
        }
        .read_only(KeyFlags::ACCESS)
        .found_by(streams_of_xreadgroup)],
        args: &[
            Arg::block("group_consumer", &[Arg::string("group"), Arg::string("consumer")])
                .after("GROUP"),
            Arg::integer("count").after("COUNT").optional(),
            Arg::integer("milliseconds").after("BLOCK").optional(),
            Arg::token("noack", "NOACK").optional(),
            Arg::block("streams", &[Arg::key("key").multiple(), Arg::string("id").multiple()])
                .after("STREAMS"),
        ],
        ..Spec::EMPTY
    },
    run: xreadgroup,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[XREAD, XREADGROUP];
