//! Locks, access control and COMMAND GETKEYS know every key that a command uses, regardless of the names and the order
//! of its arguments. (S5)
//!
//! Arguments are generated for every data command. Keys, groups, consumers and elements have the names of options, and
//! options are repeated and reordered. The server itself reports the use of a key whose slot is not locked. To detect
//! undeclared keys in a locked slot too, keys that a user may not access contain a secret: no command of that user may
//! return the secret or change these keys.

use brisk_engine::command::{Arg, ArgKind, Flags, KeyFlags, Spec};
use brisk_engine::commands;
use brisk_engine::keyspec;
use brisk_engine::testing::Db;
use brisk_testkit::random::Random;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::words::line;
use brisk_testkit::{Conn, Launch, assert_reply};
use std::collections::BTreeMap;

/// The error if a command uses a key that it does not declare.
const REFUSED: &str = "internal error";

/// The value of the keys that the user may not access.
const SECRET: &str = "s3cr3t";

/// Arguments that come before or after keys, or that the generator uses as names.
const WORDS: &[&str] = &[
    "STREAMS",
    "streams",
    "Streams",
    "STORE",
    "store",
    "STOREDIST",
    "StoreDist",
    "KEYS",
    "keys",
    "GROUP",
    "group",
    "COUNT",
    "count",
    "BLOCK",
    "NOACK",
    "BY",
    "by",
    "GET",
    "get",
    "LIMIT",
    "AUTH",
    "auth",
    "AUTH2",
    "COPY",
    "REPLACE",
    "WEIGHTS",
    "AGGREGATE",
    "ANY",
    "ASC",
    "WITHDIST",
];

/// Keys of all types. The braces put some keys with different names in one slot.
const NAMES: &[&str] = &["k", "l", "{STREAMS}x", "{store}x", "{k}streams", "{k}store", "{keys}x"];

/// A command, and its container.
struct Row {
    spec: &'static Spec,
    parent: Option<&'static Spec>,
}

impl Row {
    fn full_name(&self) -> String {
        match self.parent {
            Some(parent) => format!("{}|{}", parent.name, self.spec.name),
            None => self.spec.name.to_owned(),
        }
    }
}

/// Valid values for certain arguments.
const VALUES: &[(&[&str], &[&str])] = &[
    (&["id", "ID", "start", "stop", "end", "min", "max", "last-id", "threshold"], BOUNDS),
    (&["operation"], &["AND", "OR", "xor", "NOT"]),
    (&["min-idle-time"], &["0", "1"]),
    (&["group", "groupname"], GROUPS),
];
const BOUNDS: &[&str] = &["0", ">", "$", "1-1", "-", "+", "[a", "1", "9-9"];

/// Reports whether only the command's parser knows which arguments are keys.
fn has_keys_after_options(row: &Row) -> bool {
    row.spec.keys.iter().any(|keys| keys.finder.is_some())
}

/// All data commands that name keys. Those with keys after options are repeated `weight` times.
fn drawn(rows: &[Row], weight: usize) -> impl Iterator<Item = &Row> {
    let times = move |row: &Row| if has_keys_after_options(row) { weight } else { 1 };
    rows.iter().flat_map(move |row| std::iter::repeat_n(row, times(row)))
}

/// All data commands.
fn all_data_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for command in commands::all() {
        rows.push(Row { spec: &command.spec, parent: None });
        for part in command.subcommands {
            rows.push(Row { spec: &part.spec, parent: Some(&command.spec) });
        }
    }
    rows
}

/// All data commands that name keys.
fn rows() -> Vec<Row> {
    let mut rows = all_data_rows();
    rows.retain(|row| !row.spec.keys.is_empty());
    rows
}

/// Generates arguments from the argument trees of commands.
struct Generator {
    random: Random,
    /// Names of keys, in addition to the option names.
    names: &'static [&'static str],
}

