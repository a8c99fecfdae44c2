//! A server that consists only of its append-only file. Each operation calls the functions of the real server in the
//! same order as the real server.
//!
//! The dataset is the number of executed commands. The commands are numbered. If the numbers in the files are
//! consecutive, the files contain a prefix of the executed commands, and the last number is its length.

use super::super::ending;
use super::super::file::{Handle, Trouble};
use super::super::files::{self, BaseStyle};
use super::super::home::Home;
use super::super::state::{Aof, AofMode, Level};
use super::promises::{Promises, Seen};
use crate::persistence::disk::Disk;
use crate::persistence::simulated::Simulated;
use brisk_config::choice::AppendFsync;
use brisk_config::directives::persistence::Persistence;
use brisk_engine::keyspace::Ticket;
use brisk_persist::aof::{
    AofEventKind, AofReader, BaseFormat, Manifest, ManifestFile, has_preamble, writer,
};
use brisk_persist::rdb::value::{StringValue, Value};
use brisk_persist::rdb::{KeyMetadata, RdbEvent, RdbReader, RdbWriter, VERSION};
use brisk_structures::poison::EvenPoisoned;
use brisk_testkit::random::Random;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const DIR: &str = "/data";
const COUNT: &[u8] = b"count";

pub(super) fn home() -> Home {
    let name = "appendonly.aof";
    let dir = PathBuf::from(DIR);
    let single = dir.join(name);
    Home { dir: dir.join("appendonlydir"), name: name.into(), single }
}

pub(super) struct Server {
    disk: Simulated,
    pub(super) aof: Aof<Simulated>,
    pub(super) promises: Promises,
    style: BaseStyle,
    rewrite: Option<Rewrite>,
    /// The next request to `brisk-aof-sync`: a file, the number of its bytes, and the position in the stream.
    concurrent_sync: Option<(Arc<Handle<Simulated>>, u64, u64)>,
}

/// A rewrite in progress.
struct Rewrite {
    /// The dataset when the rewrite's snapshot began.
    count: u64,
    increment: Option<ManifestFile>,
    /// Set when the base is complete.
    manifest: Option<Manifest>,
}

/// Indicates that the server exits, because data that it has written may be lost.
#[derive(Debug)]
pub(super) struct Ends;

impl Server {
    /// Loads the files and starts. `check` is called with the number of commands found.
    pub(super) fn start(
        disk: &Simulated,
        mut promises: Promises,
        style: BaseStyle,
        policy: AppendFsync,
        has_timestamps: bool,
    ) -> Result<Server, (String, Promises)> {
        let begun = load(disk, &mut promises.seen).and_then(|(manifest, count)| {
            promises.check(count);
            files::open(disk, &home(), manifest, style, |file| write_snapshot(file, 0))
                .map(|files| (files, count))
        });
        let ((file, manifest), count) = match begun {
            Ok(begun) => begun,
            Err(reason) => return Err((reason, promises)),
        };
        promises.begin_with(count);
        let aof = Aof::new(1);
        aof.note_sizes(disk, &home(), &manifest);
        aof.configure(&Persistence {
            appendfsync: policy,
            aof_timestamp_enabled: has_timestamps,
            ..Persistence::default()
        });
        aof.begin_with(file, manifest, Ticket(promises.place()));
        let disk = disk.clone();
        Ok(Server { disk, aof, promises, style, rewrite: None, concurrent_sync: None })
    }

    /// Executes a transaction of this number of commands.
    pub(super) fn execute(&mut self, commands: u64, padding: usize) {
        let first = self.promises.total() + 1;
        let bytes = transaction(first, commands, padding);
        self.promises.execute(commands, bytes.len() as u64);
        self.aof.push(&bytes, &[]);
    }

    /// One round of the writer thread.
    pub(super) fn write(&mut self) -> Result<(), Ends> {
        let mut file = self.aof.file.lock().even_poisoned();
        match self.aof.write_items(&mut file, None) {
            Ok(_) => {}
            // The caller retries later.
            Err(Trouble::Write(_)) => return Ok(()),
            Err(Trouble::Sync(_)) => return Err(Ends),
        }
        if self.aof.level() == Level::Disk
            && let Some(file) = &*file
        {
            self.aof.sync(file).map_err(|_| Ends)?;
        }
        Ok(())
    }

