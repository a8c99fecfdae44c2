//! DUMP, RESTORE: serialize a value to bytes from which any server can restore it.

use crate::base::error::{CommandError, Result};
use crate::base::number::{Digits, parse_i64};
use crate::base::steps::BYTES_PER_STEP;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::env::Env;
use crate::keyspace::{Entry, Key, discard, evict};
use crate::reply::{Outcome, Reply};
use crate::types::EncodingLimits;
use crate::types::dump::{Dumpable, entry_of};
use crate::types::string::SHARED_MIN;
use brisk_persist::LoadError;
use brisk_persist::rdb::{self, kind};
use std::sync::Arc;

fn dump(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    if !ctx.keys.touch(&key) {
        return Ok(ctx.reply.null());
    }
    let Some(entry) = ctx.keys.inspect(&key) else { return Ok(ctx.reply.null()) };
    if let Some(value) = entry.object().filter(|value| ctx.is_long(value.steps())) {
        let view = value.clone();
        return Ok(ctx.reply_elsewhere(args, move |_, reply| {
            Ok(reply_payload(reply, Dumpable::of_value(&view)))
        }));
    }
    Ok(reply_payload(&mut ctx.reply, entry.dumpable()))
}

fn reply_payload(reply: &mut Reply<'_>, value: Dumpable<'_>) -> Outcome {
    let bytes = value.payload();
    if bytes.len() < SHARED_MIN { reply.bulk(&bytes) } else { reply.bulk_shared(Arc::new(bytes)) }
}

fn restore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (ttl, bytes) = (args.bytes()?, args.bytes()?);
    let options = Options::take(args)?;
    if !options.replace && ctx.keys.open_any_mut(&key).is_some() {
        return Err(CommandError::text("BUSYKEY Target key name already exists."));
    }
    let ttl = parse_i64(ttl).ok_or(CommandError::NotAnInteger)?;
    if ttl < 0 {
        return Err(CommandError::text("ERR Invalid TTL value, must be >= 0"));
    }
    let made = if ctx.is_long(steps(bytes)) {
        match made_elsewhere(ctx, args, &key, bytes) {
            Some(made) => made,
            None => return Ok(Outcome::Elsewhere),
        }
    } else {
        let settings = &ctx.keys.env().settings;
        entry_of_payload(key.bytes, bytes, &settings.limits, settings.skips_checksums)
    };
    let entry = made?;

    let now = ctx.now().0.cast_signed();
    let deadline = match ttl {
        0 => None,
        ttl if options.absolute => Some(ttl),
        // A time that overflows is in the past, as in Redis.
        ttl => Some(ttl.wrapping_add(now)),
    };
    let horizon = ctx.keys.env().horizon().0.cast_signed();
    if deadline.is_some_and(|at| at <= horizon) {
        entry.into_iter().for_each(|entry| discard(ctx.keys.env(), entry));
        if ctx.keys.delete(&key) {
            let lazy = ctx.keys.env().settings.lazy_server_del;
            let word: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
            ctx.keys.propagate(|| vec![word.to_vec(), key.bytes.to_vec()]);
        }
        return Ok(ctx.reply.ok());
    }
    let env = ctx.keys.env();
    let mut entry = entry.ok_or_else(|| CommandError::BadPayload(UNFIT.into()))?;
    entry.set_deadline(deadline.map(i64::cast_unsigned));
    entry.set_clock(options.usage.clock(env));
    ctx.keys.restore(&key, entry);
    if let Some(at) = deadline.filter(|_| !options.absolute) {
        ctx.keys.propagate(|| {
            let mut words: Vec<Vec<u8>> = args.arguments().map(<[u8]>::to_vec).collect();
            words[2] = Digits::new().format(at).to_vec();
            words.push(b"ABSTTL".to_vec());
            words
        });
    }
    Ok(ctx.reply.ok())
}

/// The entry for a payload. The inner option is `None` if the value cannot be stored.
fn entry_of_payload(
    key: &[u8],
    payload: &[u8],
    limits: &EncodingLimits,
    skips_checksum: bool,
) -> Result<Option<Entry>> {
    let open = if skips_checksum { rdb::dump::open_unchecked } else { rdb::dump::open };
    let value = open(payload).and_then(|(body, version)| rdb::dump::read_body(body, version));
    let value = value.map_err(|error| match error {
        LoadError::Footer => CommandError::text("ERR DUMP payload version or checksum are wrong"),
        wrong => CommandError::BadPayload(wrong.to_string().into()),
    })?;
    Ok(entry_of(key, value, limits))
}

/// The entry, if another thread has created it. Otherwise another thread will create it.
fn made_elsewhere(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    key: &Key<'_>,
    payload: &[u8],
) -> Option<Result<Option<Entry>>> {
    // This is checked first, so that the payload is not copied again. The result depends on no
    // keys, so it is valid regardless of what has happened to them.
    if let (_, Some(made)) = ctx.made_of(&[]) {
        return Some(made);
    }
    let settings = &ctx.keys.env().settings;
    let (limits, skips_checksum) = (settings.limits, settings.skips_checksums);
    let (key, payload) = (key.bytes.to_vec(), payload.to_vec());
    ctx.result_elsewhere(args, &[], move |_| {
        entry_of_payload(&key, &payload, &limits, skips_checksum)
    })
}

