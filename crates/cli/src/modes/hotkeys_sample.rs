//! `--hotkeys` without an LFU policy: the keys of short samples of the requests.

use super::lost;
use super::sampling::{BURST, KeySample, LINES_MAX};
use crate::amount::{bytes, counted, duration, grouped, rate};
use crate::info::InfoFields;
use crate::link::Link;
use crate::options::Options;
use crate::quote::quote;
use crate::session::{Loudness, Session};
use crate::{pause, screen};
use brisk_engine::glob::{self, Case};
use std::time::Duration;

/// Number of bursts, unless `--count` sets it.
const BURSTS: u64 = 10;
/// The time from the end of one burst to the next, unless `-i` sets it.
const INTERVAL: Duration = Duration::from_millis(900);
/// Number of keys in the result.
const KEPT: usize = 16;

/// Samples the requests. `link` is a connection that is not used for MONITOR.
pub(super) fn run(link: &mut Link, options: &Options, policy: &str) -> i32 {
    let bursts = options.rounds.unwrap_or(BURSTS).max(1);
    let interval = match options.interval_us {
        0 => INTERVAL,
        interval => Duration::from_micros(interval),
    };
    screen::print(format!(
        "\n# The maxmemory-policy is {policy}, so the server does not count the uses of a key.\n\
         # Sampling requests with MONITOR instead: {} of {} ms, each with at most {} requests.\n\n",
        counted(bursts, "burst"),
        BURST.as_millis(),
        grouped(LINES_MAX)
    ));
    screen::flush();
    match sample(link, options, bursts, interval) {
        Ok((sample, executed)) => {
            screen::print(summary(&sample, executed));
            0
        }
        Err(code) => code,
    }
}

/// The sample, and the number of commands that the server has executed from its begin to its end. A failure has been
/// printed, and its exit code is returned.
fn sample(
    link: &mut Link,
    options: &Options,
    bursts: u64,
    interval: Duration,
) -> Result<(KeySample, f64), i32> {
    let mut sample = KeySample::new(link).map_err(|error| lost(&error))?;
    let before = executed(link)?;
    let pattern = options.pattern.as_deref();
    for burst in 1..=bursts {
        let mut session = Session::new(options.clone()).map_err(|text| {
            screen::warn(format!("{text}\n"));
            1
        })?;
        session.connect(Loudness::Loud).map_err(|_| 1)?;
        let monitor = session.take_link().ok_or(1)?;
        let earlier = sample.requests;
        let is_counted = |key: &[u8]| pattern.is_none_or(|pattern| is_match(pattern, key));
        match sample.burst(monitor, is_counted) {
            Ok(Ok(())) => {}
            Ok(Err(text)) => {
                screen::flush();
                screen::warn(format!("Error: {text}\n"));
                return Err(1);
            }
            Err(error) => return Err(lost(&error)),
        }
        let requests = counted(sample.requests - earlier, "request");
        screen::print(format!("[burst {burst} of {bursts}] {requests}\n"));
        screen::flush();
        if burst < bursts {
            pause::pause(interval);
        }
    }
    Ok((sample, executed(link)? - before))
}

/// The number of commands that the server has executed.
fn executed(link: &mut Link) -> Result<f64, i32> {
    let reply = link.request(&["INFO", "stats"]).map_err(|error| lost(&error))?;
    let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
    Ok(InfoFields::parse(&text).decimal("total_commands_processed"))
}

fn summary(sample: &KeySample, executed: f64) -> String {
    let mut text = "\n-------- summary -------\n\n".to_owned();
    let share = 100.0 * sample.requests as f64 / executed.max(1.0);
    text.push_str(&format!(
        "This is a sample: {} of {} executed in this time ({:.1} %).\n\
         Its cost: MONITOR ran for {} ms in total, and the server sent {} to it.\n",
        counted(sample.requests, "request"),
        counted(executed as u64, "command"),
        share.min(100.0),
        sample.time.as_millis(),
        bytes(sample.bytes as f64),
    ));
    if sample.cut_bursts > 0 {
        text.push_str(&format!(
            "{} ended early, at {} requests.\n",
            counted(sample.cut_bursts, "burst"),
            grouped(LINES_MAX)
        ));
    }
    let hottest = sample.hottest(KEPT);
    if hottest.is_empty() {
        let took = duration(sample.time);
        text.push_str(&format!("No request with a matching key was sampled in {took}.\n"));
    }
    for ((database, key), count) in hottest {
        let database = if *database == 0 { String::new() } else { format!("\tdb: {database}") };
        text.push_str(&format!(
            "hot key found with sampled requests: {count:.0}\t(about {}/s)\tkeyname: {}{database}\n",
            rate(sample.rate(count)),
            quote(key)
        ));
    }
    text
}

/// Reports whether a key matches a pattern, by the rules of SCAN.
fn is_match(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || glob::matches(pattern, key, Case::Matters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_scan() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("user:*", "user:1", true),
            ("user:*:x", "user:1:2:x", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a[b", "ab", true),
            ("[\\]]", "]", true),
        ] {
            assert_eq!(is_match(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
