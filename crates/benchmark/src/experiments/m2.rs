//! M2: a long list packed, unpacked, and compressed.

use super::finding::Measurement;
use super::stage::{Filler, MIB, Stage, growth_bytes};
use super::{Experiment, Found};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m2",
    title: "A long list: packed nodes and LZF",
    what: "A list of a million small numbers (200,000 short) in packed nodes and with one node per \
           element. The article's numbers for a million elements are those of the pointers alone, \
           and of everything. Then 100,000 JSON texts of about 100 bytes, uncompressed and with \
           `list-compress-depth 1`.",
    run,
};

const TEXTS: usize = 100_000;
const PUSHED_AT_ONCE: usize = 50;

/// A list under two settings.
struct Case {
    what: &'static str,
    node: &'static str,
    depth: &'static str,
    item: fn(usize) -> String,
    article: Option<f64>,
}

const CASES: [Case; 4] = [
    Case {
        what: "numbers, one node per element",
        node: "1",
        depth: "0",
        item: number,
        article: Some(40.0),
    },
    Case { what: "numbers, packed", node: "-2", depth: "0", item: number, article: Some(1.0) },
    Case { what: "texts", node: "-2", depth: "0", item: json, article: None },
    Case { what: "texts, compressed", node: "-2", depth: "1", item: json, article: None },
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = Vec::new();
    for case in &CASES {
        let settings = [("list-max-listpack-size", case.node), ("list-compress-depth", case.depth)];
        rows.extend(stage.alone(&settings, |subject, size, _| {
            // The article uses a million numbers.
            let numbers = case.article.is_some();
            let count = if numbers { size.pick(200_000, 1_000_000) } else { TEXTS };
            let bytes = growth_bytes(subject, |filler| push(filler, case.item, count))?;
            let article = case.article.and_then(|article| size.if_full(article));
            Ok(vec![Measurement::less(case.what, "MiB", bytes / MIB).article(article)])
        })?);
    }
    Ok(rows.into())
}

fn number(i: usize) -> String {
    (i % 1000).to_string()
}

fn json(i: usize) -> String {
    format!(
        "{{\"id\":{i},\"name\":\"user {i}\",\"mail\":\"user{i}@example.org\",\"visits\":{},\"level\":\"{}\"}}",
        i * 7919 % 1000,
        ["bronze", "silver", "gold"][i % 3]
    )
}

fn push(filler: &mut Filler, item: fn(usize) -> String, count: usize) -> Result<(), String> {
    for first in (0..count).step_by(PUSHED_AT_ONCE) {
        let mut words = vec!["RPUSH".to_owned(), "list".to_owned()];
        words.extend((first..(first + PUSHED_AT_ONCE).min(count)).map(item));
        filler.add(&words)?;
    }
    Ok(())
}
