//! The rows of the tables of commands, clients and workers.

use super::sample::Interval;
use super::table::{Cell, Column, Table};
use crate::amount;
use crate::info::part;
use std::collections::HashMap;
use std::time::Duration;

pub(super) const COMMANDS: &[Column] = &[
    Column::text("command").at_least(20),
    Column::number("calls/s"),
    Column::number("µs/call"),
    Column::number("time"),
    Column::number("failed/s").dropped(2),
    Column::number("rejected/s").dropped(3),
    Column::number("p99 µs").dropped(1),
];

pub(super) const CLIENTS: &[Column] = &[
    // CLIENT KILL needs the whole address.
    Column::text("address").at_least(usize::MAX),
    Column::text("name").at_least(16),
    Column::text("user").dropped(7),
    Column::number("db").dropped(6),
    Column::text("command").dropped(1),
    Column::number("commands/s"),
    Column::number("in/s").dropped(5),
    Column::number("out/s").dropped(4),
    Column::number("memory").dropped(2),
    Column::number("idle").dropped(3),
];

pub(super) const WORKERS: &[Column] = &[
    Column::text("worker"),
    Column::number("commands/s"),
    Column::number("busy"),
    Column::number("execute"),
    Column::number("network"),
    Column::number("background"),
    Column::number("requests/batch"),
    Column::number("syscalls/s"),
    Column::number("conflicts/s"),
    Column::number("stalls/s"),
];

/// The commands that were called, failed or were rejected in the long interval, with the rates of the short one.
pub(super) fn commands(short: &Interval<'_>, long: &Interval<'_>) -> Table {
    let mut table = Table::new(COMMANDS);
    let seconds = short.seconds();
    table.title = format!(
        "averages of the last {} s; p99 since the start of the server",
        if seconds < 1.0 { amount::rate(seconds) } else { format!("{seconds:.0}") }
    );
    let mut total_us = 0.0;
    let mut found = Vec::new();
    for (name, _) in short.now.info.with_prefix("cmdstat_") {
        let field = format!("cmdstat_{name}");
        let of = |part| short.part_increase(&field, part);
        let (calls, us, failed, rejected) =
            (of("calls"), of("usec"), of("failed_calls"), of("rejected_calls"));
        total_us += us;
        let was_used = |part: &&str| long.part_increase(&field, part) > 0.0;
        if ["calls", "failed_calls", "rejected_calls"].iter().any(was_used) {
            found.push((name, calls, us, failed, rejected));
        }
    }
    for (name, calls, us, failed, rejected) in found {
        let percentiles = short.now.info.get(&format!("latency_percentiles_usec_{name}"));
        let p99 = percentiles.and_then(|text| part(text, "p99")).and_then(|text| text.parse().ok());
        table.rows.push(vec![
            Cell::Text(name.replace('|', " ")),
            Cell::rate(calls / seconds),
            if calls > 0.0 { Cell::rate(us / calls) } else { Cell::Missing },
            Cell::percent(100.0 * us / total_us.max(1.0)),
            Cell::rate(failed / seconds),
            Cell::rate(rejected / seconds),
            p99.map_or(Cell::Missing, Cell::rate),
        ]);
    }
    if table.rows.is_empty() {
        table.remarks.push("No command was called.".to_owned());
    }
    table
}

