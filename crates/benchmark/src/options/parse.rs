//! Parses the command line.

use super::experiments::{parse_delay_proxy, parse_experiments, parse_plot};
use super::{Format, Options, Request, Sender};
use crate::engine::plan::{Arrivals, OnError, PIPELINE_MAX, THREADS_MAX};
use crate::load::sizes::{VALUE_BYTES_MAX, ValueSizes};
use brisk_dial::tls::TlsOptions;
use std::str::FromStr;
use std::time::Duration;

/// The maximum number of CPUs in a list.
const CPUS_MAX: usize = 1024;
/// The maximum number of connections of the client library.
const LANES_MAX: usize = 1024;
/// The longest time that an option accepts, in seconds: one year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// The variable of redis-cli that contains the password: other users of the host cannot see it.
const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

/// Reads the arguments (without the program's name), and the password from the environment if no argument has one.
///
/// # Errors
/// An error text of one sentence.
pub fn parse<I: IntoIterator<Item = String>>(arguments: I) -> Result<Request, String> {
    let arguments: Vec<String> = arguments.into_iter().collect();
    let mut rest = arguments.iter().cloned().peekable();
    if rest.next_if(|word| word == "experiments").is_some() {
        let options = parse_experiments(&mut rest)?;
        return Ok(options.map_or(Request::Help, |it| Request::Experiments(Box::new(it))));
    }
    if rest.next_if(|word| word == "delay-proxy").is_some() {
        return Ok(parse_delay_proxy(&mut rest)?.map_or(Request::Help, Request::DelayProxy));
    }
    if rest.next_if(|word| word == "plot").is_some() {
        return Ok(parse_plot(&mut rest)?.map_or(Request::Help, Request::Plot));
    }
    let compares = rest.next_if(|word| word == "compare").is_some();
    let mut options = Options::default();
    if compares {
        options.arguments = arguments[1..].to_vec();
    }
    while let Some(word) = rest.next() {
        if word == "--help" {
            return Ok(Request::Help);
        }
        if word == "-v" || word == "--version" {
            return Ok(Request::Version);
        }
        if !word.starts_with('-') {
            if compares {
                options.servers.push(word);
                continue;
            }
            options.own = std::iter::once(word).chain(rest).collect();
            break;
        }
        let mut arguments = Arguments { option: &word, rest: &mut rest };
        let known = server_option(&mut options, &mut arguments)?
            || load_option(&mut options, &mut arguments)?
            || request_option(&mut options, &mut arguments)?
            || output_option(&mut options, &mut arguments)?;
        if !known {
            return Err(invalid(&word));
        }
    }
    finish(&mut options, compares)?;
    let options = Box::new(options);
    Ok(if compares { Request::Compare(options) } else { Request::Run(options) })
}

pub(super) fn invalid(option: &str) -> String {
    format!("Invalid option \"{option}\" or option argument missing")
}

/// Types of numbers that options accept.
pub(super) trait Number: FromStr {
    /// Describes valid numbers, for error texts.
    const WANTED: &'static str;
}

impl Number for u16 {
    const WANTED: &'static str = "a number from 0 to 65535";
}

impl Number for u32 {
    const WANTED: &'static str = "a number from 0 to 4294967295";
}

impl Number for u64 {
    const WANTED: &'static str = "a whole number of at least 0";
}

impl Number for usize {
    const WANTED: &'static str = "a whole number of at least 0";
}

impl Number for i64 {
    const WANTED: &'static str = "a whole number";
}

impl Number for f64 {
    const WANTED: &'static str = "a number";
}

/// The current option, and the arguments after it.
pub(super) struct Arguments<'a> {
    pub(super) option: &'a str,
    pub(super) rest: &'a mut dyn Iterator<Item = String>,
}

impl Arguments<'_> {
    pub(super) fn text(&mut self) -> Result<String, String> {
        self.rest.next().ok_or_else(|| invalid(self.option))
    }

    pub(super) fn number<T: Number>(&mut self) -> Result<T, String> {
        let text = self.text()?;
        text.parse().map_err(|_| format!("{} must be {}, not \"{text}\"", self.option, T::WANTED))
    }

    fn parsed<T: FromStr<Err = String>>(&mut self) -> Result<T, String> {
        let text = self.text()?;
        text.parse().map_err(|error| format!("{}: {error}", self.option))
    }

    fn seconds(&mut self) -> Result<Duration, String> {
        let seconds: f64 = self.number()?;
        if (0.0..=SECONDS_MAX).contains(&seconds) {
            Ok(Duration::from_secs_f64(seconds))
        } else {
            Err(format!("{} must be a number of seconds, not {seconds}", self.option))
        }
    }
}