impl Generator {
    fn call(&mut self, row: &Row) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = row.parent.iter().map(|parent| parent.name.into()).collect();
        words.push(row.spec.name.into());
        let first = words.len();
        self.list(row.spec.args, &mut words);
        // The host argument is not changed, so that no name lookup delays the test.
        let first = if row.spec.name == "migrate" { 3 } else { first };
        if self.random.percent(20) && words.len() > first {
            let at = first + self.random.below(words.len() - first);
            match self.random.below(4) {
                0 => drop(words.remove(at)),
                1 => words.insert(at, words[at].clone()),
                2 => words.insert(at, self.name()),
                _ => words[at] = self.name(),
            }
        }
        words
    }

    fn name(&mut self) -> Vec<u8> {
        let pool = if self.random.percent(40) { WORDS } else { self.names };
        self.random.pick(pool).as_bytes().to_vec()
    }

    fn key(&mut self) -> Vec<u8> {
        let pool = if self.random.percent(15) { WORDS } else { self.names };
        self.random.pick(pool).as_bytes().to_vec()
    }

    fn list(&mut self, args: &[Arg], out: &mut Vec<Vec<u8>>) {
        let mut order: Vec<&Arg> = Vec::new();
        // Consecutive options are reordered, and some are repeated.
        let may_move = |arg: &Arg| arg.optional || arg.token == "GROUP";
        for run in args.chunk_by(|a, b| may_move(a) && may_move(b)) {
            let first = order.len();
            order.extend(run);
            if may_move(&run[0]) && self.random.percent(70) {
                let keys: Vec<&Arg> =
                    run.iter().filter(|arg| matches!(arg.kind, ArgKind::Key)).collect();
                for _ in 0..self.random.below(3) {
                    let any = keys.is_empty() || self.random.percent(30);
                    order.push(if any { self.random.pick(run) } else { *self.random.pick(&keys) });
                }
                for at in (first + 1..order.len()).rev() {
                    order.swap(at, first + self.random.below(at - first + 1));
                }
            }
        }
        let mut at = 0;
        while at < order.len() {
            let arg = order[at];
            match order.get(at + 1) {
                Some(next) if arg.name == "numkeys" && next.multiple => {
                    let count_at = out.len();
                    out.push(Vec::new());
                    self.argument(next, out);
                    let wrong = usize::from(self.random.percent(5));
                    let count = out.len() - count_at - 1 + wrong;
                    out[count_at] = count.to_string().into_bytes();
                    at += 1;
                }
                Some(next) if arg.multiple && next.multiple && !arg.optional => {
                    let count = 1 + self.random.below(2);
                    (0..count).for_each(|_| self.bare(arg, out));
                    (0..count).for_each(|_| self.bare(next, out));
                    at += 1;
                }
                // Options without a value are rarer, because most of them exclude other options.
                _ if arg.optional
                    && self.random.percent(if matches!(arg.kind, ArgKind::Token) {
                        85
                    } else {
                        40
                    }) => {}
                _ => self.argument(arg, out),
            }
            at += 1;
        }
    }

    fn argument(&mut self, arg: &Arg, out: &mut Vec<Vec<u8>>) {
        let count = if arg.multiple { 1 + self.random.below(3) } else { 1 };
        for at in 0..count {
            if !arg.token.is_empty() && (at == 0 || arg.multiple_token) {
                for word in arg.token.split(' ') {
                    let word = if self.random.percent(50) { word } else { &word.to_lowercase() };
                    out.push(word.as_bytes().to_vec());
                }
            }
            self.bare(arg, out);
        }
    }

    fn bare(&mut self, arg: &Arg, out: &mut Vec<Vec<u8>>) {
        let number = |random: &mut Random| random.pick(&["0", "1", "2", "-1"]).as_bytes().to_vec();
        match arg.kind {
            ArgKind::Token => {}
            ArgKind::OneOf(choices) => {
                let choice = self.random.pick(choices);
                self.argument(choice, out);
            }
            ArgKind::Block(parts) => self.list(parts, out),
            _ if arg.name == "host" => out.push(b"127.0.0.1".to_vec()),
            // A port on which no server listens.
            _ if arg.name == "port" => out.push(b"1".to_vec()),
            _ if let Some((_, values)) =
                VALUES.iter().find(|(names, _)| names.contains(&arg.name))
                && self.random.percent(90) =>
            {
                out.push(self.random.pick(values).as_bytes().to_vec());
            }
            ArgKind::Integer | ArgKind::Double | ArgKind::UnixTime => {
                // Sometimes an argument that looks like an option.
                let word =
                    if self.random.percent(4) { self.name() } else { number(&mut self.random) };
                out.push(word);
            }
            ArgKind::Key => out.push(self.key()),
            ArgKind::String | ArgKind::Pattern => out.push(self.name()),
        }
    }
}

