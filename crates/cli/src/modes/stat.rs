//! `--stat`: prints a line of metrics every second.

use crate::session::Session;
use crate::{pause, screen};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);
/// Number of lines after which the header is repeated.
const LINES_PER_HEAD: u64 = 20;
const HEAD: &str = "------- data ------ --------------------- load -------------------- - child -\n\
     keys       mem      clients blocked requests            connections          \n";

pub(super) fn run(session: &mut Session) -> i32 {
    let interval = match session.options.interval_us {
        0 => INTERVAL,
        interval => Duration::from_micros(interval),
    };
    let mut requests_before = 0;
    for line in 0u64.. {
        let reply = match session.request(&["INFO"]) {
            Ok(reply) => reply,
            Err(error) => return super::lost(&error),
        };
        if let Some(text) = reply.as_error() {
            screen::flush();
            screen::warn([b"ERROR: ", text, b"\n"].concat());
            return 1;
        }
        let info = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
        if line % LINES_PER_HEAD == 0 {
            screen::print(HEAD);
        }
        let requests = number(&info, "total_commands_processed");
        let more = if line == 0 { 0 } else { requests - requests_before };
        requests_before = requests;
        let requests_text = format!("{requests} (+{more})");
        screen::print(format!(
            "{:<11}{:<9}{:<8}{:<8}{requests_text:<19} {:<12}{}\n",
            keys(&info),
            size(number(&info, "used_memory")),
            number(&info, "connected_clients"),
            number(&info, "blocked_clients"),
            number(&info, "total_connections_received"),
            child(&info)
        ));
        screen::flush();
        pause::pause(interval);
    }
    0
}

/// The value of a numeric field of INFO.
pub(super) fn number(info: &str, field: &str) -> i64 {
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// The number of keys in all databases.
fn keys(info: &str) -> i64 {
    let databases = info.lines().filter_map(|line| {
        let (name, rest) = line.split_once(":keys=")?;
        name.strip_prefix("db")?.parse::<u32>().ok()?;
        rest.split(',').next()?.parse::<i64>().ok()
    });
    databases.sum()
}

fn size(bytes: i64) -> String {
    const UNITS: [(i64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit);
    match unit {
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / *unit as f64),
        None => format!("{bytes}B"),
    }
}

/// The task of the server's child process.
fn child(info: &str) -> &'static str {
    let runs = |field| number(info, field) > 0;
    match (runs("rdb_bgsave_in_progress"), runs("aof_rewrite_in_progress"), runs("loading")) {
        (_, _, true) => "LOAD",
        (true, true, _) => "SAVE+AOF",
        (true, false, _) => "SAVE",
        (false, true, _) => "AOF",
        (false, false, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_found_in_the_text() {
        let info = "used_memory:100\r\ndb0:keys=3,expires=0\r\ndb12:keys=4,expires=1\r\n";
        assert_eq!((number(info, "used_memory"), number(info, "used"), keys(info)), (100, 0, 7));
        assert_eq!([size(12), size(2048), size(3 << 29)], ["12B", "2.00K", "1.50G"]);
    }
}
