//! Generates calls from argument trees: valid calls, and valid calls with a mistake added.

use super::listener;
use super::rules::{self, How};
use super::settings;
use super::table::{Row, Table};
use super::values;
use brisk_engine::command::{Arg, ArgKind, Flags, Group};
use brisk_engine::keyspec::find_keys;
use brisk_testkit::random::Random;

/// One command of a stream.
#[derive(Debug, Clone)]
pub struct Call {
    /// Index in the table; out of range for an invented name.
    pub row: usize,
    pub words: Vec<Vec<u8>>,
    pub by: By,
}

/// Which session of a stream sends a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    First,
    /// The second session, between two calls of the first.
    Second,
    /// The session that listens to channels; see [`super::listener`].
    Listener,
}

impl Call {
    /// The command that both servers run afterwards without comparing the replies; see [`rules::resynced`].
    pub fn resync(&self, name: &str) -> Option<Vec<&[u8]>> {
        if let Some(met) = rules::consumer_met(name, &self.words) {
            return Some(met);
        }
        let keys = rules::resynced(name, &self.words);
        (!keys.is_empty()).then(|| [vec![&b"DEL"[..]], keys].concat())
    }
}

/// Calls that belong together: a single call, or a transaction from MULTI to EXEC with the preceding WATCH and the
/// calls of another session in between. Shrinking keeps or drops a unit as a whole.
pub type Unit = Vec<Call>;

/// The maximum number of calls to generate until one names a key. Possibly no call names one, because a reference table
/// has no key specifications.
const WATCHED_TRIES_MAX: usize = 100;

/// Maximum number of repetitions of a repeatable argument.
const REPEATS_MAX: usize = 150;

/// Makes the stream of one episode.
#[derive(Debug)]
pub struct Generator<'t> {
    pub(super) table: &'t Table,
    /// Rows to draw from, each with the cumulative weight up to it.
    drawn: Vec<(usize, u32)>,
    /// Rows without subcommands, as arguments for COMMAND. Containers are left out because the servers support
    /// different subcommands.
    plain: Vec<usize>,
    /// True if the table has MULTI and EXEC.
    transactions: bool,
    /// True if the table has EVAL and SCRIPT.
    scripts: bool,
    /// True if scripts call more than one command.
    pub(super) composes: bool,
    /// True if the table has FCALL and FUNCTION.
    pub(super) functions: bool,
    /// True if the table has PUBLISH and SUBSCRIBE.
    channels: bool,
    pub(super) random: Random,
}