/// Approximate number of steps to create an entry from a payload.
fn steps(payload: &[u8]) -> usize {
    /// Reading a byte and creating its share of the elements takes about 20 ns.
    const ELEMENTS_BYTES_PER_STEP: usize = 5;
    /// These bits are set in a first byte that is not a length but says how a string is packed.
    const PACKED: u8 = 0b11 << 6;
    match payload {
        [kind::STRING, head, ..] if head & PACKED != PACKED => payload.len() / BYTES_PER_STEP,
        _ => payload.len() / ELEMENTS_BYTES_PER_STEP,
    }
}

/// The error for a value that can be read but not stored.
const UNFIT: &str = "the value breaks a rule of its type";

/// The idle time or the frequency of the value.
#[derive(Default)]
enum Usage {
    #[default]
    Now,
    Idle {
        seconds: i64,
    },
    Frequency(i64),
}

impl Usage {
    /// The access clock. A value that the eviction policy does not use is ignored.
    fn clock(&self, env: &Env) -> u32 {
        let counts_uses = env.settings.eviction.is_lfu();
        match self {
            Usage::Idle { seconds } if !counts_uses => {
                evict::clock_idle_for(env, seconds.cast_unsigned())
            }
            Usage::Frequency(uses) if counts_uses => evict::clock_of_frequency(env, *uses as u8),
            _ => evict::initial_clock(env),
        }
    }
}

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    usage: Usage,
}

impl Options {
    fn take(args: &mut Args<'_>) -> Result<Options> {
        let mut this = Options::default();
        while args.remaining() > 0 {
            let has_value = args.remaining() > 1;
            if args.take("REPLACE") {
                this.replace = true;
            } else if args.take("ABSTTL") {
                this.absolute = true;
            } else if has_value
                && !matches!(this.usage, Usage::Frequency(_))
                && args.take("IDLETIME")
            {
                let seconds = args.integer()?;
                if seconds < 0 {
                    return Err(CommandError::text("ERR Invalid IDLETIME value, must be >= 0"));
                }
                this.usage = Usage::Idle { seconds };
            } else if has_value && !matches!(this.usage, Usage::Idle { .. }) && args.take("FREQ") {
                let uses = args.integer()?;
                if !(0..=255).contains(&uses) {
                    let text = "ERR Invalid FREQ value, must be >= 0 and <= 255";
                    return Err(CommandError::text(text));
                }
                this.usage = Usage::Frequency(uses);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(this)
    }
}

const DUMP: Command = Command {
    spec: Spec {
        name: "dump",
        group: Group::Generic,
        summary: "Returns a serialized value, for RESTORE.",
        since: "2.6.0",
        complexity: "O(1) to find the key, and O(N) in the bytes of the value.",
        arity: 2,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE,
        tips: &["nondeterministic_output"],
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[Arg::key("key")],
        ..Spec::EMPTY
    },
    run: dump,
    subcommands: &[],
};

const RESTORE: Command = Command {
    spec: Spec {
        name: "restore",
        group: Group::Generic,
        summary: "Creates a key from a value that DUMP has serialized.",
        since: "2.6.0",
        complexity: "O(1) to create the key, plus O(N) in the bytes of the value; O(N*log(N)) for sorted sets.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
        history: &[
            ("3.0.0", "Accepts the option `REPLACE`."),
            ("5.0.0", "Accepts the option `ABSTTL`."),
            ("5.0.0", "Accepts the options `IDLETIME` and `FREQ`."),
        ],
        keys: &[KeySpec::at(1).overwrite(KeyFlags::UPDATE)],
        args: &[
            Arg::key("key"),
            Arg::integer("ttl"),
            Arg::string("serialized-value"),
            Arg::token("replace", "REPLACE").optional().since("3.0.0"),
            Arg::token("absttl", "ABSTTL").optional().since("5.0.0"),
            Arg::integer("seconds").after("IDLETIME").optional().since("5.0.0"),
            Arg::integer("frequency").after("FREQ").optional().since("5.0.0"),
        ],
        ..Spec::EMPTY
    },
    run: restore,
    subcommands: &[],
};

/// RESTORE with the flag `asking`. In cluster mode, Redis's MIGRATE sends it to the node that imports the slot. Brisk's
/// MIGRATE sends RESTORE.
const RESTORE_ASKING: Command = Command {
    spec: Spec {
        name: "restore-asking",
        group: Group::Server,
        since: "3.0.0",
        flags: RESTORE.spec.flags.union(Flags::ASKING),
        syscmd: true,
        ..RESTORE.spec
    },
    run: restore,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[DUMP, RESTORE, RESTORE_ASKING];

#[cfg(test)]
mod tests;
