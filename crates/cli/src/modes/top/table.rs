//! A table with columns that can be sorted by any of them. At most as many rows as fit the screen are sorted.

use crate::amount;
use std::cmp::Ordering;
use std::time::Duration;

/// The width to which texts may be shortened in a narrow window, unless the column sets a different one.
const TEXT_WIDTH_MIN: usize = 12;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    name: &'static str,
    is_number: bool,
    /// Cells are never shortened to less than this.
    width_min: usize,
    /// If the window is too narrow, the columns with the highest rank are dropped first.
    rank: u8,
}

impl Column {
    pub(super) const fn text(name: &'static str) -> Column {
        Column { name, is_number: false, width_min: TEXT_WIDTH_MIN, rank: 0 }
    }

    pub(super) const fn number(name: &'static str) -> Column {
        Column { name, is_number: true, width_min: usize::MAX, rank: 0 }
    }

    /// Sets the width to which texts may be shortened.
    pub(super) const fn at_least(self, width_min: usize) -> Column {
        Column { width_min, ..self }
    }

    /// Sets how early the column is dropped if the window is too narrow: the highest rank first.
    pub(super) const fn dropped(self, rank: u8) -> Column {
        Column { rank, ..self }
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    /// A number and its text.
    Number(f64, String),
    /// The server does not report it.
    Missing,
}

impl Cell {
    pub(super) fn rate(number: f64) -> Cell {
        Cell::Number(number, amount::rate(number))
    }

    pub(super) fn bytes(number: f64) -> Cell {
        Cell::Number(number, amount::bytes(number))
    }

    pub(super) fn percent(number: f64) -> Cell {
        Cell::Number(number, format!("{number:.1} %"))
    }

    pub(super) fn count(number: u64) -> Cell {
        Cell::Number(number as f64, amount::grouped(number))
    }

    pub(super) fn shown(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Number(_, text) => text,
            Cell::Missing => "-",
        }
    }

    /// The order in which cells are shown: numbers from large to small, texts from A to Z, missing cells last.
    fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Number(a, _), Cell::Number(b, _)) => b.total_cmp(a),
            (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
            (Cell::Missing, Cell::Missing) => Ordering::Equal,
            (Cell::Missing, _) => Ordering::Greater,
            (_, Cell::Missing) => Ordering::Less,
            (Cell::Number(..), Cell::Text(_)) => Ordering::Less,
            (Cell::Text(_), Cell::Number(..)) => Ordering::Greater,
        }
    }
}

/// The column by which a table is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sorting {
    pub(super) column: usize,
    pub(super) is_reversed: bool,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: &'static [Column],
    /// The line above the heading: what the rows are. It may be empty.
    pub(super) title: String,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The parts of the line below the table, the most important first.
    pub(super) remarks: Vec<String>,
}

impl Table {
    pub(super) fn new(columns: &'static [Column]) -> Table {
        Table { columns, title: String::new(), rows: Vec::new(), remarks: Vec::new() }
    }

    /// Sorts the rows, and keeps only the first `limit`. Returns the number of rows before. O(rows + limit·log limit).
    pub(super) fn sort(&mut self, sorting: Sorting, limit: usize) -> usize {
        let total = self.rows.len();
        let order = |a: &Vec<Cell>, b: &Vec<Cell>| {
            let (one, other) = (a.get(sorting.column), b.get(sorting.column));
            let by_column = match (one, other) {
                (Some(one), Some(other)) => one.order(other),
                _ => Ordering::Equal,
            };
            let by_column = if sorting.is_reversed { by_column.reverse() } else { by_column };
            // The first column makes the order of equal rows stable between two updates.
            by_column.then_with(|| match (a.first(), b.first()) {
                (Some(a), Some(b)) => a.order(b),
                _ => Ordering::Equal,
            })
        };
        if limit == 0 {
            self.rows.clear();
        } else if total > limit {
            self.rows.select_nth_unstable_by(limit - 1, order);
            self.rows.truncate(limit);
        }
        self.rows.sort_unstable_by(order);
        total
    }

    /// The heading and the rows as lines of at most `columns` columns. The sort column is marked.
    pub(super) fn lines(&self, sorting: Sorting, columns: usize) -> Vec<String> {
        let mark = |at: usize| match (at == sorting.column, sorting.is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let heading: Vec<String> = (0..self.columns.len())
            .map(|at| format!("{}{}", self.columns[at].name, mark(at)))
            .collect();
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let widest = cells.map(|cell| cell.shown().chars().count()).max().unwrap_or(0);
            // The mark may move to this column, so there is always room for it.
            widest.max(self.columns[at].name.chars().count() + 1)
        };
        let shown = self.fit((0..self.columns.len()).map(width).collect(), sorting, columns);
        let line = |cells: Vec<&str>| {
            let mut line = String::new();
            for &(at, width) in &shown {
                let cell = cells.get(at).copied().unwrap_or_default();
                let cell = amount::shortened(cell, width);
                line.push_str(&match self.columns[at].is_number {
                    true => format!("{cell:>width$}  "),
                    false => format!("{cell:<width$}  "),
                });
            }
            line.trim_end().chars().take(columns).collect::<String>()
        };
        let heading = line(heading.iter().map(String::as_str).collect());
        let rows = self.rows.iter().map(|row| line(row.iter().map(Cell::shown).collect()));
        [heading].into_iter().chain(rows).collect()
    }

