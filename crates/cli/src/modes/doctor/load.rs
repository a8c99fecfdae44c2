//! Clients, slow commands, and latency.

use super::facts::ServerFacts;
use crate::amount::{bytes, counted, grouped, readable, shortened};
use crate::slowlog::SlowEntry;
use brisk_findings::Finding;
use std::collections::BTreeMap;

/// Connected clients are reported from this percentage of `maxclients`.
const CLIENTS_PERCENT: u64 = 90;
/// Minimum bytes of unsent replies for which a client is reported.
const OUTPUT_BYTES_MIN: u64 = 1 << 20;
/// Maximum number of clients that are listed one by one.
const CLIENTS_LISTED: usize = 5;
/// Maximum number of commands of the slow log that are listed.
const SLOW_LISTED: usize = 5;
/// Commands that take at least this long noticeably block other clients.
const SLOW_US_MIN: u64 = 100_000;
/// Minimum latency for which an event is reported.
const LATENCY_MS_MIN: u64 = 100;
const COMMAND_CHARS_MAX: usize = 60;

/// Slow commands and their alternatives.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("keys", "use SCAN instead of KEYS"),
    ("smembers", "use SSCAN for large sets"),
    ("hgetall", "use HSCAN or HMGET for large hashes"),
    ("lrange", "read shorter ranges"),
    ("zrange", "read shorter ranges"),
    ("del", "use UNLINK for large values"),
    ("flushall", "use FLUSHALL ASYNC"),
    ("flushdb", "use FLUSHDB ASYNC"),
    ("sort", "sort in the client, or keep a sorted set"),
    ("save", "use BGSAVE instead of SAVE"),
    ("debug", "use DEBUG only for tests"),
    ("eval", "split the script"),
    ("evalsha", "split the script"),
    ("fcall", "split the function"),
];

pub(super) fn check(facts: &ServerFacts, findings: &mut Vec<Finding>) {
    findings.extend(connections(facts));
    findings.extend(output(facts));
    findings.extend(disconnections(facts));
    findings.extend(slow(&facts.slow));
    findings.extend(latency(facts));
}

fn connections(facts: &ServerFacts) -> Option<Finding> {
    let (clients, max) = (facts.number("connected_clients"), facts.number("maxclients"));
    let rejected = facts.number("rejected_connections");
    let is_full = max > 0 && clients * 100 >= max * CLIENTS_PERCENT;
    if !is_full && rejected == 0 {
        return None;
    }
    let what = format!(
        "{} of {} clients, {}",
        grouped(clients),
        grouped(max),
        counted(rejected, "rejected connection")
    );
    let todo = format!(
        "CONFIG SET maxclients {}, or CLIENT LIST to find clients that leak connections",
        max * 2
    );
    Some(match is_full {
        true => Finding::problem("clients", what)
            .means("New clients are rejected at maxclients.")
            .todo(todo),
        false => Finding::warning("clients", what).means("maxclients was reached.").todo(todo),
    })
}

/// Clients that do not read their replies.
fn output(facts: &ServerFacts) -> Vec<Finding> {
    let mut clients: Vec<(u64, &str, &str, &str)> = facts
        .clients
        .iter()
        .filter_map(|client| {
            let of = |name: &str| client.get(name).map_or("", String::as_str);
            let waiting = of("omem").parse::<u64>().ok()?;
            // The replication stream of a replica has its own limit.
            let is_replica = of("flags").contains('S');
            (waiting >= OUTPUT_BYTES_MIN && !is_replica)
                .then(|| (waiting, of("id"), of("addr"), of("cmd")))
        })
        .collect();
    clients.sort_unstable_by(|a, b| b.cmp(a));
    let line = |(waiting, id, address, command): &(u64, &str, &str, &str)| {
        let what = format!(
            "client {address} has {} of unread replies, last command {command}",
            bytes(*waiting as f64)
        );
        Finding::warning("clients", what)
            .means("It does not read its replies, which take memory.")
            .todo(format!("CLIENT KILL ID {id}, or CONFIG SET client-output-buffer-limit 'normal 64mb 16mb 60'"))
    };
    let mut findings: Vec<Finding> = clients.iter().take(CLIENTS_LISTED).map(line).collect();
    if clients.len() > CLIENTS_LISTED {
        let more = clients.len() - CLIENTS_LISTED;
        findings.push(Finding::warning(
            "clients",
            format!("{} with unread replies", counted(more as u64, "more client")),
        ));
    }
    findings
}

fn disconnections(facts: &ServerFacts) -> Option<Finding> {
    let output = facts.number("client_output_buffer_limit_disconnections");
    let evicted = facts.number("evicted_clients");
    (output + evicted > 0).then(|| {
        let what = format!(
            "{} closed at client-output-buffer-limit, {} at maxmemory-clients",
            counted(output, "client"),
            grouped(evicted)
        );
        Finding::warning("clients", what)
            .means("These clients have read too slowly.")
            .todo("CONFIG GET client-output-buffer-limit; the log names the clients")
    })
}

