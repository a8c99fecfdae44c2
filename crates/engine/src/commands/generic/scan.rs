//! KEYS, SCAN, RANDOMKEY: find keys. They visit one slot after the other.

use crate::base::error::{CommandError, Result};
use crate::base::glob::{self, Case};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Categories, Flags, Group, Scope, Spec};
use crate::commands::iteration::{self, before_nul, to_test};
use crate::env::Dialect;
use crate::keyspace::{DbIndex, EntryRef, Keyspace, UnixMs};
use crate::reply::{Outcome, Reply};
use crate::types::ValueKind;
use brisk_resp::reply::encode;

/// The keys found, encoded for the reply, because their number is known only at the end.
#[derive(Default)]
struct ScanReply {
    encoded: Vec<u8>,
    count: usize,
}

impl ScanReply {
    fn add(&mut self, key: &[u8]) {
        encode::bulk(&mut self.encoded, key);
        self.count += 1;
    }

    fn reply(&self, reply: &mut Reply<'_>) -> Outcome {
        reply.array(self.count);
        reply.buffer().bytes_mut().extend_from_slice(&self.encoded);
        Outcome::Replied
    }
}

/// The keys to find.
#[derive(Default)]
struct Filter<'a> {
    /// `None`: all.
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl Filter<'_> {
    fn admits(&self, entry: &EntryRef<'_>) -> bool {
        self.matches(entry) && self.kind.is_none_or(|name| is_named(entry.kind(), name))
    }

    fn matches(&self, entry: &EntryRef<'_>) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, entry.key(), Case::Matters))
    }
}

fn is_named(kind: ValueKind, name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(kind.name().as_bytes())
}

fn keys(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let pattern = args.bytes()?;
    let mut found = ScanReply::default();
    let keyspace = ctx.keys.keyspace();
    let (db, now) = (ctx.keys.db(), ctx.keys.env().horizon());
    if let Some(name) = glob::literal(pattern) {
        let key = keyspace.hasher().key(&name);
        if ctx.keys.is_alive(&key) {
            found.add(&name);
        }
    } else if ctx.is_long(usize::try_from(keyspace.key_count(db)).unwrap_or(usize::MAX)) {
        let pattern = pattern.to_vec();
        return Ok(ctx.reply_elsewhere(args, move |keyspace, reply| {
            Ok(find_all(keyspace, db, now, &pattern).reply(reply))
        }));
    } else {
        found = find_all(keyspace, db, now, pattern);
    }
    Ok(found.reply(&mut ctx.reply))
}

/// The keys of a database that match a pattern, slot by slot.
fn find_all(keyspace: &Keyspace, db: DbIndex, now: UnixMs, pattern: &[u8]) -> ScanReply {
    let mut found = ScanReply::default();
    let filter = Filter { pattern: to_test(pattern), kind: None };
    keyspace.each_key(db, now, |entry| {
        if filter.admits(&entry) {
            found.add(entry.key());
        }
    });
    found
}

fn scan(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let cursor = iteration::cursor(args)?;
    let is_valkey = ctx.keys.env().settings.dialect == Dialect::Valkey;
    let mut count = 10;
    let mut filter = Filter::default();
    while args.remaining() > 0 {
        if args.take("COUNT") {
            count = args.integer()?;
            if count < 1 {
                return Err(CommandError::Syntax);
            }
        } else if args.take("MATCH") {
            filter.pattern = to_test(args.bytes()?);
        } else if args.take("TYPE") {
            let name = before_nul(args.bytes()?);
            // In Redis an unknown type is not an error: no key has it.
            if is_valkey && !ValueKind::ALL.iter().any(|kind| is_named(*kind, name)) {
                return Err(CommandError::text_around("ERR unknown type name '", name, "'"));
            }
            filter.kind = Some(name);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let mut found = ScanReply::default();
    // Redis also removes expired keys of other types, because it checks the type last. Valkey
    // checks the type first.
    let concerns = |entry: &EntryRef<'_>| {
        if is_valkey { filter.admits(entry) } else { filter.matches(entry) }
    };
    let next = ctx.keys.scan_and_expire(cursor, count.unsigned_abs(), concerns, |entry| {
        if filter.admits(&entry) {
            found.add(entry.key());
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(next.to_string().as_bytes());
    Ok(found.reply(&mut ctx.reply))
}

fn randomkey(ctx: &mut Ctx<'_, '_>, _args: &mut Args<'_>) -> Result<Outcome> {
    Ok(match ctx.keys.random_key() {
        Some(key) => ctx.reply.bulk(&key),
        None => ctx.reply.null(),
    })
}

const KEYS: Command = Command {
    spec: Spec {
        name: "keys",
        group: Group::Generic,
        summary: "Returns all keys that match a pattern.",
        since: "1.0.0",
        complexity: "O(N) in the number of keys of the database; O(1) for a pattern that can match only one name.",
        arity: 2,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        args: &[Arg::pattern("pattern")],
        scope: Scope::EachSlot,
        ..Spec::EMPTY
    },
    run: keys,
    subcommands: &[],
};

const RANDOMKEY: Command = Command {
    spec: Spec {
        name: "randomkey",
        group: Group::Generic,
        summary: "Returns a random key.",
        since: "1.0.0",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE,
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        scope: Scope::EachSlot,
        ..Spec::EMPTY
    },
    run: randomkey,
    subcommands: &[],
};

const SCAN: Command = Command {
    spec: Spec {
        name: "scan",
        group: Group::Generic,
        summary: "Iterates over the keys of the database.",
        since: "2.8.0",
        complexity: "O(1) for every call. A whole iteration, until the cursor is 0 again, is O(N) in the number of keys.",
        arity: -2,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE,
        tips: &["nondeterministic_output", "request_policy:special"],
        args: &[
            Arg::integer("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::integer("count").after("COUNT").optional(),
            Arg::string("type").after("TYPE").since("6.0.0").optional(),
        ],
        history: &[("6.0.0", "Accepts the option `TYPE`.")],
        scope: Scope::EachSlot,
        ..Spec::EMPTY
    },
    run: scan,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[KEYS, RANDOMKEY, SCAN];