/// The commands that create a key of each type under a name.
fn make(name: &str, value: &str) -> [Vec<String>; 9] {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    [
        words(&["SET", name, value]),
        words(&["RPUSH", name, value, "2", "3"]),
        words(&["SADD", name, value, "2"]),
        words(&["HSET", name, value, value, "f", value]),
        words(&["GEOADD", name, "0", "0", value, "0", "0", "m"]),
        words(&["XADD", name, "1-1", value, value]),
        words(&["PFADD", name, value]),
        // Stream commands have the most options, so there are more streams.
        words(&["XADD", name, "2-1", value, value]),
        words(&["XADD", name, "3-1", value, value]),
    ]
}

/// The command that creates key number `at`. In every second round all keys have one type, so that
/// commands find keys of their type.
fn kind_of(name: &str, value: &str, at: usize, round: usize) -> Vec<String> {
    let made = make(name, value);
    let kind = if round.is_multiple_of(2) { round / 2 } else { at + round };
    made[kind % made.len()].clone()
}

/// Groups with the names of options.
const GROUPS: &[&str] = &["STREAMS", "streams", "GROUP", "COUNT", "k", "g"];

#[test]
fn no_command_uses_a_key_that_it_does_not_declare() {
    let rows = rows();
    let mut generator = Generator { random: Random::new(5), names: NAMES };
    let mut db = Db::new();
    // The number of accepted calls of each command.
    let mut accepted: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0..ROUNDS {
        if round % 4 == 0 {
            populate(&mut db, round / 4);
        }
        for row in drawn(&rows, 6) {
            let words = generator.call(row);
            if row.spec.name == "migrate" {
                continue; // MIGRATE would connect.
            }
            // Any of its arguments may be a key.
            let mut names: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            names.sort_unstable();
            names.dedup();
            let before = contents(&mut db, row, &names);
            let reply = db.run_args(&words);
            assert!(!reply.contains(REFUSED), "{}\n{reply}", line(&words));
            if !reply.starts_with("(error)") {
                *accepted.entry(row.full_name()).or_default() += 1;
            }
            let after = contents(&mut db, row, &names);
            let word = |at: usize| &words[at][..];
            let found = keyspec::find_keys(row.spec, words.len(), &word).unwrap_or_default();
            let is_declared = |name: &[u8]| {
                found.iter().any(|key| word(key.index) == name && is_write(row, key.flags))
            };
            for (name, (before, after)) in names.iter().zip(before.iter().zip(&after)) {
                let (what, name_shown) = (line(&words), name.escape_ascii());
                let declared = before == after || is_declared(name);
                assert!(declared, "{what} changes {name_shown}, not as declared");
            }
        }
    }
    // Nearly all commands must have been executed, not only rejected.
    let never: Vec<String> =
        rows.iter().map(Row::full_name).filter(|name| !accepted.contains_key(name)).collect();
    assert!(never.len() * 12 < rows.len(), "arguments of these were never accepted: {never:?}");
}

/// Number of calls of each command.
const ROUNDS: usize = 150;

/// Reports whether a key with these flags may be changed. Redis does not count a group as part of its stream.
fn is_write(row: &Row, flags: KeyFlags) -> bool {
    flags.intersects(KeyFlags::RW.union(KeyFlags::OW).union(KeyFlags::RM))
        || row.spec.name == "xreadgroup"
}

fn all_names() -> Vec<&'static str> {
    NAMES.iter().chain(WORDS).copied().collect()
}

