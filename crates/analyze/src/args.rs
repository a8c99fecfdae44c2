//! The arguments after `analyze` on the command line.

use crate::model::Classes;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Default number of patterns and pieces of advice to show.
const TOP_DEFAULT: usize = 20;
/// Default share of the server's time that the analysis may take.
const SHARE_DEFAULT: f64 = 0.05;

/// The text of `analyze --help`.
pub const HELP: &str = "\
Usage: brisk-cli [OPTIONS] analyze [FILE | DIRECTORY] [OPTIONS OF ANALYZE]

Reports the memory use of keys in Redis and in Brisk by pattern, and how much memory
each recommended change would save. Without FILE, the server given by the options before
'analyze' is analyzed; nothing is written to it. FILE is an RDB file, an append-only file
or its manifest; DIRECTORY is a directory with a manifest.

  --top N          Show N patterns and recommendations (default 20, 0 for all).
  --json           Print everything as JSON.
  --html FILE      Also write a page with plots.
  --quantum 8|16   Step of small allocations in Redis: 8 for its bundled jemalloc
                   (default), 16 for that of a distribution. Servers report it.
For servers:
  --share P%       Maximum share of the server's time to use (default 5%).
  --limit N        Analyze about N keys at most.
  --no-values      Do not read values (DUMP). The report then contains only what the
                   server reports about them, and no recommendations.
  --resume FILE    Save the progress in FILE, and resume from FILE if it exists.
";

/// An option of [`HELP`], for completions and manual pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionHelp {
    pub name: &'static str,
    /// The value that it takes, for example `FILE` or `8|16`; empty if none.
    pub value: &'static str,
    /// The description, in one line.
    pub text: String,
}

/// All options, in the order of [`HELP`].
pub fn options() -> Vec<OptionHelp> {
    let mut options: Vec<OptionHelp> = Vec::new();
    for line in HELP.lines() {
        let text = line.trim();
        if let Some((head, text)) = text.split_once("  ").filter(|_| text.starts_with("--")) {
            let (name, value) = head.split_once(' ').unwrap_or((head, ""));
            options.push(OptionHelp { name, value, text: text.trim().to_owned() });
        } else if let (true, Some(last)) = (line.starts_with("     "), options.last_mut()) {
            last.text.push(' ');
            last.text.push_str(text);
        }
    }
    options
}

/// The parsed arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Args {
    /// The path of a file; `None` to analyze the server.
    pub path: Option<PathBuf>,
    pub top: usize,
    pub json: bool,
    pub html: Option<PathBuf>,
    pub classes: Option<Classes>,
    pub share: f64,
    pub limit: Option<u64>,
    pub reads_values: bool,
    pub resume: Option<PathBuf>,
}

impl Default for Args {
    fn default() -> Args {
        Args {
            path: None,
            top: TOP_DEFAULT,
            json: false,
            html: None,
            classes: None,
            share: SHARE_DEFAULT,
            limit: None,
            reads_values: true,
            resume: None,
        }
    }
}

/// The reason why the arguments do not start an analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgsError {
    /// The help was requested.
    Help,
    Because(String),
}

/// Parses the arguments after `analyze`.
///
/// # Errors
/// The reason why they are invalid, or a request for help.
pub fn parse(words: &[Vec<u8>]) -> Result<Args, ArgsError> {
    let mut args = Args::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let option = String::from_utf8_lossy(word).into_owned();
        let mut value = || {
            let missing = || ArgsError::Because(format!("{option} needs a value"));
            words.next().cloned().ok_or_else(missing)
        };
        match option.as_str() {
            "--help" | "-h" => return Err(ArgsError::Help),
            "--json" => args.json = true,
            "--no-values" => args.reads_values = false,
            "--top" => {
                let top: usize = number(&option, &value()?)?;
                args.top = if top == 0 { usize::MAX } else { top };
            }
            "--limit" => args.limit = Some(number(&option, &value()?)?),
            "--share" => args.share = share(&value()?)?,
            "--quantum" => {
                let quantum = number(&option, &value()?)?;
                let unknown = || ArgsError::Because("--quantum must be 8 or 16".to_owned());
                args.classes = Some(Classes::of_quantum(quantum).ok_or_else(unknown)?);
            }
            "--html" => args.html = Some(path(value()?)),
            "--resume" => args.resume = Some(path(value()?)),
            _ if word.starts_with(b"--") => {
                return Err(ArgsError::Because(format!("unknown option of analyze: {option}")));
            }
            _ if args.path.is_some() => {
                return Err(ArgsError::Because("analyze takes one file or directory".to_owned()));
            }
            _ => args.path = Some(path(word.clone())),
        }
    }
    Ok(args)
}

fn path(word: Vec<u8>) -> PathBuf {
    OsString::from_vec(word).into()
}

fn number<T: std::str::FromStr>(option: &str, word: &[u8]) -> Result<T, ArgsError> {
    let text = String::from_utf8_lossy(word);
    text.parse().map_err(|_| ArgsError::Because(format!("{option} must be a number, not '{text}'")))
}

/// Parses a share of the time: `5%` or `0.05`.
fn share(word: &[u8]) -> Result<f64, ArgsError> {
    let text = String::from_utf8_lossy(word);
    let (digits, unit) = text.strip_suffix('%').map_or((&text[..], 1.0), |digits| (digits, 100.0));
    let part = digits.parse::<f64>().ok().map(|number| number / unit);
    match part.filter(|part| *part > 0.0 && *part <= 1.0) {
        Some(part) => Ok(part),
        None => Err(ArgsError::Because(format!(
            "--share must be a percentage such as 5%, not '{text}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Args, ArgsError> {
        parse(&line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn options_can_precede_or_follow_the_file() {
        let args =
            parsed("--top 5 dump.rdb --json --html out.html --share 2.5% --limit 1000").unwrap();
        assert_eq!(args.path, Some("dump.rdb".into()));
        assert_eq!((args.top, args.json, args.limit), (5, true, Some(1000)));
        assert!((args.share - 0.025).abs() < 1e-9);
        assert_eq!(args.html, Some("out.html".into()));
        assert_eq!(parsed("").unwrap(), Args::default());
        assert_eq!(parsed("--top 0").unwrap().top, usize::MAX);
        assert_eq!(parsed("--quantum 16").unwrap().classes, Some(Classes::USUAL));
    }

    #[test]
    fn the_help_lists_exactly_the_supported_options() {
        let documented = options();
        assert_eq!(documented.len(), HELP.matches("\n  --").count());
        for OptionHelp { name, value, text } in documented {
            let word = match value {
                "" => "",
                "8|16" => "8",
                "P%" => "5%",
                _ => "7",
            };
            assert!(parsed(&format!("{name} {word}")).is_ok(), "{name} {value}");
            assert!(text.ends_with('.') && !text.contains("  "), "{text}");
        }
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        for (line, reason) in [
            ("a b", "analyze takes one file or directory"),
            ("--top", "--top needs a value"),
            ("--top x", "--top must be a number, not 'x'"),
            ("--share 0", "--share must be a percentage such as 5%, not '0'"),
            ("--share 101%", "--share must be a percentage such as 5%, not '101%'"),
            ("--share nan", "--share must be a percentage such as 5%, not 'nan'"),
            ("--quantum 4", "--quantum must be 8 or 16"),
            ("--frobnicate", "unknown option of analyze: --frobnicate"),
        ] {
            assert_eq!(parsed(line), Err(ArgsError::Because(reason.to_owned())), "{line}");
        }
        assert_eq!(parsed("--help"), Err(ArgsError::Help));
    }
}
