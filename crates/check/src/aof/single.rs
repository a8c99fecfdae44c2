//! Reads one file of commands to its end or its first fault, and truncates it there if requested.

use super::{Repair, Terminal, agrees};
use crate::rdb;
use crate::report::{Stop, reason, shown};
use brisk_persist::aof::{
    AofCommand, AofError, AofEvent, AofEventKind, AofReader, Fault, FaultKind,
};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Result as IoResult, Seek, Write};
use std::path::Path;

const NO_EXEC: &str = "Reached EOF before reading EXEC for MULTI";

/// A file to be checked.
pub(super) struct Single<'a> {
    /// The name of the file in messages.
    pub(super) name: &'a OsStr,
    pub(super) path: &'a Path,
    /// True if no other file follows, so that everything after a fault may be truncated.
    pub(super) is_last: bool,
    /// True if the file begins with an RDB file.
    pub(super) preamble: bool,
    pub(super) repair: Repair,
}

/// The state of a file after the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Whole,
    Empty,
    Cut,
    /// Commands after this second were removed.
    CutAfter(i64),
}

/// The progress of reading a file.
#[derive(Debug, Default)]
struct Progress {
    /// The number of the current line or string, counted from 1 as in redis-check-aof.
    line: u64,
    commands: u64,
    /// Offset after the last command.
    read_until: u64,
    /// Offset up to which everything is intact, and the number of commands before it.
    intact_until: u64,
    whole_commands: u64,
    timestamp: Option<i64>,
    /// Name and first argument of the last command.
    last: (Vec<u8>, Vec<u8>),
}

impl Progress {
    fn note(&mut self, command: AofCommand<'_>) {
        self.line += 1 + 2 * command.len() as u64;
        self.commands += 1;
        for (word, last) in [(0, &mut self.last.0), (1, &mut self.last.1)] {
            last.clear();
            last.extend_from_slice(command.arg(word).unwrap_or_default());
        }
    }
}

/// How reading ended.
enum End {
    Fault(Option<AofError>),
    /// The offset at which the commands that were executed after the requested time begin.
    Later(u64),
}

