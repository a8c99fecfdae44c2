//! The positions of keys in the arguments of a command, by the key specifications of COMMAND. A server without key
//! specifications describes the first, the last and the step of the keys instead.

use crate::docs::pairs;
use brisk_resp::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The commands of a server by their names in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandKeys(BTreeMap<Vec<u8>, CommandEntry>);

#[derive(Clone, Debug, Default)]
struct CommandEntry {
    specs: Vec<KeySpec>,
    subcommands: CommandKeys,
}

/// The place of some keys of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeySpec {
    begin: Begin,
    keys: Keys,
}

/// The position of the first key, or of the number of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Begin {
    Index(i64),
    /// After this word. The search begins at a position, which counts from the end if it is negative.
    After(Vec<u8>, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// Every `step`-th argument up to `last`, which counts from the end if it is negative. If `last` is
    /// negative and `limit` is at least 2, only the first 1/`limit` of the remaining arguments is searched.
    Range { last: i64, step: i64, limit: i64 },
    /// An argument contains the number of keys.
    Counted { number_at: i64, first: i64, step: i64 },
}

impl CommandKeys {
    /// Parses a reply to COMMAND. Unknown parts are omitted.
    pub(crate) fn of(reply: &Value) -> CommandKeys {
        let mut keys = CommandKeys::default();
        keys.add(reply, 1);
        keys
    }

    fn add(&mut self, list: &Value, depth: usize) {
        for command in list.as_slice().unwrap_or_default() {
            let fields = command.as_slice().unwrap_or_default();
            let Some(name) = fields.first().and_then(Value::as_bytes) else { continue };
            let mut entry = CommandEntry::default();
            match fields.get(8).and_then(Value::as_slice) {
                Some(specs) => entry.specs.extend(specs.iter().filter_map(KeySpec::of)),
                None => entry.specs.extend(KeySpec::of_range(fields)),
            }
            if let Some(subcommands) = fields.get(9).filter(|_| depth > 0) {
                entry.subcommands.add(subcommands, depth - 1);
            }
            let name = name.to_ascii_lowercase();
            let name = name.rsplit(|&byte| byte == b'|').next().unwrap_or_default().to_vec();
            self.0.insert(name, entry);
        }
    }

    /// The positions of the keys of a request, in ascending order. O(arguments).
    pub(crate) fn positions<W: AsRef<[u8]>>(&self, words: &[W]) -> BTreeSet<usize> {
        let entry = |commands: &CommandKeys, at: usize| {
            commands.0.get(&words.get(at)?.as_ref().to_ascii_lowercase()).cloned()
        };
        let Some(command) = entry(self, 0) else { return BTreeSet::new() };
        let specs = entry(&command.subcommands, 1).map_or(command.specs, |sub| sub.specs);
        specs.iter().flat_map(|spec| spec.positions(words)).collect()
    }
}

impl KeySpec {
    fn of(value: &Value) -> Option<KeySpec> {
        let flags = field(value, "flags").and_then(Value::as_slice).unwrap_or_default();
        if flags.iter().any(|flag| flag.as_bytes() == Some(b"not_key")) {
            return None;
        }
        let (begin, begin_spec) = kind_and_spec(field(value, "begin_search")?)?;
        let begin = match begin {
            b"index" => Begin::Index(number(begin_spec, "index")?),
            b"keyword" => Begin::After(
                field(begin_spec, "keyword")?.as_bytes()?.to_vec(),
                number(begin_spec, "startfrom")?,
            ),
            _ => return None,
        };
        let (keys, spec) = kind_and_spec(field(value, "find_keys")?)?;
        let of = |name| number(spec, name);
        let keys = match keys {
            b"range" => {
                Keys::Range { last: of("lastkey")?, step: of("keystep")?, limit: of("limit")? }
            }
            b"keynum" => Keys::Counted {
                number_at: of("keynumidx")?,
                first: of("firstkey")?,
                step: of("keystep")?,
            },
            _ => return None,
        };
        Some(KeySpec { begin, keys })
    }

    /// The specification that follows from the first, the last and the step of the keys.
    fn of_range(fields: &[Value]) -> Option<KeySpec> {
        let at = |at: usize| fields.get(at).and_then(Value::as_integer);
        let (first, last, step) = (at(3)?, at(4)?, at(5)?);
        let last = if last < 0 { last } else { last.saturating_sub(first) };
        let keys = Keys::Range { last, step, limit: 0 };
        (first > 0).then_some(KeySpec { begin: Begin::Index(first), keys })
    }

    fn positions<W: AsRef<[u8]>>(&self, words: &[W]) -> Vec<usize> {
        let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
        let Some(begin) = self.begin.position(words) else { return Vec::new() };
        let (first, last, step) = match self.keys {
            Keys::Range { last, step, .. } if last >= 0 => {
                (begin, begin.saturating_add(last), step)
            }
            Keys::Range { last, step, limit } if limit <= 1 => {
                (begin, count.saturating_add(last), step)
            }
            Keys::Range { last, step, limit } => {
                (begin, (begin + count.saturating_sub(begin) / limit).saturating_add(last), step)
            }
            Keys::Counted { number_at, first, step } => {
                let at = usize::try_from(begin.saturating_add(number_at)).ok();
                let number = at.and_then(|at| words.get(at));
                let number = number.map_or(0, |word| crate::quote::leading_number(word.as_ref()));
                let first = begin.saturating_add(first);
                let others = (number.clamp(0, count) - 1).saturating_mul(step);
                (first, first.saturating_add(others), step)
            }
        };
        if first < 0 {
            return Vec::new();
        }
        let step = usize::try_from(step.max(1)).unwrap_or(1);
        let positions = (first..=last.min(count - 1)).step_by(step);
        positions.filter_map(|at| usize::try_from(at).ok()).collect()
    }
}

