//! Encodes operations as requests, and reads their replies.

use super::model::{End, Key, Op};
use crate::conn::Conn;
use crate::reply::Reply;
use crate::words::encode_into;
use std::fmt;
use std::io;

/// Calls the commands in ARGV, each after its number of arguments, and returns all results.
const CALL_ALL: &str = "local all, at = {}, 1 \
    while at <= #ARGV do \
    local n = tonumber(ARGV[at]) \
    all[#all + 1] = redis.call(unpack(ARGV, at + 1, at + n)) \
    at = at + n + 1 \
    end \
    return all";

const COMPARE_AND_SET: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
    redis.call('SET', KEYS[1], ARGV[2]) return 1 end return 0";

/// The names of one group's keys.
#[derive(Debug, Clone)]
pub struct Names {
    group: usize,
}

impl Names {
    pub const fn new(group: usize) -> Names {
        Names { group }
    }

    /// A key's name. The first text and the first list share a slot. The last texts of all groups share a slot. All
    /// other keys have their own slots.
    fn of(&self, key: Key) -> String {
        let group = self.group;
        match key {
            Key::Text(0) | Key::List(0) => format!("{{race {group}}}:{key}"),
            Key::Text(2) => format!("{{race}} {group}:{key}"),
            _ => format!("{{race {group} {key}}}:{key}"),
        }
    }

    fn text(&self, at: usize) -> String {
        self.of(Key::Text(at))
    }

    fn list(&self, at: usize) -> String {
        self.of(Key::List(at))
    }

    /// The arguments of an operation that is a single request.
    pub fn words(&self, op: &Op) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let name = match op {
            Op::Get(at) => self.one("GET", &[self.text(*at)], &mut words),
            Op::Set(at, value) => self.one("SET", &[self.text(*at), value.to_string()], &mut words),
            Op::Swap(at, value) => {
                self.one("GETSET", &[self.text(*at), value.to_string()], &mut words)
            }
            Op::Add(at, delta) => {
                self.one("INCRBY", &[self.text(*at), delta.to_string()], &mut words)
            }
            Op::Take(at) => self.one("GETDEL", &[self.text(*at)], &mut words),
            Op::SetAll(pairs) => {
                words.extend(pairs.iter().flat_map(|(at, v)| [self.text(*at), v.to_string()]));
                "MSET"
            }
            Op::GetAll(keys) => {
                words.extend(keys.iter().map(|at| self.text(*at)));
                "MGET"
            }
            Op::Delete(keys) => {
                words.extend(keys.iter().map(|key| self.of(*key)));
                "DEL"
            }
            Op::Push(list, end, values) => {
                words.push(self.list(*list));
                words.extend(values.iter().map(i64::to_string));
                if *end == End::Left { "LPUSH" } else { "RPUSH" }
            }
            Op::Pop(list, end) => {
                words.push(self.list(*list));
                if *end == End::Left { "LPOP" } else { "RPOP" }
            }
            Op::Range(list) => {
                let range = [self.list(*list), "0".to_owned(), "-1".to_owned()];
                self.one("LRANGE", &range, &mut words)
            }
            Op::Move(from, to, take, put) => {
                words.extend(self.moved(*from, *to, *take, *put));
                "LMOVE"
            }
            Op::WaitMove(from, to, take, put) => {
                words.extend(self.moved(*from, *to, *take, *put));
                words.push("0".to_owned());
                "BLMOVE"
            }
            Op::WaitPop(lists, end) => {
                words.extend(lists.iter().map(|list| self.list(*list)));
                words.push("0".to_owned());
                if *end == End::Left { "BLPOP" } else { "BRPOP" }
            }
            Op::Watch(keys) => {
                words.extend(keys.iter().map(|key| self.of(*key)));
                "WATCH"
            }
            Op::Unwatch => "UNWATCH",
            Op::Exec(_) => "EXEC",
            Op::Discard(_) => "DISCARD",
            Op::Script(ops) => {
                words.push(CALL_ALL.to_owned());
                let keys: Vec<String> = keys_of(ops).into_iter().map(|key| self.of(key)).collect();
                words.push(keys.len().to_string());
                words.extend(keys);
                for op in ops {
                    let call = self.words(op);
                    words.push(call.len().to_string());
                    words.extend(call);
                }
                "EVAL"
            }
            Op::CompareAndSet(at, old, new) => {
                let key = self.text(*at);
                let (old, new) = (old.to_string(), new.to_string());
                let given = [COMPARE_AND_SET.to_owned(), "1".to_owned(), key, old, new];
                self.one("EVAL", &given, &mut words)
            }
        };
        words.insert(0, name.to_owned());
        words
    }

    fn one(&self, name: &'static str, given: &[String], words: &mut Vec<String>) -> &'static str {
        words.extend_from_slice(given);
        name
    }

    fn moved(&self, from: usize, to: usize, take: End, put: End) -> [String; 4] {
        let side = |end| if end == End::Left { "LEFT" } else { "RIGHT" }.to_owned();
        [self.list(from), self.list(to), side(take), side(put)]
    }

    /// Appends the requests of an operation.
    pub fn encode(&self, op: &Op, out: &mut Vec<u8>) {
        if let Op::Exec(ops) | Op::Discard(ops) = op {
            encode_into(out, &["MULTI"]);
            ops.iter().for_each(|op| encode_into(out, &self.words(op)));
        }
        encode_into(out, &self.words(op));
    }

    /// Waits for the reply to an operation that was sent. Key names in the reply are those of the model.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn read_reply(&self, op: &Op, conn: &mut Conn) -> io::Result<Reply> {
        if let Op::Exec(ops) | Op::Discard(ops) = op {
            let mut odd = None;
            for at in 0..=ops.len() {
                let expected = if at == 0 { "OK" } else { "QUEUED" };
                let reply = conn.try_reply()?;
                odd = odd.or((reply.to_string() != expected).then_some(reply));
            }
            let last = conn.try_reply()?;
            return Ok(odd.unwrap_or_else(|| plain(last)));
        }
        conn.try_reply().map(plain)
    }
}