    /// A write by another thread after data was lost. The server is about to exit, but that thread does not know it
    /// yet.
    pub(super) fn write_once_more(&mut self) {
        let mut file = self.aof.file.lock().even_poisoned();
        let _ = self.aof.write_items(&mut file, None);
        if let Some(file) = &*file {
            let _ = self.aof.sync(file);
        }
    }

    /// Sends a request to the thread that only waits for the disk, or takes its result.
    pub(super) fn sync_concurrently(&mut self) -> Result<(), Ends> {
        if let Some((handle, size, written)) = self.concurrent_sync.take() {
            return self.aof.note_durable(handle.sync(size), written).map_err(|_| Ends);
        }
        if let Some(file) = &*self.aof.file.lock().even_poisoned() {
            let (handle, size) = file.handle();
            self.concurrent_sync = Some((handle, size, self.aof.reached(Level::Log).0));
        }
        // Without a complete base, there is no position to report.
        self.concurrent_sync =
            self.concurrent_sync.take().filter(|_| self.aof.mode() == AofMode::On);
        Ok(())
    }

    /// BGREWRITEAOF, or CONFIG SET appendonly yes, up to its reply.
    pub(super) fn begin_rewrite(&mut self, switches_on: bool) -> Result<(), String> {
        if self.rewrite.is_some() {
            return Ok(());
        }
        let (disk, aof, home) = (&self.disk, &self.aof, home());
        let mut next = if aof.is_on() {
            aof.manifest.lock().even_poisoned().clone()
        } else {
            home.read(disk)?.unwrap_or_default()
        };
        let is_logged = aof.is_on() || switches_on;
        let increment = is_logged.then(|| next.new_increment(&home.name).clone());
        let file = files::begin_rewrite(disk, &home, increment.as_ref()).map_err(said)?;
        if let Some(file) = file {
            aof.go_over_to(file, &home, &next, Ticket(self.promises.place()));
        }
        *aof.manifest.lock().even_poisoned() = next;
        self.rewrite = Some(Rewrite { count: self.promises.total(), increment, manifest: None });
        Ok(())
    }

    /// The work of the rewrite's thread: the base and, when the increment is in use, the manifest.
    pub(super) fn advance_rewrite(&mut self, removes_history: bool) -> Result<(), String> {
        let Some(mut rewrite) = self.rewrite.take() else { return Ok(()) };
        let (disk, aof, home) = (&self.disk, &self.aof, home());
        let Some(manifest) = rewrite.manifest.take() else {
            let mut manifest = aof.manifest.lock().even_poisoned().clone();
            manifest.replace_base(&home.name, self.style.format);
            manifest.retire_increments(usize::from(rewrite.increment.is_some()));
            files::write_base(disk, &home, &manifest, self.style, |file| {
                write_snapshot(file, rewrite.count)
            })
            .map_err(|failure| failure.to_string())?;
            rewrite.manifest = Some(manifest);
            self.rewrite = Some(rewrite);
            return Ok(());
        };
        let is_missing = |file: &ManifestFile| !aof.is_in_use(&home.path(file));
        if rewrite.increment.as_ref().is_some_and(is_missing) {
            rewrite.manifest = Some(manifest);
            self.rewrite = Some(rewrite);
            return Ok(());
        }
        aof.name_base(disk, &home, manifest, removes_history).map_err(said)?;
        self.promises.seen.rewrites += 1;
        Ok(())
    }

    pub(super) fn rewrites(&self) -> bool {
        self.rewrite.is_some()
    }

    /// CONFIG SET appendonly no.
    pub(super) fn switch_off(&mut self) -> Result<(), Ends> {
        if self.aof.mode() == AofMode::Off {
            return Ok(());
        }
        let brought = self.aof.bring_to_disk();
        self.note_promises();
        if let Some(manifest) = self.rewrite.take().and_then(|rewrite| rewrite.manifest) {
            files::discard_base(&self.disk, &home(), &manifest);
        }
        self.aof.end_at(Ticket(self.promises.place()));
        self.concurrent_sync = None;
        if let Err(Trouble::Sync(_)) = brought { Err(Ends) } else { Ok(()) }
    }

    /// Notes the promises that clients may have received so far.
    pub(super) fn note_promises(&mut self) {
        if self.aof.mode() == AofMode::On {
            let (log, disk) = (self.aof.reached(Level::Log), self.aof.reached(Level::Disk));
            self.promises.note(log.0, disk.0);
        }
    }
}

