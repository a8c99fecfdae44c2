//! Compares permissions: creates random users with the same rules on both servers, and checks random commands for each
//! user with ACL DRYRUN.
//!
//! A run is split into episodes, each with its own users. Rules are drawn so that about half of the commands are
//! allowed. Patterns are derived from the keys of generated commands.

use super::generate::Generator;
use super::peer::Peer;
use super::rules;
use super::table::Table;
use anyhow::Result;
use brisk_engine::command::Categories;
use brisk_testkit::random::Random;
use brisk_testkit::words::{encode_into, line};
use std::fmt;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    /// Number of pairs of a user and a command.
    pub pairs: u64,
}

/// Users per episode.
const USERS: usize = 40;
/// Pairs per episode.
const PAIRS: u64 = 4_000;
/// Pairs sent before their replies are read.
const PIPELINE: u64 = 200;

/// A user for which the servers disagree about a command or a rule.
#[derive(Debug)]
pub struct Disagreement {
    pub seed: u64,
    pub episode: u64,
    /// The rules of the user, as sent.
    pub user: String,
    pub command: String,
    pub ours: String,
    pub theirs: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, episode {}", self.seed, self.episode)?;
        writeln!(f, "  {}", self.user)?;
        writeln!(f, "  {}", self.command)?;
        writeln!(f, "  ours:   {}", self.ours)?;
        writeln!(f, "  theirs: {}", self.theirs)
    }
}

/// How many pairs were allowed and denied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judged {
    pub allowed: u64,
    pub refused: u64,
    /// Pairs whose command does not exist, or has a wrong number of arguments.
    pub errors: u64,
}

/// Reports whether the command has keys that Redis does not find.
///
/// PFMERGE without sources writes its destination; Redis's key specifications look for a source first, and find no keys
/// if there is none. See [`rules::repeats_key_option`] for the others.
fn is_overlooked_by_redis(words: &[Vec<u8>]) -> bool {
    let names = ["SORT", "GEORADIUS", "GEORADIUSBYMEMBER", "XREAD", "XREADGROUP"];
    let is = |name: &&str| words[0].eq_ignore_ascii_case(name.as_bytes());
    is(&"PFMERGE") && words.len() == 2 || names.iter().any(is) && rules::repeats_key_option(words)
}

/// Compares pairs of a user and a command. Returns the first disagreement, if there is one.
pub fn run(
    table: &Table,
    ours: &str,
    theirs: &str,
    options: &Options,
) -> Result<Result<Judged, Box<Disagreement>>> {
    let mut peers = [Peer::connect(ours)?, Peer::connect(theirs)?];
    let mut judged = Judged::default();
    let (mut made, mut number) = (0, 0);
    while made < options.pairs {
        let mut episode = Episode::new(table, options.seed, number);
        episode.create_users(&mut peers)?;
        let pairs = PAIRS.min(options.pairs - made);
        if let Some(found) = episode.compare(&mut peers, pairs, &mut judged)? {
            return Ok(Err(Box::new(found)));
        }
        made += pairs;
        number += 1;
    }
    Ok(Ok(judged))
}

struct Episode<'t> {
    seed: u64,
    number: u64,
    names: Vec<&'t str>,
    random: Random,
    calls: Generator<'t>,
    /// The arguments of each SETUSER.
    users: Vec<Vec<Vec<u8>>>,
}