fn tls(options: &mut Options) -> &mut TlsOptions {
    options.tls.get_or_insert_default()
}

fn server_option(options: &mut Options, arguments: &mut Arguments<'_>) -> Result<bool, String> {
    match arguments.option {
        "-h" => options.host = arguments.text()?,
        "-p" => options.port = arguments.number()?,
        "-s" => options.socket = Some(arguments.text()?.into()),
        "-a" => options.password = Some(arguments.text()?),
        "--user" => options.user = Some(arguments.text()?),
        "-u" => uri(options, &arguments.text()?)?,
        "--dbnum" => options.database = arguments.number()?,
        "-3" => options.resp3 = true,
        "--enable-tracking" => options.tracking = true,
        "--tls" => drop(tls(options)),
        "--sni" => tls(options).server_name = Some(arguments.text()?),
        "--cacert" => tls(options).ca_file = Some(arguments.text()?.into()),
        "--cacertdir" => tls(options).ca_dir = Some(arguments.text()?.into()),
        "--insecure" => tls(options).insecure = true,
        "--cert" => tls(options).certificate = Some(arguments.text()?.into()),
        "--key" => tls(options).key = Some(arguments.text()?.into()),
        "--tls-ciphers" | "--tls-ciphersuites" => {
            let list = arguments.text()?;
            let ciphers = &mut tls(options).ciphers;
            *ciphers = Some(match ciphers.take() {
                Some(before) => format!("{before}:{list}"),
                None => list,
            });
        }
        "--cluster" => options.cluster = true,
        _ => return Ok(false),
    }
    Ok(true)
}

fn load_option(options: &mut Options, arguments: &mut Arguments<'_>) -> Result<bool, String> {
    match arguments.option {
        "-c" => options.clients = arguments.number()?,
        "-n" => {
            options.requests = arguments.number()?;
            if options.requests == 0 {
                return Err("-n must be at least 1".to_owned());
            }
        }
        "--duration" => options.duration = Some(arguments.seconds()?),
        "--warmup" => options.warmup = arguments.seconds()?,
        "--rate" => {
            let rate: f64 = arguments.number()?;
            if !(rate > 0.0 && rate <= 1e9) {
                return Err(format!("--rate must be a number of requests per second, not {rate}"));
            }
            options.rate = Some(rate);
        }
        "--arrivals" => {
            options.arrivals = match arguments.text()?.as_str() {
                "even" => Arrivals::Even,
                "poisson" => Arrivals::Poisson,
                other => return Err(format!("--arrivals: even or poisson, not \"{other}\"")),
            };
        }
        "-P" => {
            let text = arguments.text()?;
            let depth = |word: &str| {
                let depth: i64 =
                    word.parse().map_err(|_| format!("-P must be a number, not \"{word}\""))?;
                Ok(usize::try_from(depth).unwrap_or(1).clamp(1, PIPELINE_MAX))
            };
            options.pipelines = text.split(',').map(depth).collect::<Result<_, String>>()?;
        }
        "--client" => {
            options.sender = match arguments.text()?.as_str() {
                "engine" => Sender::Engine,
                "library" => Sender::Library,
                "library-pool" => Sender::LibraryPool,
                other => {
                    return Err(format!(
                        "--client: engine, library or library-pool, not \"{other}\""
                    ));
                }
            };
        }
        "-k" => options.keep_alive = arguments.number::<i64>()? != 0,
        "--threads" => {
            let threads: i64 = arguments.number()?;
            options.threads = usize::try_from(threads).unwrap_or(0);
            if options.threads > THREADS_MAX {
                options
                    .warnings
                    .push(format!("WARNING: Too many threads, limiting threads to {THREADS_MAX}."));
                options.threads = THREADS_MAX;
            }
        }
        "-I" => options.idle = true,
        "-l" => options.again = true,
        _ => return Ok(false),
    }
    Ok(true)
}