impl Begin {
    fn position<W: AsRef<[u8]>>(&self, words: &[W]) -> Option<i64> {
        let (word, from) = match self {
            Begin::Index(index) => return Some(*index),
            Begin::After(word, from) => (word, *from),
        };
        let is_it = |at: &usize| words[*at].as_ref().eq_ignore_ascii_case(word);
        let skipped = usize::try_from(from.unsigned_abs()).ok()?;
        let found = if from >= 0 {
            (skipped..words.len()).find(is_it)
        } else {
            (1..=words.len().checked_sub(skipped)?).rev().find(is_it)
        };
        i64::try_from(found?.checked_add(1)?).ok()
    }
}

fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let mut fields = pairs(value).into_iter();
    fields.find(|(key, _)| key.as_bytes() == Some(name.as_bytes())).map(|(_, value)| value)
}

fn kind_and_spec(value: &Value) -> Option<(&[u8], &Value)> {
    Some((field(value, "type")?.as_bytes()?, field(value, "spec")?))
}

fn number(value: &Value, name: &str) -> Option<i64> {
    field(value, name)?.as_integer()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn map(fields: &[(&str, Value)]) -> Value {
        Value::Array(fields.iter().flat_map(|(name, value)| [bulk(name), value.clone()]).collect())
    }

    fn spec(begin: Value, find: Value) -> Value {
        map(&[("flags", Value::Array(vec![])), ("begin_search", begin), ("find_keys", find)])
    }

    fn typed(kind: &str, fields: &[(&str, Value)]) -> Value {
        map(&[("type", bulk(kind)), ("spec", map(fields))])
    }

    fn index(at: i64) -> Value {
        typed("index", &[("index", Value::Integer(at))])
    }

    fn range(last: i64, step: i64, limit: i64) -> Value {
        let number = Value::Integer;
        typed(
            "range",
            &[("lastkey", number(last)), ("keystep", number(step)), ("limit", number(limit))],
        )
    }

    fn command(name: &str, specs: Vec<Value>, subcommands: Vec<Value>) -> Value {
        let nothing = || Value::Array(vec![]);
        let mut fields = vec![bulk(name)];
        fields.extend((0..5).map(|_| Value::Integer(0)));
        fields.extend([nothing(), nothing(), Value::Array(specs), Value::Array(subcommands)]);
        Value::Array(fields)
    }

    #[test]
    fn keys_are_found_by_their_specifications() {
        let streams =
            typed("keyword", &[("keyword", bulk("STREAMS")), ("startfrom", Value::Integer(1))]);
        let number = Value::Integer;
        let counted = typed(
            "keynum",
            &[("keynumidx", number(0)), ("firstkey", number(1)), ("keystep", number(1))],
        );
        let commands = CommandKeys::of(&Value::Array(vec![
            command("get", vec![spec(index(1), range(0, 1, 0))], vec![]),
            command("mset", vec![spec(index(1), range(-1, 2, 0))], vec![]),
            command("blpop", vec![spec(index(1), range(-2, 1, 0))], vec![]),
            command("xread", vec![spec(streams, range(-1, 1, 2))], vec![]),
            command("eval", vec![spec(index(2), counted)], vec![]),
            command(
                "object",
                vec![],
                vec![command("object|encoding", vec![spec(index(2), range(0, 1, 0))], vec![])],
            ),
        ]));
        for (line, expected) in [
            ("GET a", &[1][..]),
            ("mset a 1 b 2", &[1, 3]),
            ("blpop a b 0", &[1, 2]),
            ("xread COUNT 1 streams a b 0 0", &[4, 5]),
            ("eval x 2 a b c", &[3, 4]),
            ("eval x 0 a", &[]),
            ("object encoding a", &[2]),
            ("object", &[]),
            ("ping", &[]),
            ("xread", &[]),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let found: Vec<usize> = commands.positions(&words).into_iter().collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn any_numbers_of_a_server_are_harmless() {
        let extremes = [i64::MIN, -1, 0, 1, 2, i64::MAX];
        for begin in extremes {
            for (a, b) in extremes.iter().flat_map(|a| extremes.map(|b| (*a, b))) {
                let counted = [
                    ("keynumidx", Value::Integer(a)),
                    ("firstkey", Value::Integer(b)),
                    ("keystep", Value::Integer(a)),
                ];
                let specs = vec![
                    spec(index(begin), range(a, b, 0)),
                    spec(index(begin), range(a, 1, b)),
                    spec(index(begin), typed("keynum", &counted)),
                    spec(
                        typed(
                            "keyword",
                            &[("keyword", bulk("x")), ("startfrom", Value::Integer(begin))],
                        ),
                        range(a, b, 2),
                    ),
                ];
                let commands = CommandKeys::of(&Value::Array(vec![command("c", specs, vec![])]));
                let found = commands.positions(&["c", "9223372036854775807", "x", "3"]);
                assert!(found.iter().all(|at| *at < 4), "{found:?}");
            }
        }
    }

    #[test]
    fn a_server_without_key_specifications_describes_a_range() {
        let mut old = vec![bulk("mset"), Value::Integer(-3), Value::Array(vec![])];
        old.extend([1, -1, 2].map(Value::Integer));
        let commands = CommandKeys::of(&Value::Array(vec![Value::Array(old)]));
        let found: Vec<usize> =
            commands.positions(&["mset", "a", "1", "b", "2"]).into_iter().collect();
        assert_eq!(found, [1, 3]);
    }
}
