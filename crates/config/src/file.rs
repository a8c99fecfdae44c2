//! Loads the configuration: a file, its includes, standard input and command-line options, as one
//! text.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::args::Launch;
use super::config::Config;
use super::directive::{BAD_DIRECTIVE, Directive, Kind, LineJudge, SetLine, Write};
use super::error::{FileError, UNBALANCED};
use super::special::os_reason;
use super::store::Store;
use super::value::{SettingRejection, Text};
use super::{directives, include, words};

/// Maximum size in bytes of a file, and of standard input.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum depth of includes: enough for any layout, and it stops a file that includes itself.
pub const DEPTH_MAX: usize = 16;
/// Maximum number of files that are read at one startup.
pub const FILES_MAX: usize = 1_000;

/// Builds the configuration for the command line. Reads `stdin` only if the command line requests
/// it. `judge` checks lines that name commands or users.
///
/// # Errors
/// Returns the first line, file or combination that is not accepted.
pub fn load(
    launch: &Launch,
    stdin: &mut dyn Read,
    judge: &dyn LineJudge,
) -> Result<Store, FileError> {
    let mut text = Vec::new();
    let mut path = None;
    if let Some(file) = &launch.file {
        // Stored as an absolute path: `dir` may change the base of relative names later, and
        // REWRITE and INFO need the file itself.
        let absolute = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        text = read_file(&absolute)?;
        path = Some(absolute);
    }
    if launch.stdin {
        if text.last().is_some_and(|last| *last != b'\n') {
            // Otherwise the file's last line would continue with the first line of standard input.
            text.push(b'\n');
        }
        read_bounded(stdin, Path::new("-"), &mut text)?;
    }
    if !launch.options.is_empty() {
        text.push(b'\n');
        text.extend_from_slice(&launch.options);
    }
    let mut loader = Loader::new(judge, true);
    loader.text(&text, 0)?;
    let (config, included) = loader.finish()?;
    Ok(Store::loaded(config, path, included))
}

/// Loads one text that must not include other files.
pub(super) fn parse_alone(text: &[u8], judge: &dyn LineJudge) -> Result<Config, FileError> {
    let mut loader = Loader::new(judge, false);
    loader.text(text, 0)?;
    loader.finish().map(|(config, _)| config)
}

fn read_file(path: &Path) -> Result<Vec<u8>, FileError> {
    let failed =
        |error: io::Error| FileError::Open { path: path.to_owned(), reason: os_reason(&error) };
    let mut file = File::open(path).map_err(failed)?;
    let mut text = Vec::new();
    read_bounded(&mut file, path, &mut text)?;
    Ok(text)
}

fn read_bounded(from: &mut dyn Read, path: &Path, text: &mut Vec<u8>) -> Result<(), FileError> {
    let read = from.take(FILE_BYTES_MAX + 1).read_to_end(text);
    let read =
        read.map_err(|error| FileError::Open { path: path.to_owned(), reason: os_reason(&error) })?;
    if read as u64 > FILE_BYTES_MAX {
        let limit = format!("at most {FILE_BYTES_MAX} bytes");
        return Err(FileError::Limit { path: path.to_owned(), limit });
    }
    Ok(())
}

/// The settings of included files, which CONFIG REWRITE does not write into the main file.
#[derive(Clone, Debug, Default)]
pub(super) struct Included {
    /// Directives with a line in an included file.
    pub(super) set: HashSet<&'static str>,
    /// The configuration that results from these lines alone.
    pub(super) config: Config,
}

/// The state while lines are read.
struct Loader<'j> {
    judge: &'j dyn LineJudge,
    config: Config,
    /// Directives that already had a line, so that another one adds to it.
    seen: HashSet<&'static str>,
    files: usize,
    includes: bool,
    included: Included,
}

/// Returns the error for an unknown directive, with the name that may have been intended.
fn unknown(name: &[u8]) -> SettingRejection {
    match directives::nearest(name) {
        Some(meant) => format!("{BAD_DIRECTIVE}. Did you mean `{meant}`?").into(),
        None => BAD_DIRECTIVE.into(),
    }
}