fn request_option(options: &mut Options, arguments: &mut Arguments<'_>) -> Result<bool, String> {
    match arguments.option {
        "-t" => options.tests = Some(arguments.text()?),
        "-x" => options.last_from_stdin = true,
        "--command" => options.commands.push((arguments.text()?, 1)),
        "--weight" => match options.commands.last_mut() {
            Some((_, weight)) => *weight = u64::from(arguments.number::<u32>()?),
            None => return Err("--weight must follow a --command".to_owned()),
        },
        "--mix" => options.mix = Some(arguments.text()?),
        "-r" => {
            let keyspace: i64 = arguments.number()?;
            options.keyspace = Some(u64::try_from(keyspace).unwrap_or(0));
        }
        "--keys" => options.keys = arguments.parsed()?,
        "-d" => {
            let text = arguments.text()?;
            options.sizes = match text.parse::<i64>() {
                // Numbers out of bounds are clamped, as in redis-benchmark.
                Ok(size) => {
                    let size = usize::try_from(size).unwrap_or(1);
                    ValueSizes::Fixed(size.clamp(1, VALUE_BYTES_MAX))
                }
                Err(_) => text.parse().map_err(|error| format!("-d: {error}"))?,
            };
        }
        "--fill" => options.fill = true,
        "--seed" => options.seed = arguments.number()?,
        "--verify" => options.verify = true,
        "--count-errors" => options.on_error = OnError::Count,
        "-e" => options.warnings.push(
            "WARNING: -e option has no effect. We now immediately exit on error to avoid false \
             results."
                .to_owned(),
        ),
        _ => return Ok(false),
    }
    Ok(true)
}

