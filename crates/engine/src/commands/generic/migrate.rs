//! MIGRATE: moves keys to another server.
//!
//! ```text
//!  keys watched, their slots frozen ── dumped and sent by another thread ── sent keys removed
//!         ^                                                                        │
//!         └───────────────── changed since then, sent again ───────────────────────┘
//! ```
//!
//! The client waits. Other clients wait only if they write to the keys' slots. Transactions do not wait. Keys that a
//! transaction has changed are sent again and replace those that the other server has already stored. Within a
//! transaction or a script, MIGRATE runs in one step, and all clients wait.

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Blocking, Command, Ctx};
use crate::command::args::Args;
use crate::command::cursor::Cursor;
use crate::command::{Arg, ArgLookup, Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::env::transfer::{TransferKey, TransferResult, TransferTarget};
use crate::keyspace::{Key, Watches};
use crate::reply::Outcome;
use crate::types::Value;
use crate::types::dump::Dumpable;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Timeout of each step if the request specifies none.
const TIMEOUT_MS: u64 = 1000;
/// Number of attempts to send keys that keep changing.
const ATTEMPTS_MAX: u32 = 8;
/// Index of the key if KEYS is not given.
const KEY_AT: usize = 3;
const OPTIONS_AT: usize = 6;

/// The arguments of the request.
struct Options {
    destination: TransferTarget,
    copy: bool,
    replace: bool,
    /// True if KEYS is the last argument.
    names_none: bool,
}

/// One option, with the arguments that belong to it.
enum MigrateOption<'w> {
    Copy,
    Replace,
    Auth {
        password: &'w [u8],
    },
    Auth2 {
        user: &'w [u8],
        password: &'w [u8],
    },
    /// The last option; keys follow.
    Keys,
    Unknown,
}

/// Takes an option. The options may come in any order, and their arguments may look like options.
fn next_option<'w>(words: &mut Cursor<impl Fn(usize) -> &'w [u8]>) -> Option<MigrateOption<'w>> {
    let word = words.optional()?;
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let option = if is("COPY") {
        Some(MigrateOption::Copy)
    } else if is("REPLACE") {
        Some(MigrateOption::Replace)
    } else if is("AUTH") {
        words.optional().map(|password| MigrateOption::Auth { password })
    } else if is("AUTH2") {
        words.take().map(|[user, password]| MigrateOption::Auth2 { user, password })
    } else if is("KEYS") {
        Some(MigrateOption::Keys)
    } else {
        None
    };
    Some(option.unwrap_or(MigrateOption::Unknown))
}

impl Options {
    fn of_words(args: &mut Args<'_>) -> Result<Options> {
        let [host, port, key, db, timeout] = args.array()?;
        let (mut copy, mut replace, mut names_none) = (false, false, false);
        let (mut user, mut password) = (None, None);
        let mut words = args.cursor();
        while let Some(option) = next_option(&mut words) {
            match option {
                MigrateOption::Copy => copy = true,
                MigrateOption::Replace => replace = true,
                MigrateOption::Auth { password: given } => password = Some(given.to_vec()),
                MigrateOption::Auth2 { user: name, password: given } => {
                    (user, password) = (Some(name.to_vec()), Some(given.to_vec()));
                }
                MigrateOption::Keys if !key.is_empty() => {
                    return Err(CommandError::text(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                         empty string",
                    ));
                }
                MigrateOption::Keys => {
                    names_none = words.remaining() == 0;
                    break;
                }
                MigrateOption::Unknown => return Err(CommandError::Syntax),
            }
        }
        let timeout = parse_i64(timeout).ok_or(CommandError::NotAnInteger)?;
        let db = parse_i64(db).ok_or(CommandError::NotAnInteger)?;
        let timeout_ms = u64::try_from(timeout).ok().filter(|ms| *ms > 0).unwrap_or(TIMEOUT_MS);
        let (host, port) = (host.to_vec(), port.to_vec());
        let destination = TransferTarget { host, port, db, timeout_ms, user, password };
        Ok(Options { destination, copy, replace, names_none })
    }
}

/// A key that is being sent.
struct Sending {
    key: Vec<u8>,
    deadline: Option<u64>,
    value: Value,
    replace: bool,
}

impl Sending {
    fn parcel(self) -> TransferKey {
        let Sending { key, deadline, value, replace } = self;
        TransferKey { key, deadline, payload: Dumpable::of_value(&value).payload(), replace }
    }
}

/// The outcome of an attempt.
struct Sent {
    carried: TransferResult,
    watches: Watches,
    attempt: u32,
}

fn migrate(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let order = Options::of_words(args)?;
    match ctx.errand_result::<Sent>() {
        Some(sent) => conclude(ctx, args, order, sent),
        None if order.names_none => Ok(ctx.reply.simple("NOKEY")),
        None => {
            let keys: Vec<Key<'_>> = args.keys().filter(|key| ctx.keys.touch(key)).collect();
            if keys.is_empty() {
                return Ok(ctx.reply.simple("NOKEY"));
            }
            let replace = order.replace;
            send(ctx, args, order, keys.into_iter().map(|key| (key, replace)), 1)
        }
    }
}

/// Has the existing keys sent, by another thread if possible.
fn send<'k>(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    order: Options,
    keys: impl Iterator<Item = (Key<'k>, bool)>,
    attempt: u32,
) -> Result<Outcome> {
    let apart = matches!(ctx.blocking, Blocking::Client(_));
    let mut watches = Watches::new(Arc::default());
    let mut sending = Vec::new();
    for (key, replace) in keys {
        let deadline = ctx.keys.inspect(&key).and_then(|entry| entry.deadline()).map(|at| at.0);
        let Some(value) = ctx.keys.view(&key) else { continue };
        if apart && !order.copy {
            ctx.keys.watch(&key, &mut watches);
            ctx.keys.freeze(key.slot);
        }
        sending.push(Sending { key: key.bytes.to_vec(), deadline, value, replace });
    }
    let carrier = ctx.keys.env().carrier;
    let destination = order.destination.clone();
    let errand = move || {
        let carried = carrier(&destination, &mut sending.into_iter().map(Sending::parcel));
        Sent { carried, watches, attempt }
    };
    if apart {
        return Ok(ctx.errand(args, errand));
    }
    let sent = errand();
    conclude(ctx, args, order, sent)
}