fn said(error: io::Error) -> String {
    error.to_string()
}

/// A transaction of this number of commands, numbered from `first`, in the format of the stream.
pub(super) fn transaction(first: u64, commands: u64, padding: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if commands > 1 {
        writer::command(&mut bytes, &["MULTI"]);
    }
    let padding = "x".repeat(padding);
    for number in first..first + commands {
        writer::command(&mut bytes, &["RPUSH", "log", &number.to_string(), &padding]);
    }
    if commands > 1 {
        writer::command(&mut bytes, &["EXEC"]);
    }
    bytes
}

fn write_snapshot(file: impl Write, count: u64) -> io::Result<()> {
    let mut out = RdbWriter::new(file, VERSION);
    if count > 0 {
        out.select_db(0);
        let value = Value::String(StringValue::Bytes(count.to_string().into_bytes()));
        out.entry(COUNT, KeyMetadata::default(), &value);
    }
    out.finish().map(|_| ())
}

/// Loads the dataset, which is a number of commands, when the server starts.
fn load(disk: &Simulated, seen: &mut Seen) -> Result<(Option<Manifest>, u64), String> {
    let home = home();
    let manifest = home.find(disk)?;
    let mut count = 0;
    if let Some(manifest) = &manifest {
        let files: Vec<_> = manifest.files_to_load().collect();
        for (number, file) in files.iter().enumerate() {
            load_file(disk, &home.path(file), number + 1 == files.len(), &mut count, seen)?;
        }
    }
    Ok((manifest, count))
}

fn load_file(
    disk: &Simulated,
    path: &Path,
    is_last: bool,
    count: &mut u64,
    seen: &mut Seen,
) -> Result<(), String> {
    let name = path.display().to_string();
    let about = |error: io::Error| format!("{name}: {error}");
    let mut source = disk.open(path).map_err(about)?;
    let mut from = 0;
    if has_preamble(&mut source).map_err(about)? {
        let damaged = |error| format!("{name}: {error}");
        let mut reader = RdbReader::new(disk.open(path).map_err(about)?).map_err(damaged)?;
        while let Some(event) = reader.next_event().map_err(damaged)? {
            if let RdbEvent::Entry(entry) = event {
                let Value::String(StringValue::Bytes(bytes)) = &entry.value else {
                    // Numbers are stored as integers.
                    let Value::String(StringValue::Int(number)) = &entry.value else {
                        return Err(format!("{name}: an odd value"));
                    };
                    *count = number.unsigned_abs();
                    continue;
                };
                *count = number(bytes);
            }
        }
        from = reader.position();
    }
    let mut reader = AofReader::new(source, from).map_err(about)?;
    // The dataset, including the effects of an open transaction so far.
    let (mut now, mut is_open) = (*count, false);
    loop {
        match reader.next_event() {
            Ok(None) => return Ok(()),
            Ok(Some(event)) => {
                let AofEventKind::Command(command) = event.kind else { continue };
                match (command.name(), command.arg(2)) {
                    (b"MULTI", _) => is_open = true,
                    (b"EXEC", _) => is_open = false,
                    (b"SELECT", _) => {}
                    (b"SET", Some(value)) => now = number(value),
                    (b"RPUSH", Some(value)) => {
                        assert_eq!(number(value), now + 1, "{name} at byte {}", event.start);
                        now += 1;
                    }
                    _ => return Err(format!("{name}: an odd command")),
                }
                if !is_open {
                    *count = now;
                }
            }
            Err(error) => {
                let at = ending::cut_at(&name, &error, is_last, true)?;
                let after = disk.contents(path).unwrap_or_default().split_off(at as usize + 1);
                seen.cuts += 1;
                seen.holes += u64::from(after.windows(5).any(|here| here == b"\r\n#B:"));
                return ending::cut(disk, path, &name, at);
            }
        }
    }
}

fn number(text: &[u8]) -> u64 {
    str::from_utf8(text).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// Chooses at random how bases are written.
pub(super) fn style(random: &mut Random) -> BaseStyle {
    let format = *random.pick(&[BaseFormat::Rdb, BaseFormat::Commands]);
    BaseStyle { format, by_steps: random.percent(50), has_timestamps: random.percent(50) }
}
