//! Reading the command line. Options end at the first word that is none; numbers are read as far as they
//! go, as C does, since scripts rely on it.

use super::{Debugging, Mode, Options, Protocol, Refusal, Request, uri};
use crate::format::Output;
use crate::quote::{leading_number, unquote};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// Longest pause an option can ask for, in seconds: a year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// The words that are left to be read.
struct Words {
    all: Vec<Vec<u8>>,
    at: usize,
}

impl Words {
    fn value(&mut self) -> Vec<u8> {
        let value = self.all.get(self.at).cloned().unwrap_or_default();
        self.at += 1;
        value
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.value()).into_owned()
    }

    fn number(&mut self) -> i64 {
        leading_number(&self.value())
    }

    fn natural(&mut self) -> usize {
        usize::try_from(self.number()).unwrap_or(0)
    }

    fn decimal(&mut self) -> f64 {
        leading_decimal(&self.text())
    }

    fn path(&mut self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.value()))
    }

    fn left(&self) -> usize {
        self.all.len().saturating_sub(self.at)
    }
}

/// The decimal number that a text begins with; 0 if there is none.
fn leading_decimal(text: &str) -> f64 {
    let text = text.trim_start();
    let longest = (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    let mut readable = longest.filter_map(|end| text[..end].parse::<f64>().ok());
    readable.next().filter(|number| number.is_finite()).unwrap_or(0.0)
}

/// Reads the words behind the program's name.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn parse(words: Vec<Vec<u8>>, for_people: bool) -> Result<Request, Refusal> {
    let mut options = Options::new(for_people);
    let mut words = Words { all: words, at: 0 };
    let mut password_is_shown = false;
    while let Some(word) = words.all.get(words.at).cloned() {
        if word.first() != Some(&b'-') {
            break;
        }
        words.at += 1;
        let option = String::from_utf8_lossy(&word).into_owned();
        let is_last = words.left() == 0;
        match option.as_str() {
            "--help" => return Ok(Request::Help),
            "-h" if is_last => return Ok(Request::Help),
            "-v" | "--version" => return Ok(Request::Version),
            "--cluster" if is_last => return Err(Refusal::Usage),
            "-a" | "--pass" | "-u" if !is_last => password_is_shown = true,
            _ => {}
        }
        let known = flag(&mut options, &option)
            || (!is_last
                && (with_value(&mut options, &option, &mut words)?
                    || of_mode(&mut options, &option, &mut words)?
                    || of_tls(&mut options, &option, &mut words)
                    || of_cluster(&mut options, &option, &mut words)));
        if !known {
            return Err(Refusal::Because(format!(
                "Unrecognized option or bad number of args for: '{option}'\n"
            )));
        }
    }
    options.words = words.all.split_off(words.at.min(words.all.len()));
    check(&options)?;
    if password_is_shown && options.password.is_some() && options.warns_of_password {
        options.warnings.push(
            "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.\n"
                .to_owned(),
        );
    }
    Ok(Request::Run(Box::new(options)))
}

