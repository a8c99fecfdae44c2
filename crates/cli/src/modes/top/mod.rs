//! `top`: the load of a server, once a second, with a table of its commands, clients, keys or workers. On a terminal,
//! the screen is live and has keys. Otherwise one table is printed, or as many as `--count` says.
//!
//! | file | about |
//! |---|---|
//! | here | the loop, and the keys |
//! | `terminal.rs` | the terminal: raw mode, keys, signals |
//! | `sample.rs` | the metrics at one instant, and rates between two |
//! | `header.rs` | the lines above the table |
//! | `rows.rs`, `keys.rs` | the rows of the tables |
//! | `table.rs` | sorting a table, and its lines |
//! | `view.rs` | the whole screen |

mod header;
mod keys;
mod rows;
mod sample;
mod table;
mod terminal;
mod view;

use self::keys::KeysThread;
use self::sample::{Interval, Sample};
use self::table::{Column, Sorting, Table};
use self::terminal::{Key, RawTerminal};
use self::view::View;
use super::LinkResult;
use crate::link::{Link, LinkError};
use crate::options::{Options, TopTable};
use crate::session::Session;
use crate::{pause, screen};
use brisk_resp::Value;
use rustix::{stdio, termios};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of rows outside of a terminal.
const ROWS_PRINTED: usize = 100;
/// Maximum number of columns outside of a terminal.
const COLUMNS_PRINTED: usize = 200;

/// The tables in the order of the Tab key.
const TABLES: [TopTable; 4] =
    [TopTable::Commands, TopTable::Clients, TopTable::Keys, TopTable::Workers];

impl TopTable {
    fn columns(self) -> &'static [Column] {
        match self {
            TopTable::Commands => rows::COMMANDS,
            TopTable::Clients => rows::CLIENTS,
            TopTable::Keys => keys::KEYS,
            TopTable::Workers => rows::WORKERS,
        }
    }

    /// The column that shows the load, by which the table is sorted first.
    fn sorting(self) -> Sorting {
        let column = match self {
            TopTable::Commands => 3,
            TopTable::Clients => 5,
            TopTable::Keys => 2,
            TopTable::Workers => 2,
        };
        Sorting { column, is_reversed: false }
    }

    /// The table of an interval. The keys are found separately.
    fn of(self, interval: &Interval<'_>) -> Table {
        match self {
            TopTable::Commands => rows::commands(interval),
            TopTable::Clients => rows::clients(interval),
            TopTable::Workers => rows::workers(interval),
            TopTable::Keys => Table::new(keys::KEYS),
        }
    }

    fn next(self) -> TopTable {
        let at = TABLES.iter().position(|table| *table == self).unwrap_or(0);
        TABLES[(at + 1) % TABLES.len()]
    }
}

pub(super) fn run(session: &mut Session) -> i32 {
    let place = session.place().to_string();
    let Some(mut link) = session.take_link() else { return 1 };
    let options = &session.options;
    let interval = match options.interval_us {
        0 => INTERVAL,
        interval => Duration::from_micros(interval),
    };
    let is_live =
        screen::is_terminal() && termios::isatty(stdio::stdin()) && options.rounds.is_none();
    let done = match is_live {
        true => Top::new(options, &place, interval).run(&mut link),
        false => print(&mut link, options, &place, interval),
    };
    match done {
        Ok(()) => 0,
        Err(text) => {
            screen::flush();
            screen::warn(format!("Error: {text}\n"));
            1
        }
    }
}

/// Prints tables, one after each interval.
fn print(link: &mut Link, options: &Options, place: &str, time: Duration) -> Result<(), String> {
    let table = options.top_table;
    let mut take = || -> Result<Sample, String> {
        let requests = Sample::requests(table == TopTable::Clients);
        let replies = link.request_all(&requests).map_err(|error| error.to_string())?;
        Sample::of(&replies)
    };
    let mut before = take()?;
    for round in 0..options.rounds.unwrap_or(1) {
        if round > 0 {
            screen::print("\n");
        }
        pause::pause(time);
        let now = take()?;
        let interval = Interval { before: &before, now: &now };
        let mut rows = match table {
            TopTable::Keys => keys::once(options)?,
            table => table.of(&interval),
        };
        rows.sort(table.sorting(), ROWS_PRINTED);
        let lines = header::lines(&interval, place).into_iter().chain([String::new()]);
        let columns =
            if screen::is_terminal() { RawTerminal::size().columns } else { COLUMNS_PRINTED };
        for line in lines.chain(rows.lines(table.sorting(), columns)) {
            screen::print(format!("{line}\n"));
        }
        if !rows.remark.is_empty() {
            screen::print(format!("{}\n", rows.remark));
        }
        screen::flush();
        before = now;
    }
    Ok(())
}

/// The live screen.
struct Top<'a> {
    options: &'a Options,
    place: &'a str,
    interval: Duration,
    table: TopTable,
    sorting: Sorting,
    is_paused: bool,
    shows_help: bool,
    /// The last two samples.
    before: Option<Sample>,
    now: Option<Sample>,
    keys: Option<KeysThread>,
    pending: Option<Pending>,
}

/// A sample that has been requested.
struct Pending {
    since: Instant,
    awaited: usize,
    replies: Vec<Value>,
}