/// Removes the keys that the other server has stored, and replies. If keys have changed in the
/// meantime, has them sent again instead.
fn conclude(ctx: &mut Ctx<'_, '_>, args: &Args<'_>, order: Options, sent: Sent) -> Result<Outcome> {
    let Sent { carried: TransferResult { taken, failure }, watches, attempt } = sent;
    let intact = ctx.keys.unwatch_held(watches);
    let taken: HashSet<Vec<u8>> = taken.into_iter().collect();
    let is_taken = |key: &Key<'_>| taken.contains(key.bytes);
    if !order.copy {
        let present = args.keys().filter(|key| is_taken(key) && ctx.keys.inspect(key).is_some());
        let present: Vec<Key<'_>> = present.collect();
        if intact {
            let removed = present.iter().filter(|key| ctx.keys.delete(key));
            let mut words = vec![b"DEL".to_vec()];
            words.extend(removed.map(|key| key.bytes.to_vec()));
            if words.len() > 1 {
                ctx.keys.propagate(|| words);
            }
        } else if failure.is_none() && !present.is_empty() {
            if attempt >= ATTEMPTS_MAX {
                return Err(CommandError::text("IOERR the keys change faster than they are sent"));
            }
            let again = present.into_iter().map(|key| (key, true));
            return send(ctx, args, order, again, attempt + 1);
        }
    }
    match failure {
        Some(failure) => Err(failure.error()),
        None => Ok(ctx.reply.ok()),
    }
}

/// The index of the first key after KEYS. As in Redis, keys are also found if MIGRATE rejects the
/// arguments.
fn keys_option(argc: usize, word: ArgLookup<'_, '_>) -> Option<usize> {
    let mut words = Cursor::new(word, argc, OPTIONS_AT);
    while let Some(option) = next_option(&mut words) {
        if matches!(option, MigrateOption::Keys) {
            return Some(words.position());
        }
    }
    None
}

/// The single key, if the request lists no keys after KEYS. As in Redis, a KEYS that is the last
/// argument does not count.
fn single_key(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    Some(match keys_option(argc, word) {
        Some(first) if first < argc => 0..0,
        _ => KEY_AT..argc.min(KEY_AT + 1),
    })
}

/// The keys after KEYS. There are none if the request also names a single key, which is an error.
fn listed_keys(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    Some(match keys_option(argc, word) {
        Some(first) if word(KEY_AT).is_empty() => first..argc,
        _ => 0..0,
    })
}

/// Passwords and user names.
fn secrets(argc: usize, word: ArgLookup<'_, '_>) -> Vec<usize> {
    let mut words = Cursor::new(word, argc, OPTIONS_AT);
    let mut found = Vec::new();
    while let Some(option) = next_option(&mut words) {
        let after = words.position();
        match option {
            MigrateOption::Auth { .. } => found.push(after - 1),
            MigrateOption::Auth2 { .. } => found.extend([after - 2, after - 1]),
            MigrateOption::Keys => break,
            MigrateOption::Copy | MigrateOption::Replace | MigrateOption::Unknown => {}
        }
    }
    found
}

const MOVED: KeyFlags = KeyFlags::ACCESS.union(KeyFlags::DELETE);

const MIGRATE: Command = Command {
    spec: Spec {
        name: "migrate",
        group: Group::Generic,
        summary: "Moves keys to another server.",
        since: "2.6.0",
        complexity: "O(N) in the bytes of the values, for DUMP, the transfer, RESTORE and DEL.",
        arity: -6,
        flags: Flags::WRITE.union(Flags::MOVABLEKEYS),
        categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
        tips: &["nondeterministic_output"],
        history: &[
            ("3.0.0", "Accepts the options `COPY` and `REPLACE`."),
            ("3.0.6", "Accepts the option `KEYS`."),
            ("4.0.7", "Accepts the option `AUTH`."),
            ("6.0.0", "Accepts the option `AUTH2`."),
        ],
        keys: &[
            KeySpec::at(KEY_AT as u16).read_write(MOVED).found_by(single_key),
            KeySpec::after_keyword("KEYS", -2)
                .read_write(MOVED.union(KeyFlags::INCOMPLETE))
                .found_by(listed_keys),
        ],
        secrets: Some(secrets),
        args: &[
            Arg::string("host"),
            Arg::integer("port"),
            Arg::one_of("key_or_empty_string", &[Arg::key("key"), Arg::token("empty_string", "")]),
            Arg::integer("destination-db"),
            Arg::integer("timeout"),
            Arg::token("copy", "COPY").optional().since("3.0.0"),
            Arg::token("replace", "REPLACE").optional().since("3.0.0"),
            Arg::one_of(
                "authentication",
                &[
                    Arg::string("password").after("AUTH").optional().since("4.0.7"),
                    Arg::block(
                        "username_password",
                        &[Arg::string("username"), Arg::string("password")],
                    )
                    .after("AUTH2")
                    .optional()
                    .since("6.0.0"),
                ],
            )
            .optional(),
            Arg::key("key").spec(1).after("KEYS").optional().multiple().since("3.0.6"),
        ],
        ..Spec::EMPTY
    },
    run: migrate,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[MIGRATE];