/// The keys of operations, each once.
fn keys_of(ops: &[Op]) -> Vec<Key> {
    let mut keys: Vec<Key> = ops.iter().flat_map(keys_of_one).collect();
    keys.sort_by_key(Key::to_string);
    keys.dedup();
    keys
}

fn keys_of_one(op: &Op) -> Vec<Key> {
    match op {
        Op::Get(at) | Op::Set(at, _) | Op::Swap(at, _) | Op::Add(at, _) | Op::Take(at) => {
            vec![Key::Text(*at)]
        }
        Op::CompareAndSet(at, ..) => vec![Key::Text(*at)],
        Op::SetAll(pairs) => pairs.iter().map(|(at, _)| Key::Text(*at)).collect(),
        Op::GetAll(keys) => keys.iter().map(|at| Key::Text(*at)).collect(),
        Op::Delete(keys) | Op::Watch(keys) => keys.clone(),
        Op::Push(list, ..) | Op::Pop(list, _) | Op::Range(list) => vec![Key::List(*list)],
        Op::Move(from, to, ..) | Op::WaitMove(from, to, ..) => {
            vec![Key::List(*from), Key::List(*to)]
        }
        Op::WaitPop(lists, _) => lists.iter().map(|list| Key::List(*list)).collect(),
        Op::Unwatch => Vec::new(),
        Op::Exec(ops) | Op::Discard(ops) | Op::Script(ops) => keys_of(ops),
    }
}

/// Replaces the key names in a reply with those of the model.
fn plain(reply: Reply) -> Reply {
    match reply {
        Reply::Bulk(word) if word.starts_with(b"{race") => {
            let at = word.iter().rposition(|byte| *byte == b':').map_or(0, |at| at + 1);
            Reply::Bulk(word[at..].to_vec())
        }
        Reply::Array(items) => Reply::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}

/// The operation as a line, with the names of the model.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |op: &Op| {
            let words = Names::new(0).words(op);
            let short = |word: &String| match word.rsplit_once(':') {
                Some((_, name)) if word.starts_with("{race") => name.to_owned(),
                _ => word.clone(),
            };
            words.iter().map(short).collect::<Vec<_>>().join(" ")
        };
        let lines = |ops: &[Op]| ops.iter().map(Op::to_string).collect::<Vec<_>>().join("; ");
        match self {
            Op::Exec(ops) => write!(f, "MULTI {{ {} }} EXEC", lines(ops)),
            Op::Discard(ops) => write!(f, "MULTI {{ {} }} DISCARD", lines(ops)),
            Op::Script(ops) => write!(f, "EVAL {{ {} }}", lines(ops)),
            Op::CompareAndSet(at, old, new) => write!(f, "EVAL {{ t{at}: {old} -> {new} }}"),
            other => f.write_str(&line(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_shown_with_the_names_of_the_model() {
        let ops = vec![Op::Get(2), Op::Push(1, End::Left, vec![7, 8])];
        assert_eq!(Op::Exec(ops.clone()).to_string(), "MULTI { GET t2; LPUSH l1 7 8 } EXEC");
        assert_eq!(Op::Script(ops).to_string(), "EVAL { GET t2; LPUSH l1 7 8 }");
    }

    #[test]
    fn a_script_declares_each_key_once() {
        let ops = vec![Op::Get(0), Op::Set(0, 1), Op::Move(0, 0, End::Left, End::Right)];
        let words = Names::new(5).words(&Op::Script(ops));
        assert_eq!(words[2..5], ["2", "{race 5}:l0", "{race 5}:t0"]);
    }

    #[test]
    fn names_in_replies_are_those_of_the_model() {
        let name = Names::new(3).of(Key::Text(2));
        assert_eq!(plain(Reply::Bulk(name.into_bytes())), Reply::Bulk(b"t2".to_vec()));
    }
}
