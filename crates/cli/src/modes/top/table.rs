//! A table with columns that can be sorted by any of them. At most as many rows as fit the screen are sorted.

use crate::amount;
use std::cmp::Ordering;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) is_number: bool,
}

impl Column {
    pub(super) const fn text(name: &'static str) -> Column {
        Column { name, is_number: false }
    }

    pub(super) const fn number(name: &'static str) -> Column {
        Column { name, is_number: true }
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
    pub(super) rows: Vec<Vec<Cell>>,
    /// A line below the table: a reason why it is empty, or a remark.
    pub(super) remark: String,
}

impl Table {
    pub(super) fn new(columns: &'static [Column]) -> Table {
        Table { columns, rows: Vec::new(), remark: String::new() }
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
        let mut widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        fit(&mut widths, self.columns, columns);
        let line = |cells: Vec<&str>| {
            let mut line = String::new();
            for ((cell, width), column) in cells.into_iter().zip(&widths).zip(self.columns) {
                let cell = amount::shortened(cell, *width);
                line.push_str(&match column.is_number {
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
}

/// The narrowest text column, if the others leave no room.
const TEXT_COLUMNS_MIN: usize = 12;

/// Reduces the widths of the widest text columns until the table fits.
fn fit(widths: &mut [usize], kinds: &[Column], columns: usize) {
    loop {
        let total: usize = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
        let texts = (0..widths.len()).filter(|at| !kinds[*at].is_number);
        let Some(widest) = texts.max_by_key(|at| widths[*at]) else { return };
        if total <= columns || widths[widest] <= TEXT_COLUMNS_MIN {
            return;
        }
        widths[widest] -= 1;
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
    fn missing_cells_come_last() {
        let mut sorted = table(&[("a", 1.0)]);
        sorted.rows.insert(0, vec![Cell::Text("b".to_owned()), Cell::Missing]);
        sorted.sort(Sorting { column: 1, is_reversed: false }, 9);
        assert_eq!(sorted.rows[1][1].shown(), "-");
    }
}
