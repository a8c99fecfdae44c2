//! What FUNCTION's subcommands do with libraries: LOAD, DUMP, RESTORE, LIST, STATS, DELETE, FLUSH.

use brisk_engine::env::Garbage;
use brisk_engine::{Args, CommandError, Outcome, Result, glob};
use brisk_node::core::Core;
use brisk_node::core::call::{Call, Command};
use brisk_node::core::shared::Shared;
use brisk_node::script::FunctionInterpreter;
use brisk_node::script::libraries::{Function, Library, Policy};
use brisk_node::script::machine::error_with;
use brisk_node::script::run;
use brisk_node::script::slow::SlowScript;
use brisk_persist::LoadError;
use brisk_persist::rdb::dump;
use brisk_script::Registered;
use brisk_script::header::{self, FLAGS, LibraryHeader};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The rows are in `function`.
pub(super) const COMMANDS: &[Command] = &[];

/// The worker's function interpreter, unless it is in use.
fn interpreter(core: &mut Core) -> Result<&mut FunctionInterpreter> {
    if core.scripts.parked.is_some() {
        return Err(run::parked_error(core));
    }
    core.scripts.interpreters.functions()
}

/// The header of a library that can be loaded.
fn header_of(code: &[u8]) -> Result<LibraryHeader> {
    let fail = |text: Vec<u8>| error_with(b"ERR ", &text);
    let header = header::of_library(code).map_err(fail)?;
    if !header.engine.eq_ignore_ascii_case(b"lua") {
        return Err(fail([b"Engine '", &header.engine[..], b"' not found"].concat()));
    }
    Ok(header)
}

/// Compiles and runs the code of a library. It is not in force yet.
fn make(
    shared: &Shared,
    interpreter: &FunctionInterpreter,
    header: LibraryHeader,
    code: &[u8],
) -> Result<(Library, Vec<Registered>)> {
    let registered =
        interpreter.run_library(code, header.len).map_err(|text| error_with(b"ERR ", &text))?;
    if registered.is_empty() {
        return Err(CommandError::text("ERR No functions registered"));
    }
    let functions = registered.iter().map(|function| {
        Arc::new(Function {
            name: function.name.clone(),
            description: function.description.clone(),
            flags: function.flags,
            uses_undeclared_keys: AtomicBool::new(false),
            acts: AtomicBool::new(false),
        })
    });
    let library = Library {
        id: shared.libraries.new_id(),
        name: header.name,
        code: code.into(),
        header_len: header.len,
        functions: functions.collect(),
    };
    Ok((library, registered))
}

pub(super) fn load(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let mut replace = false;
    while args.remaining() > 1 {
        if !args.take("REPLACE") {
            return Err(error_with(b"ERR Unknown option given: ", args.bytes()?));
        }
        replace = true;
    }
    let code = args.bytes().map_err(|_| CommandError::text("ERR Function code is missing"))?;
    let header = header_of(code)?;
    let shared = call.core.shared;
    if !replace && shared.libraries.now().libraries.contains_key(&header.name) {
        return Err(error_with(
            b"ERR Library '",
            &[&header.name[..], b"' already exists"].concat(),
        ));
    }
    let interpreter = interpreter(call.core)?;
    let (library, registered) = make(shared, interpreter, header, code)?;
    let (id, name) = (library.id, library.name.clone());
    shared.libraries.load(library, replace).map_err(|text| error_with(b"ERR ", &text))?;
    interpreter.keep(id, registered);
    run::forget_flushed(call.core);
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
    restore_sources(call.core, sources.iter(), policy)?;
    call.core.stats().changes.add(1);
    Ok(call.reply.ok())
}

/// Puts libraries in force that are given by their code.
pub(crate) fn restore_sources<'a>(
    core: &mut Core,
    sources: impl Iterator<Item = &'a [u8]>,
    policy: Policy,
) -> Result<()> {
    let shared = core.shared;
    let mut sources = sources.peekable();
    if sources.peek().is_none() {
        // Most servers have none, and need no interpreter to have none again.
        let restored = shared.libraries.restore(&[], policy);
        restored.map_err(|text| error_with(b"ERR ", &text))?;
        run::forget_flushed(core);
        return Ok(());
    }
    let interpreter = interpreter(core)?;
    let mut libraries: Vec<Arc<Library>> = Vec::new();
    let mut functions = Vec::new();
    for code in sources {
        let (library, registered) = make(shared, interpreter, header_of(code)?, code)?;
        let same = |known: &Arc<Library>| known.name == library.name;
        if libraries.iter().any(same) {
            let text = [b"Library '", &library.name[..], b"' already exists"].concat();
            return Err(error_with(b"ERR ", &text));
        }
        functions.push((library.id, registered));
        libraries.push(Arc::new(library));
    }
    let restored = shared.libraries.restore(&libraries, policy);
    restored.map_err(|text| error_with(b"ERR ", &text))?;
    for (id, registered) in functions {
        interpreter.keep(id, registered);
    }
    run::forget_flushed(core);
    Ok(())
}

pub(super) fn dump(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let set = call.core.shared.libraries.now();
    let payload = dump::write_functions(set.libraries.values().map(|library| &library.code[..]));
    Ok(call.reply.bulk(&payload))
}

pub(super) fn delete(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    if !call.core.shared.libraries.delete(args.bytes()?) {
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
    let flushed = call.core.shared.libraries.flush();
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
    let set = call.core.shared.libraries.now();
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
    shared.running_scripts.with_slowest(|script| {
        if script.is_some_and(|script| script.is_eval) {
            return Err(CommandError::text(shared.running_scripts.busy(true)));
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
    let set = shared.libraries.now();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.count(set.libraries.len());
    reply.bulk(b"functions_count");
    Ok(reply.count(set.function_count()))
}
