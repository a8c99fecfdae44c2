//! The whole screen of `top`: header, table and key line, for the size of the window.

use super::header;
use super::sample::Interval;
use super::table::{Sorting, Table};
use super::terminal::Size;
use crate::amount::{duration, grouped};
use std::time::Duration;

/// Moves the cursor to the top left corner.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears everything below the cursor.
const CLEAR_BELOW: &str = "\x1b[J";
/// The keys, the most important first. A narrow window shows as many as fit.
const KEY_BAR: &[&str] = &[
    "q quit",
    "? help",
    "c commands",
    "l clients",
    "s slow log",
    "k keys",
    "w workers",
    "p pause",
    "< > sort",
    "r reverse",
];
const HELP: &[&str] = &[
    "c            commands: calls, time and errors, as averages of the last 10 s",
    "l            clients: CLIENT LIST, with rates if the server reports them",
    "s            slow log: slow commands, and the clients that sent them",
    "k            keys: big keys from a scan, hot keys from samples with MONITOR",
    "w            workers: the threads of Brisk",
    "Tab          next table",
    "< > ← →      sort by the previous or the next column",
    "r            reverse the order",
    "p            pause, or continue",
    "q Esc Ctrl-C quit",
    "",
    "Press any key to return.",
];

/// The content of the screen.
pub(super) struct View<'a> {
    pub(super) place: &'a str,
    pub(super) interval: Option<Interval<'a>>,
    pub(super) table: Table,
    pub(super) sorting: Sorting,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    /// How long the server has not replied, if this is long.
    pub(super) late: Option<Duration>,
}

impl View<'_> {
    /// The bytes that draw the screen.
    pub(super) fn frame(self, size: Size) -> String {
        let lines = self.lines(size);
        let mut frame = HOME.to_owned();
        for (at, line) in lines.iter().enumerate() {
            frame.push_str(if at == 0 { "" } else { "\r\n" });
            frame.push_str(line);
            frame.push_str(CLEAR_LINE);
        }
        frame.push_str(CLEAR_BELOW);
        frame
    }

    /// The lines, at most one for each row of the window.
    fn lines(mut self, size: Size) -> Vec<String> {
        let cut = |line: &str| line.chars().take(size.columns).collect::<String>();
        let mut lines = match &self.interval {
            Some(interval) => header::lines(interval, self.place).to_vec(),
            None => {
                let waiting = format!("{}  waiting for the first sample", self.place);
                vec![waiting, String::new(), String::new()]
            }
        };
        if self.is_paused {
            lines[0].insert_str(0, "PAUSED  ");
        }
        if let Some(late) = self.late {
            lines[0].insert_str(0, &format!("NO REPLY for {}  ", duration(late)));
        }
        if self.shows_help {
            lines.push(String::new());
            lines.extend(HELP.iter().map(|line| (*line).to_owned()));
        } else {
            lines.push(std::mem::take(&mut self.table.title));
            // Title, heading, remarks and key bar are not rows.
            let room = size.rows.saturating_sub(header::LINES + 4);
            let total = self.table.sort(self.sorting, room);
            let mut table = self.table.lines(self.sorting, size.columns).into_iter();
            let heading = table.next().unwrap_or_default();
            lines.push(format!("\x1b[7m{heading:<width$}\x1b[0m", width = size.columns));
            lines.extend(table);
            let mut remarks = std::mem::take(&mut self.table.remarks);
            let hidden = total - self.table.rows.len();
            if hidden > 0 {
                let more = format!("{} more rows", grouped(hidden as u64));
                remarks.insert(remarks.len().min(1), more);
            }
            if self.is_paused && total == 0 {
                remarks.insert(0, "paused: press p to continue".to_owned());
            }
            lines.push(fitting(&remarks, "; ", size.columns));
        }
        let mut lines: Vec<String> = lines
            .iter()
            .map(|line| if line.starts_with('\x1b') { line.clone() } else { cut(line) })
            .collect();
        lines.truncate(size.rows.saturating_sub(1));
        lines.resize(size.rows.saturating_sub(1), String::new());
        lines.push(cut(&fitting(KEY_BAR, "  ", size.columns)));
        lines
    }
}

/// The first parts, as many as fit this number of columns, but at least one.
fn fitting<T: AsRef<str>>(parts: &[T], separator: &str, columns: usize) -> String {
    let mut line = String::new();
    for part in parts.iter().map(AsRef::as_ref) {
        let longer = match line.is_empty() {
            true => part.to_owned(),
            false => format!("{line}{separator}{part}"),
        };
        if !line.is_empty() && longer.chars().count() > columns {
            break;
        }
        line = longer;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::super::sample::tests::sample;
    use super::super::table::Cell;
    use super::*;

    fn view(shows_help: bool) -> Vec<String> {
        let before = sample("", "", None);
        let stats: String =
            (0..50).map(|at| format!("cmdstat_c{at:02}:calls={at},usec={at}\r\n")).collect();
        let now = sample(&stats, "", Some((&before, 1)));
        let interval = Interval { before: &before, now: &now };
        let view = View {
            place: "h:1",
            interval: Some(interval),
            table: rows::commands(&interval, &interval),
            sorting: Sorting { column: 1, is_reversed: false },
            is_paused: true,
            shows_help,
            late: None,
        };
        view.lines(Size { rows: 12, columns: 60 })
    }

    #[test]
    fn the_screen_has_as_many_lines_as_the_window_and_says_how_many_rows_are_hidden() {
        let lines = view(false);
        assert_eq!(lines.len(), 12);
        assert!(lines[0].starts_with("PAUSED  "), "{lines:?}");
        assert!(lines[3].starts_with("averages of the last 1 s"), "{lines:?}");
        assert!(
            lines[4].starts_with("\x1b[7mcommand") && lines[4].contains("calls/s▼"),
            "{lines:?}"
        );
        assert!(lines[5].starts_with("c49 ") && lines[9].starts_with("c45 "), "{lines:?}");
        assert_eq!(lines[10], "44 more rows");
        assert_eq!(lines[11], "q quit  ? help  c commands  l clients  s slow log  k keys");
        assert!(view(true)[4].starts_with("c            commands"));
    }

    #[test]
    fn the_first_remarks_and_keys_fit_80_columns() {
        assert!(fitting(KEY_BAR, "  ", 80).ends_with("  p pause"));
        assert!(HELP.iter().all(|line| line.chars().count() <= 80));
        let paused = |rows: usize| {
            let mut table = Table::new(rows::COMMANDS);
            table.rows = vec![vec![Cell::rate(1.0)]; rows];
            table.remarks = vec!["first".to_owned(), "second ".repeat(10)];
            let view = View {
                place: "h:1",
                interval: None,
                table,
                sorting: Sorting { column: 0, is_reversed: false },
                is_paused: true,
                shows_help: false,
                late: None,
            };
            view.lines(Size { rows: 24, columns: 80 })
        };
        assert_eq!(paused(30)[22], "first; 13 more rows");
        assert_eq!(paused(0)[5], "paused: press p to continue; first");
    }
}