/// The clients, with the rates that Brisk and Valkey 8 report.
pub(super) fn clients(interval: &Interval<'_>) -> Table {
    let mut table = Table::new(CLIENTS);
    let seconds = interval.seconds();
    let before: HashMap<&str, _> =
        interval.before.clients.iter().map(|client| (client.text("id"), client)).collect();
    for client in &interval.now.clients {
        let rate = |field: &str| {
            let now = client.number(field)?;
            let earlier = match before.get(client.text("id")) {
                Some(client) => client.number(field)?,
                // The clients have not been listed before this interval.
                None if before.is_empty() => return None,
                // A new client has begun in this interval with zero.
                None => 0,
            };
            Some(now.saturating_sub(earlier) as f64 / seconds)
        };
        let rate_cell = |field| rate(field).map_or(Cell::Missing, Cell::rate);
        let bytes_cell = |field| rate(field).map_or(Cell::Missing, Cell::bytes);
        let number = |field| client.number(field).map_or(Cell::Missing, Cell::count);
        let idle = client.number("idle");
        let is_own = client.number("id").is_some_and(|id| interval.now.own_id == Some(id));
        let name = if is_own { "(this top)" } else { client.text("name") };
        table.rows.push(vec![
            Cell::Text(client.text("addr").to_owned()),
            Cell::Text(name.to_owned()),
            Cell::Text(client.text("user").to_owned()),
            number("db"),
            Cell::Text(client.text("cmd").replace('|', " ")),
            rate_cell("tot-cmds"),
            bytes_cell("tot-net-in"),
            bytes_cell("tot-net-out"),
            client.number("tot-mem").map_or(Cell::Missing, |bytes| Cell::bytes(bytes as f64)),
            idle.map_or(Cell::Missing, |idle| {
                Cell::Number(idle as f64, amount::duration(Duration::from_secs(idle)))
            }),
        ]);
    }
    let has_rates = interval.now.clients.iter().any(|client| client.number("tot-cmds").is_some());
    if !has_rates && !table.rows.is_empty() {
        table.remarks.push("This server does not report the rates of a client.".to_owned());
    }
    table
}

/// The worker threads of Brisk.
pub(super) fn workers(interval: &Interval<'_>) -> Table {
    let mut table = Table::new(WORKERS);
    let seconds = interval.seconds();
    for (number, value) in worker_fields(interval) {
        let field = format!("worker{number}");
        let of = |part| interval.part_increase(&field, part);
        let percent = |us: f64| Cell::percent(100.0 * us / 1e6 / seconds);
        let network = of("us_accept") + of("us_read") + of("us_parse") + of("us_write");
        let batches = of("batches");
        let syscalls: f64 = value
            .split(',')
            .filter_map(|part| part.split_once('=').map(|(name, _)| name))
            .filter(|name| name.starts_with("syscalls_"))
            .map(of)
            .sum();
        table.rows.push(vec![
            Cell::Text(number.to_owned()),
            Cell::rate(of("commands") / seconds),
            Cell::percent(busy(interval, number)),
            percent(of("us_execute")),
            percent(network),
            percent(of("us_background")),
            if batches > 0.0 {
                Cell::rate(of("batched_requests") / batches)
            } else {
                Cell::Missing
            },
            Cell::rate(syscalls / seconds),
            Cell::rate(of("slot_conflicts") / seconds),
            Cell::rate(of("output_stalls") / seconds),
        ]);
    }
    if table.rows.is_empty() {
        table.remarks.push("This server does not report workers. Brisk does.".to_owned());
    }
    table
}

/// The fields of the workers: their numbers and values.
pub(super) fn worker_fields<'a>(
    interval: &Interval<'a>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fields = interval.now.info.with_prefix("worker");
    fields.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The percentage of the interval in which a worker did not wait.
