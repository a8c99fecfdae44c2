//! The table of the slow log: the commands that took long, and the clients that sent them.

use super::sample::Sample;
use super::table::{Cell, Column, Table, rough_duration};
use crate::amount;
use crate::slowlog::SlowEntry;
use brisk_resp::Value;
use std::time::Duration;

pub(super) const SLOW_LOG: &[Column] = &[
    Column::number("age"),
    Column::number("ms"),
    Column::text("command").at_least(20),
    Column::text("client").at_least(usize::MAX).dropped(1),
    Column::text("name").at_least(16).dropped(2),
];

/// Parses the reply to SLOWLOG GET.
///
/// # Errors
/// The error of the server.
pub(super) fn parse(reply: &Value) -> Result<Vec<SlowEntry>, String> {
    match reply.as_slice() {
        Some(entries) => Ok(entries.iter().filter_map(SlowEntry::parse).collect()),
        None => {
            let text = reply.as_error().unwrap_or(b"unexpected reply");
            Err(String::from_utf8_lossy(text).into_owned())
        }
    }
}

/// The entries, newest first if the table is sorted by age.
pub(super) fn table(sample: &Sample) -> Table {
    let mut table = Table::new(SLOW_LOG);
    let entries = match &sample.slow_log {
        Some(Ok(entries)) => entries,
        Some(Err(text)) => {
            table.remarks.push(format!("The server rejects SLOWLOG: {text}"));
            return table;
        }
        // The table has just been chosen.
        None => return table,
    };
    let now = sample.info.decimal("server_time_usec") as i64 / 1_000_000;
    for entry in entries {
        let words: Vec<String> = entry.words.iter().map(|word| amount::readable(word)).collect();
        let age = u64::try_from(now.saturating_sub(entry.unix_seconds)).unwrap_or(0);
        let age = match now {
            // Old servers do not report their time.
            0 => "-".to_owned(),
            _ => rough_duration(Duration::from_secs(age)),
        };
        table.rows.push(vec![
            // The newest entry has the highest number.
            Cell::Number(entry.id as f64, age),
            Cell::rate(entry.us as f64 / 1000.0),
            Cell::Text(words.join(" ")),
            Cell::Text(entry.address.clone()),
            Cell::Text(entry.name.clone()),
        ]);
    }
    table.remarks.push(match entries.len() {
        0 => "The slow log is empty; its threshold is slowlog-log-slower-than.".to_owned(),
        count => format!("newest {} of the slow log", amount::counted(count as u64, "command")),
    });
    table
}

#[cfg(test)]
mod tests {
    use super::super::table::Sorting;
    use super::*;
    use crate::options::TopTable;

    fn sample(slow_log: Value) -> Sample {
        let info = Value::Bulk(b"server_time_usec:1000090000000\r\n".to_vec());
        Sample::of(TopTable::SlowLog, &[info, slow_log]).expect("INFO is a text")
    }

    #[test]
    fn the_newest_command_comes_first_with_its_arguments_and_client() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let entry = |id, at, us, words: &[&str]| {
            Value::Array(vec![
                Value::Integer(id),
                Value::Integer(at),
                Value::Integer(us),
                Value::Array(words.iter().map(|word| bulk(word)).collect()),
                bulk("127.0.0.1:50000"),
                bulk("backoffice"),
            ])
        };
        let entries = vec![
            entry(7, 1_000_000, 5_740_000, &["SORT", "audit:log", "ALPHA"]),
            entry(8, 1_000_085, 15_200, &["GET", "a\n"]),
        ];
        let mut rows = table(&sample(Value::Array(entries)));
        let by_age = Sorting { column: 0, is_reversed: false };
        rows.sort(by_age, 9);
        assert_eq!(
            rows.lines(by_age, 80),
            [
                " age▼     ms  command               client           name",
                "  5 s   15.2  GET \"a\\n\"             127.0.0.1:50000  backoffice",
                "1 min  5,740  SORT audit:log ALPHA  127.0.0.1:50000  backoffice",
            ]
        );
        let by_duration = Sorting { column: 1, is_reversed: false };
        rows.sort(by_duration, 9);
        assert!(rows.lines(by_duration, 80)[1].contains("SORT"));
    }

    #[test]
    fn an_empty_or_rejected_slow_log_has_a_remark() {
        assert!(table(&sample(Value::Array(Vec::new()))).remarks[0].contains("is empty"));
        let rejected = table(&sample(Value::Error(b"NOPERM no".to_vec())));
        assert_eq!(rejected.remarks, ["The server rejects SLOWLOG: NOPERM no"]);
    }
}
