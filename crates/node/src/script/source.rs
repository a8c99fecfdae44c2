//! Loads function libraries from their source code, which comes from FUNCTION LOAD and RESTORE, a file, or the
//! primary's dataset. The code is checked, compiled and run, and the library replaces the current one.

use super::libraries::{Function, Library, Policy};
use super::machine::error_with;
use super::{FunctionInterpreter, run};
use crate::core::Core;
use crate::core::shared::Shared;
use brisk_engine::{CommandError, Result};
use brisk_script::Registered;
use brisk_script::header::{self, LibraryHeader};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Loads one library and returns its name. With `replace`, it replaces a library with the same name.
///
/// # Errors
/// The library cannot be loaded. No library was changed.
pub fn load(core: &mut Core, code: &[u8], replace: bool) -> Result<Vec<u8>> {
    let header = header_of(code)?;
    let shared = core.shared;
    if !replace && shared.scripting.libraries.now().libraries.contains_key(&header.name) {
        return Err(error_with(
            b"ERR Library '",
            &[&header.name[..], b"' already exists"].concat(),
        ));
    }
    let interpreter = interpreter(core)?;
    let (library, registered) = compile(shared, interpreter, header, code)?;
    let (id, name) = (library.id, library.name.clone());
    shared.scripting.libraries.load(library, replace).map_err(|text| error_with(b"ERR ", &text))?;
    interpreter.keep(id, registered);
    run::forget_flushed(core);
    Ok(name)
}

/// Loads several libraries. `policy` determines how libraries that are already loaded are handled.
///
/// # Errors
/// One of the libraries cannot be loaded. No library was changed.
pub fn restore<'a>(
    core: &mut Core,
    sources: impl Iterator<Item = &'a [u8]>,
    policy: Policy,
) -> Result<()> {
    let shared = core.shared;
    let mut sources = sources.peekable();
    if sources.peek().is_none() {
        // Most servers have no libraries, and clearing an empty set needs no interpreter.
        let restored = shared.scripting.libraries.restore(&[], policy);
        restored.map_err(|text| error_with(b"ERR ", &text))?;
        run::forget_flushed(core);
        return Ok(());
    }
    let interpreter = interpreter(core)?;
    let mut libraries: Vec<Arc<Library>> = Vec::new();
    let mut functions = Vec::new();
    for code in sources {
        let (library, registered) = compile(shared, interpreter, header_of(code)?, code)?;
        let same = |known: &Arc<Library>| known.name == library.name;
        if libraries.iter().any(same) {
            let text = [b"Library '", &library.name[..], b"' already exists"].concat();
            return Err(error_with(b"ERR ", &text));
        }
        functions.push((library.id, registered));
        libraries.push(Arc::new(library));
    }
    let restored = shared.scripting.libraries.restore(&libraries, policy);
    restored.map_err(|text| error_with(b"ERR ", &text))?;
    for (id, registered) in functions {
        interpreter.keep(id, registered);
    }
    run::forget_flushed(core);
    Ok(())
}

/// The worker's function interpreter, unless a suspended script uses it.
fn interpreter(core: &mut Core) -> Result<&mut FunctionInterpreter> {
    if core.scripts.is_parked() {
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

/// Compiles and runs the code of a library. The library is not visible to sessions yet.
fn compile(
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
        id: shared.scripting.libraries.new_id(),
        name: header.name,
        code: code.into(),
        header_len: header.len,
        functions: functions.collect(),
    };
    Ok((library, registered))
}
