//! Checks whether append-only files can be loaded, and truncates them after their intact part.
//!
//! - [`run`]: the tool: determines the kind of the file, and checks the files that a manifest lists.
//! - [`single`]: one file of commands.
//! - [`args`]: the command line.

mod args;
mod single;

use crate::report::{Stop, about, reason};
use args::Args;
use brisk_persist::aof::manifest::MANIFEST_BYTES_MAX;
use brisk_persist::aof::{Manifest, ManifestError, ManifestFile, NotRdb, has_preamble};
use single::{Single, Verdict};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Result as IoResult, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The last part of `--help`.
const OPTIONS: &str = "
Checks whether a server can load append-only files: a manifest and all files that it
lists, or a single file. Exit code: 0 if they can be loaded or were repaired, 1 if not.

 --fix              Truncates an incomplete end, after a confirmation
 --truncate-to-timestamp <seconds>
                    Truncates everything written after this Unix time
 -h, --help         Prints this help
 -v, --version      Prints the version
";

/// Maximum bytes of a line in a manifest.
const MANIFEST_LINE_BYTES_MAX: u64 = 1024;

/// The output, the input for confirmations, and the time that decides whether keys have expired.
pub struct Terminal<'a> {
    pub out: &'a mut dyn Write,
    pub answers: &'a mut dyn BufRead,
    /// Unix time in ms.
    pub now_ms: i64,
}

/// How to repair a file that is not intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Repair {
    /// Truncate the file at the fault, after a confirmation.
    fix: bool,
    /// Truncate everything that was executed after this Unix time in seconds.
    until: Option<i64>,
}

/// The kind of file at a path.
enum Content {
    Manifest,
    Commands,
    /// An RDB file, which commands may follow.
    Preamble,
}

/// Runs the tool with the arguments that follow its name, `program`.
///
/// # Errors
/// A file is damaged and was not repaired, or another error was reported.
pub fn run(program: &str, args: &[OsString], terminal: &mut Terminal<'_>) -> Result<(), Stop> {
    let usage = format!(
        "Usage: {program} [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>"
    );
    if let Some(text) = about("brisk-check-aof", &format!("{usage}\n{OPTIONS}"), args) {
        terminal.out.write_all(text.as_bytes())?;
        return Ok(());
    }
    let Args { path, repair } = match args::parse(args) {
        Ok(args) => args,
        Err(args::ArgsError::Timestamp) => {
            writeln!(terminal.out, "Invalid timestamp, aborting...")?;
            return Err(Stop::AlreadyReported);
        }
        Err(args::ArgsError::Usage) => {
            writeln!(terminal.out, "{usage}")?;
            return Err(Stop::AlreadyReported);
        }
    };
    match content(&path, terminal)? {
        Content::Manifest => check_listed(&path, repair, terminal),
        Content::Commands => check_old_style(&path, repair, false, terminal),
        Content::Preamble => check_old_style(&path, repair, true, terminal),
    }
}

fn content(path: &Path, terminal: &mut Terminal<'_>) -> Result<Content, Stop> {
    let name = path.display();
    let mut file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) => {
            writeln!(terminal.out, "Cannot open file {name}: {}", reason(&error))?;
            return Err(Stop::AlreadyReported);
        }
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        match file.by_ref().take(MANIFEST_LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            // The first line that is not a comment decides, so a value that looks like a manifest does not count as
            // one.
            Ok(0) => return Ok(Content::Commands),
            Ok(_) if line.starts_with(b"#") => {}
            Ok(_) if line.starts_with(b"file") => return Ok(Content::Manifest),
            Ok(_) => {
                let preamble = begins_with_rdb(path).unwrap_or(false);
                return Ok(if preamble { Content::Preamble } else { Content::Commands });
            }
            Err(error) => {
                writeln!(terminal.out, "Cannot read file: {name}: {}", reason(&error))?;
                return Err(Stop::AlreadyReported);
            }
        }
    }
}

/// Returns true if the file begins with an RDB file that is long enough to have a version.
fn begins_with_rdb(path: &Path) -> IoResult<bool> {
    let mut file = File::open(path)?;
    Ok(file.metadata()?.len() >= 8 && has_preamble(&mut file)?)
}

fn check_old_style(
    path: &Path,
    repair: Repair,
    preamble: bool,
    terminal: &mut Terminal<'_>,
) -> Result<(), Stop> {
    writeln!(terminal.out, "Start checking Old-Style AOF")?;
    let name = path.as_os_str();
    let single = Single { name, path, is_last: true, preamble, repair };
    let verdict = single.check(terminal)?;
    Ok(print_verdict("AOF", name, verdict, terminal.out)?)
}