    /// The columns that are shown, and their widths. Columns are dropped until the others fit with their smallest
    /// widths; then the widest texts are shortened.
    fn fit(&self, mut widths: Vec<usize>, sorting: Sorting, columns: usize) -> Vec<(usize, usize)> {
        let width_min = |at: usize| self.columns[at].width_min;
        let mut kept: Vec<usize> = (0..widths.len()).collect();
        while line_width(kept.iter().map(|&at| widths[at].min(width_min(at)))) > columns {
            // The first column names the row, and the sort column explains the order of the rows.
            let others = kept.iter().copied().filter(|&at| at > 0 && at != sorting.column);
            // Of several columns with the highest rank, this is the rightmost.
            let Some(dropped) = others.max_by_key(|&at| self.columns[at].rank) else { break };
            kept.retain(|&at| at != dropped);
        }
        while line_width(kept.iter().map(|&at| widths[at])) > columns {
            let long = kept.iter().copied().filter(|&at| widths[at] > width_min(at));
            let Some(widest) = long.max_by_key(|&at| widths[at]) else { break };
            widths[widest] -= 1;
        }
        kept.into_iter().map(|at| (at, widths[at])).collect()
    }
}

/// The width of a line with columns of these widths.
fn line_width(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

/// A duration in its largest unit.
pub(super) fn rough_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[Column::text("name"), Column::number("calls/s")];

    fn table(rows: &[(&str, f64)]) -> Table {
        let mut table = Table::new(COLUMNS);
        table.rows = rows
            .iter()
            .map(|(name, rate)| vec![Cell::Text((*name).to_owned()), Cell::rate(*rate)])
            .collect();
        table
    }

    #[test]
    fn only_the_first_rows_are_kept_and_equal_rows_keep_their_order() {
        let mut sorted = table(&[("a", 1.0), ("c", 5.0), ("b", 5.0), ("d", 0.0)]);
        let by_rate = Sorting { column: 1, is_reversed: false };
        assert_eq!(sorted.sort(by_rate, 3), 4);
        assert_eq!(
            sorted.lines(by_rate, 80),
            ["name   calls/s▼", "b          5.00", "c          5.00", "a          1.00"]
        );
        let mut sorted = table(&[("a", 1.0), ("c", 5.0)]);
        let reversed = Sorting { column: 0, is_reversed: true };
        sorted.sort(reversed, 9);
        assert_eq!(sorted.lines(reversed, 80)[1..], ["c          5.00", "a          1.00"]);
        sorted.sort(reversed, 0);
        assert!(sorted.rows.is_empty());
    }

    #[test]
    fn long_texts_are_shortened_and_no_line_is_wider_than_the_window() {
        let rows = table(&[("a name that is long", 1.0)]);
        let sorting = Sorting { column: 0, is_reversed: false };
        assert_eq!(rows.lines(sorting, 22)[1], "a name that…      1.00");
        assert!(rows.lines(sorting, 5).iter().all(|line| line.chars().count() <= 5));
    }

    #[test]
    fn whole_columns_are_dropped_before_texts_are_shortened() {
        const WIDE: &[Column] = &[
            Column::text("address").at_least(usize::MAX),
            Column::text("user").dropped(2),
            Column::number("rate"),
            Column::number("idle").dropped(1),
        ];
        let mut rows = Table::new(WIDE);
        let text = |text: &str| Cell::Text(text.to_owned());
        rows.rows =
            vec![vec![text("127.0.0.1:50000"), text("default"), Cell::rate(7.0), Cell::rate(1.0)]];
        let by = |column| Sorting { column, is_reversed: false };
        let heading = |column, columns| rows.lines(by(column), columns)[0].clone();
        assert_eq!(heading(2, 38), "address          user     rate▼   idle");
        assert_eq!(heading(2, 37), "address          rate▼   idle");
        assert_eq!(heading(2, 28), "address          rate▼");
        // The sort column and the first column are never dropped.
        assert_eq!(heading(1, 28), "address          user▼");
        assert_eq!(rows.lines(by(2), 22)[1], "127.0.0.1:50000   7.00");
    }

    #[test]
    fn durations_have_one_unit() {
        let of = |seconds| rough_duration(Duration::from_secs(seconds));
        assert_eq!([of(59), of(119), of(7300), of(200_000)], ["59 s", "1 min", "2 h", "2 d"]);
    }

    #[test]
    fn missing_cells_come_last() {
        let mut sorted = table(&[("a", 1.0)]);
        sorted.rows.insert(0, vec![Cell::Text("b".to_owned()), Cell::Missing]);
        sorted.sort(Sorting { column: 1, is_reversed: false }, 9);
        assert_eq!(sorted.rows[1][1].shown(), "-");
    }
}
