//! `top`: the load of a server, once a second, with a table of its commands, clients, slow log, keys or workers. On a
//! terminal, the screen is live and has keys. Otherwise one table is printed, or as many as `--count` says.
//!
//! | file | about |
//! |---|---|
//! | here | the loop, and the keys |
//! | `terminal.rs` | the terminal: raw mode, keys, signals |
//! | `sample.rs` | the metrics at one instant, those of the last minute, and rates between two |
//! | `header.rs` | the lines above the table |
//! | `rows.rs`, `slow_log.rs`, `keys.rs` | the rows of the tables |
//! | `table.rs` | sorting a table, and its lines |
//! | `view.rs` | the whole screen |

mod header;
mod keys;
mod rows;
mod sample;
mod slow_log;
mod table;
mod terminal;
mod view;

use self::keys::KeysThread;
use self::sample::{History, Interval, RATES_TIME, ROWS_TIME, Sample};
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

/// Names a connection of this program in CLIENT LIST.
const SET_NAME: [&str; 3] = ["CLIENT", "SETNAME", "brisk-cli-top"];

/// The tables in the order of the Tab key.
const TABLES: [TopTable; 5] =
    [TopTable::Commands, TopTable::Clients, TopTable::SlowLog, TopTable::Keys, TopTable::Workers];

