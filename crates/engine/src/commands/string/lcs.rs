//! LCS: the longest common subsequence of two strings, its length, or its positions. The algorithm
//! is in `subsequence.rs`.

use super::subsequence::{Match, common_len, common_matches};
use crate::base::error::{CommandError, Result};
use crate::base::number::Digits;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::{Key, Keys};
use crate::reply::{Outcome, Reply};
use crate::types::string::{Str, StrRef};

/// Bytes per pair of positions in Redis's table of lengths.
const CELL_BYTES: u64 = 4;
/// Pairs of positions that count as one step: one operation processes 64.
const CELLS_PER_STEP: usize = 6400;

#[derive(Default)]
struct Options {
    len: bool,
    idx: bool,
    len_min: usize,
    with_len: bool,
}

fn lcs(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (first, second) = (args.key()?, args.key()?);
    let (a, b) = (open(ctx.keys, &first), open(ctx.keys, &second));
    let (a, b) = (a?, b?);
    let options = read_options(args)?;
    let (mut a_digits, mut b_digits) = (Digits::new(), Digits::new());
    let a = a.map_or_else(Default::default, |value| value.contiguous(&mut a_digits));
    let b = b.map_or_else(Default::default, |value| value.contiguous(&mut b_digits));
    check_size(a.len(), b.len(), ctx.keys.env().string_bytes_max())?;
    if ctx.is_long(a.len() * b.len() / CELLS_PER_STEP) {
        let (a, b) = (a.into_owned(), b.into_owned());
        return Ok(
            ctx.reply_elsewhere(args, move |_, reply| Ok(write_reply(reply, &a, &b, &options)))
        );
    }
    Ok(write_reply(&mut ctx.reply, &a, &b, &options))
}

fn write_reply(reply: &mut Reply<'_>, a: &[u8], b: &[u8], options: &Options) -> Outcome {
    if options.len {
        return reply.count(common_len(a, b));
    }
    if options.idx {
        return reply_matches(reply, &common_matches(a, b), options);
    }
    let mut common = Vec::new();
    for Match { a: start, len, .. } in common_matches(a, b).iter().rev() {
        common.extend_from_slice(&a[*start..start + len]);
    }
    reply.bulk(&common)
}

fn open<'k>(keys: &'k Keys<'_>, key: &Key<'_>) -> Result<Option<StrRef<'k>>> {
    let text = "ERR The specified keys must contain string values";
    keys.open::<Str>(key).map_err(|_| CommandError::text(text))
}

fn read_options(args: &mut Args<'_>) -> Result<Options> {
    let mut options = Options::default();
    while args.remaining() > 0 {
        if args.take("IDX") {
            options.idx = true;
        } else if args.take("LEN") {
            options.len = true;
        } else if args.take("WITHMATCHLEN") {
            options.with_len = true;
        } else if args.take("MINMATCHLEN") {
            options.len_min = args.integer()?.max(0) as usize;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if options.len && options.idx {
        let text = "ERR If you want both the length and indexes, please just use IDX.";
        return Err(CommandError::text(text));
    }
    Ok(options)
}

/// Redis rejects strings that would need a table larger than the maximum string. The table here is
/// much smaller, but the limit stays, because it also bounds the command's time.
fn check_size(a_len: usize, b_len: usize, bytes_max: u64) -> Result<()> {
    if a_len.max(b_len) >= u32::MAX as usize - 1 {
        return Err(CommandError::text("ERR String too long for LCS"));
    }
    let table_bytes = (a_len as u64 + 1).checked_mul(b_len as u64 + 1);
    if table_bytes.and_then(|cells| cells.checked_mul(CELL_BYTES)).is_none_or(|n| n > bytes_max) {
        let text = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
        return Err(CommandError::text(text));
    }
    Ok(())
}

fn reply_matches(reply: &mut Reply<'_>, matches: &[Match], options: &Options) -> Outcome {
    let shown = || matches.iter().filter(|found| found.len >= options.len_min);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(shown().count());
    for found in shown() {
        reply.array(2 + usize::from(options.with_len));
        for start in [found.a, found.b] {
            reply.array(2);
            reply.count(start);
            reply.count(start + found.len - 1);
        }
        if options.with_len {
            reply.count(found.len);
        }
    }
    reply.bulk(b"len");
    reply.count(matches.iter().map(|found| found.len).sum())
}

const LCS: Command = Command {
    spec: Spec {
        name: "lcs",
        group: Group::String,
        summary: "Finds the longest common subsequence of two strings.",
        since: "7.0.0",
        complexity: "O(N*M) with N and M the lengths of the strings",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::range(1, 1, 1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key1"),
            Arg::key("key2"),
            Arg::token("len", "LEN").optional(),
            Arg::token("idx", "IDX").optional(),
            Arg::integer("len").after("MINMATCHLEN").optional(),
            Arg::token("withmatchlen", "WITHMATCHLEN").optional(),
        ],
        ..Spec::EMPTY
    },
    run: lcs,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[LCS];
