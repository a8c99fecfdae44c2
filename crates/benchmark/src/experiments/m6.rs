//! M6: fragmentation. Measures the memory that the process uses beyond its data, and the memory that it still uses
//! after the data is deleted.

use super::finding::Measurement;
use super::stage::{Filler, MIB, Stage, connect, info, request, used_bytes};
use super::{Experiment, Found};
use crate::requester::Requester;
use crate::subject::Subject;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m6",
    title: "Allocators and fragmentation",
    what: "200 lists of a million numbers, and 3,000 lists of 800 items of 2.5 kB. `--scale` \
           reduces the number of elements (to a twentieth by default, a hundredth with --short). \
           Measured are the growth of the process beyond that of `used_memory`, and the rest after \
           nine of ten lists are deleted. The article's numbers are for jemalloc; with libc they \
           were 33 % and 1 %. Use `--servers` to measure servers with other allocators.",
    run,
};

/// The lists of one kind.
struct Lists {
    what: &'static str,
    count: usize,
    /// The number of items in the article.
    items: usize,
    item_bytes: Option<usize>,
    article_percent: f64,
}

const KINDS: [Lists; 2] = [
    Lists { what: "numbers", count: 200, items: 1_000_000, item_bytes: None, article_percent: 3.0 },
    Lists { what: "items", count: 3000, items: 800, item_bytes: Some(2500), article_percent: 3.0 },
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = Vec::new();
    for lists in &KINDS {
        rows.extend(stage.alone(&[], |subject, size, notes| {
            let mut requester = connect(subject)?;
            if let Ok(allocator) = info(&mut requester, "memory", "mem_allocator") {
                notes.push(format!("{}: {allocator}", lists.what));
            }
            // The result is rounded down, but there is at least one item.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the scale is positive and bounded"
            )]
            let items = ((lists.items as f64 * size.scale) as usize).max(1);
            let empty = Look::now(subject, &mut requester)?;
            lists.fill(&mut Filler::new(subject)?, items)?;
            let full = Look::now(subject, &mut requester)?.beyond(&empty);
            for i in (0..lists.count).filter(|i| i % 10 != 0) {
                request(&mut requester, &["DEL", &key(i)])?;
            }
            let thinned = Look::now(subject, &mut requester)?.beyond(&empty);
            request(&mut requester, &["MEMORY", "PURGE"])?;
            let purged = Look::now(subject, &mut requester)?.beyond(&empty);
            let what = lists.what;
            let mib = |rss: Option<f64>| rss.map(|rss| rss / MIB);
            let percent = full.rss.map(|rss| (rss / full.used - 1.0) * 100.0);
            Ok(vec![
                Measurement::less(format!("{what}: used_memory"), "MiB", full.used / MIB),
                Measurement::less(format!("{what}: process"), "MiB", mib(full.rss)),
                Measurement::less(format!("{what}: process beyond used_memory"), "%", percent)
                    .article(lists.article_percent),
                Measurement::less(
                    format!("{what}: used_memory, nine of ten deleted"),
                    "MiB",
                    thinned.used / MIB,
                ),
                Measurement::less(
                    format!("{what}: process, nine of ten deleted"),
                    "MiB",
                    mib(thinned.rss),
                ),
                Measurement::less(
                    format!("{what}: process, after MEMORY PURGE"),
                    "MiB",
                    mib(purged.rss),
                ),
            ])
        })?);
    }
    Ok(rows.into())
}

struct Look {
    used: f64,
    rss: Option<f64>,
}

impl Look {
    fn now(subject: &Subject, requester: &mut Requester) -> Result<Look, String> {
        let rss = subject.usage().map(|usage| usage.rss_bytes as f64);
        Ok(Look { used: used_bytes(requester)?, rss })
    }

    /// The memory minus that of the empty server.
    fn beyond(&self, empty: &Look) -> Look {
        let rss = self.rss.zip(empty.rss).map(|(rss, empty)| rss - empty);
        Look { used: self.used - empty.used, rss }
    }
}

fn key(list: usize) -> String {
    format!("list:{list}")
}

impl Lists {
    fn fill(&self, filler: &mut Filler, items: usize) -> Result<(), String> {
        // All items differ, so that servers cannot share them.
        let item = |list: usize, i: usize| match self.item_bytes {
            None => (list * 1_000_000 + i).to_string(),
            Some(bytes) => format!("{list:06}{i:06}{}", "x".repeat(bytes - 12)),
        };
        let at_once = if self.item_bytes.is_some() { 8 } else { 200 };
        // All lists grow concurrently, as in real use, which shows the differences between allocators.
        for first in (0..items).step_by(at_once) {
            for list in 0..self.count {
                let mut words = vec!["RPUSH".to_owned(), key(list)];
                words.extend((first..(first + at_once).min(items)).map(|i| item(list, i)));
                filler.add(&words)?;
            }
        }
        filler.flush()
    }
}