/// Creates a key of some type under every name.
fn populate(db: &mut Db, round: usize) {
    db.run("FLUSHALL");
    for (at, name) in all_names().into_iter().enumerate() {
        let made = kind_of(name, "v", at, round);
        db.run_args(&made);
        for group in GROUPS.iter().filter(|_| made[0] == "XADD") {
            db.run_args(&["XGROUP", "CREATE", name, *group, "0"]);
        }
    }
}

/// The content of each key, if the command may change data.
fn contents(db: &mut Db, row: &Row, names: &[&[u8]]) -> Vec<String> {
    let writes = Flags::WRITE.union(Flags::MAY_REPLICATE);
    let names = names.iter().filter(|_| row.spec.flags.intersects(writes));
    let mut show = |name: &[u8]| {
        db.run_args(&[&b"DUMP"[..], name]) + &db.run_args(&[&b"PEXPIRETIME"[..], name])
    };
    names.map(|name| show(name)).collect()
}

/// How a command is sent to the server.
#[derive(Clone, Copy)]
enum Sent {
    Plainly,
    InTransaction,
    ByScript,
}

/// Sends a command. Returns its reply, extracted from that of EXEC or EVAL if necessary.
fn send(conn: &mut Conn, how: Sent, words: &[Vec<u8>]) -> String {
    match how {
        Sent::Plainly => conn.call(words).to_string(),
        Sent::InTransaction => {
            conn.cmd("MULTI");
            let queued = conn.call(words).to_string();
            queued + &conn.cmd("EXEC").to_string()
        }
        Sent::ByScript => {
            let call = [b"EVAL".to_vec(), CALL.into(), b"0".to_vec()];
            conn.call(&[&call, words].concat()).to_string()
        }
    }
}

const CALL: &str = "return redis.call(unpack(ARGV))";
const EACH_WAY: [Sent; 3] = [Sent::Plainly, Sent::InTransaction, Sent::ByScript];

/// Reports whether the user may access a key.
fn is_allowed(name: &str) -> bool {
    name.starts_with("ok") || name.starts_with('s')
}

/// Names that share slots with one another.
const SOME_ALLOWED: &[&str] = &[
    "ok1",
    "ok2",
    "ok3",
    "ok{STREAMS}",
    "ok{streams}",
    "ok{store}",
    "ok{k}",
    "ok{keys}",
    "k",
    "{STREAMS}x",
];

/// Number of calls between two checks of the keys that must not change.
const LOOK_EVERY: usize = 8;

#[test]
fn no_user_reads_or_changes_keys_beyond_its_patterns() {
    if subject_is_redis() {
        return; // 7.0 lets some commands do so.
    }
    let server = Launch::subject().set("enable-debug-command", "yes").start();
    let [mut admin, mut user] = server.connections();
    admin.cmd("ACL SETUSER u on nopass +@all ~ok* ~s*");
    user.cmd("AUTH u x");
    let forbidden = || SOME_ALLOWED.iter().chain(WORDS).filter(|name| !is_allowed(name));
    let look =
        ["DEBUG", "DIGEST-VALUE"].into_iter().chain(forbidden().copied()).collect::<Vec<_>>();
    let rows = rows();
    let mut generator = Generator { random: Random::new(9), names: SOME_ALLOWED };
    let mut judged: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for round in 0..45 {
        admin.cmd("FLUSHALL");
        for (at, name) in SOME_ALLOWED.iter().chain(WORDS).enumerate() {
            let value = if is_allowed(name) { "v" } else { SECRET };
            let made = kind_of(name, value, at, round);
            admin.call(&made);
            for group in GROUPS.iter().filter(|_| made[0] == "XADD") {
                admin.cmd(&format!("XGROUP CREATE {name} {group} 0"));
            }
        }
        let before = admin.call(&look).to_string();
        let mut latest = Vec::new();
        for row in drawn(&rows, 30) {
            // Blocking commands do not block in a transaction or a script.
            let ways = if row.spec.flags.contains(Flags::BLOCKING) { 1..3 } else { 0..3 };
            let how = EACH_WAY[ways.start + generator.random.below(ways.len())];
            let words = generator.call(row);
            let reply = send(&mut user, how, &words);
            let what = line(&words);
            assert!(!reply.contains(SECRET), "{what} shows what it must not:\n{reply}");
            assert!(!reply.contains(REFUSED), "{what}\n{reply}");
            let (allowed, refused) = judged.entry(row.full_name()).or_default();
            *allowed += u32::from(!reply.contains("(error)"));
            *refused += u32::from(reply.contains("NOPERM") || reply.contains("ACL failure"));
            latest.push(what);
            if latest.len() == LOOK_EVERY {
                assert_eq!(admin.call(&look).to_string(), before, "after {latest:#?}");
                latest.clear();
            }
        }
        assert_eq!(admin.call(&look).to_string(), before, "after {latest:#?}");
    }
    for name in ["xread", "xreadgroup", "georadius", "georadiusbymember", "sort"] {
        let (allowed, refused) = judged[name];
        assert!(allowed > 0 && refused > 0, "{name}: {allowed} allowed, {refused} refused");
    }
    assert!(!server.log().contains("Internal error"), "{}", server.log());
}

