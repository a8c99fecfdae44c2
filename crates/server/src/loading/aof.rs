//! The dataset from the append-only file: its base, and the commands since then.

use super::replay::{Failed, Replay};
use crate::commands::scripting::libraries;
use brisk_config::os_reason;
use brisk_engine::DbIndex;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::Keys;
use brisk_node::core::Core;
use brisk_node::persistence::aof::ending::{self, FIX};
use brisk_node::persistence::aof::{home::Home, rewrite};
use brisk_node::persistence::disk::{Disk, System};
use brisk_node::persistence::loading;
use brisk_node::script::libraries::Policy;
use brisk_persist::aof::{AofError, AofReader, FileKind, Manifest, ManifestFile, has_preamble};
use brisk_structures::reclaim::Participant;
use std::path::Path;
use std::time::Instant;

/// Loads the files that the manifest names, and goes on to write the last; begins with an empty one if
/// there is none. Only before other workers begin. O(files).
///
/// # Errors
/// What cannot be loaded, where, and what to do. Nothing was changed, but for a torn end that the
/// settings allow to be cut off.
pub fn load(core: &mut Core, participant: &Participant) -> Result<(), String> {
    let home = Home::of(&core.config);
    let manifest = home.find(&System)?;
    if let Some(manifest) = &manifest {
        load_files(core, Some(participant), &home, manifest)?;
    }
    rewrite::open(core, manifest)
}

/// DEBUG LOADAOF: forgets the dataset and loads what was written of it. All other workers stand still,
/// and no transaction is running. O(files).
///
/// # Errors
/// As of [`load`]; what was loaded up to there is the dataset.
pub fn load_again(core: &mut Core) -> Result<(), String> {
    let shared = core.shared;
    if shared.aof.is_on() {
        shared.pump(core.id);
        shared.aof.flush(shared).map_err(|error| os_reason(&error))?;
    }
    let home = Home::of(&core.config);
    let manifest = home.find(&System)?.ok_or("there is no append-only file")?;
    let had_hooks = core.env.hooks.replace_own(Hooks::empty());
    let propagated = core.env.hooks.get().contains(Hooks::PROPAGATE);
    core.env.hooks.set(Hooks::PROPAGATE, false);
    forget(core);
    let loaded = load_files(core, None, &home, &manifest);
    core.env.hooks.set(Hooks::PROPAGATE, propagated);
    core.env.hooks.replace_own(had_hooks);
    loaded
}

fn forget(core: &mut Core) {
    let keyspace = &core.shared.keyspace;
    let mut keys = Keys::unlocked(keyspace, &core.env, DbIndex(0));
    for db in (0..keyspace.database_count()).map(DbIndex) {
        keys.flush(db);
    }
    keys.invalidate_all();
    keys.close_without_effects();
    // None stays, so none can be refused.
    let _ = libraries::restore_sources(core, std::iter::empty(), Policy::Flush);
}

fn load_files(
    core: &mut Core,
    participant: Option<&Participant>,
    home: &Home,
    manifest: &Manifest,
) -> Result<(), String> {
    core.is_loading = true;
    let loaded = load_each(core, participant, home, manifest);
    core.is_loading = false;
    loaded
}

fn load_each(
    core: &mut Core,
    participant: Option<&Participant>,
    home: &Home,
    manifest: &Manifest,
) -> Result<(), String> {
    let began = Instant::now();
    let files: Vec<_> = manifest.files_to_load().cloned().collect();
    let mut replay = Replay::new(core, participant);
    for (number, file) in files.iter().enumerate() {
        load_file(core, &mut replay, home, file, number + 1 == files.len())?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let log = &core.shared.log;
    log.notice(format_args!("DB loaded from append only file: {seconds:.3} seconds"));
    Ok(())
}

fn load_file(
    core: &mut Core,
    replay: &mut Replay<'_>,
    home: &Home,
    file: &ManifestFile,
    is_last: bool,
) -> Result<(), String> {
    let (path, began) = (home.path(file), Instant::now());
    let name = String::from_utf8_lossy(&file.name).into_owned();
    let unreadable = |error: std::io::Error| {
        format!(
            "Fatal error: can't open the append log file {name} for reading: {}",
            os_reason(&error)
        )
    };
    let mut source = System.open(&path).map_err(unreadable)?;
    let mut from = 0;
    if has_preamble(&mut source).map_err(unreadable)? {
        let loaded = loading::load_base(core, &path);
        let (position, functions) = loaded.map_err(|error| {
            format!("Error reading the RDB preamble of the AOF file {name}: {error}. {FIX}")
        })?;
        libraries::restore_sources(core, functions.iter().map(Vec::as_slice), Policy::Append)
            .map_err(|error| format!("A library of functions in the AOF file {name}: {error}"))?;
        from = position;
    }
    let mut reader = AofReader::new(source, from).map_err(unreadable)?;
    match replay.run(core, &mut reader) {
        Ok(()) => {}
        Err(Failed::Command(command, position)) => {
            return Err(format!(
                "Unknown command '{command}' reading the append only file {name}, before byte \
                 {position}"
            ));
        }
        Err(Failed::File(error)) => end_of(core, &path, &name, &error, is_last)?,
    }
    let kind = if file.kind == FileKind::Base { "base" } else { "incr" };
    let seconds = began.elapsed().as_secs_f64();
    core.shared.log.notice(format_args!("DB loaded from {kind} file {name}: {seconds:.3} seconds"));
    Ok(())
}

/// What becomes of a file that is not whole.
fn end_of(
    core: &Core,
    path: &Path,
    name: &str,
    error: &AofError,
    is_last: bool,
) -> Result<(), String> {
    let may_cut = core.config.persistence.aof_load_truncated;
    let at = ending::cut_at(name, error, is_last, may_cut)?;
    let log = &core.shared.log;
    log.warning(format_args!("!!! Warning: short read while loading the AOF file {name}!!!"));
    log.warning(format_args!("AOF {name} loaded anyway because aof-load-truncated is enabled"));
    log.warning(format_args!("Truncating the AOF {name} at offset {at}: {error}"));
    ending::cut(&System, path, name, at)
}