impl<'t> Generator<'t> {
    /// A generator for the admitted rows of `table`. Panics if there are none.
    pub fn new(table: &'t Table, random: Random) -> Generator<'t> {
        Generator::drawing(table, random, rules::admitted)
    }

    /// A generator for all rows of `table`, for calls that are not run.
    pub fn of_all(table: &'t Table, random: Random) -> Generator<'t> {
        Generator::drawing(table, random, |_| true)
    }

    /// The arguments of one call.
    pub fn words(&mut self) -> Vec<Vec<u8>> {
        self.call().words
    }

    /// Sets whether scripts call several commands, or only one.
    pub fn composes_scripts(&mut self, composes: bool) {
        self.composes = composes && self.scripts;
    }

    /// Makes a stream without scripts.
    pub fn leave_out_scripts(&mut self) {
        (self.scripts, self.composes) = (false, false);
    }

    fn drawing(table: &'t Table, random: Random, admits: fn(&str) -> bool) -> Generator<'t> {
        let mut sum = 0;
        let mut drawn = Vec::new();
        for (i, row) in table.rows.iter().enumerate() {
            if admits(&row.name) && !rules::is_missing(row.spec) {
                sum += rules::weight(&row.name);
                drawn.push((i, sum));
            }
        }
        assert!(!drawn.is_empty(), "the table has no command that may appear in a stream");
        let has = |name: &str| table.rows.iter().any(|row| row.name == name);
        let contains = |row: &Row| {
            let start = format!("{}|", row.name);
            table.rows.iter().any(|other| other.name.starts_with(&start))
        };
        let plain =
            |&i: &usize| !contains(&table.rows[i]) && !rules::is_missing(table.rows[i].spec);
        let plain = (0..table.rows.len()).filter(plain).collect();
        let transactions = has("multi") && has("exec");
        let scripts = has("eval") && has("script|load");
        let functions = has("fcall") && has("function|load");
        let channels = has("publish") && has("subscribe");
        let composes = scripts;
        Generator {
            table,
            drawn,
            plain,
            transactions,
            scripts,
            composes,
            functions,
            channels,
            random,
        }
    }

    /// Units that contain at least `commands` commands in total.
    pub fn units(&mut self, commands: usize) -> Vec<Unit> {
        let mut units = Vec::new();
        let mut made = 0;
        while made < commands {
            let unit = match self.random.below(100) {
                0 if self.transactions => self.transaction(),
                1 if self.transactions => self.watched_transaction(),
                2 | 3 if self.scripts => self.script(),
                4 if self.channels => self.listening(),
                _ => vec![self.call()],
            };
            made += unit.len();
            units.push(unit);
        }
        units
    }

    /// A unit in which the listener subscribes or unsubscribes, and a message is published.
    fn listening(&mut self) -> Unit {
        let words = listener::command(&mut self.random);
        let mut unit = vec![Call { row: usize::MAX, words, by: By::Listener }];
        for _ in 0..self.random.below(3) {
            let name = if self.random.percent(60) { "publish" } else { "spublish" };
            let channel = listener::channel(&mut self.random);
            let message = values::text(&mut self.random);
            let by = if self.random.percent(70) { By::First } else { By::Second };
            unit.push(Call { by, ..self.fixed(name, &[&channel, &message]) });
        }
        unit
    }

    fn transaction(&mut self) -> Unit {
        let mut unit = vec![self.fixed("multi", &[])];
        for _ in 0..self.random.below(8) {
            let scripted = self.composes && self.random.percent(10);
            let call = if scripted { self.eval() } else { self.call() };
            // EXEC's reply contains the replies of the queued commands, and must be comparable byte for byte.
            let name = self.table.rows.get(call.row).map_or("", |row| row.name.as_str());
            let exact = rules::comparison(name, &call.words) == How::Exact;
            if exact && rules::prelude(name).is_none() && call.resync(name).is_none() {
                unit.push(call);
            }
        }
        let last = if self.random.percent(85) { "exec" } else { "discard" };
        unit.push(self.fixed(last, &[]));
        unit
    }

    /// One session watches a key, and another runs a command that names the key. The following transaction shows
    /// whether the command changed the key.
    fn watched_transaction(&mut self) -> Unit {
        let found = (0..WATCHED_TRIES_MAX).find_map(|_| {
            let call = self.call();
            let row = self.table.rows.get(call.row)?;
            // A command whose result is resynchronized without comparison, or that chooses at random, may change the
            // key on only one server.
            let certain = !matches!(rules::comparison(&row.name, &call.words), How::Kind)
                && rules::resynced(&row.name, &call.words).is_empty()
                && !rules::notifies_differently(&row.name)
                && rules::prelude(&row.name).is_none();
            let word = |at: usize| &call.words[at][..];
            let found = find_keys(row.spec, call.words.len(), &word).unwrap_or_default();
            if !certain || found.is_empty() {
                return None;
            }
            let key = word(self.random.pick(&found).index).to_vec();
            Some((call, key))
        });
        let Some((changing, watched)) = found else { return self.transaction() };
        let db = if self.random.percent(90) { "0" } else { "1" };
        let second = |call: Call| Call { by: By::Second, ..call };
        let mut unit = vec![
            self.fixed("select", &[db.as_bytes()]),
            second(self.fixed("select", &[db.as_bytes()])),
            self.fixed("watch", &[&watched]),
            second(changing),
        ];
        unit.extend(self.transaction());
        unit
    }

    /// A call of a command or subcommand with these arguments.
    pub(super) fn fixed(&self, name: &str, arguments: &[&[u8]]) -> Call {
        let row = self.table.rows.iter().position(|row| row.name == name).unwrap_or(usize::MAX);
        let mut words: Vec<Vec<u8>> =
            name.to_ascii_uppercase().split('|').map(|word| word.as_bytes().to_vec()).collect();
        words.extend(arguments.iter().map(|word| word.to_vec()));
        Call { row, words, by: By::First }
    }

    fn draw(&mut self) -> usize {
        let total = self.drawn.last().map_or(0, |last| last.1);
        let point = self.random.below(total as usize) as u32;
        self.drawn[self.drawn.partition_point(|&(_, sum)| sum <= point)].0
    }

    pub(super) fn call(&mut self) -> Call {
        if self.random.below(500) == 0 {
            let words = vec![b"nosuch".to_vec(), values::text(&mut self.random)];
            return Call { row: usize::MAX, words, by: By::First };
        }
        let index = self.draw();
        let row: &Row = &self.table.rows[index];
        let mut words: Vec<Vec<u8>> = Vec::with_capacity(8);
        for word in &row.words {
            words.push(self.cased(word));
        }
        let named = words.len();
        if !self.special(&row.name, &mut words) {
            self.list(row.spec.args, row.spec.group, &mut words);
        }
        if self.random.percent(18) {
            self.mutate(named, &mut words);
        }
        if row.spec.args.is_empty() && row.spec.flags.contains(Flags::BLOCKING) {
            words.truncate(named); // the position of its timeout is unknown
        }
        rules::guard_call(&row.name, &mut words, &mut self.random);
        Call { row: index, words, by: By::First }
    }

    /// Adds the arguments of commands whose argument tree is not specific enough. Returns false for all other commands.
    fn special(&mut self, name: &str, words: &mut Vec<Vec<u8>>) -> bool {
        match name {
            "command|getkeys" | "command|getkeysandflags" => loop {
                let inner = self.call();
                // Avoid COMMAND, whose arguments could nest forever.
                if !inner.words[0].eq_ignore_ascii_case(b"COMMAND") {
                    words.extend(inner.words);
                    break;
                }
            },
            "command|info" => {
                for _ in 0..self.repeats() {
                    let at = *self.random.pick(&self.plain);
                    let name = self.table.rows[at].name.clone();
                    words.push(self.cased(&name));
                }
            }
            "publish" | "spublish" => {
                words.push(listener::channel(&mut self.random));
                words.push(values::text(&mut self.random));
            }
            "config|get" => {
                (0..self.repeats()).for_each(|_| words.push(settings::pattern(&mut self.random)));
            }
            "config|set" => {
                (0..self.repeats()).for_each(|_| words.extend(settings::pair(&mut self.random)));
            }
            _ => return false,
        }
        true
    }

    /// A known word, occasionally in mixed case.
    fn cased(&mut self, word: &str) -> Vec<u8> {
        let random = &mut self.random;
        match random.below(20) {
            0 => word
                .bytes()
                .map(|b| {
                    if random.percent(50) { b.to_ascii_lowercase() } else { b.to_ascii_uppercase() }
                })
                .collect(),
            1..4 => word.to_ascii_lowercase().into_bytes(),
            _ => word.to_ascii_uppercase().into_bytes(),
        }
    }

    /// The arguments of one level, in order. Optional arguments may be in any order.
    fn list(&mut self, args: &[Arg], group: Group, out: &mut Vec<Vec<u8>>) {
        let mut order: Vec<&Arg> = args.iter().filter(|arg| !rules::newer(arg.since)).collect();
        if self.random.percent(25) {
            self.shuffle_options(&mut order);
        }
        let mut i = 0;
        while i < order.len() {
            let arg = order[i];
            let next = order.get(i + 1).filter(|next| next.multiple).copied();
            match next {
                // `numkeys key [key …]`: usually the correct number.
                Some(next) if is_count(arg) => {
                    let at = out.len();
                    out.push(Vec::new());
                    self.argument(next, group, out);
                    let count = out.len() - at - 1;
                    out[at] = if self.random.percent(92) {
                        count.to_string().into_bytes()
                    } else {
                        values::value(&mut self.random, ArgKind::Integer, arg.name, group)
                    };
                    i += 2;
                }
                // `key [key …] id [id …]`: usually the same number of keys and IDs.
                Some(next) if arg.multiple && !arg.optional && self.random.percent(95) => {
                    let n = self.repeats();
                    (0..n).for_each(|_| self.once(arg, group, out));
                    (0..n).for_each(|_| self.once(next, group, out));
                    i += 2;
                }
                _ => {
                    self.argument(arg, group, out);
                    i += 1;
                }
            }
        }
    }

    /// Shuffles every run of optional arguments.
    fn shuffle_options(&mut self, order: &mut [&Arg]) {
        for run in order.chunk_by_mut(|a, b| a.optional && b.optional) {
            for i in (1..run.len()).rev() {
                run.swap(i, self.random.below(i + 1));
            }
        }
    }

    fn argument(&mut self, arg: &Arg, group: Group, out: &mut Vec<Vec<u8>>) {
        if arg.optional && !self.random.percent(45) {
            return;
        }
        let n = if arg.multiple { self.repeats() } else { 1 };
        for i in 0..n {
            if i == 0 || arg.multiple_token {
                self.token(arg, out);
            }
            self.bare(arg, group, out);
        }
    }

    /// One occurrence of an argument, with its token.
    fn once(&mut self, arg: &Arg, group: Group, out: &mut Vec<Vec<u8>>) {
        self.token(arg, out);
        self.bare(arg, group, out);
    }

    fn token(&mut self, arg: &Arg, out: &mut Vec<Vec<u8>>) {
        // A token that consists of two words ("FOO BAR") is sent as two arguments.
        if !arg.token.is_empty() {
            for word in arg.token.split(' ') {
                let word = self.cased(word);
                out.push(word);
            }
        }
    }

    fn bare(&mut self, arg: &Arg, group: Group, out: &mut Vec<Vec<u8>>) {
        match arg.kind {
            ArgKind::Token => {}
            ArgKind::OneOf(choices) => {
                let known: Vec<&Arg> = choices.iter().filter(|c| !rules::newer(c.since)).collect();
                if !known.is_empty() {
                    let choice = *self.random.pick(&known);
                    self.once(choice, group, out);
                }
            }
            ArgKind::Block(parts) => self.list(parts, group, out),
            kind => out.push(values::value(&mut self.random, kind, arg.name, group)),
        }
    }

    fn repeats(&mut self) -> usize {
        match self.random.below(200) {
            0..110 => 1,
            110..160 => 2,
            160..185 => 3,
            185..198 => 4 + self.random.below(8),
            _ => 20 + self.random.below(REPEATS_MAX),
        }
    }

    /// Makes the call nearly valid by one change, or occasionally two.
    fn mutate(&mut self, named: usize, words: &mut Vec<Vec<u8>>) {
        let random = &mut self.random;
        for _ in 0..1 + random.below(2) {
            let args = words.len() - named;
            let at = named + random.below(args.max(1));
            match random.below(6) {
                0 if args > 0 => drop(words.remove(at)),
                1 if args > 0 => words.insert(at, words[at].clone()),
                2 => words.insert(at.min(words.len()), values::stray(random)),
                3 if args > 0 => words[at] = values::stray(random),
                4 if args > 1 => {
                    let other = named + random.below(args);
                    words.swap(at, other);
                }
                5 => words.truncate(at),
                _ => words.push(values::stray(random)),
            }
        }
    }
}

fn is_count(arg: &Arg) -> bool {
    matches!(arg.kind, ArgKind::Integer) && arg.name == "numkeys" && !arg.optional
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_engine::command::Spec;
    use brisk_testkit::words::line;

    static SINTERCARD: Spec = Spec {
        name: "sintercard",
        group: Group::Set,
        arity: -3,
        args: &[
            Arg::integer("numkeys"),
            Arg::key("key").multiple(),
            Arg::integer("limit").after("LIMIT").optional(),
        ],
        ..Spec::EMPTY
    };
    static EXPIRE: Spec = Spec {
        name: "expire",
        arity: -3,
        args: &[
            Arg::key("key"),
            Arg::integer("seconds"),
            Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")]).optional(),
        ],
        ..Spec::EMPTY
    };

    fn table() -> Table {
        let mut table = Table::default();
        table.add_spec(&SINTERCARD);
        table.add_spec(&EXPIRE);
        table
    }

    fn lines(seed: u64) -> Vec<String> {
        let table = table();
        let mut generator = Generator::new(&table, Random::new(seed));
        generator.units(500).iter().flatten().map(|call| line(&call.words)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        assert_eq!(lines(7), lines(7));
        assert_ne!(lines(7), lines(8));
    }

    #[test]
    fn most_counts_are_correct_and_most_options_follow_the_tree() {
        let lines = lines(3);
        let counted: Vec<&String> =
            lines.iter().filter(|l| l.to_uppercase().starts_with("SINTERCARD ")).collect();
        let honest = counted.iter().filter(|l| {
            let words: Vec<&str> = l.split(' ').collect();
            let keys = words[2..].iter().take_while(|w| !w.eq_ignore_ascii_case("limit")).count();
            words[1].parse() == Ok(keys)
        });
        assert!(honest.count() * 10 > counted.len() * 6);
        assert!(lines.iter().any(|l| l.contains(" LIMIT ")));
        assert!(lines.iter().any(|l| l.starts_with("EXPIRE") && l.ends_with(" XX")));
    }

    #[test]
    fn no_expiry_time_is_in_the_near_future() {
        for text in lines(11) {
            let words: Vec<&str> = text.split(' ').collect();
            if words[0].eq_ignore_ascii_case("expire") && !text.contains('"') && words.len() > 2 {
                let seconds = words[2].parse::<i64>().unwrap_or(0);
                assert!(seconds <= 0 || seconds >= 100_000, "{text}");
            }
        }
    }
}