/// The expected replies are those of Redis 7.0.15.
#[test]
fn groups_consumers_and_keys_may_have_the_names_of_options() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    let read = "1) 1) \"s\"\n   2) 1) 1) \"1-0\"\n         2) 1) \"a\"\n            2) \"b\"";
    let no_group = |key: &str, group: &str| {
        let text = "NOGROUP No such key";
        let tail = "in XREADGROUP with GROUP option";
        format!("(error) {text} '{key}' or consumer group '{group}' {tail}")
    };
    for (command, want) in [
        ("XREADGROUP COUNT 1 GROUP g streams STREAMS s >", read.to_owned()),
        ("XREADGROUP GROUP STREAMS ok STREAMS s >", read.to_owned()),
        ("XREADGROUP GROUP g STREAMS STREAMS s >", read.to_owned()),
        ("XREADGROUP GROUP g streams streams s >", read.to_owned()),
        ("XREADGROUP NOACK GROUP STREAMS c STREAMS s >", read.to_owned()),
        ("XREADGROUP COUNT 1 GROUP STREAMS ok STREAMS s >", read.to_owned()),
        ("XREADGROUP COUNT 1 COUNT 2 GROUP STREAMS STREAMS STREAMS s >", read.to_owned()),
        ("XREADGROUP BLOCK 1 GROUP STREAMS c STREAMS s >", read.to_owned()),
        ("XREADGROUP GROUP g NOACK STREAMS s >", read.to_owned()),
        ("XREADGROUP COUNT 1 GROUP g streams STREAMS none >", no_group("none", "g")),
        ("XREADGROUP GROUP g c STREAMS STREAMS >", no_group("STREAMS", "g")),
        ("XREADGROUP GROUP GROUP GROUP STREAMS s >", no_group("s", "GROUP")),
        ("XREAD COUNT 1 COUNT 2 STREAMS s 0", read.to_owned()),
        ("XREAD STREAMS STREAMS STREAMS 0 0", "(nil)".to_owned()),
        ("XREAD BLOCK 1 COUNT 1 STREAMS streams 0", "(nil)".to_owned()),
        ("GEORADIUS geo 0 0 1 m STORE STORE STORE x", "(integer) 1".to_owned()),
        ("GEORADIUS geo 0 0 1 m STOREDIST STORE STORE STOREDIST", "(integer) 1".to_owned()),
        ("GEORADIUSBYMEMBER geo m 1 m STORE a1 STOREDIST STORE", "(integer) 1".to_owned()),
        ("SORT l STORE BY STORE GET", "(integer) 3".to_owned()),
        ("SORT l STORE LIMIT STORE STORE", "(integer) 3".to_owned()),
    ] {
        for how in EACH_WAY {
            conn.cmd("FLUSHALL");
            conn.cmd("XADD s 1 a b");
            conn.cmd("RPUSH l 3 1 2");
            conn.cmd("GEOADD geo 0 0 m");
            for group in ["STREAMS", "g"] {
                conn.cmd(&format!("XGROUP CREATE s {group} 0"));
            }
            let words = brisk_testkit::words::split(command).expect("its quotes close");
            let reply = send(&mut conn, how, &words);
            let want = match how {
                Sent::Plainly => want.clone(),
                Sent::InTransaction => {
                    format!("QUEUED1) {}", want.replace('\n', "\n   "))
                }
                // An error in a script is followed by its position.
                Sent::ByScript => want.clone(),
            };
            assert!(reply.starts_with(&want), "{command}\n got: {reply}\nwant: {want}");
        }
    }
    // The last destination applies.
    conn.cmd("GEORADIUS geo 0 0 1 m STORE a1 STOREDIST a2");
    assert_reply!(conn, "EXISTS a1", "(integer) 0");
    assert_reply!(conn, "EXISTS a2", "(integer) 1");
}