impl Single<'_> {
    /// Checks the file, and truncates it if that is requested and possible.
    ///
    /// # Errors
    /// The file is not intact and was not repaired, or it cannot be read.
    pub(super) fn check(&self, terminal: &mut Terminal<'_>) -> Result<Verdict, Stop> {
        let name = self.name.display();
        let writes = self.repair != Repair::default();
        let opened = OpenOptions::new().read(true).write(writes).open(self.path);
        let metadata = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, mut file) = match metadata {
            Ok(opened) => opened,
            Err(error) => {
                let (path, reason) = (self.path.display(), reason(&error));
                writeln!(terminal.out, "Cannot open file {path}: {reason}, aborting...")?;
                return Err(Stop::AlreadyReported);
            }
        };
        if size == 0 {
            return Ok(Verdict::Empty);
        }
        let start = if self.preamble { self.check_preamble(&mut file, terminal)? } else { 0 };
        let mut progress =
            Progress { line: 1, read_until: start, intact_until: start, ..Progress::default() };
        let end = match AofReader::new(&file, start) {
            Ok(reader) => self.read(reader, &mut progress, terminal.out)?,
            Err(error) => End::Fault(Some(error.into())),
        };
        let fault = match end {
            End::Later(at) => return self.cut_after(&file, at, terminal.out),
            End::Fault(fault) => fault,
        };
        if let Some(AofError::Io(error)) = &fault {
            let reason = reason(error);
            writeln!(terminal.out, "Failed to read from AOF {name}, aborting: {reason}")?;
            return Err(Stop::AlreadyReported);
        }
        if let Some(error) = &fault {
            self.print_fault(error, &mut progress, terminal.out)?;
        }
        let (whole, line) = (progress.intact_until, progress.line);
        let diff = size.saturating_sub(whole);
        if let (0, Some(seconds)) = (diff, self.repair.until) {
            writeln!(terminal.out, "Truncate nothing in AOF {name} to timestamp {seconds}")?;
            return Ok(Verdict::Whole);
        }
        writeln!(
            terminal.out,
            "AOF analyzed: filename={name}, size={size}, ok_up_to={whole}, \
             ok_up_to_line={line}, diff={diff}"
        )?;
        if diff == 0 {
            return Ok(Verdict::Whole);
        }
        if !self.repair.fix {
            let hint = "Use the --fix option to try fixing it.";
            writeln!(terminal.out, "AOF {name} is not valid. {hint}")?;
            return Err(Stop::AlreadyReported);
        }
        self.fix(&file, size, whole, terminal)
    }

    /// Reads the RDB file at the beginning, and returns its length.
    fn check_preamble(&self, file: &mut File, terminal: &mut Terminal<'_>) -> Result<u64, Stop> {
        file.rewind()?;
        let mut context = rdb::Context { out: terminal.out, now_ms: terminal.now_ms };
        let Some(len) = rdb::check(self.name, file, &mut context)? else {
            writeln!(terminal.out, "RDB preamble of AOF file is not sane, aborting.")?;
            return Err(Stop::AlreadyReported);
        };
        writeln!(terminal.out, "RDB preamble is OK, proceeding with AOF tail...")?;
        Ok(len)
    }

    fn read(
        &self,
        mut reader: AofReader<&File>,
        progress: &mut Progress,
        out: &mut dyn Write,
    ) -> Result<End, Stop> {
        loop {
            match reader.next_event() {
                Ok(None) => break,
                Err(error) => {
                    progress.intact_until = error.intact_until().unwrap_or(progress.intact_until);
                    return Ok(End::Fault(Some(error)));
                }
                Ok(Some(AofEvent { kind, .. })) => match (kind, self.repair.until) {
                    (AofEventKind::Command(command), _) => progress.note(command),
                    (AofEventKind::Timestamp(seconds), until) => {
                        if until.is_some_and(|until| seconds > until) {
                            // An open transaction has to be removed as a whole.
                            return Ok(End::Later(progress.intact_until));
                        }
                        progress.timestamp = Some(seconds);
                    }
                    (AofEventKind::Annotation(line), Some(_)) if line.starts_with(b"#TS:") => {
                        writeln!(out, "Invalid timestamp annotation")?;
                        return Err(Stop::AlreadyReported);
                    }
                    (AofEventKind::Annotation(_) | AofEventKind::Batch { .. }, _) => {}
                },
            }
            progress.read_until = reader.position();
            if reader.intact_until() == reader.position() {
                progress.intact_until = reader.position();
                progress.whole_commands = progress.commands;
            }
        }
        progress.intact_until = reader.position();
        Ok(End::Fault(None))
    }

    fn print_fault(
        &self,
        error: &AofError,
        progress: &mut Progress,
        out: &mut dyn Write,
    ) -> IoResult<()> {
        match error {
            AofError::OpenMulti { at } => {
                writeln!(out, "0x{at:16x}: {NO_EXEC}")?;
            }
            AofError::Torn { fault, .. } | AofError::Damaged { fault, .. } => {
                progress.line += fault.lines;
                if fault.kind == FaultKind::NoLine && progress.intact_until < progress.read_until {
                    let offset = fault.offset;
                    writeln!(out, "0x{offset:16x}: {NO_EXEC}")?;
                }
                self.print_place(fault, out)?;
            }
            _ => {}
        }
        let (commands, whole) = (progress.whole_commands, progress.intact_until);
        write!(out, "[info] {commands} commands before byte {whole} can be saved")?;
        if let Some(seconds) = progress.timestamp {
            write!(out, ", the last timestamp is {seconds}")?;
        }
        writeln!(out)?;
        if progress.commands > 0 {
            let (name, key) = (shown(&progress.last.0), shown(&progress.last.1));
            writeln!(out, "[info] Last readable command: {name} {key}")?;
        }
        if let AofError::Damaged { next_valid: Some(next), .. } = error {
            let line = "the file is damaged, not just truncated, and truncating it loses the valid data there.";
            writeln!(out, "[info] A complete batch or command follows at byte {next}: {line}")?;
        }
        Ok(())
    }

    /// Prints the fault, with the text of redis-check-aof if that tool has one for this fault.
    fn print_place(&self, fault: &Fault, out: &mut dyn Write) -> IoResult<()> {
        let offset = fault.offset;
        match fault.kind {
            FaultKind::NotACommand(_) => {
                writeln!(out, "AOF {} format error", self.name.display())
            }
            FaultKind::NoLine => Ok(()),
            FaultKind::UnfinishedLine => {
                writeln!(out, "0x{offset:16x}: Expected \\r\\n, got: 0000")
            }
            FaultKind::NoNewline([first, second]) => {
                writeln!(out, "0x{offset:16x}: Expected \\r\\n, got: {first:02x}{second:02x}")
            }
            FaultKind::ShortString { wanted, got } => {
                writeln!(out, "0x{offset:16x}: Expected to read {wanted} bytes, got {got} bytes")
            }
            FaultKind::Prefix { expected, got } => {
                let (expected, got) = (char::from(expected), got.escape_ascii());
                writeln!(out, "0x{offset:16x}: Expected prefix '{expected}', got: '{got}'")
            }
            FaultKind::NestedMulti => {
                writeln!(out, "0x{offset:16x}: Unexpected MULTI in AOF {}", self.path.display())
            }
            FaultKind::LoneExec => {
                writeln!(out, "0x{offset:16x}: Unexpected EXEC in AOF {}", self.path.display())
            }
            other => writeln!(out, "0x{offset:16x}: {other}"),
        }
    }

    /// Truncates the file at `at`, where the commands after the given time begin.
    fn cut_after(&self, file: &File, at: u64, out: &mut dyn Write) -> Result<Verdict, Stop> {
        let (name, seconds) = (self.name.display(), self.repair.until.unwrap_or_default());
        let path = self.path.display();
        if at == 0 {
            writeln!(out, "AOF {path} has nothing before timestamp {seconds}, aborting...")?;
            return Err(Stop::AlreadyReported);
        }
        if !self.is_last {
            writeln!(
                out,
                "Failed to truncate AOF {path} to timestamp {seconds} to offset {at} because it \
                 is not the last file.\nTo do so, remove all files after it, and their lines in \
                 the manifest, by hand. Then run this tool again."
            )?;
            return Err(Stop::AlreadyReported);
        }
        if let Err(error) = file.set_len(at).and_then(|()| file.sync_all()) {
            let reason = reason(&error);
            writeln!(out, "Failed to truncate AOF {name} to timestamp {seconds}: {reason}")?;
            return Err(Stop::AlreadyReported);
        }
        Ok(Verdict::CutAfter(seconds))
    }

    /// Truncates the file at `whole`, after a confirmation.
    fn fix(
        &self,
        file: &File,
        size: u64,
        whole: u64,
        terminal: &mut Terminal<'_>,
    ) -> Result<Verdict, Stop> {
        let (name, diff) = (self.name.display(), size - whole);
        if !self.is_last {
            let why = "because it is not the last file";
            writeln!(terminal.out, "Failed to truncate AOF {name} {why}")?;
            return Err(Stop::AlreadyReported);
        }
        writeln!(
            terminal.out,
            "This will shrink the AOF {name} from {size} bytes, with {diff} bytes, to {whole} bytes"
        )?;
        write!(terminal.out, "Continue? [y/N]: ")?;
        if !agrees(terminal)? {
            writeln!(terminal.out, "Aborting...")?;
            return Err(Stop::AlreadyReported);
        }
        if let Err(error) = file.set_len(whole).and_then(|()| file.sync_all()) {
            writeln!(terminal.out, "Failed to truncate AOF {name}: {}", reason(&error))?;
            return Err(Stop::AlreadyReported);
        }
        Ok(Verdict::Cut)
    }
}
