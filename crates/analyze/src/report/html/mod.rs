//! A self-contained page with tables and plots, without scripts. Plots are SVG in the page, and a content security
//! policy in its head forbids everything else. Key names are not trusted, so all text is escaped.
//!
//! `plot.rs` draws the plots.

mod plot;

use super::{Line, Report, count, database, databases, median, percent, share, size};
use crate::group::{SIZES, SPANS, Spans};
use crate::pattern::shown;
use plot::{Bar, bars, columns};
use std::fmt::Write;

/// Maximum number of bars in a plot.
const BARS_MAX: usize = 15;

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2733;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}\
table{border-collapse:collapse;width:100%;font-size:.88rem}\
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #dde3ea;vertical-align:top}\
.l{text-align:left;overflow-wrap:anywhere}code{font:.92em ui-monospace,monospace}\
.fault{background:#fde8e6;border-left:4px solid #c0392b;padding:.6rem 1rem}\
.note{color:#5b6876}svg{width:100%;height:auto}\
@media(prefers-color-scheme:dark){body{background:#14191f;color:#dbe2ea}th,td{border-color:#2c3640}\
.fault{background:#3a1f1c}.note{color:#93a1b0}}";

/// The page, with the first `top` patterns and pieces of advice, or all.
#[must_use]
pub fn page(report: &Report, top: usize) -> String {
    let mut out = String::new();
    let title = escaped(&report.findings.facts.source);
    put(
        &mut out,
        format_args!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}{}</style></head><body><h1>{title}</h1>",
            plot::STYLE
        ),
    );
    head(&mut out, report);
    plots(&mut out, report);
    advice(&mut out, report, top);
    patterns(&mut out, report, top);
    biggest(&mut out, report, top);
    out.push_str("</body></html>\n");
    out
}

/// Appends a text. Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
    out.push('\n');
}

/// Text that is escaped for HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn head(out: &mut String, report: &Report) {
    let facts = &report.findings.facts;
    if let Some(error) = &facts.error {
        put(out, format_args!("<p class=fault>Incomplete: {}</p>", escaped(error)));
    }
    if let Some(part) = facts.scanned_fraction {
        let part = part * 100.0;
        put(
            out,
            format_args!(
                "<p class=fault>{part:.1} % of the keys were analyzed; all numbers are for these keys.</p>"
            ),
        );
    }
    let (keys, databases) =
        (count(report.findings.keys()), databases(report.findings.databases.len()));
    let (redis, brisk) = (size(report.total.redis), size(report.total.brisk));
    put(
        out,
        format_args!(
            "<p><b>{keys}</b> keys in {databases}: <b>{redis}</b> in Redis 7, <b>{brisk}</b> in Brisk, \
         as estimated by models.</p>"
        ),
    );
    if let Some(used) = facts.used_memory {
        put(out, format_args!("<p>used_memory of the server: {}.</p>", size(used as f64)));
    }
    if !facts.notes.is_empty() {
        put(out, format_args!("<p class=note>{}</p>", escaped(&facts.notes.join(", "))));
    }
}

fn plots(out: &mut String, report: &Report) {
    let groups = report.findings.groups.iter().take(BARS_MAX);
    let by_pattern = groups.map(|(pattern, key, group)| Bar {
        name: format!("{pattern} ({})", key.kind.name()),
        values: [group.total().redis.max(group.known_bytes()), group.total().brisk],
    });
    section(out, "Bytes by pattern", &bars(&by_pattern.collect::<Vec<_>>()));
    let saved = report.advice.iter().take(BARS_MAX).map(|advice| Bar {
        name: format!("{}: {}", advice.means.title(), advice.pattern),
        values: [advice.saved.redis.max(0.0), advice.saved.brisk.max(0.0)],
    });
    section(out, "Possible savings", &bars(&saved.collect::<Vec<_>>()));

    let mut sizes = [0_u64; SIZES];
    let (mut ttl, mut idle) = (Spans::default(), Spans::default());
    for (_, _, group) in &report.findings.groups {
        sizes.iter_mut().zip(group.sizes).for_each(|(sum, keys)| *sum += keys);
        ttl.keys.iter_mut().zip(group.ttl.keys).for_each(|(sum, keys)| *sum += keys);
        idle.keys.iter_mut().zip(group.idle.keys).for_each(|(sum, keys)| *sum += keys);
    }
    let first = sizes.iter().position(|keys| *keys > 0).unwrap_or(0);
    let last = sizes.iter().rposition(|keys| *keys > 0).unwrap_or(0);
    let by_size = (first..=last).map(|power| (size((1_u64 << power) as f64), sizes[power]));
    section(out, "Keys by size (bytes, lower bound)", &columns(&by_size.collect::<Vec<_>>()));
    if ttl.total() > 0 {
        section(out, "Keys by time to live", &columns(&spans(&ttl)));
    }
    if idle.total() > 0 {
        section(out, "Keys by idle time", &columns(&spans(&idle)));
    }
}

fn section(out: &mut String, title: &str, content: &str) {
    put(out, format_args!("<h2>{title}</h2>{content}"));
}

fn spans(spans: &Spans) -> Vec<(String, u64)> {
    let name = |at: usize| match SPANS.get(at) {
        Some((_, name)) => format!("< {name}"),
        None => "more".to_owned(),
    };
    spans.keys.iter().enumerate().map(|(at, keys)| (name(at), *keys)).collect()
}

fn advice(out: &mut String, report: &Report, top: usize) {
    put(
        out,
        format_args!(
            "<h2>Recommendations</h2><p class=note>Each saving is for one change alone, with this data. Savings for the same \
         keys cannot be added.</p><table><tr><th class=l>what<th class=l>keys<th>Redis<th>Brisk<th class=l>how</tr>"
        ),
    );
    for advice in report.advice.iter().take(top) {
        let saved =
            |bytes: f64, whole: f64| format!("{}<br>{:.1} %", size(bytes), percent(bytes, whole));
        let note = advice
            .note
            .as_deref()
            .map_or(String::new(), |note| format!("<br><span class=note>{}</span>", escaped(note)));
        put(
            out,
            format_args!(
                "<tr><td class=l>{}<td class=l><code>{}</code><br>{} of {}, db {}<td>{}<td>{}<td class=l>{}{note}</tr>",
                advice.means.title(),
                escaped(&advice.pattern),
                count(advice.keys),
                advice.group.kind.name(),
                database(advice.group.db),
                saved(advice.saved.redis, report.total.redis),
                saved(advice.saved.brisk, report.total.brisk),
                escaped(&advice.how),
            ),
        );
    }
    out.push_str("</table>\n");
}

fn patterns(out: &mut String, report: &Report, top: usize) {
    put(
        out,
        format_args!(
            "<h2>Patterns</h2><table><tr><th>db<th class=l>pattern<th class=l>type<th class=l>encoding<th>keys<th>Redis\
         <th>Brisk<th>share<th>elements<th>most<th>with TTL<th>TTL up to<th>idle up to</tr>"
        ),
    );
    for (pattern, key, group) in report.findings.groups.iter().take(top) {
        let total = group.total();
        let redis = if total.redis > 0.0 { total.redis } else { group.known_bytes() };
        put(
            out,
            format_args!(
                "<tr><td>{}<td class=l><code>{}</code><td class=l>{}<td class=l>{}<td>{}<td>{}<td>{}<td>{}<td>{:.1}\
             <td>{}<td>{:.0} %<td>{}<td>{}</tr>",
                database(key.db),
                escaped(&pattern.to_string()),
                key.kind.name(),
                key.encoding.name(),
                count(group.keys),
                size(redis),
                size(total.brisk),
                share(total.redis, report.total.redis),
                group.elements as f64 / group.detailed.max(1) as f64,
                count(group.elements_max),
                percent(group.expiring as f64, group.keys as f64),
                median(&group.ttl).unwrap_or("-"),
                median(&group.idle).unwrap_or("-"),
            ),
        );
    }
    out.push_str("</table>\n");
}

fn biggest(out: &mut String, report: &Report, top: usize) {
    let mut all: Vec<(u64, &[u8], &Line)> = Vec::new();
    for line in &report.findings.groups {
        all.extend(line.2.biggest.keys().iter().map(|(bytes, key)| (*bytes, &key[..], line)));
    }
    all.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    put(
        out,
        format_args!(
            "<h2>Biggest keys</h2><table><tr><th>db<th class=l>key<th class=l>type<th>bytes</tr>"
        ),
    );
    for (bytes, key, (_, group, _)) in all.into_iter().take(top) {
        put(
            out,
            format_args!(
                "<tr><td>{}<td class=l><code>{}</code><td class=l>{}<td>{}</tr>",
                database(group.db),
                escaped(&shown(key)),
                group.kind.name(),
                size(bytes as f64)
            ),
        );
    }
    out.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::measure::Limits;
    use crate::model::Classes;
    use crate::record::{Encoding, Kind, Record};
    use brisk_persist::rdb::Value;
    use brisk_persist::rdb::value::StringValue;

    #[test]
    fn key_names_are_escaped_and_the_page_loads_nothing() {
        let mut analysis = Analysis::new(Classes::BUNDLED, Limits::default(), 0);
        let value = Value::String(StringValue::Bytes(vec![b'x'; 10_000]));
        for number in 0..100 {
            let key = format!("<script>alert('{number}')</script>&\"");
            analysis.add(&Record {
                db: 0,
                key: key.as_bytes(),
                kind: Kind::String,
                encoding: Encoding::Raw,
                value: Some(&value),
                elements: None,
                deadline_ms: Some(5_000_000),
                idle_seconds: Some(77),
                frequency: None,
                reported_bytes: None,
            });
        }
        analysis.facts.source = "<b>dump</b>.rdb".to_owned();
        let page = page(&Report::new(analysis.finish()), 20);
        assert!(!page.contains("<script") && !page.contains("<b>dump"), "{page}");
        assert!(page.contains("&lt;script&gt;alert"));
        for loads in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(loads), "{loads}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(page.matches("<svg").count() >= 4);
        assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
    }
}