#[test]
fn the_destination_that_counts_and_the_streams_that_are_read_must_be_allowed() {
    if subject_is_redis() {
        return; // 7.0 checks the first destination, and the arguments after the first STREAMS.
    }
    let server = Launch::subject().start();
    let [mut admin, mut conn] = server.connections();
    admin.cmd("ACL SETUSER u on nopass +@all ~ok* ~{streams}ok");
    conn.cmd("AUTH u x");
    admin.cmd("GEOADD ok 0 0 m");
    admin.cmd("RPUSH okl 1");
    admin.cmd("XADD {streams}secret 1 secret value");
    admin.cmd("XGROUP CREATE {streams}secret g 0");
    let refused = "NOPERM No permissions to access a key";
    for command in [
        "GEORADIUS ok 0 0 1 m STORE ok1 STORE victim",
        "GEORADIUS ok 0 0 1 m STOREDIST ok1 STOREDIST victim",
        "GEORADIUS ok 0 0 1 m STORE ok1 STOREDIST victim",
        "GEORADIUS ok 0 0 1 m storedist ok1 ANY COUNT 1 sTORE victim",
        "GEORADIUS ok 0 0 1 m STORE ok1 STORE ok2 STORE victim",
        "GEORADIUS none 0 0 1 m STORE okl STORE victim",
        "GEORADIUSBYMEMBER ok m 1 m STORE ok1 STORE victim",
        "GEORADIUSBYMEMBER ok m 1 m STOREDIST ok1 STOREDIST victim",
        "GEORADIUSBYMEMBER ok m 1 m STOREDIST ok1 STORE victim",
        "SORT okl STORE ok1 STORE victim",
        "SORT okl STORE BY STORE victim",
        "XREADGROUP COUNT 1 GROUP g streams streams {streams}secret >",
        "XREADGROUP COUNT 1 GROUP g STREAMS STREAMS {streams}secret >",
        "XREADGROUP NOACK COUNT 1 GROUP g {streams}ok STREAMS {streams}secret >",
        "XREAD COUNT 1 STREAMS {streams}secret 0",
    ] {
        let words = brisk_testkit::words::split(command).expect("its quotes close");
        for how in EACH_WAY {
            let reply = send(&mut conn, how, &words);
            assert!(reply.contains(refused) || reply.contains("ACL failure"), "{command}: {reply}");
        }
        assert_reply!(admin, "EXISTS victim", "(integer) 0");
        let pending = admin.cmd("XPENDING {streams}secret g").elements()[0].integer();
        assert_eq!(pending, 0, "{command}");
    }
    for (command, want) in [
        ("GEORADIUS ok 0 0 1 m STORE victim STORE ok1", "(integer) 1"),
        ("GEORADIUSBYMEMBER ok m 1 m STOREDIST victim STORE ok1", "(integer) 1"),
        ("SORT okl STORE victim STORE ok1", "(integer) 1"),
    ] {
        // Only permission for the key that is written is required.
        assert_reply!(conn, command, want);
        assert_reply!(admin, "EXISTS victim", "(integer) 0");
    }
}

