//! Parses the command line with the table of options. Options end at the first argument that is not an option. Numbers
//! are parsed as in C, up to the first invalid character, because scripts rely on it.

use super::table::own;
use super::table::{self, InfoRequest, OptionAction};
use super::{ArgsError, Mode, Options, Request, Shell};
use crate::quote::leading_number;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The longest pause that an option accepts, in seconds: one year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// The remaining arguments.
pub(crate) struct Words {
    all: Vec<Vec<u8>>,
    at: usize,
}

impl Words {
    pub(super) fn value(&mut self) -> Vec<u8> {
        let value = self.all.get(self.at).cloned().unwrap_or_default();
        self.at += 1;
        value
    }

    pub(super) fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.value()).into_owned()
    }

    pub(super) fn number(&mut self) -> i64 {
        leading_number(&self.value())
    }

    pub(super) fn natural(&mut self) -> usize {
        usize::try_from(self.number()).unwrap_or(0)
    }

    pub(super) fn decimal(&mut self) -> f64 {
        leading_decimal(&self.text())
    }

    pub(super) fn path(&mut self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.value()))
    }

    fn left(&self) -> usize {
        self.all.len().saturating_sub(self.at)
    }
}

/// The decimal number at the beginning of a text; 0 if there is none.
fn leading_decimal(text: &str) -> f64 {
    let text = text.trim_start();
    let longest = (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    let mut readable = longest.filter_map(|end| text[..end].parse::<f64>().ok());
    readable.next().filter(|number| number.is_finite()).unwrap_or(0.0)
}

/// Seconds with decimals, from 0 to one year.
pub(super) fn seconds(words: &mut Words) -> f64 {
    words.decimal().clamp(0.0, SECONDS_MAX)
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// The reason why they are invalid.
pub(crate) fn parse(words: Vec<Vec<u8>>, for_people: bool) -> Result<Request, ArgsError> {
    let mut options = Options::new(for_people);
    let mut words = Words { all: words, at: 0 };
    // The arguments of the program's own commands, which may follow options.
    let mut operands = Vec::new();
    while let Some(word) = words.all.get(words.at).cloned() {
        let is_own = options.mode.is_own();
        if is_own && word == b"--" {
            words.at += 1;
            break;
        }
        if word.first() != Some(&b'-') {
            match own::find(&word).filter(|_| options.mode == Mode::Command) {
                Some(command) => options.mode = command.mode.clone(),
                None if is_own && options.mode != Mode::Analyze => operands.push(word),
                None => break,
            }
            words.at += 1;
            if options.mode == Mode::Analyze {
                break;
            }
            continue;
        }
        words.at += 1;
        let name = String::from_utf8_lossy(&word).into_owned();
        let is_last = words.left() == 0;
        match table::find(&name).map(|row| row.does) {
            Some(OptionAction::Flag(set)) => set(&mut options),
            Some(OptionAction::Value(set)) if !is_last => set(&mut options, &mut words)?,
            // `-h` without a value prints the help, as in many programs.
            Some(OptionAction::Value(_)) if name == "-h" => return Ok(Request::Help),
            Some(OptionAction::Value(_)) if name == "--cluster" => return Err(ArgsError::Usage),
            Some(OptionAction::Prints(info)) => return info_request(info, &mut words),
            Some(OptionAction::Value(_)) | None => {
                return Err(ArgsError::Because(format!(
                    "Unrecognized option or bad number of args for: '{name}'\n"
                )));
            }
        }
    }
    operands.extend(words.all.split_off(words.at.min(words.all.len())));
    options.words = operands;
    check(&options)?;
    if options.shows_password && options.password.is_some() && options.warns_of_password {
        options.warnings.push(
            "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.\n"
                .to_owned(),
        );
    }
    Ok(Request::Run(Box::new(options)))
}

fn info_request(info: InfoRequest, words: &mut Words) -> Result<Request, ArgsError> {
    Ok(match info {
        InfoRequest::Help => Request::Help,
        InfoRequest::Version => Request::Version,
        InfoRequest::Manual => Request::Manual,
        InfoRequest::Completions => {
            let name = words.text();
            let unknown = format!("No completions for '{name}', but for bash, zsh and fish\n");
            Request::Completions(Shell::of(&name).ok_or(ArgsError::Because(unknown))?)
        }
    })
}

fn check(options: &Options) -> Result<(), ArgsError> {
    let because = |text: &str| Err(ArgsError::Because(text.to_owned()));
    if options.socket.is_some() && options.cluster_mode {
        return because("Options -c and -s are mutually exclusive.\n");
    }
    if options.contradicts {
        return because("Options -2 and -3 are mutually exclusive.\n");
    }
    if options.debugging.is_some() && options.script.is_none() {
        return because(
            "Options --ldb and --ldb-sync-mode require --eval.\nTry brisk-cli --help for more information.\n",
        );
    }
    if options.last_from_stdin && options.tag_from_stdin.is_some() {
        return because("Options -x and -X are mutually exclusive.\n");
    }
    Ok(())
}

/// All arguments before the next option.
pub(super) fn up_to_option(words: &mut Words) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    while words.all.get(words.at).is_some_and(|word| word.first() != Some(&b'-')) {
        taken.push(words.value());
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::super::TopTable;
    use super::*;

    fn parsed(line: &str) -> Options {
        let words = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        match parse(words, false) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_end_at_the_command() {
        let options = parsed("-p 7 -n 2 set -p 8");
        assert_eq!((options.port, options.database), (7, 2));
        assert_eq!(options.words, [b"set".to_vec(), b"-p".to_vec(), b"8".to_vec()]);
    }

    #[test]
    fn options_may_follow_a_command_of_the_program() {
        let options = parsed("-p 7 peek user:1 --all -n 2");
        assert_eq!((options.mode, options.port, options.database), (Mode::Peek, 7, 2));
        assert_eq!((options.words, options.all), (vec![b"user:1".to_vec()], true));
        assert_eq!(parsed("peek -- -n").words, [b"-n".to_vec()]);
        let options = parsed("TOP --table clients -i 0.5");
        assert_eq!((options.mode, options.top_table), (Mode::Top, TopTable::Clients));
        let options = parsed("-p 7 analyze --top 3");
        assert_eq!((options.mode, options.words.len()), (Mode::Analyze, 2));
        assert_eq!(parsed("get top").mode, Mode::Command);
    }

    #[test]
    fn pauses_are_parsed_up_to_the_first_invalid_character() {
        assert_eq!(parsed("-i 0.25s x").interval_us, 250_000);
        assert_eq!(parsed("-i abc x").interval_us, 0);
        assert_eq!(parsed("-i -1 x").interval_us, 0);
        assert_eq!(parsed("-t 0.5 x").timeout, Some(std::time::Duration::from_millis(500)));
        for unlimited in ["0", "-1"] {
            assert_eq!(parsed(&format!("-t {unlimited} x")).timeout, None, "{unlimited}");
        }
        assert_eq!(parsed("-t 1e-9 x").timeout, Some(std::time::Duration::from_millis(1)));
    }

    #[test]
    fn a_cluster_command_takes_arguments_up_to_the_next_option() {
        let options = parsed("--cluster call a:1 ping --cluster-yes -p 5");
        assert_eq!(options.cluster.command, b"call");
        assert_eq!(options.cluster.arguments.len(), 2);
        assert!(options.cluster.yes && options.port == 5);
    }
}