fn check(options: &Options) -> Result<(), Refusal> {
    let because = |text: &str| Err(Refusal::Because(text.to_owned()));
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

/// Options without a value.
fn flag(options: &mut Options, option: &str) -> bool {
    match option {
        "-x" => options.last_from_stdin = true,
        "--askpass" => options.asks_password = true,
        "--no-auth-warning" => options.warns_of_password = false,
        "--raw" => options.output = Output::Raw,
        "--no-raw" => options.output = Output::Standard,
        "--quoted-input" => options.quoted_input = true,
        "--csv" => options.output = Output::Csv,
        "--json" | "--quoted-json" => {
            if options.protocol == Protocol::Unsaid {
                options.protocol = Protocol::Resp3IfKnown;
            }
            let quoted = option == "--quoted-json";
            options.output = if quoted { Output::QuotedJson } else { Output::Json };
        }
        "--latency" => options.mode = Mode::Latency,
        "--latency-dist" => options.mode = Mode::LatencyDist,
        "--mono" => options.monochrome = true,
        "--latency-history" => {
            options.mode = Mode::Latency;
            options.latency_history = true;
        }
        "--slave" | "--replica" => options.mode = Mode::Replica,
        "--stat" => options.mode = Mode::Stat,
        "--scan" => options.mode = Mode::Scan,
        "--pipe" => options.mode = Mode::Pipe,
        "--bigkeys" => options.mode = Mode::BigKeys,
        "--memkeys" => options.mode = Mode::MemKeys,
        "--hotkeys" => options.mode = Mode::HotKeys,
        "--ldb" => options.debugging = Some(Debugging::Forked),
        "--ldb-sync-mode" => options.debugging = Some(Debugging::Synchronous),
        "--verbose" => options.verbose = true,
        "-e" => options.fails_on_error = true,
        "-c" => options.cluster_mode = true,
        "-2" if options.protocol == Protocol::Resp3 => return both(options),
        "-3" if options.protocol == Protocol::Resp2 => return both(options),
        "-2" => options.protocol = Protocol::Resp2,
        "-3" => options.protocol = Protocol::Resp3,
        "--tls" => options.tls = true,
        "--insecure" => options.tls_files.insecure = true,
        "--cluster-from-askpass" => options.cluster.asks_from_password = true,
        "--cluster-yes" => options.cluster.yes = true,
        "--cluster-simulate" => options.cluster.simulate = true,
        "--cluster-replace" => options.cluster.replace = true,
        "--cluster-copy" => options.cluster.copy = true,
        "--cluster-slave" => options.cluster.as_replica = true,
        "--cluster-use-empty-masters" => options.cluster.use_empty_masters = true,
        "--cluster-search-multiple-owners" => options.cluster.search_multiple_owners = true,
        "--cluster-fix-with-unreachable-masters" => {
            options.cluster.fix_with_unreachable_masters = true;
        }
        "--cluster-only-masters" => options.cluster.only_masters = true,
        "--cluster-only-replicas" => options.cluster.only_replicas = true,
        _ => return false,
    }
    true
}

fn both(options: &mut Options) -> bool {
    options.contradicts = true;
    true
}

/// How the server is reached, and how commands are sent and shown.
fn with_value(options: &mut Options, option: &str, words: &mut Words) -> Result<bool, Refusal> {
    match option {
        "-h" => options.host = words.text(),
        "-p" => options.port = words.number(),
        "-s" => options.socket = Some(words.path()),
        "-t" => {
            let seconds = words.decimal().clamp(0.0, SECONDS_MAX);
            options.patience = (seconds > 0.0).then(|| Duration::from_secs_f64(seconds));
        }
        "-r" => options.repeat = words.number(),
        "-i" => {
            let seconds = words.decimal().clamp(0.0, SECONDS_MAX);
            options.interval_us = (seconds * 1_000_000.0) as u64;
        }
        "-n" => options.database = words.number(),
        "-a" | "--pass" => options.password = Some(words.value()),
        "--user" => options.user = Some(words.value()),
        "-u" => {
            let refused = |text| Refusal::Because(format!("{text}\n"));
            uri::apply(options, &words.text()).map_err(refused)?;
        }
        "-X" => options.tag_from_stdin = Some(words.value()),
        "-d" => options.delimiters.element = words.value(),
        "-D" => options.delimiters.reply = words.value(),
        "--show-pushes" => {
            let value = words.text();
            match value.bytes().next() {
                Some(b'y' | b'Y') => options.shows_pushes = true,
                Some(b'n' | b'N') => options.shows_pushes = false,
                _ => options.warnings.push(format!(
                    "Unknown --show-pushes value '{value}' (valid: '[y]es', '[n]o')\n"
                )),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn of_mode(options: &mut Options, option: &str, words: &mut Words) -> Result<bool, Refusal> {
    match option {
        "--lru-test" => {
            options.mode = Mode::LruTest;
            options.lru_keys = words.number();
        }
        "--pattern" => options.pattern = Some(words.value()),
        "--quoted-pattern" => {
            let refused = "Invalid quoted string specified for --quoted-pattern.\n".to_owned();
            let pattern = unquote(&words.value()).ok_or(Refusal::Because(refused))?;
            options.pattern = Some(pattern);
        }
        "--count" => options.count = words.number(),
        "--intrinsic-latency" => {
            options.mode = Mode::IntrinsicLatency;
            options.intrinsic_seconds = u64::try_from(words.number()).unwrap_or(0);
        }
        "--rdb" | "--functions-rdb" => {
            let functions = option == "--functions-rdb";
            if options.mode == Mode::Rdb && options.functions_only != functions {
                let text = "Option --functions-rdb and --rdb are mutually exclusive.\n";
                return Err(Refusal::Because(text.to_owned()));
            }
            options.mode = Mode::Rdb;
            options.functions_only = functions;
            options.rdb_file = words.value();
        }
        "--pipe-timeout" => {
            options.pipe_timeout_s = u64::try_from(words.number()).unwrap_or(0);
        }
        "--memkeys-samples" => {
            options.mode = Mode::MemKeys;
            options.memory_samples = words.number();
        }
        "--eval" => {
            options.mode = Mode::Eval;
            options.script = Some(words.path());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn of_tls(options: &mut Options, option: &str, words: &mut Words) -> bool {
    match option {
        "--sni" => options.tls_files.server_name = Some(words.text()),
        "--cacert" => options.tls_files.ca_file = Some(words.path()),
        "--cacertdir" => options.tls_files.ca_dir = Some(words.path()),
        "--cert" => options.tls_files.certificate = Some(words.path()),
        "--key" => options.tls_files.key = Some(words.path()),
        "--tls-ciphers" | "--tls-ciphersuites" => {
            // One list of what is allowed, whichever version the names belong to.
            let more = words.text();
            let ciphers = &mut options.tls_files.ciphers;
            *ciphers = Some(match ciphers.take() {
                Some(before) => format!("{before}:{more}"),
                None => more,
            });
        }
        _ => return false,
    }
    true
}

fn of_cluster(options: &mut Options, option: &str, words: &mut Words) -> bool {
    let cluster = &mut options.cluster;
    match option {
        "--cluster" => {
            options.mode = Mode::Cluster;
            cluster.command = words.value();
            cluster.arguments = up_to_option(words);
        }
        "--cluster-replicas" => cluster.replicas = words.natural(),
        "--cluster-master-id" => cluster.master_id = Some(words.text()),
        "--cluster-from" => cluster.from = Some(words.text()),
        "--cluster-to" => cluster.to = Some(words.text()),
        "--cluster-from-user" => cluster.from_user = Some(words.value()),
        "--cluster-from-pass" => cluster.from_password = Some(words.value()),
        "--cluster-weight" => {
            let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
            cluster.weights = up_to_option(words).into_iter().map(text).collect();
        }
        "--cluster-slots" => cluster.slots = words.natural(),
        "--cluster-timeout" => cluster.timeout_ms = words.number(),
        "--cluster-pipeline" => cluster.pipeline = words.natural().max(1),
        "--cluster-threshold" => cluster.threshold = words.decimal(),
        _ => return false,
    }
    true
}

/// All words before the next option.
fn up_to_option(words: &mut Words) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    while words.all.get(words.at).is_some_and(|word| word.first() != Some(&b'-')) {
        taken.push(words.value());
    }
    taken
}

#[cfg(test)]
mod tests {
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
    fn pauses_are_read_as_far_as_they_go() {
        assert_eq!(parsed("-i 0.25s x").interval_us, 250_000);
        assert_eq!(parsed("-i abc x").interval_us, 0);
        assert_eq!(parsed("-i -1 x").interval_us, 0);
    }

    #[test]
    fn a_cluster_command_takes_words_up_to_the_next_option() {
        let options = parsed("--cluster call a:1 ping --cluster-yes -p 5");
        assert_eq!(options.cluster.command, b"call");
        assert_eq!(options.cluster.arguments.len(), 2);
        assert!(options.cluster.yes && options.port == 5);
    }
}
