//! The lines above the table: the server and its load.

use super::super::version;
use super::rows::{busy, worker_fields};
use super::sample::Interval;
use crate::amount::{bytes, duration, grouped, rate};
use crate::info::InfoFields;
use std::time::Duration;

/// The number of lines.
pub(super) const LINES: usize = 3;
/// The number of workers that are listed one by one.
const WORKERS_LISTED: usize = 16;

/// The lines for a server at this address.
pub(super) fn lines(interval: &Interval<'_>, place: &str) -> [String; LINES] {
    let info = &interval.now.info;
    let uptime = Duration::from_secs(info.decimal("uptime_in_seconds") as u64);
    let server = format!("{}  {place}  {}  up {}", version(info), role(info), duration(uptime));
    let blocked = match info.decimal("blocked_clients") as u64 {
        0 => String::new(),
        blocked => format!(" ({} blocked)", grouped(blocked)),
    };
    let load = format!(
        "ops/s {}  clients {}{blocked}  hit rate {}  in {}/s  out {}/s",
        rate(interval.rate("total_commands_processed")),
        grouped(info.decimal("connected_clients") as u64),
        hit_rate(interval),
        bytes(interval.rate("total_net_input_bytes")),
        bytes(interval.rate("total_net_output_bytes")),
    );
    let limit = match info.decimal("maxmemory") {
        max if max > 0.0 => {
            format!("max {} ({:.0} % used)", bytes(max), 100.0 * info.decimal("used_memory") / max)
        }
        _ => "no limit".to_owned(),
    };
    let memory = format!(
        "memory {}  rss {}  {limit}  CPU {}",
        bytes(info.decimal("used_memory")),
        bytes(info.decimal("used_memory_rss")),
        cpu(interval),
    );
    [server, load, memory]
}

fn role(info: &InfoFields) -> String {
    if info.is("role", "slave") {
        let of = |field| info.get(field).unwrap_or("?");
        let link = if info.is("master_link_status", "up") { "" } else { ", link down" };
        return format!("replica of {}:{}{link}", of("master_host"), of("master_port"));
    }
    match info.decimal("connected_slaves") as u64 {
        0 => "primary".to_owned(),
        1 => "primary, 1 replica".to_owned(),
        replicas => format!("primary, {replicas} replicas"),
    }
}

fn hit_rate(interval: &Interval<'_>) -> String {
    let (hits, misses) = (interval.increase("keyspace_hits"), interval.increase("keyspace_misses"));
    if hits + misses == 0.0 {
        return "-".to_owned();
    }
    format!("{:.1} %", 100.0 * hits / (hits + misses))
}

/// The CPU time of the server per second, and how busy its workers are.
fn cpu(interval: &Interval<'_>) -> String {
    let used = interval.rate("used_cpu_sys") + interval.rate("used_cpu_user");
    let mut text = format!("{:.0} %", 100.0 * used);
    let workers: Vec<String> = worker_fields(interval)
        .take(WORKERS_LISTED)
        .map(|(number, _)| format!("{:.0} %", busy(interval, number)))
        .collect();
    if !workers.is_empty() {
        text.push_str(&format!("  workers {}", workers.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;

    #[test]
    fn the_lines_show_server_load_and_memory() {
        let before = sample("keyspace_hits:0\r\nkeyspace_misses:0\r\n", "", None);
        let now = sample(
            "redis_version:7.2.4\r\nbrisk_version:0.1.0\r\nrole:master\r\nconnected_slaves:1\r\n\
             uptime_in_seconds:65\r\ntotal_commands_processed:5000\r\nconnected_clients:50\r\n\
             blocked_clients:2\r\nkeyspace_hits:3\r\nkeyspace_misses:1\r\ntotal_net_input_bytes:2048\r\n\
             used_memory:1048576\r\nused_memory_rss:2097152\r\nmaxmemory:4194304\r\nused_cpu_sys:0.5\r\n\
             worker0:us_execute=300000,us_wait=1\r\n",
            "",
            Some((&before, 1)),
        );
        let interval = Interval { before: &before, now: &now };
        assert_eq!(
            lines(&interval, "h:1"),
            [
                "Brisk 0.1.0  h:1  primary, 1 replica  up 1 min 5 s",
                "ops/s 5,000  clients 50 (2 blocked)  hit rate 75.0 %  in 2.0 KiB/s  out 0 B/s",
                "memory 1.0 MiB  rss 2.0 MiB  max 4.0 MiB (25 % used)  CPU 50 %  workers 30 %",
            ]
        );
        let replica = InfoFields::parse("role:slave\r\nmaster_host:a\r\nmaster_port:7\r\n");
        assert_eq!(role(&replica), "replica of a:7, link down");
    }
}