/// The slowest commands of the slow log, one line for each command.
fn slow(entries: &[SlowEntry]) -> Vec<Finding> {
    let mut commands: BTreeMap<String, (u64, &SlowEntry)> = BTreeMap::new();
    for entry in entries {
        let Some(name) = entry.words.first() else { continue };
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let (count, slowest) = commands.entry(name).or_insert((0, entry));
        *count += 1;
        if entry.us > slowest.us {
            *slowest = entry;
        }
    }
    let mut commands: Vec<(String, (u64, &SlowEntry))> = commands.into_iter().collect();
    commands.sort_by_key(|(_, (_, slowest))| std::cmp::Reverse(slowest.us));
    let line = |(name, (count, slowest)): &(String, (u64, &SlowEntry))| {
        let words: Vec<String> = slowest.words.iter().map(|word| readable(word)).collect();
        let shown = shortened(&words.join(" "), COMMAND_CHARS_MAX);
        let what = format!(
            "{} of {}, the slowest took {} ms: {shown}",
            counted(*count, "slow call"),
            name.to_uppercase(),
            grouped(slowest.us / 1000)
        );
        let alternative = ALTERNATIVES.iter().find(|(known, _)| known == name);
        let advice = alternative.map_or_else(String::new, |(_, advice)| format!("{advice}; "));
        let finding = match slowest.us >= SLOW_US_MIN {
            true => Finding::warning("slow", what).means("Other clients wait for a slow command."),
            false => Finding::note("slow", what),
        };
        finding.todo(format!("{advice}SLOWLOG GET 10 lists the calls, SLOWLOG RESET clears them"))
    };
    commands.iter().take(SLOW_LISTED).map(line).collect()
}

fn latency(facts: &ServerFacts) -> Vec<Finding> {
    let late = facts.latency.iter().filter(|event| event.max_ms >= LATENCY_MS_MIN);
    late.map(|event| {
        Finding::warning(
            "latency",
            format!("event {} took up to {} ms", event.name, grouped(event.max_ms)),
        )
        .means("Clients may have waited for it.")
        .todo(format!("LATENCY DOCTOR, LATENCY HISTORY {}", event.name))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::facts::LatencyEvent;
    use super::super::facts::tests::facts;
    use super::*;
    use brisk_findings::Severity;

    #[test]
    fn full_servers_and_rejected_connections_are_reported() {
        let severity = |info| connections(&facts(info, &[])).map(|found| found.severity);
        assert_eq!(severity("connected_clients:95 maxclients:100"), Some(Severity::Problem));
        assert_eq!(
            severity("connected_clients:5 maxclients:100 rejected_connections:1"),
            Some(Severity::Warning)
        );
        assert_eq!(severity("connected_clients:5 maxclients:100"), None);
        assert!(disconnections(&facts("evicted_clients:1", &[])).is_some());
    }

    #[test]
    fn only_the_clients_with_the_most_unread_replies_are_listed() {
        let mut facts = facts("", &[]);
        let client = |id: u64, omem: u64, flags: &str| {
            let fields = [
                ("id", id.to_string()),
                ("addr", format!("h:{id}")),
                ("omem", omem.to_string()),
                ("flags", flags.to_owned()),
                ("cmd", "get".to_owned()),
            ];
            fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
        };
        facts.clients = (1..=7).map(|id| client(id, id << 20, "N")).collect();
        facts.clients.extend([client(8, 9 << 20, "S"), client(9, 5, "N")]);
        let found = output(&facts);
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].what, "client h:7 has 7.0 MiB of unread replies, last command get");
        assert!(found[0].todo.starts_with("CLIENT KILL ID 7, "));
        assert_eq!(found[5].what, "2 more clients with unread replies");
    }

    #[test]
    fn slow_commands_are_grouped() {
        let entry = |us, line: &str| SlowEntry {
            us,
            words: line.split(' ').map(|word| word.as_bytes().to_vec()).collect(),
            ..SlowEntry::default()
        };
        let found =
            slow(&[entry(20_000, "get a"), entry(150_000, "keys *"), entry(300_000, "KEYS a*")]);
        assert_eq!(
            found.iter().map(|found| found.severity).collect::<Vec<_>>(),
            [Severity::Warning, Severity::Note]
        );
        assert_eq!(found[0].what, "2 slow calls of KEYS, the slowest took 300 ms: KEYS a*");
        assert!(found[0].todo.starts_with("use SCAN instead of KEYS; "));
    }

    #[test]
    fn long_events_are_warnings() {
        let mut facts = facts("", &[]);
        let event = |name: &str, max_ms| LatencyEvent { name: name.to_owned(), max_ms };
        facts.latency = vec![event("fork", 500), event("command", 20)];
        assert_eq!(latency(&facts).len(), 1);
    }
}
