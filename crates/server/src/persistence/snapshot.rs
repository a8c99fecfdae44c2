//! Snapshots as files in the working directory: the whole dataset of one moment.
//!
//! A file appears under its name only when it is whole and on the disk: it is written beside it,
//! synchronised and then renamed.

use crate::core::Core;
use brisk_engine::snapshot::{self, Duplicate, LoadFailure, Loaded};
use brisk_observe::version::REDIS_VERSION;
use brisk_persist::LoadError;
use brisk_persist::rdb::{RdbReader, RdbWriter};
use std::fs::{self, File};
use std::io::{self, Write};

/// Writes the dataset to the file `dbfilename`. Only while no other worker runs. O(all data).
pub(crate) fn save(core: &Core) -> io::Result<()> {
    let config = &core.config.persistence;
    let name = config.dbfilename.as_path();
    let temporary = format!("temp-{}.rdb", std::process::id());
    let written = write(core, &temporary).and_then(|()| {
        fs::rename(&temporary, name)?;
        // The rename itself is kept by the directory.
        File::open(".")?.sync_all()
    });
    match &written {
        Ok(()) => core.shared.log.notice(format_args!("DB saved on disk")),
        Err(error) => {
            core.shared.log.warning(format_args!(
                "The snapshot was not saved, {} is what it was before: {error}",
                name.display()
            ));
            // Nothing more can be done about a file that cannot be removed either.
            let _ = fs::remove_file(&temporary);
        }
    }
    written
}

fn write(core: &Core, path: &str) -> io::Result<()> {
    write_to(core, File::create(path)?)?.sync_all()
}

/// Writes the dataset. Only while no other worker runs. O(all data).
pub(crate) fn write_to<W: Write>(core: &Core, sink: W) -> io::Result<W> {
    let config = &core.config.persistence;
    let keyspace = &core.shared.keyspace;
    let mut out = RdbWriter::new(sink, snapshot::version(keyspace, &core.env));
    if !config.rdbcompression {
        out = out.without_compression();
    }
    if !config.rdbchecksum {
        out = out.without_checksum();
    }
    out.aux("redis-ver", REDIS_VERSION.as_bytes());
    out.aux("redis-bits", b"64");
    out.aux("ctime", (core.env.now().0 / 1000).to_string().as_bytes());
    out.aux("used-mem", brisk_observe::memory::used().to_string().as_bytes());
    out.aux("aof-base", b"0");
    for library in core.shared.libraries.now().libraries.values() {
        out.function(&library.code);
    }
    snapshot::save(keyspace, &core.env, &mut out);
    out.finish()
}

/// Sees whether the file `dbfilename` is whole; the sources of its libraries of functions. O(file).
pub(crate) fn verify(core: &Core) -> Result<Vec<Vec<u8>>, LoadFailure> {
    snapshot::verify(open(core)?, core.shared.keyspace.database_count())
}

/// Loads the keys of the file `dbfilename`. Only while no other worker runs. O(file).
pub(crate) fn load(core: &Core, duplicate: Duplicate) -> Result<Loaded, LoadFailure> {
    let keyspace = &core.shared.keyspace;
    snapshot::load(keyspace, &core.env, open(core)?, duplicate)
}

fn open(core: &Core) -> Result<RdbReader<File>, LoadFailure> {
    let config = &core.config.persistence;
    let file = File::open(config.dbfilename.as_path()).map_err(LoadError::from)?;
    let reader = RdbReader::new(file)?;
    Ok(if config.rdbchecksum { reader } else { reader.ignore_checksum() })
}
