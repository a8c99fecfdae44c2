//! PFDEBUG and PFSELFTEST: the encoding of a HyperLogLog, and a test of the arithmetic.

use super::form_of;
use crate::base::error::{CommandError, Result};
use crate::base::number::Digits;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::string::Str;
use brisk_structures::hyperloglog::{self, Form, REGISTERS};

fn pfdebug(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let word = args.bytes()?;
    let key = args.key()?;
    let Some(mut entry) = ctx.keys.open_mut::<Str>(&key)? else {
        return Err(CommandError::text("ERR The specified key does not exist"));
    };
    let value = entry.value();
    let mut digits = Digits::new();
    let bytes = &*value.contiguous(&mut digits);
    let form = form_of(bytes)?;
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if is("GETREG") {
        return reply_registers(ctx, &key);
    }
    if is("TODENSE") {
        let converted = make_dense(ctx, &key)?;
        return Ok(ctx.reply.integer(i64::from(converted)));
    }
    let decoded = match form {
        Form::Sparse if is("DECODE") => Some(hyperloglog::describe(bytes)?),
        Form::Dense if is("DECODE") => {
            return Err(CommandError::text("ERR HLL encoding is not sparse"));
        }
        _ if is("ENCODING") => None,
        _ => return Err(CommandError::text_around("ERR Unknown PFDEBUG subcommand '", word, "'")),
    };
    let len = bytes.len();
    entry.edit(len, |_| Edit::unchanged(()));
    Ok(match (decoded, form) {
        (Some(text), _) => ctx.reply.bulk(text.as_bytes()),
        (None, Form::Sparse) => ctx.reply.simple("sparse"),
        (None, Form::Dense) => ctx.reply.simple("dense"),
    })
}

/// Replies with the registers. The value is converted to dense for this, as in Redis.
fn reply_registers(ctx: &mut Ctx<'_, '_>, key: &Key<'_>) -> Result<Outcome> {
    make_dense(ctx, key)?;
    let mut registers = Box::new([0; REGISTERS]);
    if let Some(value) = ctx.keys.open::<Str>(key)? {
        hyperloglog::merge(&value.contiguous(&mut Digits::new()), &mut registers)?;
    }
    ctx.reply.array(REGISTERS);
    for register in registers.iter() {
        ctx.reply.integer(i64::from(*register));
    }
    Ok(Outcome::Replied)
}

/// Converts a value to dense. Returns false if it was already dense.
fn make_dense(ctx: &mut Ctx<'_, '_>, key: &Key<'_>) -> Result<bool> {
    let Some(mut entry) = ctx.keys.open_mut::<Str>(key)? else { return Ok(false) };
    let mut bytes = entry.value().to_vec();
    if form_of(&bytes)? == Form::Dense {
        return Ok(false);
    }
    hyperloglog::make_dense(&mut bytes)?;
    entry.store_raw(bytes, 1, "");
    Ok(true)
}

fn pfselftest(ctx: &mut Ctx<'_, '_>, _args: &mut Args<'_>) -> Result<Outcome> {
    hyperloglog::self_test().map_err(|what| CommandError::text(format!("TESTFAILED {what}")))?;
    Ok(ctx.reply.ok())
}

const PFDEBUG: Command = Command {
    spec: Spec {
        name: "pfdebug",
        group: Group::HyperLogLog,
        summary: "Shows the encoding of a HyperLogLog.",
        since: "2.8.9",
        complexity: "N/A",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::ADMIN),
        keys: &[KeySpec::at(2).read_write(KeyFlags::ACCESS)],
        args: &[Arg::string("subcommand"), Arg::key("key")],
        syscmd: true,
        ..Spec::EMPTY
    },
    run: pfdebug,
    subcommands: &[],
};

const PFSELFTEST: Command = Command {
    spec: Spec {
        name: "pfselftest",
        group: Group::HyperLogLog,
        summary: "Tests the HyperLogLog implementation.",
        since: "2.8.9",
        complexity: "N/A",
        arity: 1,
        flags: Flags::ADMIN,
        syscmd: true,
        ..Spec::EMPTY
    },
    run: pfselftest,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] = &[PFDEBUG, PFSELFTEST];
