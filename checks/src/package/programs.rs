//! The programs of a release, and their descriptions.

use super::output;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The crate that builds it.
    pub(super) package: &'static str,
    /// The summary after its name in the manual page.
    pub(super) summary: &'static str,
    pub(super) texts: TextSource,
    /// Text of the manual page in addition to the help.
    pub(super) more: &'static str,
}

/// The source of a program's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextSource {
    /// The program only prints `--help`.
    Help,
    /// The program also prints its manual page and its completions, with `--man` and `--completions SHELL`.
    Everything,
}

/// All programs.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "brisk-server",
        package: "brisk-server",
        summary: "Redis-compatible in-memory data store",
        texts: TextSource::Help,
        more: "Every setting is described in brisk.conf(5).\n\
               The service of the package reads /etc/brisk/brisk.conf.",
    },
    Program {
        name: "brisk-cli",
        package: "brisk-cli",
        summary: "command line client for Brisk, Redis and Valkey",
        texts: TextSource::Everything,
        more: "",
    },
    Program {
        name: "brisk-benchmark",
        package: "brisk-benchmark",
        summary: "load generator for Brisk, Redis and Valkey",
        texts: TextSource::Help,
        more: "",
    },
    Program {
        name: "brisk-check-rdb",
        package: "brisk-check",
        summary: "checks whether a snapshot (RDB file) can be loaded",
        texts: TextSource::Help,
        more: "Reads the whole file, reports its contents, and where it is damaged.\n\
               The exit code is 0 if it can be loaded, 1 if not.",
    },
    Program {
        name: "brisk-check-aof",
        package: "brisk-check",
        summary: "checks whether append-only files can be loaded, and repairs them",
        texts: TextSource::Help,
        more: "The file is a manifest, which is checked with all files that it lists, or a single file.\n\
               With --fix an incomplete end is truncated, after a confirmation.\n\
               With --truncate-to-timestamp everything written after that Unix time is truncated.\n\
               The exit code is 0 if the files can be loaded or were repaired, 1 if not.",
    },
];

impl Program {
    /// The program's help: the text that begins with `Usage:`. Like Redis's programs, the server writes it to standard
    /// error and exits with 1.
    pub(super) fn help(&self, directory: &Path) -> Result<String> {
        let mut command = Command::new(directory.join(self.name));
        command.arg("--help");
        let done = command.output().with_context(|| format!("cannot run {command:?}"))?;
        let text = [done.stdout, done.stderr].concat();
        let text = String::from_utf8(text).with_context(|| self.name)?;
        let from = text.find("Usage:").with_context(|| format!("{}: no usage", self.name))?;
        // Tools print the name by which they were called.
        let called = directory.join(self.name).display().to_string();
        Ok(text[from..].replace(&called, self.name))
    }

    /// The program's own output, if it has one.
    pub(super) fn own_text(&self, directory: &Path, words: &[&str]) -> Result<Option<String>> {
        if self.texts != TextSource::Everything {
            return Ok(None);
        }
        output(Command::new(directory.join(self.name)).args(words)).map(Some)
    }

    /// The version of the workspace.
    pub(super) fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

/// The commented configuration file of a server with defaults.
pub(super) fn default_settings(directory: &Path) -> Result<String> {
    output(Command::new(directory.join("brisk-server")).arg("--print-config"))
}
