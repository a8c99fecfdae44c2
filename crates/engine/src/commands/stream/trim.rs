//! XTRIM, and the options that it shares with XADD.

use super::id;
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::stream::{Stream, StreamId, Trim};
use crate::types::{Edit, EncodingLimits};

/// The parameters of a trim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trimming {
    pub(super) trim: Trim,
    pub(super) approximate: bool,
    limit: Option<u64>,
    /// Index of the argument with the length or ID.
    threshold_at: usize,
}

impl Trimming {
    /// Trims the stream. Returns the number of removed entries.
    pub(super) fn run(&self, stream: &mut Stream, limits: &EncodingLimits) -> u64 {
        let limit = match self.limit {
            _ if !self.approximate => 0,
            Some(limit) => limit,
            // The default limit: a hundred blocks, but at most a million entries; 10,000 entries if
            // blocks have no limit.
            None => match limits.stream_node_max_entries {
                0 => 10_000,
                entries => (100 * entries as u64).min(1_000_000),
            },
        };
        stream.trim(self.trim, self.approximate, limit)
    }

    /// Replaces the arguments of a command so that they state exactly what an approximate trim did.
    pub(super) fn make_exact(&self, words: &mut [Vec<u8>], now: TrimResult) {
        words[self.threshold_at - 1] = b"=".to_vec();
        words[self.threshold_at] = match self.trim {
            Trim::MaxLen(_) => now.len.to_string().into_bytes(),
            Trim::MinId(_) => id::word(now.first_id),
        };
    }
}

/// The state of a stream after a trim.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrimResult {
    pub(super) len: usize,
    pub(super) first_id: StreamId,
}

impl TrimResult {
    pub(super) fn of(stream: &Stream) -> TrimResult {
        TrimResult { len: stream.len(), first_id: stream.first_id() }
    }
}

/// The options parsed so far.
#[derive(Debug, Default)]
pub(super) struct TrimOptions {
    trimming: Option<Trimming>,
    limit: Option<u64>,
}

impl TrimOptions {
    /// Takes one option, if one is next.
    pub(super) fn take(&mut self, args: &mut Args<'_>) -> Result<bool> {
        if args.remaining() < 2 {
            return Ok(false);
        }
        if args.take("MAXLEN") {
            let approximate = self.operator(args)?;
            let threshold_at = args.position();
            let len = args.integer()?;
            let negative = || CommandError::text("ERR The MAXLEN argument must be >= 0.");
            let trim = Trim::MaxLen(u64::try_from(len).map_err(|_| negative())?);
            self.trimming = Some(Trimming { trim, approximate, limit: None, threshold_at });
        } else if args.take("MINID") {
            let approximate = self.operator(args)?;
            let threshold_at = args.position();
            let trim = Trim::MinId(id::parse(args.bytes()?, 0)?);
            self.trimming = Some(Trimming { trim, approximate, limit: None, threshold_at });
        } else if args.take("LIMIT") {
            let negative = || CommandError::text("ERR The LIMIT argument must be >= 0.");
            self.limit = Some(u64::try_from(args.integer()?).map_err(|_| negative())?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes `~` or `=`, if another argument follows.
    fn operator(&self, args: &mut Args<'_>) -> Result<bool> {
        if self.trimming.is_some() {
            let text = "ERR syntax error, MAXLEN and MINID options at the same time are not \
                        compatible";
            return Err(CommandError::text(text));
        }
        let operator = args.remaining() >= 2;
        let approximate = operator && args.take("~");
        if operator && !approximate {
            args.take("=");
        }
        Ok(approximate)
    }

    /// In a replay, LIMIT is ignored: the arguments before it were made exact, but LIMIT was left
    /// in place, as in Redis.
    pub(super) fn finish(self, is_replay: bool) -> Result<Option<Trimming>> {
        match (self.trimming, self.limit) {
            (trimming, _) if is_replay => Ok(trimming),
            (None, Some(1..)) => Err(CommandError::text(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            )),
            (trimming, Some(_)) if !trimming.is_some_and(|it| it.approximate) => {
                Err(CommandError::text(
                    "ERR syntax error, LIMIT cannot be used without the special ~ option",
                ))
            }
            (trimming, limit) => Ok(trimming.map(|trimming| Trimming { limit, ..trimming })),
        }
    }
}

/// The trim, which must be specified. Redis checks that before it checks for a LIMIT of 0.
fn required(options: TrimOptions, is_replay: bool) -> Result<Trimming> {
    let missing =
        || CommandError::text("ERR syntax error, XTRIM must be called with a trimming strategy");
    match options {
        TrimOptions { trimming: None, limit: None | Some(0) } => Err(missing()),
        options => options.finish(is_replay)?.ok_or_else(missing),
    }
}

fn xtrim(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let mut options = TrimOptions::default();
    while args.remaining() > 0 {
        if !options.take(args)? {
            return Err(CommandError::Syntax);
        }
    }
    let trimming = required(options, ctx.keys.env().is_replay())?;
    let done = ctx.keys.update::<Stream, _>(&key, |stream, limits| {
        let removed = trimming.run(stream, limits);
        Ok(Edit::new((removed, TrimResult::of(stream)), removed, "xtrim"))
    })?;
    let Some((removed, remains)) = done else { return Ok(ctx.reply.integer(0)) };
    if removed > 0 && trimming.approximate {
        ctx.keys.propagate(|| {
            let mut words: Vec<Vec<u8>> = args.arguments().map(<[u8]>::to_vec).collect();
            trimming.make_exact(&mut words, remains);
            words
        });
    }
    Ok(ctx.reply.integer(removed as i64))
}

const XTRIM: Command = Command {
    spec: Spec {
        name: "xtrim",
        group: Group::Stream,
        summary: "Deletes the oldest entries of a stream.",
        since: "5.0.0",
        complexity: "O(N) in the number of deleted entries. Most of them are freed in blocks.",
        arity: -4,
        flags: Flags::WRITE,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_write(KeyFlags::DELETE)],
        args: &[
            Arg::key("key"),
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
            ),
        ],
        history: &[("6.2.0", "Accepts the options `MINID` and `LIMIT`.")],
        ..Spec::EMPTY
    },
    run: xtrim,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[XTRIM];
