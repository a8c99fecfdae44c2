//! M1: the memory per element in each encoding.

use super::finding::Measurement;
use super::stage::{Filler, Stage, connect, growth_bytes, request};
use super::{Experiment, Found};
use crate::requester::text_of;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m1",
    title: "Memory per element, by encoding",
    what: "Strings, and collections of 100 elements of 8 bytes: first within the limits of the \
           packed encodings, then with these limits set to 0 (1,000,000 strings or elements; \
           200,000 short). The values are the growth of `used_memory` per string or element. The \
           database has already held a key, so memory allocated for the first key is not counted. \
           The encodings that OBJECT ENCODING returns are in parentheses. The article gives no \
           numbers.",
    run,
};

const ELEMENTS: usize = 100;

/// One kind of value under one setting.
struct Case {
    what: &'static str,
    setting: Option<(&'static str, &'static str)>,
    /// The command name, which precedes the key.
    command: &'static str,
    shape: Shape,
}

/// The form of elements as arguments.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// A string with this number of bytes; 0 means a number.
    Text(usize),
    /// Numbers.
    Numbers,
    /// 8-byte strings.
    Words,
    /// Pairs of a field and a value, 8 bytes in total.
    Pairs,
    /// Pairs of a score and a member.
    Scores,
}

const fn string(what: &'static str, bytes: usize) -> Case {
    Case { what, setting: None, command: "SET", shape: Shape::Text(bytes) }
}

const fn case(
    what: &'static str,
    setting: Option<(&'static str, &'static str)>,
    command: &'static str,
    shape: Shape,
) -> Case {
    Case { what, setting, command, shape }
}

const CASES: [Case; 12] = [
    string("string that is a number", 0),
    string("string of 20 bytes", 20),
    string("string of 100 bytes", 100),
    case("hash, packed", None, "HSET", Shape::Pairs),
    case("hash, unpacked", Some(("hash-max-listpack-entries", "0")), "HSET", Shape::Pairs),
    case("list, packed", None, "RPUSH", Shape::Words),
    case(
        "list, one node per element",
        Some(("list-max-listpack-size", "1")),
        "RPUSH",
        Shape::Words,
    ),
    case("set of numbers, packed", None, "SADD", Shape::Numbers),
    case("set of numbers, unpacked", Some(("set-max-intset-entries", "0")), "SADD", Shape::Numbers),
    case("set of strings", None, "SADD", Shape::Words),
    case("sorted set, packed", None, "ZADD", Shape::Scores),
    case("sorted set, unpacked", Some(("zset-max-listpack-entries", "0")), "ZADD", Shape::Scores),
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = Vec::new();
    for case in &CASES {
        // Each case has its own server, because memory left over from an earlier case would be counted too.
        let settings: Vec<(&str, &str)> = case.setting.into_iter().collect();
        rows.extend(stage.alone(&settings, |subject, size, _| {
            let elements = size.pick(200_000, 1_000_000);
            let bytes = growth_bytes(subject, |filler| case.fill(filler, elements))?;
            let encoding =
                text_of(&request(&mut connect(subject)?, &["OBJECT", "ENCODING", "key:0"])?);
            let memory = Measurement::less(case.what, "bytes/element", bytes / elements as f64);
            Ok(vec![memory.detail(encoding)])
        })?);
    }
    Ok(rows.into())
}

impl Case {
    fn fill(&self, filler: &mut Filler, elements: usize) -> Result<(), String> {
        let per_key = if let Shape::Text(_) = self.shape { 1 } else { ELEMENTS };
        for key in 0..elements / per_key {
            let mut words = vec![self.command.to_owned(), format!("key:{key}")];
            for i in 0..per_key {
                match self.shape {
                    // The numbers are above those for which servers share objects.
                    Shape::Text(0) => words.push((1_000_000 + key).to_string()),
                    Shape::Text(bytes) => words.push(format!("{key:0bytes$}x").split_off(1)),
                    Shape::Numbers => words.push((10_000_000 + i * 37).to_string()),
                    Shape::Words => words.push(format!("word{i:04}")),
                    Shape::Pairs => words.extend([format!("f{i:03}"), format!("v{i:03}")]),
                    Shape::Scores => words.extend([i.to_string(), format!("word{i:04}")]),
                }
            }
            filler.add(&words)?;
        }
        Ok(())
    }
}
