//! Checks whether an RDB file can be loaded, and if not, up to which point.

use crate::report::{Stop, about, reason, shown};
use brisk_persist::LoadError;
use brisk_persist::rdb::{Checksum, FilePart, RdbEvent, RdbReader};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Result as IoResult, Write};
use std::os::unix::ffi::OsStrExt;

/// The last part of `--help`.
const OPTIONS: &str = "
Checks whether a server can load an RDB file, and shows where it is damaged.
Exit code: 0 if it can be loaded, 1 if not.

 -h, --help         Prints this help
 -v, --version      Prints the version
";

/// The output, and the time that decides whether keys have expired.
pub struct Context<'a> {
    pub out: &'a mut dyn Write,
    /// Unix time in ms.
    pub now_ms: i64,
}

/// Counts of the keys read so far.
#[derive(Default)]
struct Found {
    keys: u64,
    expires: u64,
    expired: u64,
}

/// Runs the tool with the arguments that follow its name, `program`.
///
/// # Errors
/// The file is damaged, or another error was reported.
pub fn run(program: &str, args: &[OsString], context: &mut Context<'_>) -> Result<(), Stop> {
    let usage = format!("Usage: {program} <rdb-file-name>");
    if let Some(text) = about("brisk-check-rdb", &format!("{usage}\n{OPTIONS}"), args) {
        context.out.write_all(text.as_bytes())?;
        return Ok(());
    }
    let [name] = args else {
        eprintln!("{usage}");
        return Err(Stop::AlreadyReported);
    };
    print_checking(name, context.out)?;
    let file = File::open(name).map_err(|error| {
        eprintln!("Cannot open file {}: {}", name.display(), reason(&error));
        Stop::AlreadyReported
    })?;
    check_content(file, context)?.map_or(Err(Stop::AlreadyReported), |_| Ok(()))
}

/// Checks the RDB file at the beginning of `source`, and returns its length if it is intact.
///
/// # Errors
/// Returns the errors of the output.
pub fn check(name: &OsStr, source: impl Read, context: &mut Context<'_>) -> IoResult<Option<u64>> {
    print_checking(name, context.out)?;
    check_content(source, context)
}

fn print_checking(name: &OsStr, out: &mut dyn Write) -> IoResult<()> {
    out.write_all(b"[offset 0] Checking RDB file ")?;
    out.write_all(name.as_bytes())?;
    out.write_all(b"\n")
}

fn check_content(source: impl Read, context: &mut Context<'_>) -> IoResult<Option<u64>> {
    let mut found = Found::default();
    let mut reader = match RdbReader::new(source) {
        Ok(reader) => reader.skip_modules(),
        Err(error) => {
            print_error(context.out, 0, &error)?;
            writeln!(context.out, "[additional info] While doing: start")?;
            found.print(context.out)?;
            return Ok(None);
        }
    };
    loop {
        let intact_until = reader.position();
        match reader.next_event() {
            Ok(Some(RdbEvent::EmptyValue { key })) => {
                print_error(context.out, reader.position(), &LoadError::Empty)?;
                writeln!(context.out, "[additional info] Reading key {}", shown(&key))?;
                writeln!(context.out, "[additional info] Servers skip keys with empty values.")?;
                found.keys += 1;
                found.print(context.out)?;
                return Ok(None);
            }
            // Before version 5 no file had a checksum.
            Ok(Some(RdbEvent::End(_))) if reader.version() < 5 => {}
            Ok(Some(event)) => found.note(event, reader.position(), context)?,
            Ok(None) => break,
            Err(error) => {
                print_error(context.out, reader.position(), &error)?;
                found.print_place(&reader, intact_until, &error, context.out)?;
                return Ok(None);
            }
        }
    }
    let position = reader.position();
    writeln!(context.out, "[offset {position}] \\o/ RDB looks OK! \\o/")?;
    found.print(context.out)?;
    Ok(Some(position))
}

fn print_error(out: &mut dyn Write, offset: u64, error: &LoadError) -> IoResult<()> {
    writeln!(out, "--- RDB ERROR DETECTED ---")?;
    match error {
        LoadError::Truncated { offset } => {
            writeln!(out, "[offset {offset}] Unexpected EOF reading RDB file")
        }
        LoadError::Checksum { stored, computed } => writeln!(
            out,
            "[offset {offset}] RDB CRC error: the file contains {stored:016x}, but the computed checksum is {computed:016x}"
        ),
        LoadError::NotRdb => {
            writeln!(out, "[offset {offset}] Wrong signature trying to load DB from file")
        }
        LoadError::UnsupportedVersion(version) => {
            writeln!(out, "[offset {offset}] Can't handle RDB format version {version}")
        }
        LoadError::UnknownType { code, .. } => {
            writeln!(out, "[offset {offset}] Invalid object type: {code}")
        }
        other => writeln!(out, "[offset {offset}] {other}"),
    }
}

