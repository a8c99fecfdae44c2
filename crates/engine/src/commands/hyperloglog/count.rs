//! PFADD, PFCOUNT, PFMERGE.

use super::form_of;
use crate::base::error::Result;
use crate::base::number::Digits;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::string::Str;
use brisk_structures::hyperloglog::{self, Form, Mark, REGISTERS};

fn pfadd(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let added = if ctx.keys.contains(&key) {
        add_to_existing(ctx, &key, args)?
    } else {
        let sparse_max = ctx.keys.env().settings.limits.hll_sparse_max_bytes;
        let mut bytes = hyperloglog::empty();
        let mut changes = 1;
        while let Some(element) = args.optional() {
            changes += u64::from(hyperloglog::mark(&mut bytes, Mark::of(element), sparse_max)?);
        }
        hyperloglog::outdate(&mut bytes);
        ctx.keys.open_or_insert_string(&key)?.store_raw(bytes, changes, "pfadd");
        true
    };
    Ok(ctx.reply.integer(i64::from(added)))
}

fn add_to_existing(ctx: &mut Ctx<'_, '_>, key: &Key<'_>, args: &mut Args<'_>) -> Result<bool> {
    let sparse_max = ctx.keys.env().settings.limits.hll_sparse_max_bytes;
    let mut entry = ctx.keys.open_or_insert_string(key)?;
    let value = entry.value();
    let mut digits = Digits::new();
    let bytes = &*value.contiguous(&mut digits);
    let len = bytes.len();
    if form_of(bytes)? == Form::Dense {
        return Ok(entry.edit(len, |mut string| {
            // This piece is the whole value, because dense values are short.
            let (bytes, _) = string.piece_of(0);
            let mut changes = 0;
            while let Some(element) = args.optional() {
                changes += u64::from(hyperloglog::mark_dense(bytes, Mark::of(element)));
            }
            if changes > 0 {
                hyperloglog::outdate(bytes);
            }
            Edit::new(changes > 0, changes, "pfadd")
        }));
    }
    // Most elements change nothing. The value is copied at the first element that does.
    let mut copy: Option<Vec<u8>> = None;
    let mut changes = 0;
    while let Some(element) = args.optional() {
        let mark = Mark::of(element);
        if hyperloglog::would_change(copy.as_deref().unwrap_or(bytes), mark)? {
            let copy = copy.get_or_insert_with(|| bytes.to_vec());
            changes += u64::from(hyperloglog::mark(copy, mark, sparse_max)?);
        }
    }
    match copy {
        Some(mut bytes) => {
            hyperloglog::outdate(&mut bytes);
            entry.store_raw(bytes, changes, "pfadd");
        }
        None => entry.edit(len, |_| Edit::unchanged(())),
    }
    Ok(changes > 0)
}

fn pfcount(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() == 1 {
        let key = args.key()?;
        let count = count_one(ctx, &key)?;
        return Ok(ctx.reply.integer(count as i64));
    }
    let mut registers = Box::new([0; REGISTERS]);
    while args.remaining() > 0 {
        let key = args.key()?;
        if let Some(value) = ctx.keys.open::<Str>(&key)? {
            let mut digits = Digits::new();
            let bytes = &*value.contiguous(&mut digits);
            form_of(bytes)?;
            hyperloglog::merge(bytes, &mut registers)?;
        }
    }
    Ok(ctx.reply.integer(hyperloglog::count_registers(&registers) as i64))
}

/// The count of one key. Computing the count again is a change, because the value caches the count.
fn count_one(ctx: &mut Ctx<'_, '_>, key: &Key<'_>) -> Result<u64> {
    let Some(value) = ctx.keys.open::<Str>(key)? else { return Ok(0) };
    let mut digits = Digits::new();
    let bytes = &*value.contiguous(&mut digits);
    form_of(bytes)?;
    let len = bytes.len();
    let cached = hyperloglog::cached_count(bytes);
    let count = cached.map_or_else(|| hyperloglog::count(bytes), Ok)?;
    ctx.keys.open_or_insert_string(key)?.edit(len, |mut string| match cached {
        Some(_) => Edit::unchanged(()),
        None => {
            hyperloglog::cache_count(string.piece_of(0).0, count);
            Edit::silent((), 1)
        }
    });
    Ok(count)
}

fn pfmerge(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let sparse_max = ctx.keys.env().settings.limits.hll_sparse_max_bytes;
    let destination = args.key()?;
    let mut registers = Box::new([0; REGISTERS]);
    let mut result = None;
    let mut dense = false;
    let mut source = Some(destination);
    while let Some(key) = source {
        if let Some(value) = ctx.keys.open::<Str>(&key)? {
            let mut digits = Digits::new();
            let bytes = &*value.contiguous(&mut digits);
            dense |= form_of(bytes)? == Form::Dense;
            hyperloglog::merge(bytes, &mut registers)?;
            if key.bytes == destination.bytes {
                result.get_or_insert_with(|| bytes.to_vec());
            }
        }
        source = if args.remaining() > 0 { Some(args.key()?) } else { None };
    }
    let mut result = result.unwrap_or_else(hyperloglog::empty);
    if dense {
        result = hyperloglog::with_registers(&result, &registers);
    } else {
        for (index, &rank) in registers.iter().enumerate().filter(|(_, rank)| **rank > 0) {
            hyperloglog::mark(&mut result, Mark { index, rank }, sparse_max)?;
        }
    }
    hyperloglog::outdate(&mut result);
    ctx.keys.open_or_insert_string(&destination)?.store_raw(result, 1, "pfadd");
    Ok(ctx.reply.ok())
}

const PFADD: Command = Command {
    spec: Spec {
        name: "pfadd",
        group: Group::HyperLogLog,
        summary: "Adds elements to a HyperLogLog. Creates the key if it does not exist.",
        since: "2.8.9",
        complexity: "O(1) for each element.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::at(1).read_write(KeyFlags::INSERT)],
        args: &[Arg::key("key"), Arg::string("element").optional().multiple()],
        ..Spec::EMPTY
    },
    run: pfadd,
    subcommands: &[],
};

const PFCOUNT: Command = Command {
    spec: Spec {
        name: "pfcount",
        group: Group::HyperLogLog,
        summary: "Estimates the number of distinct elements in HyperLogLogs.",
        since: "2.8.9",
        complexity: "O(1) for one key, whose result is cached; O(N) for N keys, which are merged.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::MAY_REPLICATE),
        keys: &[KeySpec::range(1, -1, 1).read_write(KeyFlags::ACCESS)],
        args: &[Arg::key("key").multiple()],
        ..Spec::EMPTY
    },
    run: pfcount,
    subcommands: &[],
};

const PFMERGE: Command = Command {
    spec: Spec {
        name: "pfmerge",
        group: Group::HyperLogLog,
        summary: "Merges HyperLogLogs into one.",
        since: "2.8.9",
        complexity: "O(N) for N keys.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::INSERT)),
            KeySpec::range(2, -1, 1).read_only(KeyFlags::ACCESS),
        ],
        args: &[Arg::key("destkey"), Arg::key("sourcekey").spec(1).multiple()],
        ..Spec::EMPTY
    },
    run: pfmerge,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[PFADD, PFCOUNT, PFMERGE];
