//! Text for a terminal: the memory by pattern, and the advice with its savings.

use super::{Line, Report, count, database, databases, median, percent, share, size};
use crate::pattern::shown;
use std::fmt::Write;

/// Maximum number of characters of a pattern or a key in a table.
const NAME_CHARS_MAX: usize = 44;

/// The whole report, with the first `top` patterns and pieces of advice.
#[must_use]
pub fn text(report: &Report, top: usize) -> String {
    let mut out = String::new();
    head(&mut out, report);
    patterns(&mut out, report, top);
    biggest(&mut out, report, top);
    advice(&mut out, report, top);
    out
}

/// Appends a text. Writing to a string cannot fail.
fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(line);
    out.push('\n');
}

fn head(out: &mut String, report: &Report) {
    let facts = &report.findings.facts;
    put(out, format_args!("{}", facts.source));
    let notes = facts.notes.join(", ");
    if !notes.is_empty() {
        put(out, format_args!("{notes}"));
    }
    if let Some(error) = &facts.error {
        put(out, format_args!("INCOMPLETE: {error}"));
    }
    if let Some(part) = facts.scanned_fraction {
        put(
            out,
            format_args!(
                "{:.1} % of the keys were analyzed; all numbers are for these keys",
                part * 100.0
            ),
        );
    }
    let databases = databases(report.findings.databases.len());
    let keys = count(report.findings.keys());
    let (redis, brisk) = (size(report.total.redis), size(report.total.brisk));
    put(out, format_args!("{keys} keys in {databases}: {redis} in Redis 7, {brisk} in Brisk"));
    let places = (size(report.tables.redis), size(report.tables.brisk));
    put(
        out,
        format_args!(
            "  including hash tables of keys: {} in Redis, {} in Brisk",
            places.0, places.1
        ),
    );
    if let Some(used) = facts.used_memory {
        put(out, format_args!("  used_memory of the server: {}", size(used as f64)));
    }
    if facts.skipped_keys > 0 {
        put(out, format_args!("  {} keys were skipped", count(facts.skipped_keys)));
    }
}

fn patterns(out: &mut String, report: &Report, top: usize) {
    let head = [
        "db",
        "pattern",
        "type",
        "encoding",
        "keys",
        "Redis",
        "Brisk",
        "share",
        "per key",
        "elements",
        "with TTL",
        "TTL up to",
        "idle up to",
    ];
    let rows = report.findings.groups.iter().take(top).map(|line| row(line, report));
    put(out, format_args!("\nPatterns, largest first\n"));
    columns(out, &head, &rows.collect::<Vec<_>>(), &[1, 2, 3]);
    rest(out, report.findings.groups.len(), top);
}

fn row((pattern, key, group): &Line, report: &Report) -> Vec<String> {
    let total = group.total();
    let known = group.known_bytes();
    let elements = match group.detailed {
        0 => "-".to_owned(),
        detailed => format!("{:.1}", group.elements as f64 / detailed as f64),
    };
    vec![
        database(key.db),
        cut(&pattern.to_string()),
        key.kind.name().to_owned(),
        key.encoding.name().to_owned(),
        count(group.keys),
        size(if total.redis > 0.0 { total.redis } else { known }),
        if total.brisk > 0.0 { size(total.brisk) } else { "-".to_owned() },
        share(total.redis, report.total.redis),
        size(total.redis.max(known) / group.keys.max(1) as f64),
        elements,
        format!("{:.0} %", percent(group.expiring as f64, group.keys as f64)),
        median(&group.ttl).unwrap_or("-").to_owned(),
        median(&group.idle).unwrap_or("-").to_owned(),
    ]
}

fn biggest(out: &mut String, report: &Report, top: usize) {
    let mut all: Vec<(u64, &[u8], &Line)> = Vec::new();
    for line in &report.findings.groups {
        all.extend(line.2.biggest.keys().iter().map(|(bytes, key)| (*bytes, &key[..], line)));
    }
    all.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let row = |(bytes, key, (_, group, _)): &(u64, &[u8], &Line)| {
        let name = cut(&shown(key));
        vec![database(group.db), name, group.kind.name().to_owned(), size(*bytes as f64)]
    };
    put(out, format_args!("\nBiggest keys\n"));
    let rows: Vec<_> = all.iter().take(top).map(row).collect();
    columns(out, &["db", "key", "type", "bytes"], &rows, &[1, 2]);
}

fn advice(out: &mut String, report: &Report, top: usize) {
    put(
        out,
        format_args!("\nRecommendations (each saving is for that change alone, with this data)\n"),
    );
    if report.advice.is_empty() {
        put(out, format_args!("No recommendations."));
        return;
    }
    for advice in report.advice.iter().take(top) {
        let saved =
            |bytes: f64, whole: f64| format!("{} ({:.1} %)", size(bytes), percent(bytes, whole));
        let redis = saved(advice.saved.redis, report.total.redis);
        let brisk = saved(advice.saved.brisk, report.total.brisk);
        let pattern = cut(&advice.pattern);
        let (db, kind) = (database(advice.group.db), advice.group.kind.name());
        let (title, keys) = (advice.means.title(), count(advice.keys));
        put(out, format_args!("{title}: {redis} in Redis, {brisk} in Brisk"));
        put(out, format_args!("    {pattern}, {kind}, db {db}, {keys} keys"));
        put(out, format_args!("    {}", advice.how));
        if let Some(note) = &advice.note {
            put(out, format_args!("    ({note})"));
        }
    }
    rest(out, report.advice.len(), top);
}

fn rest(out: &mut String, all: usize, top: usize) {
    if all > top {
        put(out, format_args!("… and {} more (--top {all} shows all)", all - top));
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some(_) => text.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Appends columns that are as wide as their contents. Those in `left` are left-aligned, the others right-aligned.
fn columns(out: &mut String, head: &[&str], rows: &[Vec<String>], left: &[usize]) {
    let chars = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..head.len())
        .map(|at| {
            rows.iter().map(|row| chars(&row[at])).chain([chars(head[at])]).max().unwrap_or(0)
        })
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (at, cell) in cells.enumerate() {
            let pad = " ".repeat(widths[at] - chars(cell));
            let (before, after) = if left.contains(&at) { ("", &pad[..]) } else { (&pad[..], "") };
            let _ = write!(text, "{}{before}{cell}{after}", if at == 0 { "" } else { "  " });
        }
        put(out, format_args!("{}", text.trim_end()));
    };
    line(&mut head.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
