//! M2: a long list packed, unpacked, and compressed.

use super::finding::Figure;
use super::stage::{Filler, MIB, Stage, ask, connect, growth_bytes};
use super::{Experiment, Found};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m2",
    title: "A long list: packed nodes and LZF",
    what: "A list of a million small numbers (200,000 short) in packed nodes and with a node per \
           element, without the digits themselves; the article's figures are of the pointers alone. \
           Then 100,000 JSON texts of about 100 bytes, as they are and with `list-compress-depth 1`.",
    run,
};

const TEXTS: usize = 100_000;
const PUSHED_AT_ONCE: usize = 50;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.alone(&[], |subject, size, _| {
        let mut asker = connect(subject)?;
        let mut grown = |settings: [(&str, &str); 2], text: &dyn Fn(usize) -> String, count| {
            ask(&mut asker, &["FLUSHALL", "SYNC"])?;
            for (name, value) in settings {
                ask(&mut asker, &["CONFIG", "SET", name, value])?;
            }
            growth_bytes(subject, |filler| push(filler, text, count))
        };
        let size_name = "list-max-listpack-size";
        let depth_name = "list-compress-depth";
        let count = size.pick(200_000, 1_000_000);
        let number = |i: usize| (i % 1000).to_string();
        let digits = (0..count).map(|i| number(i).len()).sum::<usize>() as f64;
        let linked = grown([(size_name, "1"), (depth_name, "0")], &number, count)?;
        let packed = grown([(size_name, "-2"), (depth_name, "0")], &number, count)?;
        let plain = grown([(size_name, "-2"), (depth_name, "0")], &json, TEXTS)?;
        let compressed = grown([(size_name, "-2"), (depth_name, "1")], &json, TEXTS)?;
        Ok(vec![
            Figure::less(
                "numbers, a node per element: beyond the digits",
                "MiB",
                (linked - digits) / MIB,
            )
            .article(size.if_full(40.0)),
            Figure::less("numbers, packed: beyond the digits", "MiB", (packed - digits) / MIB)
                .article(size.if_full(1.0)),
            Figure::less("texts", "MiB", plain / MIB),
            Figure::less("texts, compressed", "MiB", compressed / MIB),
            Figure::plain("saved by compressing", "%", (1.0 - compressed / plain) * 100.0),
        ])
    })?;
    Ok(rows.into())
}

fn json(i: usize) -> String {
    format!(
        "{{\"id\":{i},\"name\":\"user {i}\",\"mail\":\"user{i}@example.org\",\"visits\":{},\"level\":\"{}\"}}",
        i * 7919 % 1000,
        ["bronze", "silver", "gold"][i % 3]
    )
}

fn push(filler: &mut Filler, text: &dyn Fn(usize) -> String, count: usize) -> Result<(), String> {
    for first in (0..count).step_by(PUSHED_AT_ONCE) {
        let mut words = vec!["RPUSH".to_owned(), "list".to_owned()];
        words.extend((first..(first + PUSHED_AT_ONCE).min(count)).map(text));
        filler.add(&words)?;
    }
    Ok(())
}