#[test]
fn command_getkeys_shows_the_keys_that_are_used() {
    if subject_is_redis() {
        return;
    }
    let server = Launch::subject().start();
    let mut conn = server.connect();
    for (command, want) in [
        // These are the keys that Redis finds since its fixes of 2026.
        ("GEORADIUS k 0 0 1 m STORE a STORE b", &["k", "b"][..]),
        ("GEORADIUS k 0 0 1 m STORE a STOREDIST b", &["k", "b"]),
        ("GEORADIUS k 0 0 1 m STORE STOREDIST", &["k", "STOREDIST"]),
        ("GEORADIUSBYMEMBER k STORE 1 m STORE a STORE b", &["k", "b"]),
        ("XREADGROUP COUNT 1 GROUP STREAMS a STREAMS b >", &["b"]),
        ("XREADGROUP COUNT 1 GROUP g streams STREAMS b c > >", &["b", "c"]),
        ("XREAD COUNT 1 STREAMS STREAMS a 0 0", &["STREAMS", "a"]),
        ("SORT k STORE BY STORE b", &["k", "b"]),
        // These are the keys that all versions of Redis find.
        ("GEORADIUS k 0 0 1 m", &["k"]),
        ("GEORADIUS k 0 0 1 m COUNT 1 STORE b", &["k", "b"]),
        ("GEORADIUSBYMEMBER k m 1 m STOREDIST b ASC", &["k", "b"]),
        ("XREADGROUP GROUP g c STREAMS a b > >", &["a", "b"]),
        ("XREADGROUP GROUP STREAMS c STREAMS a >", &["a"]),
        ("XREAD BLOCK 0 STREAMS a 0", &["a"]),
        ("SORT k BY w* GET x* STORE b", &["k", "b"]),
        ("SORT k", &["k"]),
        // Invalid arguments may contain keys too.
        ("XREAD FOO STREAMS a 0", &["a"]),
        ("XREAD COUNT STREAMS a 0", &["a"]),
        ("GEORADIUS k 0 0 1 m FOO STORE b", &["k", "b"]),
        ("SORT k FOO STORE b", &["k", "b"]),
    ] {
        let reply = conn.cmd(&format!("COMMAND GETKEYS {command}"));
        let keys: Vec<String> = reply.elements().iter().map(|key| key.text()).collect();
        assert_eq!(keys, want, "{command}");
    }
    let flags = conn.cmd("COMMAND GETKEYSANDFLAGS GEORADIUS k 0 0 1 m STORE a STORE b").to_string();
    let want =
        "1) 1) \"k\"\n   2) 1) RO\n      2) access\n2) 1) \"b\"\n   2) 1) OW\n      2) update";
    assert_eq!(flags, want);
}

/// Commands that end the server or the connection, or that make the server a replica.
const NOT_IN_A_TRANSACTION: &[&str] =
    &["shutdown", "quit", "replicaof", "slaveof", "failover", "debug"];

/// A transaction holds the slot locks of its commands' keys. A command that locks all slots one after the other without
/// having declared this would wait for its own transaction.
#[test]
fn no_command_waits_for_slots_that_its_own_transaction_holds() {
    if subject_is_redis() {
        return; // It has no locks.
    }
    let server = Launch::subject().set("enable-debug-command", "yes").start();
    let mut generator = Generator { random: Random::new(13), names: NAMES };
    let server_rows = brisk_server::commands::all().flat_map(|command| {
        let parts = command.subcommands.iter().map(|part| (&part.spec, Some(&command.spec)));
        std::iter::once((&command.spec, None)).chain(parts)
    });
    let mut rows: Vec<Row> = server_rows.map(|(spec, parent)| Row { spec, parent }).collect();
    rows.extend(all_data_rows());
    rows.retain(|row| {
        !NOT_IN_A_TRANSACTION.contains(&row.parent.map_or(row.spec.name, |parent| parent.name))
    });
    let mut executed = 0;
    for row in &rows {
        for _ in 0..4 {
            let words = generator.call(row);
            let [mut conn] = server.connections();
            conn.cmd("MULTI");
            conn.cmd("SET {t}held v");
            conn.call(&words);
            let replies = conn.cmd("EXEC").to_string();
            assert!(!replies.contains(REFUSED), "{}\n{replies}", line(&words));
            executed += usize::from(!replies.contains("EXECABORT"));
        }
    }
    assert!(executed > rows.len(), "{executed} of {} commands, four times each", rows.len());
}