impl<'a> Top<'a> {
    fn new(options: &'a Options, place: &'a str, interval: Duration) -> Top<'a> {
        let table = options.top_table;
        Top {
            options,
            place,
            interval,
            table,
            sorting: table.sorting(),
            is_paused: false,
            shows_help: false,
            before: None,
            now: None,
            keys: None,
            pending: None,
        }
    }

    /// Updates the screen until the user quits, a signal arrives, or the connection fails.
    fn run(&mut self, link: &mut Link) -> Result<(), String> {
        let terminal = RawTerminal::open().map_err(|error| crate::link::plain(&error))?;
        let mut next = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next && self.pending.is_none() && !self.is_paused {
                self.request(link).map_err(|error| error.to_string())?;
                // The first rates are shown early.
                let soon = if self.now.is_none() {
                    self.interval.min(INTERVAL / 4)
                } else {
                    self.interval
                };
                next = now + soon;
            }
            self.draw();
            // A paused screen has nothing to update. A late reply is shown as such.
            let wait = match (&self.pending, self.is_paused) {
                (Some(_), _) | (None, true) => INTERVAL,
                (None, false) => next.saturating_duration_since(Instant::now()),
            };
            let awaited = self.pending.is_some().then_some(&mut *link);
            let events =
                terminal.wait(awaited, wait).map_err(|error| crate::link::plain(&error))?;
            if let Some(signal) = events.signal {
                drop(terminal);
                // As in other programs, the exit status says which signal it was.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                return Ok(());
            }
            if events.is_closed {
                return Ok(());
            }
            if events.has_data {
                self.receive(link)?;
            }
            let shown = (self.table, self.is_paused);
            for key in events.keys {
                if !self.press(key) {
                    return Ok(());
                }
            }
            if shown != (self.table, self.is_paused) {
                next = Instant::now();
            }
        }
    }

    fn request(&mut self, link: &mut Link) -> LinkResult<()> {
        let requests = Sample::requests(self.table == TopTable::Clients);
        for request in &requests {
            link.send(request)?;
        }
        let awaited = requests.len();
        self.pending = Some(Pending { since: Instant::now(), awaited, replies: Vec::new() });
        if self.table == TopTable::Keys {
            self.keys.get_or_insert_with(|| KeysThread::start(self.options)).request();
        }
        Ok(())
    }

    /// Reads the replies that have arrived.
    fn receive(&mut self, link: &mut Link) -> Result<(), String> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let failed = |error: LinkError| error.to_string();
        while let Some(value) = link.reply_within(Duration::ZERO).map_err(failed)? {
            if !matches!(value, Value::Push(_)) {
                pending.replies.push(value);
            }
        }
        if pending.replies.len() < pending.awaited {
            return Ok(());
        }
        let sample = Sample::of(&pending.replies)?;
        self.pending = None;
        self.before = self.now.replace(sample);
        Ok(())
    }

    /// Applies a key. Returns false if the user quits.
    fn press(&mut self, key: Key) -> bool {
        let last = self.table.columns().len() - 1;
        let was_help = std::mem::take(&mut self.shows_help);
        match key {
            Key::Letter('q' | '\x03') => return false,
            Key::Escape if !was_help => return false,
            Key::Letter('c') => self.switch(TopTable::Commands),
            Key::Letter('l') => self.switch(TopTable::Clients),
            Key::Letter('k') => self.switch(TopTable::Keys),
            Key::Letter('w') => self.switch(TopTable::Workers),
            Key::Letter('\t') => self.switch(self.table.next()),
            Key::Letter('<') | Key::Left => {
                self.sorting.column = self.sorting.column.checked_sub(1).unwrap_or(last);
            }
            Key::Letter('>') | Key::Right => {
                self.sorting.column = (self.sorting.column + 1) % (last + 1);
            }
            Key::Letter('r') => self.sorting.is_reversed = !self.sorting.is_reversed,
            Key::Letter('p') => self.is_paused = !self.is_paused,
            Key::Letter('?') => self.shows_help = !was_help,
            Key::Letter(_) | Key::Escape => {}
        }
        true
    }

    fn switch(&mut self, table: TopTable) {
        if self.table != table {
            self.table = table;
            self.sorting = table.sorting();
        }
    }

    fn draw(&self) {
        let late = self.pending.as_ref().map_or(Duration::ZERO, |pending| pending.since.elapsed());
        let interval = match (&self.before, &self.now) {
            (Some(before), Some(now)) => Some(Interval { before, now }),
            _ => None,
        };
        let table = match (&interval, self.table, &self.keys) {
            (_, TopTable::Keys, Some(keys)) => keys.table().unwrap_or_else(|text| {
                let mut table = Table::new(keys::KEYS);
                table.remark = format!("Keys cannot be sampled: {text}");
                table
            }),
            (Some(interval), table, _) => table.of(interval),
            (None, table, _) => Table::new(table.columns()),
        };
        let view = View {
            place: self.place,
            interval,
            table,
            sorting: self.sorting,
            is_paused: self.is_paused,
            shows_help: self.shows_help,
            late: (late > INTERVAL * 2).then_some(late),
        };
        screen::print(view.frame(RawTerminal::size()));
    }
}