impl<'j> Loader<'j> {
    fn new(judge: &'j dyn LineJudge, includes: bool) -> Self {
        let (config, seen, included) = Default::default();
        Self { judge, config, seen, files: 0, includes, included }
    }

    /// Applies every line of `text`, in order; `depth` counts the surrounding includes.
    fn text(&mut self, text: &[u8], depth: usize) -> Result<(), FileError> {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            match self.line(line, depth > 0) {
                Ok(files) => {
                    for file in files {
                        self.include(&file, depth + 1)?;
                    }
                }
                Err(reason) => {
                    let text = String::from_utf8_lossy(line).into_owned();
                    return Err(FileError::Line { line: index + 1, text, reason });
                }
            }
        }
        Ok(())
    }

    /// Applies one line. If it is an `include`, returns the files to read at this position.
    fn line(&mut self, line: &[u8], is_included: bool) -> Result<Vec<PathBuf>, SettingRejection> {
        let words = words::split(line).ok_or(UNBALANCED)?;
        let [name, values @ ..] = words.as_slice() else { return Ok(Vec::new()) };
        let row = directives::find(name).ok_or_else(|| unknown(name))?;
        if matches!(row.kind, Kind::Include) {
            let [pattern] = values else { return Err(BAD_DIRECTIVE.into()) };
            if !self.includes {
                return Ok(Vec::new());
            }
            let base = self.config.process.dir.as_path();
            return Ok(include::expand(base, pattern, FILES_MAX));
        }
        let write = if self.seen.insert(row.name) { Write::Replace } else { Write::Add };
        match row.kind {
            Kind::FileOnly(set) => self.file_only(set, values, is_included)?,
            _ => {
                row.set(&mut self.config, values, write)?;
                if is_included {
                    self.note_included(row, values);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Users of included files are stored separately: a user may be defined once there, and once in
    /// the main file.
    fn file_only(
        &mut self,
        set: SetLine,
        values: &[Vec<u8>],
        is_included: bool,
    ) -> Result<(), SettingRejection> {
        let mut swap = |config: &mut Config| {
            if is_included {
                std::mem::swap(
                    &mut config.security.users,
                    &mut self.included.config.security.users,
                );
            }
        };
        swap(&mut self.config);
        let done = set(&mut self.config, values, self.judge);
        swap(&mut self.config);
        done
    }

    fn note_included(&mut self, row: &'static Directive, values: &[Vec<u8>]) {
        let Included { set, config } = &mut self.included;
        let write = if set.insert(row.name) { Write::Replace } else { Write::Add };
        // The line was accepted before. A relative `dir` may fail here; then its value differs, and
        // the directive is written.
        let _ = row.set(config, values, write);
    }

    fn include(&mut self, path: &Path, depth: usize) -> Result<(), FileError> {
        let beyond = |limit| Err(FileError::Limit { path: path.to_owned(), limit });
        if depth > DEPTH_MAX {
            return beyond(format!("includes nest at most {DEPTH_MAX} deep"));
        }
        self.files += 1;
        if self.files > FILES_MAX {
            return beyond(format!("at most {FILES_MAX} included files"));
        }
        let text = read_file(path)?;
        self.text(&text, depth)
    }

    /// Checks conditions that concern the whole configuration.
    fn finish(mut self) -> Result<(Config, Included), FileError> {
        if self.config.cluster.cluster_enabled && self.config.replication.replicaof.is_some() {
            let reason = "replicaof directive not allowed in cluster mode";
            return Err(FileError::Conflict { reason });
        }
        self.config.normalize();
        self.included.config.normalize();
        // A user of the main file replaces an included one: CONFIG REWRITE writes users that have changed
        // into the main file.
        let own = std::mem::take(&mut self.config.security.users);
        let is_own = |user: &&Vec<Text>| own.iter().any(|own| own.first() == user.first());
        let mut users = self.included.config.security.users.clone();
        users.retain(|user| !is_own(&user));
        users.extend(own);
        self.config.security.users = users;
        Ok((self.config, self.included))
    }
}