pub(super) fn busy(interval: &Interval<'_>, worker: &str) -> f64 {
    let field = format!("worker{worker}");
    let parts = ["accept", "read", "parse", "execute", "write", "background"];
    let us: f64 = parts.iter().map(|it| interval.part_increase(&field, &format!("us_{it}"))).sum();
    100.0 * us / 1e6 / interval.seconds()
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::super::table::Sorting;
    use super::*;

    fn shown(table: &Table) -> Vec<String> {
        let row = |row: &Vec<Cell>| row.iter().map(Cell::shown).collect::<Vec<_>>().join(" | ");
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn commands_have_rates_and_shares_of_the_interval() {
        let before = sample(
            "cmdstat_get:calls=100,usec=1000,rejected_calls=0,failed_calls=0\r\n\
             cmdstat_ping:calls=9,usec=9,rejected_calls=0,failed_calls=0\r\n",
            "",
            None,
        );
        let now = sample(
            "cmdstat_get:calls=300,usec=1600,rejected_calls=0,failed_calls=4\r\n\
             cmdstat_ping:calls=9,usec=9,rejected_calls=0,failed_calls=0\r\n\
             cmdstat_client|list:calls=2,usec=200,rejected_calls=2,failed_calls=0\r\n\
             latency_percentiles_usec_get:p50=1.003,p99=7.007,p99.9=9.1\r\n",
            "",
            Some((&before, 2)),
        );
        let short = Interval { before: &before, now: &now };
        let table = commands(&short, &short);
        let rows = [
            "get | 100 | 3.00 | 75.0 % | 2.00 | 0 | 7.01",
            "client list | 1.00 | 100 | 25.0 % | 0 | 1.00 | -",
        ];
        assert_eq!(shown(&table), rows);
        assert!(table.title.starts_with("averages of the last 2 s"), "{}", table.title);
        // A command that was called earlier keeps its row.
        let earlier = sample("", "", None);
        let table = commands(&short, &Interval { before: &earlier, now: &now });
        assert_eq!(shown(&table)[1], "ping | 0 | - | 0.0 % | 0 | 0 | -");
        assert_eq!(table.rows.len(), 3);
    }

    #[test]
    fn clients_have_rates_if_the_server_counts_them() {
        let line = |id, commands| {
            format!(
                "id={id} addr=h:{id} name=n idle=70 db=1 cmd=get user=u tot-mem=2048 tot-net-in=0 tot-net-out=0 tot-cmds={commands}\n"
            )
        };
        let before = sample("", &line(1, 10), None);
        let now = sample("", &(line(1, 30) + &line(2, 8)), Some((&before, 2)));
        let table = clients(&Interval { before: &before, now: &now });
        assert_eq!(
            shown(&table),
            [
                "h:1 | n | u | 1 | get | 10.0 | 0 B | 0 B | 2.0 KiB | 1 min 10 s",
                "h:2 | (this top) | u | 1 | get | 4.00 | 0 B | 0 B | 2.0 KiB | 1 min 10 s"
            ]
        );
        let old = sample("", "id=1 addr=h:1 cmd=get\n", None);
        let table = clients(&Interval { before: &old, now: &old });
        assert_eq!(table.rows[0][5], Cell::Missing);
        assert!(!table.remarks.is_empty());
    }

    #[test]
    fn a_window_of_80_columns_shows_whole_addresses_and_names() {
        let line = "id=1 addr=127.127.127.127:50000 name=inventory-sync-1 idle=70 db=0 \
                    cmd=memory|usage user=default tot-mem=204800 tot-net-in=0 tot-net-out=0 \
                    tot-cmds=1\n";
        let before = sample("", line, None);
        let now = sample("", line, Some((&before, 1)));
        let table = clients(&Interval { before: &before, now: &now });
        let lines = table.lines(Sorting { column: 5, is_reversed: false }, 80);
        assert_eq!(
            lines,
            [
                "address                name              command       commands/s▼     memory",
                "127.127.127.127:50000  inventory-sync-1  memory usage            0  200.0 KiB",
            ]
        );
    }

    #[test]
    fn workers_have_percentages_of_the_interval() {
        let before = sample(
            "workers:1\r\nworker0:commands=0,us_execute=0,us_wait=0,batches=0,batched_requests=0\r\n",
            "",
            None,
        );
        let now = sample(
            "workers:1\r\nworker0:commands=40,us_execute=500000,us_read=250000,us_wait=9,batches=10,batched_requests=40,syscalls_send=6,syscalls_receive=4\r\n",
            "",
            Some((&before, 1)),
        );
        let table = workers(&Interval { before: &before, now: &now });
        assert_eq!(
            shown(&table),
            ["0 | 40.0 | 75.0 % | 50.0 % | 25.0 % | 0.0 % | 4.00 | 10.0 | 0 | 0"]
        );
    }
}