impl Found {
    fn note(&mut self, event: RdbEvent, offset: u64, context: &mut Context<'_>) -> IoResult<()> {
        let out = &mut *context.out;
        match event {
            RdbEvent::Aux { name, value } => {
                write!(out, "[offset {offset}] AUX FIELD ")?;
                out.write_all(&name)?;
                out.write_all(b" = '")?;
                out.write_all(&value)?;
                out.write_all(b"'\n")?;
            }
            RdbEvent::SelectDb(db) => writeln!(out, "[offset {offset}] Selecting DB ID {db}")?,
            RdbEvent::ModuleAux { module } => {
                writeln!(out, "[offset {offset}] MODULE AUX for: {module}")?;
            }
            RdbEvent::Entry(entry) => {
                self.keys += 1;
                if let Some(deadline) = entry.metadata.expire_at_ms {
                    self.expires += 1;
                    self.expired += u64::from(deadline < context.now_ms);
                }
            }
            RdbEvent::ModuleValue { .. } => self.keys += 1,
            RdbEvent::End(Checksum::None) => writeln!(
                out,
                "[offset {offset}] RDB file was saved with checksum disabled: no check performed."
            )?,
            RdbEvent::End(_) => writeln!(out, "[offset {offset}] Checksum OK")?,
            _ => {}
        }
        Ok(())
    }

    /// Prints the part that was being read, and the intact part before it.
    fn print_place<R: Read>(
        &mut self,
        reader: &RdbReader<R>,
        intact_until: u64,
        error: &LoadError,
        out: &mut dyn Write,
    ) -> IoResult<()> {
        let place = reader.context();
        writeln!(out, "[additional info] While doing: {}", part_name(place.part))?;
        if let Some(key) = place.key {
            writeln!(out, "[additional info] Reading key {}", shown(key))?;
        }
        if let Some(kind) = place.kind {
            writeln!(out, "[additional info] Reading type {kind} ({})", kind_name(kind))?;
        }
        if matches!(error, LoadError::Checksum { .. }) {
            let line = "All keys can be read, but the data is corrupted: \
                        their values cannot be trusted.";
            writeln!(out, "[additional info] {line}")?;
        } else {
            let keys = self.keys;
            writeln!(
                out,
                "[additional info] Damage begins at byte {intact_until}; \
                 the {keys} keys before it can be saved."
            )?;
        }
        // A key counts as read once its name has been read.
        self.keys += u64::from(place.key.is_some());
        self.print(out)
    }

    fn print(&self, out: &mut dyn Write) -> IoResult<()> {
        writeln!(out, "[info] {} keys read", self.keys)?;
        writeln!(out, "[info] {} expires", self.expires)?;
        writeln!(out, "[info] {} already expired", self.expired)
    }
}

fn part_name(part: FilePart) -> &'static str {
    match part {
        FilePart::Kind => "read-type",
        FilePart::ExpireTime => "read-expire",
        FilePart::Database => "read-len",
        FilePart::Aux => "read-aux",
        FilePart::ModuleAux => "read-module-aux",
        FilePart::Function => "read-functions",
        FilePart::Key => "read-key",
        FilePart::Value => "read-object-value",
        FilePart::Checksum => "check-sum",
    }
}

/// The name that redis-check-rdb of Redis 7.4 prints for a value type. In files of Valkey 9, type 22 is a hash with
/// TTLs of fields.
fn kind_name(kind: u8) -> &'static str {
    const NAMES: [&str; 26] = [
        "string",
        "list-linked",
        "set-hashtable",
        "zset-v1",
        "hash-hashtable",
        "zset-v2",
        "module-pre-release",
        "module-value",
        "",
        "hash-zipmap",
        "list-ziplist",
        "set-intset",
        "zset-ziplist",
        "hash-ziplist",
        "quicklist",
        "stream",
        "hash-listpack",
        "zset-listpack",
        "quicklist-v2",
        "stream-v2",
        "set-listpack",
        "stream-v3",
        "hash-hashtable-md-pre-release",
        "hash-listpack-md-pre-release",
        "hash-hashtable-md",
        "hash-listpack-md",
    ];
    NAMES.get(usize::from(kind)).filter(|name| !name.is_empty()).unwrap_or(&"unknown")
}