fn print_verdict(what: &str, name: &OsStr, verdict: Verdict, out: &mut dyn Write) -> IoResult<()> {
    let name = name.display();
    match verdict {
        Verdict::Whole => writeln!(out, "{what} {name} is valid"),
        Verdict::Empty => writeln!(out, "{what} {name} is empty"),
        Verdict::Cut => writeln!(out, "Successfully truncated AOF {name}"),
        Verdict::CutAfter(seconds) => {
            writeln!(out, "Successfully truncated AOF {name} to timestamp {seconds}")
        }
    }
}

/// Checks the files that a manifest lists, in the order in which they are loaded.
fn check_listed(path: &Path, repair: Repair, terminal: &mut Terminal<'_>) -> Result<(), Stop> {
    writeln!(terminal.out, "Start checking Multi Part AOF")?;
    let mut text = Vec::new();
    let most = MANIFEST_BYTES_MAX as u64 + 1;
    match File::open(path).and_then(|file| file.take(most).read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) => {
            let what = "Fatal error: can't open the AOF manifest file";
            writeln!(terminal.out, "{what} {}: {}", path.display(), reason(&error))?;
            return Err(Stop::AlreadyReported);
        }
    }
    let manifest = match Manifest::parse(&text) {
        Ok(manifest) => manifest,
        Err(error) => {
            print_manifest_error(&error, terminal.out)?;
            return Err(Stop::AlreadyReported);
        }
    };
    let directory = path.parent().unwrap_or(Path::new(""));
    let files = manifest.files_to_load().count();
    if let Some(base) = manifest.base() {
        let path = base.path_in(directory);
        let preamble = match begins_with_rdb(&path) {
            Ok(preamble) => preamble,
            Err(error) => {
                let (path, reason) = (path.display(), reason(&error));
                writeln!(terminal.out, "Cannot open file {path}: {reason}")?;
                return Err(Stop::AlreadyReported);
            }
        };
        let format = if preamble { "RDB" } else { "RESP" };
        writeln!(terminal.out, "Start to check BASE AOF ({format} format).")?;
        if base.is_named_rdb() && !preamble {
            return Err(check_lost_base(base, directory, terminal)?);
        }
        check_part("BASE AOF", base, directory, (files == 1, preamble), repair, terminal)?;
    }
    if let Some((last, before)) = manifest.increments().split_last() {
        writeln!(terminal.out, "Start to check INCR files.")?;
        for file in before {
            check_part("INCR AOF", file, directory, (false, false), repair, terminal)?;
        }
        check_part("INCR AOF", last, directory, (true, false), repair, terminal)?;
    }
    Ok(writeln!(terminal.out, "All AOF files and manifest are valid")?)
}

/// Checks a base that should be an RDB file but is not. It is read as commands, as Redis does, but it is invalid
/// regardless of its content, and truncating it would not repair it.
fn check_lost_base(
    base: &ManifestFile,
    directory: &Path,
    terminal: &mut Terminal<'_>,
) -> Result<Stop, Stop> {
    let bytes = fs::metadata(base.path_in(directory))?.len();
    if bytes > 0 {
        check_part("BASE AOF", base, directory, (false, false), Repair::default(), terminal)?;
    }
    let name = OsStr::from_bytes(&base.name).display();
    writeln!(terminal.out, "BASE AOF {name} is not valid: {}", NotRdb { bytes })?;
    Ok(Stop::AlreadyReported)
}

fn check_part(
    what: &str,
    file: &ManifestFile,
    directory: &Path,
    (is_last, preamble): (bool, bool),
    repair: Repair,
    terminal: &mut Terminal<'_>,
) -> Result<(), Stop> {
    let name = OsStr::from_bytes(&file.name);
    let path = file.path_in(directory);
    let verdict = Single { name, path: &path, is_last, preamble, repair }.check(terminal)?;
    Ok(print_verdict(what, name, verdict, terminal.out)?)
}

fn print_manifest_error(error: &ManifestError, out: &mut dyn Write) -> IoResult<()> {
    writeln!(out, "\n*** FATAL AOF MANIFEST FILE ERROR ***")?;
    if let Some((number, line)) = &error.line {
        writeln!(out, "Reading the manifest file, at line {number}")?;
        out.write_all(b">>> '")?;
        out.write_all(line)?;
        out.write_all(b"'\n")?;
    }
    writeln!(out, "{error}")
}

/// Returns true if the user confirms. The end of the input does not count as a confirmation.
fn agrees(terminal: &mut Terminal<'_>) -> IoResult<bool> {
    terminal.out.flush()?;
    let mut answer = [0];
    loop {
        match terminal.answers.read(&mut answer) {
            Ok(read) => return Ok(read == 1 && answer[0].eq_ignore_ascii_case(&b'y')),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
