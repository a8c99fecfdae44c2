//! Scripts and functions: Lua code that calls random commands and declares their keys.
//!
//! A body calls some commands of the stream with `redis.call` or `redis.pcall`. Their arguments come from KEYS or ARGV
//! or are literals. The body returns the results in one of several forms. It is run as a script, by its text or its
//! digest, or as a function of a library.
//!
//! Scripts avoid known differences between Lua 5.1 and Luau: how large numbers are formatted, and the order of `pairs`,
//! in which a script returns RESP3 maps and sets.

use super::generate::{Call, Generator, Unit};
use super::rules::{self, How};
use brisk_engine::command::Flags;
use brisk_engine::keyspec::find_keys;
use brisk_testkit::random::Random;

/// Maximum number of calls to generate until one is suitable.
const TRIES_MAX: usize = 100;
/// Commands in one body.
const CALLS_MAX: usize = 4;
/// Maximum number of arguments of a command in a script. With a few hundred, both interpreters run out of registers,
/// and their error texts differ.
const WORDS_MAX: usize = 60;
/// Number of library names. Loading a library replaces the previous library with its name.
const LIBRARIES: usize = 4;

/// Scripts that run the command in ARGV. The order of maps differs between interpreters, so in
/// RESP3 only the kinds of replies are compared.
const FIXED: &[&str] = &[
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "local r = redis.pcall(unpack(ARGV)) return {type(r), r}",
    "redis.setresp(3) return type(redis.pcall(unpack(ARGV)))",
    "local ok, r = pcall(redis.call, unpack(ARGV)) return {ok, type(r), r}",
    "local r = redis.call(unpack(ARGV)) if type(r) == 'table' then return #r end return r",
];

/// How a body ends: `{last}` is the last result, and `{all}` the list of all results.
const ENDS: &[&str] = &[
    "return {all}",
    "return {all}",
    "return {all}",
    "return last",
    "return {type(last), last}",
    "if type(last) == 'table' and last.err then return {'failed', last.err} end return last",
    "if type(last) == 'table' and last.ok then return redis.status_reply(last.ok) end return last",
    "if type(last) == 'string' then return redis.sha1hex(last) end return {all}",
    "if type(last) == 'string' then return {#last, last} end return {all}",
    "if not last then return redis.error_reply('NONE of them') end return {all, 'end'}",
    "return cmsgpack.unpack(cmsgpack.pack({#{all}}))",
    "return",
];