impl<'t> Episode<'t> {
    fn new(table: &'t Table, seed: u64, number: u64) -> Episode<'t> {
        let mut random = Random::derived(seed, number);
        let calls = Generator::of_all(table, Random::new(random.bits()));
        let known = table.rows.iter().filter(|row| !rules::is_missing(row.spec));
        let names = known.map(|row| row.name.as_str()).collect();
        Episode { seed, number, names, random, calls, users: Vec::new() }
    }

    fn create_users(&mut self, peers: &mut [Peer; 2]) -> Result<()> {
        for at in 0..USERS {
            let mut words = vec![b"ACL".to_vec(), b"SETUSER".to_vec(), name_of(at)];
            words.push(b"reset".to_vec());
            self.rules(&mut words);
            for _ in 0..[0, 0, 0, 1, 1, 2, 3][self.random.below(7)] {
                let mut inner = Vec::new();
                self.rules(&mut inner);
                words.push([&b"("[..], &inner.join(&b' '), b")"].concat());
            }
            for peer in peers.iter_mut() {
                let reply = peer.request(&words)?;
                let text = String::from_utf8_lossy(reply).into_owned();
                anyhow::ensure!(text == "+OK\r\n", "{}: {text}", line(&words));
            }
            self.users.push(words);
        }
        Ok(())
    }

    /// Rules of one selector, in an order in which all of them are accepted.
    fn rules(&mut self, out: &mut Vec<Vec<u8>>) {
        if self.random.percent(40) {
            out.push(b"+@all".to_vec());
        }
        for _ in 0..self.random.below(8) {
            let sign = if self.random.percent(60) { "+" } else { "-" };
            let rule = if self.random.percent(45) {
                let (_, category) = *self.random.pick(Categories::NAMES);
                format!("{sign}@{category}")
            } else {
                let name = *self.random.pick(&self.names);
                let contained = self.names.iter().any(|n| n.starts_with(&format!("{name}|")));
                if !name.contains('|') && !contained && self.random.percent(10) {
                    // A rule for a first argument, which can only allow.
                    format!("+{name}|{}", self.random.pick(&["0", "str0", "GET", "k", "x"]))
                } else {
                    format!("{sign}{name}")
                }
            };
            out.push(rule.into_bytes());
        }
        match self.random.below(10) {
            0..3 => out.push(b"~*".to_vec()),
            3 => {}
            _ => {
                for _ in 0..=self.random.below(5) {
                    let access = *self.random.pick(&["~", "~", "%R~", "%W~", "%RW~", "%r~"]);
                    let rule = [access.as_bytes(), &self.pattern()].concat();
                    out.push(rule);
                }
            }
        }
        match self.random.below(10) {
            0..3 => out.push(b"&*".to_vec()),
            3 => {}
            _ => {
                for _ in 0..=self.random.below(3) {
                    let rule = [&b"&"[..], &self.pattern()].concat();
                    out.push(rule);
                }
            }
        }
    }

    /// A pattern that matches some of the arguments of commands.
    fn pattern(&mut self) -> Vec<u8> {
        let words = self.calls.words();
        let word = self.random.pick(&words).clone();
        // Unbalanced quotes make Redis drop a whole selector; in Brisk they are an error.
        let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'".contains(byte);
        let mut word: Vec<u8> = word.into_iter().filter(plain).take(12).collect();
        match self.random.below(6) {
            0 => {}
            1 if !word.is_empty() => {
                let at = self.random.below(word.len());
                word[at] = b'?';
            }
            2 => word = b"**".to_vec(),
            3 => word = [b"*", &word[word.len() / 2..]].concat(),
            4 => word = b"[a-m]*".to_vec(),
            _ => {
                word.truncate(1 + self.random.below(3));
                word.push(b'*');
            }
        }
        // No further patterns may follow `*`, which is a rule of its own.
        if word == b"*" { b"**".to_vec() } else { word }
    }

    fn compare(
        &mut self,
        peers: &mut [Peer; 2],
        pairs: u64,
        judged: &mut Judged,
    ) -> Result<Option<Disagreement>> {
        let mut done = 0;
        while done < pairs {
            let mut sent = Vec::new();
            let mut request = Vec::new();
            while (sent.len() as u64) < PIPELINE.min(pairs - done) {
                let command = self.calls.words();
                // Redis 7.0 truncates arguments at their first NUL in replies, and when it compares first arguments.
                let has_nul = command.iter().any(|word| word.contains(&0));
                if has_nul || is_overlooked_by_redis(&command) {
                    continue;
                }
                let user = self.random.below(USERS);
                let mut words = vec![b"ACL".to_vec(), b"DRYRUN".to_vec(), name_of(user)];
                words.extend(command);
                encode_into(&mut request, &words);
                sent.push((user, words));
            }
            for peer in peers.iter_mut() {
                peer.send(&request)?;
            }
            done += sent.len() as u64;
            let [ours, theirs] = peers;
            for (user, words) in sent {
                let ours = ours.reply().map_err(anyhow::Error::msg)?;
                let theirs = theirs.reply().map_err(anyhow::Error::msg)?;
                let theirs = in_newer_words(theirs, &name_of(user));
                if ours != theirs {
                    return Ok(Some(Disagreement {
                        seed: self.seed,
                        episode: self.number,
                        user: line(&self.users[user]),
                        command: line(&words),
                        ours: ours.escape_ascii().to_string(),
                        theirs: theirs.escape_ascii().to_string(),
                    }));
                }
                match ours {
                    b"+OK\r\n" => judged.allowed += 1,
                    [b'-', ..] => judged.errors += 1,
                    _ => judged.refused += 1,
                }
            }
        }
        Ok(None)
    }
}

fn name_of(user: usize) -> Vec<u8> {
    format!("u{user}").into_bytes()
}

/// Rewrites Redis 7.0's error texts, which say "this user", in the wording of 7.2.
fn in_newer_words(reply: &[u8], user: &[u8]) -> Vec<u8> {
    let text = match reply {
        [b'$', rest @ ..] => rest.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default(),
        _ => return reply.to_vec(),
    };
    let Some(rest) = text.strip_prefix(b"This user") else { return reply.to_vec() };
    let text = [b"User ", user, rest].concat();
    let len = text.len() - b"\r\n".len();
    [format!("${len}\r\n").as_bytes(), &text].concat()
}