impl TopTable {
    fn columns(self) -> &'static [Column] {
        match self {
            TopTable::Commands => rows::COMMANDS,
            TopTable::Clients => rows::CLIENTS,
            TopTable::SlowLog => slow_log::SLOW_LOG,
            TopTable::Keys => keys::KEYS,
            TopTable::Workers => rows::WORKERS,
        }
    }

    /// The column by which the table is sorted first: the load, the age or the memory.
    fn sorting(self) -> Sorting {
        let column = match self {
            TopTable::Commands => 3,
            TopTable::Clients => 5,
            TopTable::SlowLog => 0,
            TopTable::Keys => 3,
            TopTable::Workers => 2,
        };
        Sorting { column, is_reversed: false }
    }

    /// The table of an interval. The keys are found separately.
    fn of(self, interval: &Interval<'_>) -> Table {
        match self {
            TopTable::Commands => rows::commands(interval, interval),
            TopTable::Clients => rows::clients(interval),
            TopTable::SlowLog => slow_log::table(interval.now),
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
    let kind = options.top_table;
    let lost = |error: LinkError| error.to_string();
    // A server may reject the name.
    link.request(&SET_NAME).map_err(lost)?;
    let mut take = || -> Result<Sample, String> {
        let replies = link.request_all(&Sample::requests(kind)).map_err(lost)?;
        Sample::of(kind, &replies)
    };
    let mut before = take()?;
    for round in 0..options.rounds.unwrap_or(1) {
        if round > 0 {
            screen::print("\n");
        }
        pause::pause(time);
        let now = take()?;
        let interval = Interval { before: &before, now: &now };
        let mut table = match kind {
            TopTable::Keys => keys::once(options)?,
            kind => kind.of(&interval),
        };
        table.sort(kind.sorting(), ROWS_PRINTED);
        let title = std::mem::take(&mut table.title);
        let lines = header::lines(&interval, place).into_iter().chain([title]);
        let columns =
            if screen::is_terminal() { RawTerminal::size().columns } else { COLUMNS_PRINTED };
        for line in lines.chain(table.lines(kind.sorting(), columns)) {
            screen::print(format!("{line}\n"));
        }
        if !table.remarks.is_empty() {
            screen::print(format!("{}\n", table.remarks.join("; ")));
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
    kind: TopTable,
    sorting: Sorting,
    is_paused: bool,
    shows_help: bool,
    /// The last two samples.
    before: Option<Sample>,
    now: Option<Sample>,
    /// The samples before them.
    history: History,
    keys: Option<KeysThread>,
    /// The number of replies that are awaited before those of a sample.
    unrelated: usize,
    pending: Option<Pending>,
}

/// A sample that has been requested.
struct Pending {
    since: Instant,
    kind: TopTable,
    awaited: usize,
    replies: Vec<Value>,
}

impl<'a> Top<'a> {
    fn new(options: &'a Options, place: &'a str, interval: Duration) -> Top<'a> {
        let kind = options.top_table;
        Top {
            options,
            place,
            interval,
            kind,
            sorting: kind.sorting(),
            is_paused: false,
            shows_help: false,
            before: None,
            now: None,
            history: History::default(),
            keys: None,
            unrelated: 0,
            pending: None,
        }
    }

    /// Updates the screen until the user quits, a signal arrives, or the connection fails.
    fn run(&mut self, link: &mut Link) -> Result<(), String> {
        let terminal = RawTerminal::open().map_err(|error| crate::link::plain(&error))?;
        // The screen does not wait for the reply, because the server may be stalled.
        link.send(&SET_NAME).map_err(|error| error.to_string())?;
        self.unrelated = 1;
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
            let shown = (self.kind, self.is_paused);
            for key in events.keys {
                if !self.press(key) {
                    return Ok(());
                }
            }
            if shown != (self.kind, self.is_paused) {
                next = Instant::now();
            }
        }
    }

    fn request(&mut self, link: &mut Link) -> LinkResult<()> {
        let kind = self.kind;
        let requests = Sample::requests(kind);
        for request in &requests {
            link.send(request)?;
        }
        let awaited = requests.len();
        self.pending = Some(Pending { since: Instant::now(), kind, awaited, replies: Vec::new() });
        if kind == TopTable::Keys {
            self.keys.get_or_insert_with(|| KeysThread::start(self.options)).request();
        } else if let Some(keys) = &mut self.keys
            && keys.progress().is_some()
        {
            // A scan continues while another table is shown.
            keys.request();
        }
        Ok(())
    }

    /// Reads the replies that have arrived.
    fn receive(&mut self, link: &mut Link) -> Result<(), String> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let failed = |error: LinkError| error.to_string();
        while let Some(value) = link.reply_within(Duration::ZERO).map_err(failed)? {
            match value {
                Value::Push(_) => {}
                _ if self.unrelated > 0 => self.unrelated -= 1,
                value => pending.replies.push(value),
            }
        }
        if pending.replies.len() < pending.awaited {
            return Ok(());
        }
        let sample = Sample::of(pending.kind, &pending.replies)?;
        self.pending = None;
        if self.now.as_ref().is_some_and(|now| sample.is_reset_since(now)) {
            // The increases of the counters are unknown.
            (self.before, self.now, self.history) = (None, None, History::default());
        }
        let before = self.now.replace(sample);
        if let Some(older) = std::mem::replace(&mut self.before, before) {
            self.history.add(older);
        }
        Ok(())
    }

    /// Applies a key. Returns false if the user quits.
    fn press(&mut self, key: Key) -> bool {
        let last = self.kind.columns().len() - 1;
        let was_help = std::mem::take(&mut self.shows_help);
        match key {
            Key::Letter('q' | '\x03') => return false,
            Key::Escape if !was_help => return false,
            Key::Letter('c') => self.switch(TopTable::Commands),
            Key::Letter('l') => self.switch(TopTable::Clients),
            Key::Letter('s') => self.switch(TopTable::SlowLog),
            Key::Letter('k') => self.switch(TopTable::Keys),
            Key::Letter('w') => self.switch(TopTable::Workers),
            Key::Letter('\t') => self.switch(self.kind.next()),
            Key::Letter('<') | Key::Left => {
                self.sorting.column = self.sorting.column.checked_sub(1).unwrap_or(last);
            }
            Key::Letter('>') | Key::Right => {
                self.sorting.column = (self.sorting.column + 1) % (last + 1);
            }
            Key::Letter('r') => self.sorting.is_reversed = !self.sorting.is_reversed,
            Key::Letter('p') => self.is_paused = !self.is_paused,
            Key::Letter('?' | 'h') => self.shows_help = !was_help,
            Key::Letter(_) | Key::Escape => {}
        }
        true
    }

    fn switch(&mut self, kind: TopTable) {
        if self.kind != kind {
            self.kind = kind;
            self.sorting = kind.sorting();
        }
    }

    fn draw(&self) {
        let late = self.pending.as_ref().map_or(Duration::ZERO, |pending| pending.since.elapsed());
        let interval = match (&self.before, &self.now) {
            (Some(before), Some(now)) => Some(Interval { before, now }),
            _ => None,
        };
        let mut table = match (&interval, self.kind, &self.keys) {
            (_, TopTable::Keys, Some(keys)) => keys.table().unwrap_or_else(|text| {
                let mut table = Table::new(keys::KEYS);
                table.remarks.push(format!("Keys cannot be sampled: {text}"));
                table
            }),
            (Some(interval), TopTable::Commands, _) => {
                let longer = |time| self.history.longer(interval, time);
                rows::commands(&longer(RATES_TIME), &longer(ROWS_TIME))
            }
            (Some(interval), kind, _) => kind.of(interval),
            (None, kind, _) => Table::new(kind.columns()),
        };
        if self.kind != TopTable::Keys
            && let Some(progress) = self.keys.as_ref().and_then(KeysThread::progress)
        {
            table.remarks.insert(0, format!("keys: {progress}"));
        }
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
