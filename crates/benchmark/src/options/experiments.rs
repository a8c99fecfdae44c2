//! The command lines of `experiments`, `delay-proxy` and `plot`.

use super::PlotFiles;
use super::parse::{Arguments, cpus, invalid};
use crate::delay::DelayPlan;
use brisk_dial::address::Address;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum delay, in ms.
const DELAY_MS_MAX: f64 = 3_600_000.0;
/// Maximum number of rounds.
const ROUNDS_MAX: usize = 1000;

/// The options of `experiments`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentOptions {
    /// Names of experiments. If empty, all are run.
    pub names: Vec<String>,
    /// `--servers`. If empty, a `redis-server` and a `brisk-server` next to this program or in `PATH` are used.
    pub servers: Vec<String>,
    /// `--short`
    pub short: bool,
    /// `--scale`
    pub scale: Option<f64>,
    /// `--rounds`
    pub rounds: Option<usize>,
    /// `--pin`, the part before the slash.
    pub server_cpus: Vec<usize>,
    /// `--pin`, the part after the slash.
    pub load_cpus: Vec<usize>,
    /// `--json`
    pub json: Option<PathBuf>,
    /// `--html`
    pub html: Option<PathBuf>,
    /// `--markdown`
    pub markdown: Option<PathBuf>,
    /// `--list`
    pub list: bool,
}

/// Reads the arguments after `experiments`; `None` for the help.
///
/// # Errors
/// An error text of one sentence.
pub(super) fn parse_experiments(
    words: &mut dyn Iterator<Item = String>,
) -> Result<Option<ExperimentOptions>, String> {
    let mut options = ExperimentOptions::default();
    let mut naming_servers = false;
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            let list = if naming_servers { &mut options.servers } else { &mut options.names };
            list.push(word);
            continue;
        }
        naming_servers = false;
        let mut arguments = Arguments { option: &word, rest: words };
        match word.as_str() {
            "--help" => return Ok(None),
            "--servers" => naming_servers = true,
            "--short" => options.short = true,
            "--list" => options.list = true,
            "--scale" => {
                let scale: f64 = arguments.number()?;
                if !(scale > 0.0 && scale <= 1.0) {
                    return Err(format!(
                        "--scale must be greater than 0 and at most 1, not {scale}"
                    ));
                }
                options.scale = Some(scale);
            }
            "--rounds" => {
                options.rounds = Some(arguments.number::<usize>()?.clamp(1, ROUNDS_MAX));
            }
            "--pin" => {
                let text = arguments.text()?;
                let (servers, load) = text.split_once('/').unwrap_or(("", &text));
                options.server_cpus = cpus(servers)?;
                options.load_cpus = cpus(load)?;
            }
            "--json" => options.json = Some(arguments.text()?.into()),
            "--html" => options.html = Some(arguments.text()?.into()),
            "--markdown" => options.markdown = Some(arguments.text()?.into()),
            _ => return Err(invalid(&word)),
        }
    }
    Ok(Some(options))
}

/// Reads the arguments after `delay-proxy`; `None` for the help.
///
/// # Errors
/// An error text of one sentence.
pub(super) fn parse_delay_proxy(
    words: &mut dyn Iterator<Item = String>,
) -> Result<Option<DelayPlan>, String> {
    let (mut listen, mut to, mut delay, mut jitter) = (None, None, None, Duration::ZERO);
    while let Some(word) = words.next() {
        let mut arguments = Arguments { option: &word, rest: words };
        match word.as_str() {
            "--help" => return Ok(None),
            "--listen" => listen = Some(tcp(&arguments.text()?)?),
            "--to" => to = Some(tcp(&arguments.text()?)?),
            "--delay" => delay = Some(milliseconds(&mut arguments)?),
            "--jitter" => jitter = milliseconds(&mut arguments)?,
            _ => return Err(invalid(&word)),
        }
    }
    match (listen, to, delay) {
        (Some(listen), Some(to), Some(delay)) => Ok(Some(DelayPlan { listen, to, delay, jitter })),
        _ => Err("delay-proxy needs --listen, --to and --delay".to_owned()),
    }
}

/// Reads the arguments after `plot`; `None` for the help.
///
/// # Errors
/// An error text of one sentence.
pub(super) fn parse_plot(
    words: &mut dyn Iterator<Item = String>,
) -> Result<Option<PlotFiles>, String> {
    let mut files = Vec::new();
    for word in words {
        match word.as_str() {
            "--help" => return Ok(None),
            option if option.starts_with('-') => return Err(invalid(option)),
            _ => files.push(word),
        }
    }
    match <[String; 2]>::try_from(files) {
        Ok([results, svg]) => Ok(Some(PlotFiles { results: results.into(), svg: svg.into() })),
        Err(_) => Err("plot needs two files: the JSON of a comparison, and the SVG".to_owned()),
    }
}

fn tcp(text: &str) -> Result<SocketAddr, String> {
    match Address::parse(text)? {
        Address::Tcp { resolved, .. } => Ok(resolved),
        Address::Unix(_) => Err(format!("delay-proxy uses TCP: \"{text}\" is not a host and port")),
    }
}

fn milliseconds(arguments: &mut Arguments<'_>) -> Result<Duration, String> {
    let ms: f64 = arguments.number()?;
    if (0.0..=DELAY_MS_MAX).contains(&ms) {
        Ok(Duration::from_secs_f64(ms / 1000.0))
    } else {
        Err(format!("{} must be a number of milliseconds, not {ms}", arguments.option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn experiments_and_servers_are_distinguished() {
        let line = ["p2", "M3", "--short", "--servers", "a=x --port 1", ":7000", "--rounds", "2"];
        let options = parse_experiments(&mut words(&line).into_iter()).unwrap().unwrap();
        assert_eq!(options.names, ["p2", "M3"]);
        assert_eq!(options.servers, ["a=x --port 1", ":7000"]);
        assert!(options.short && options.rounds == Some(2));
        for wrong in [&["--scale", "2"][..], &["--html"], &["--loud"]] {
            assert!(parse_experiments(&mut words(wrong).into_iter()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_proxy_needs_both_addresses_and_a_delay() {
        let line = ["--listen", ":7001", "--to", ":7000", "--delay", "0.25", "--jitter", "1"];
        let plan = parse_delay_proxy(&mut words(&line).into_iter()).unwrap().unwrap();
        assert_eq!((plan.listen.port(), plan.to.port()), (7001, 7000));
        assert_eq!(
            (plan.delay, plan.jitter),
            (Duration::from_micros(250), Duration::from_millis(1))
        );
        assert!(parse_delay_proxy(&mut words(&line[..4]).into_iter()).is_err());
        let unix = ["--listen", "/x", "--to", ":1", "--delay", "1"];
        assert!(parse_delay_proxy(&mut words(&unix).into_iter()).is_err());
    }
}