/// The text of a script, with its keys and arguments.
struct Body {
    text: String,
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Generator<'_> {
    /// A script or a function, with the commands that load and run it.
    pub(super) fn script(&mut self) -> Unit {
        let fixed = !self.composes || self.random.percent(30);
        let body = if fixed { self.fixed_body() } else { self.body() };
        let Some(body) = body else { return vec![self.call()] };
        if self.functions && self.random.percent(30) {
            return self.function(&body);
        }
        let mut arguments = vec![body.text.clone().into_bytes()];
        arguments.extend(body.given());
        if self.random.percent(50) {
            return vec![self.written("eval", &arguments)];
        }
        let digest = brisk_structures::sha1::sha1(body.text.as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let load = self.written("script|load", &arguments[..1]);
        arguments[0] = digest.into_bytes();
        vec![load, self.written("evalsha", &arguments)]
    }

    /// A single EVAL, for transactions.
    pub(super) fn eval(&mut self) -> Call {
        match self.body() {
            Some(body) => {
                let mut arguments = vec![body.text.clone().into_bytes()];
                arguments.extend(body.given());
                self.written("eval", &arguments)
            }
            None => self.call(),
        }
    }

    /// A library that contains the body as a function, and the call of the function.
    fn function(&mut self, body: &Body) -> Unit {
        let at = self.random.below(LIBRARIES);
        let (read_only, name) = (self.random.percent(30), format!("f{at}"));
        let text = &body.text;
        let flags = if read_only { "flags = {'no-writes'}, " } else { "" };
        let library = format!(
            "#!lua name=lib{at}\n\
             local function run(KEYS, ARGV)\n{text}\nend\n\
             redis.register_function{{function_name = '{name}', {flags}callback = run}}"
        );
        let load = self.written("function|load", &[b"REPLACE".to_vec(), library.into_bytes()]);
        let mut arguments = vec![name.into_bytes()];
        arguments.extend(body.given());
        let call =
            if self.random.percent(if read_only { 70 } else { 10 }) { "fcall_ro" } else { "fcall" };
        vec![load, self.written(call, &arguments)]
    }

    fn fixed_body(&mut self) -> Option<Body> {
        let (call, keys) = self.callable()?;
        let text = (*self.random.pick(FIXED)).to_owned();
        let keys = keys.into_iter().map(|at| call.words[at].clone()).collect();
        Some(Body { text, keys, arguments: call.words })
    }

    fn body(&mut self) -> Option<Body> {
        let mut body = Body { text: String::new(), keys: Vec::new(), arguments: Vec::new() };
        let count = 1 + self.random.below(CALLS_MAX);
        for number in 1..=count {
            let (call, keys) = self.callable()?;
            let words: Vec<String> = call
                .words
                .iter()
                .enumerate()
                .map(|(at, word)| body.word(word, keys.contains(&at), &mut self.random))
                .collect();
            let how = if self.random.percent(40) { "call" } else { "pcall" };
            let line = format!("local r{number} = redis.{how}({})\n", words.join(", "));
            body.text.push_str(&line);
        }
        let all: Vec<String> = (1..=count).map(|number| format!("r{number}")).collect();
        let end = self.random.pick(ENDS).replace("{all}", &format!("{{{}}}", all.join(", ")));
        body.text.push_str(&format!("local last = r{count}\n{end}"));
        Some(body)
    }

    /// A call that is allowed in a script, and the positions of its keys.
    fn callable(&mut self) -> Option<(Call, Vec<usize>)> {
        (0..TRIES_MAX).find_map(|_| {
            let call = self.call();
            let row = self.table.rows.get(call.row)?;
            let fits = call.words.len() <= WORDS_MAX
                && rules::comparison(&row.name, &call.words) == How::Exact
                && rules::prelude(&row.name).is_none()
                && call.resync(&row.name).is_none()
                // Blocking commands run in scripts since 7.2.
                && !row.spec.flags.contains(Flags::BLOCKING);
            let word = |at: usize| &call.words[at][..];
            let found = find_keys(row.spec, call.words.len(), &word).unwrap_or_default();
            let keys = found.iter().map(|key| key.index).collect();
            fits.then_some((call, keys))
        })
    }

    fn written(&self, name: &str, arguments: &[Vec<u8>]) -> Call {
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        self.fixed(name, &arguments)
    }
}

impl Body {
    /// Number of keys, keys, arguments.
    fn given(&self) -> Vec<Vec<u8>> {
        let count = self.keys.len().to_string().into_bytes();
        [vec![count], self.keys.clone(), self.arguments.clone()].concat()
    }

    /// The expression for an argument in the script's text.
    fn word(&mut self, word: &[u8], is_key: bool, random: &mut Random) -> String {
        if is_key {
            self.keys.push(word.to_vec());
            return format!("KEYS[{}]", self.keys.len());
        }
        let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<i32>().ok());
        match number {
            Some(number) if number.to_string().as_bytes() == word && random.percent(30) => {
                number.to_string()
            }
            _ if random.percent(50) => {
                self.arguments.push(word.to_vec());
                format!("ARGV[{}]", self.arguments.len())
            }
            _ => quoted(word),
        }
    }
}

/// A Lua string.
fn quoted(word: &[u8]) -> String {
    let mut text = String::from("'");
    for byte in word {
        if byte.is_ascii_alphanumeric() {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("\\{byte:03}"));
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_can_be_written_into_a_text() {
        assert_eq!(quoted(b"a'\x00\xff1"), r"'a\039\000\2551'");
    }
}
