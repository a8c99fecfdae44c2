//! The subcommands of FUNCTION for libraries: LOAD, DUMP, RESTORE, LIST, STATS, DELETE, FLUSH.

use brisk_engine::env::Garbage;
use brisk_engine::{Args, CommandError, Outcome, Result, glob};
use brisk_node::core::call::{Call, Command};
use brisk_node::script::libraries::{Library, Policy};
use brisk_node::script::machine::error_with;
use brisk_node::script::slow::SlowScript;
use brisk_node::script::{run, source};
use brisk_persist::LoadError;
use brisk_persist::rdb::dump;
use brisk_script::header::FLAGS;
use std::sync::Arc;

/// Empty, because the rows are in `function`.
pub(super) const COMMANDS: &[Command] = &[];

pub(super) fn load(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let mut replace = false;
    while args.remaining() > 1 {
        if !args.take("REPLACE") {
            return Err(error_with(b"ERR Unknown option given: ", args.bytes()?));
        }
        replace = true;
    }
    let code = args.bytes().map_err(|_| CommandError::text("ERR Function code is missing"))?;
    let name = source::load(call.core, code, replace)?;
    call.core.stats().changes.add(1);
    Ok(call.reply.bulk(&name))
}

pub(super) fn restore(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() > 2 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let payload = args.bytes()?;
    let policy = if args.remaining() == 0 || args.take("APPEND") {
        Policy::Append
    } else if args.take("REPLACE") {
        Policy::Replace
    } else if args.take("FLUSH") {
        Policy::Flush
    } else {
        return Err(CommandError::text(
            "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        ));
    };
    let sources = dump::read_functions(payload).map_err(|error| {
        CommandError::text(match error {
            LoadError::Footer => "ERR DUMP payload version or checksum are wrong",
            LoadError::UnknownType { .. } => "ERR given type is not a function",
            _ => "ERR failed loading the given functions payload",
        })
    })?;
    source::restore(call.core, sources.iter(), policy)?;
    call.core.stats().changes.add(1);
    Ok(call.reply.ok())
}

pub(super) fn dump(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let set = call.core.shared.scripting.libraries.now();
    let payload = dump::write_functions(set.libraries.values().map(|library| &library.code[..]));
    Ok(call.reply.bulk(&payload))
}

pub(super) fn delete(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if !call.core.shared.scripting.libraries.delete(args.bytes()?) {
        return Err(CommandError::text("ERR Library not found"));
    }
    call.core.stats().changes.add(1);
    run::forget_flushed(call.core);
    Ok(call.reply.ok())
}

pub(super) fn flush(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if args.remaining() > 1 {
        return Err(call.subcommand_syntax(args.argument(1)));
    }
    let sync = args.take("SYNC");
    if !sync && !args.take("ASYNC") && args.remaining() > 0 {
        return Err(CommandError::text("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    let flushed = call.core.shared.scripting.libraries.flush();
    run::forget_flushed(call.core);
    call.core.stats().changes.add(1);
    if !sync {
        call.core.env.garbage.borrow_mut().push(Garbage::Other(Box::new(flushed)));
    }
    Ok(call.reply.ok())
}

pub(super) fn list(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (mut with_code, mut pattern) = (false, None);
    while args.remaining() > 0 {
        if !with_code && args.take("WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.take("LIBRARYNAME") {
            let missing = "ERR library name argument was not given";
            pattern = Some(args.bytes().map_err(|_| CommandError::text(missing))?);
        } else {
            return Err(error_with(b"ERR Unknown argument ", args.bytes()?));
        }
    }
    let set = call.core.shared.scripting.libraries.now();
    let wanted = |library: &&Arc<Library>| {
        pattern.is_none_or(|pattern| glob::matches(pattern, &library.name, glob::Case::Ignored))
    };
    let libraries: Vec<&Arc<Library>> = set.libraries.values().filter(wanted).collect();
    let reply = &mut call.reply;
    reply.array(libraries.len());
    for library in libraries {
        reply.map(if with_code { 4 } else { 3 });
        reply.bulk(b"library_name");
        reply.bulk(&library.name);
        reply.bulk(b"engine");
        reply.bulk(b"LUA");
        reply.bulk(b"functions");
        reply.array(library.functions.len());
        for function in &library.functions {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&function.name);
            reply.bulk(b"description");
            match &function.description {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            };
            reply.bulk(b"flags");
            let flags = || FLAGS.iter().filter(|(flag, _)| function.flags.contains(*flag));
            reply.set(flags().count());
            for (_, name) in flags() {
                reply.simple(name);
            }
        }
        if with_code {
            reply.bulk(b"library_code");
            reply.bulk(&library.code);
        }
    }
    Ok(Outcome::Replied)
}

pub(super) fn stats(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let shared = call.core.shared;
    let reply = &mut call.reply;
    shared.scripting.running.with_slowest(|script| {
        if script.is_some_and(|script| script.is_eval) {
            return Err(CommandError::text(shared.scripting.running.busy(true)));
        }
        reply.map(2);
        reply.bulk(b"running_script");
        let Some(SlowScript { shown, began, .. }) = script else {
            reply.null();
            return Ok(());
        };
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&shown.name);
        reply.bulk(b"command");
        reply.array(shown.command.len());
        for word in &shown.command {
            reply.bulk(word);
        }
        reply.bulk(b"duration_ms");
        reply.integer(began.elapsed().as_millis() as i64);
        Ok(())
    })?;
    let set = shared.scripting.libraries.now();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.count(set.libraries.len());
    reply.bulk(b"functions_count");
    Ok(reply.count(set.function_count()))
}
