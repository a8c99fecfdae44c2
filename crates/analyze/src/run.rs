//! Runs an analysis: from the command-line arguments to the reports.

use crate::analysis::Analysis;
use crate::args::{self, Args, ArgsError, HELP};
use crate::measure::Limits;
use crate::model::Classes;
use crate::progress::Progress;
use crate::report::{self, Report};
use crate::source::live::Server;
use crate::source::{SourceError, aof, live};
use std::fs::OpenOptions;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The texts to print, and the exit code: 0 if everything was analyzed, 1 if not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Output {
    fn failed(text: impl std::fmt::Display) -> Output {
        Output { out: String::new(), err: format!("{text}\n"), code: 1 }
    }

    /// The output of a failure whose reason the caller has already printed.
    fn already_reported() -> Output {
        Output { out: String::new(), err: String::new(), code: 1 }
    }
}

/// Connects to the server that is to be analyzed. An error without a text has already been
/// reported.
pub type Dial<'a> = &'a mut dyn FnMut() -> Result<Box<dyn Server>, String>;

/// Runs the analysis that the arguments after `analyze` describe.
pub fn run(words: &[Vec<u8>], dial: Dial<'_>) -> Output {
    let args = match args::parse(words) {
        Ok(args) => args,
        Err(ArgsError::Help) => {
            return Output { out: HELP.to_owned(), err: String::new(), code: 0 };
        }
        Err(ArgsError::Because(text)) => return Output::failed(text),
    };
    // Check now whether the file is writable, not after an hour of analysis.
    if let Some(path) = &args.html
        && let Err(error) = OpenOptions::new().write(true).create(true).truncate(false).open(path)
    {
        return Output::failed(SourceError::file(path, error));
    }
    let mut analysis =
        Analysis::new(args.classes.unwrap_or(Classes::BUNDLED), Limits::default(), now_ms());
    let mut progress = Progress::new();
    let done = match &args.path {
        Some(path) => from_files(path, &mut analysis, &mut progress),
        None => from_server(&args, dial, &mut analysis, &mut progress),
    };
    progress.end();
    match done {
        Ok(()) => output(&args, &Report::new(analysis.finish())),
        Err(SourceError::Server(reason)) if reason.is_empty() => Output::already_reported(),
        Err(error) => Output::failed(error),
    }
}

fn from_files(
    path: &Path,
    analysis: &mut Analysis,
    progress: &mut Progress,
) -> Result<(), SourceError> {
    analysis.facts.source = path.display().to_string();
    aof::read_path(path, analysis, progress)
}

fn from_server(
    args: &Args,
    dial: Dial<'_>,
    analysis: &mut Analysis,
    progress: &mut Progress,
) -> Result<(), SourceError> {
    let mut server = dial().map_err(SourceError::Server)?;
    let options = live::Options {
        share: args.share,
        limit: args.limit,
        reads_values: args.reads_values,
        resume: args.resume.clone(),
        classes: args.classes,
    };
    live::read(server.as_mut(), &options, analysis, progress)
}

/// The requested reports.
fn output(args: &Args, report: &Report) -> Output {
    let error = &report.findings.facts.error;
    let err = error.as_ref().map_or(String::new(), |error| format!("{error}\n"));
    let code = i32::from(error.is_some());
    let out = match args.json {
        true => report::json::text(report, args.top),
        false => report::table::text(report, args.top),
    };
    if let Some(path) = &args.html
        && let Err(error) = std::fs::write(path, report::html::page(report, args.top))
    {
        let error = SourceError::file(path, error);
        return Output { out, err: format!("{err}{error}\n"), code: 1 };
    }
    Output { out, err, code }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritable_page_is_reported_before_the_analysis() {
        let words = ["--html", "/missing/page.html"].map(|word| word.as_bytes().to_vec());
        let mut dialled = false;
        let output = run(&words, &mut || {
            dialled = true;
            Err("dialled".to_owned())
        });
        let reason = "/missing/page.html: No such file or directory (os error 2)";
        assert_eq!((output, dialled), (Output::failed(reason), false));
    }
}