fn output_option(options: &mut Options, arguments: &mut Arguments<'_>) -> Result<bool, String> {
    match arguments.option {
        "-q" => options.format = Format::Quiet,
        "--csv" => options.format = Format::Csv,
        "--json" => options.format = Format::Json,
        "--format" => {
            options.format = match arguments.text()?.as_str() {
                "table" => Format::Long,
                "markdown" => Format::Markdown,
                "csv" => Format::Csv,
                "json" => Format::Json,
                other => {
                    return Err(format!("--format: table, markdown, csv or json, not \"{other}\""));
                }
            };
        }
        "--precision" => {
            let digits: i64 = arguments.number()?;
            options.precision = match u8::try_from(digits) {
                Ok(digits) => digits.clamp(1, 4),
                Err(_) if digits < 0 => 3,
                Err(_) => 4,
            };
        }
        "--pin" => {
            let text = arguments.text()?;
            let (servers, load) = text.split_once('/').unwrap_or(("", &text));
            options.server_cpus = cpus(servers)?;
            options.load_cpus = cpus(load)?;
        }
        "--rounds" => options.rounds = arguments.number::<usize>()?.clamp(1, 1000),
        "--baseline" => options.baseline = Some(arguments.text()?),
        "--html" => options.html = Some(arguments.text()?.into()),
        "--save" => options.save.push(arguments.text()?.into()),
        "--public" => options.public = true,
        "--syscalls" => options.syscalls = true,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Checks that need all options.
fn finish(options: &mut Options, compares: bool) -> Result<(), String> {
    let own = !options.own.is_empty();
    let mixed = options.mix.is_some() || !options.commands.is_empty();
    if options.tests.is_some() && (own || mixed) {
        options.warnings.push("WARNING: Option -t is ignored.".to_owned());
    }
    if own && mixed {
        return Err("--command and --mix cannot be combined with a command at the end".to_owned());
    }
    if options.last_from_stdin && !own {
        return Err("-x needs a command at the end".to_owned());
    }
    if options.password.is_none() {
        options.password = std::env::var(PASSWORD_VARIABLE).ok();
    }
    if options.user.is_some() && options.password.is_none() {
        options.warnings.push("WARNING: --user without -a is ignored.".to_owned());
    }
    if options.rate.is_some() && !options.keep_alive {
        return Err("--rate cannot be used with -k 0".to_owned());
    }
    if options.sender != Sender::Engine {
        let refused = [
            ("--rate", options.rate.is_some(), "its callers wait for their replies"),
            ("-k 0", !options.keep_alive, "it reuses its connections"),
            ("-I", options.idle, "its callers send requests"),
            ("--tls", options.tls.is_some(), "TLS is not supported with it"),
            ("--enable-tracking", options.tracking, "tracking is not supported with it"),
            ("--cluster", options.cluster, "it supports only one server"),
        ];
        if let Some((option, _, why)) = refused.iter().find(|(_, is_set, _)| *is_set) {
            return Err(format!("--client library and {option} cannot be combined: {why}"));
        }
        if options.clients > LANES_MAX {
            return Err(format!("--client library has at most {LANES_MAX} connections (-c)"));
        }
    }
    if options.fill && options.keyspace.is_none() {
        return Err("--fill needs the number of keys: use -r".to_owned());
    }
    if compares {
        if options.servers.len() < 2 {
            return Err("compare needs at least two servers".to_owned());
        }
        if options.idle || options.again {
            return Err("compare cannot be combined with -I or -l".to_owned());
        }
        if options.cluster {
            return Err("compare cannot be combined with --cluster".to_owned());
        }
    } else if options.public {
        return Err("--public is only for compare".to_owned());
    } else if options.format == Format::Markdown {
        return Err("--format markdown is only for compare".to_owned());
    }
    Ok(())
}

/// A list of CPUs: `0`, `0,2`, `0-3`; an empty text is an empty list.
pub(super) fn cpus(list: &str) -> Result<Vec<usize>, String> {
    let bad = || format!("--pin: not a list of CPUs: \"{list}\"");
    let mut cpus = Vec::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| word.parse::<usize>().ok().filter(|&cpu| cpu < CPUS_MAX);
        let (first, last) = (number(first).ok_or_else(bad)?, number(last).ok_or_else(bad)?);
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// `redis://user:password@host:port/database`.
fn uri(options: &mut Options, text: &str) -> Result<(), String> {
    let rest = if let Some(rest) = text.strip_prefix("rediss://") {
        tls(options);
        rest
    } else {
        text.strip_prefix("redis://").ok_or_else(|| format!("Invalid URI scheme: {text}"))?
    };
    let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match server.rsplit_once('@') {
        Some((login, host)) => {
            match login.split_once(':') {
                Some((user, password)) => {
                    options.user = Some(unescaped(user)).filter(|user| !user.is_empty());
                    options.password = Some(unescaped(password));
                }
                None => options.password = Some(unescaped(login)),
            }
            host
        }
        None => server,
    };
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host, None),
    };
    if !host.is_empty() {
        options.host = unescaped(host);
    }
    if let Some(port) = port {
        options.port = port.parse().map_err(|_| format!("not a port in {text}"))?;
    }
    if !database.is_empty() {
        options.database = database.parse().map_err(|_| format!("not a database in {text}"))?;
    }
    Ok(())
}

/// Decodes percent-encoding: `%41` becomes `A`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let hex = others.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::keys::KeyChoice;

    fn options(line: &str) -> Result<Options, String> {
        match parse(line.split_whitespace().map(str::to_owned))? {
            Request::Run(options) | Request::Compare(options) => Ok(*options),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn no_arguments_mean_the_same_as_in_redis_benchmark() {
        let options = options("").unwrap();
        assert_eq!((options.clients, options.requests, options.pipelines), (50, 100_000, vec![1]));
        assert_eq!((options.sizes, options.keyspace), (ValueSizes::Fixed(3), None));
        assert!(options.keep_alive && options.threads == 0);
    }

    #[test]
    fn options_of_redis_benchmark_are_taken() {
        let options = options(
            "-h ::1 -p 7000 -a pw --user ann --dbnum 3 -3 --enable-tracking -c 7 -n 9 -d 100 -P 16 \
             -k 0 -r 1000 --threads 2 -q -l -t get,set --precision 2 --cluster",
        )
        .unwrap();
        assert_eq!((options.host.as_str(), options.port), ("::1", 7000));
        assert_eq!((options.clients, options.requests), (7, 9));
        assert_eq!((options.pipelines.as_slice(), options.threads), ([16].as_slice(), 2));
        assert_eq!((options.keyspace, options.database), (Some(1000), 3));
        assert!(options.resp3 && options.tracking && !options.keep_alive && options.again);
        assert!(options.cluster);
        assert_eq!((options.format, options.precision), (Format::Quiet, 2));
        assert_eq!(options.tests.as_deref(), Some("get,set"));
    }

    #[test]
    fn numbers_out_of_bounds_are_brought_within_them() {
        assert_eq!(options("-d 0").unwrap().sizes, ValueSizes::Fixed(1));
        assert_eq!(options("-P -3").unwrap().pipelines, [1]);
        assert_eq!(options("-r -5").unwrap().keyspace, Some(0));
        assert_eq!(options("--threads -1").unwrap().threads, 0);
        let many = options("--threads 501").unwrap();
        assert_eq!((many.threads, many.warnings.len()), (500, 1));
    }

    #[test]
    fn everything_after_the_first_plain_argument_is_the_command() {
        let options = options("-q -n 5 eval return_1 0 -q --csv").unwrap();
        assert_eq!(options.own, ["eval", "return_1", "0", "-q", "--csv"]);
        assert_eq!(options.format, Format::Quiet);
    }

    #[test]
    fn options_of_brisk_are_parsed() {
        let options = options(
            "--rate 5000 --arrivals poisson --warmup 0.5 --duration 3 --keys zipf:1.1 -d 16-64 -r 9 \
             --fill --verify --count-errors --json --pin 0/1-2,5 -P 1,16",
        )
        .unwrap();
        assert_eq!((options.rate, options.arrivals), (Some(5000.0), Arrivals::Poisson));
        assert_eq!(options.warmup, Duration::from_millis(500));
        assert_eq!(options.keys, KeyChoice::Zipf { exponent: 1.1 });
        assert_eq!(options.sizes, ValueSizes::Uniform(16, 64));
        assert_eq!((options.server_cpus, options.load_cpus), (vec![0], vec![1, 2, 5]));
        assert_eq!(options.pipelines, [1, 16]);
    }

    #[test]
    fn a_uri_names_everything() {
        let options = options("-u rediss://ann:p%40ss@example:7001/4").unwrap_or_default();
        assert_eq!((options.host.as_str(), options.port, options.database), ("example", 7001, 4));
        assert_eq!(options.user.as_deref(), Some("ann"));
        assert_eq!(options.password.as_deref(), Some("p@ss"));
        assert!(options.tls.is_some());
    }

    #[test]
    fn servers_and_options_of_a_comparison_may_be_mixed() {
        let options = options("compare :1 -t get a=:2 --rounds 3 --baseline a").unwrap();
        assert_eq!(options.servers, [":1", "a=:2"]);
        assert_eq!((options.rounds, options.baseline.as_deref()), (3, Some("a")));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, wanted) in [
            ("-n", "Invalid option \"-n\" or option argument missing"),
            ("--nonsense", "Invalid option \"--nonsense\" or option argument missing"),
            ("-n ten", "-n must be a whole number of at least 0, not \"ten\""),
            ("-c -5", "-c must be a whole number of at least 0, not \"-5\""),
            ("-p 65536", "-p must be a number from 0 to 65535, not \"65536\""),
            ("-k yes", "-k must be a whole number, not \"yes\""),
            ("--client library --cluster", "--cluster cannot be combined"),
            ("compare :1 :2 --cluster", "compare cannot be combined with --cluster"),
            ("--rate 0", "--rate must be"),
            ("--weight 3", "must follow"),
            ("-x", "-x needs a command"),
            ("--rate 5 -k 0", "cannot be used with -k 0"),
            ("--fill", "-r"),
            ("--client other", "engine, library or library-pool"),
            ("--client library --rate 5", "--client library and --rate cannot be combined"),
            ("--client library-pool -k 0", "-k 0 cannot be combined: it reuses"),
            ("-I --client library", "-I cannot be combined"),
            ("--client library --insecure", "--tls cannot be combined"),
            ("--client library -c 1025", "at most 1024 connections"),
            ("--pin a/b", "not a list of CPUs"),
            ("compare :1", "at least two servers"),
            ("-t get --public", "--public is only for compare"),
            ("plot", "plot needs two files"),
            ("plot a.json", "plot needs two files"),
            ("plot a.json b.svg c", "plot needs two files"),
            ("plot --x b", "Invalid option \"--x\""),
            ("--mix get:1 ping", "cannot be combined with a command"),
            ("-u http://x", "Invalid URI scheme"),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(wanted), "{line}: {error}");
        }
        assert_eq!(parse(["--help".to_owned()]), Ok(Request::Help));
        assert_eq!(parse(["-v".to_owned()]), Ok(Request::Version));
    }
}
