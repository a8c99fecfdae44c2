//! All findings, for programs. Bytes are numbers. Names are readable text, in which bytes that are not text are
//! escaped.

use super::{Line, Report};
use crate::advice::Advice;
use crate::analysis::OTHER_DATABASES;
use crate::group::{SPANS, Spans};
use crate::model::Bytes;
use crate::pattern::shown;
use serde_json::{Map, Value, json};

/// The version of this format. Increase it if the meaning of a field changes.
const FORM: u32 = 1;

/// The report as one object. It contains the first `top` patterns and pieces of advice, or all.
#[must_use]
pub fn value(report: &Report, top: usize) -> Value {
    let facts = &report.findings.facts;
    let databases: Vec<Value> = report
        .findings
        .databases
        .iter()
        .map(|(db, has)| json!({"db": number(*db), "keys": has.keys, "with_ttl": has.expiring}))
        .collect();
    let groups = report.findings.groups.iter().take(top).map(group);
    let advice = report.advice.iter().take(top).map(|advice| advised(advice, report));
    json!({
        "form": FORM,
        "source": facts.source,
        "notes": facts.notes,
        "fault": facts.error,
        "file_bytes": facts.file_bytes,
        "used_memory": facts.used_memory,
        "startup_memory": facts.startup_memory,
        "passed_over": facts.skipped_keys,
        "looked_at": facts.scanned_fraction,
        "keys": report.findings.keys(),
        "bytes": bytes(report.total),
        "tables": bytes(report.tables),
        "databases": databases,
        "patterns_found": report.findings.groups.len(),
        "patterns": groups.collect::<Vec<_>>(),
        "advice": advice.collect::<Vec<_>>(),
    })
}

/// The object as indented text.
#[must_use]
pub fn text(report: &Report, top: usize) -> String {
    format!("{:#}\n", value(report, top))
}

fn number(db: u64) -> Value {
    if db == OTHER_DATABASES { Value::Null } else { db.into() }
}

fn bytes(bytes: Bytes) -> Value {
    json!({"redis": bytes.redis.round() as i64, "brisk": bytes.brisk.round() as i64})
}

fn group((pattern, key, group): &Line) -> Value {
    let biggest = group.biggest.keys().iter();
    let biggest = biggest.map(|(bytes, name)| json!({"key": shown(name), "bytes": bytes}));
    let sizes: Map<String, Value> = group
        .sizes
        .iter()
        .enumerate()
        .filter(|(_, keys)| **keys > 0)
        .map(|(power, keys)| ((1_u64 << power).to_string(), (*keys).into()))
        .collect();
    let (sum, counted) = group.frequency;
    let frequency = (counted > 0).then(|| sum as f64 / counted as f64);
    json!({
        "db": number(key.db),
        "pattern": pattern.to_string(),
        "type": key.kind.name(),
        "encoding": key.encoding.name(),
        "keys": group.keys,
        "bytes": bytes(group.total()),
        "said_bytes": (group.reported_bytes > 0).then_some(group.reported_bytes),
        "looked_at": group.detailed,
        "elements": group.elements,
        "elements_max": group.elements_max,
        "key_bytes": group.key_bytes,
        "value_bytes": group.value_bytes,
        "with_ttl": group.expiring,
        "expired": group.expired,
        "ttl": spans(&group.ttl),
        "idle": spans(&group.idle),
        "mean_frequency": frequency,
        "keys_by_bytes": sizes,
        "biggest": biggest.collect::<Vec<_>>(),
    })
}

/// Numbers of keys below each bound in seconds, and of the remaining keys.
fn spans(spans: &Spans) -> Value {
    if spans.total() == 0 {
        return Value::Null;
    }
    let mut all = Map::new();
    for (at, keys) in spans.keys.iter().enumerate() {
        let name = SPANS.get(at).map_or("more".to_owned(), |(seconds, _)| seconds.to_string());
        all.insert(name, (*keys).into());
    }
    Value::Object(all)
}

fn advised(advice: &Advice, report: &Report) -> Value {
    let part = |saved: f64, all: f64| if all > 0.0 { saved / all } else { 0.0 };
    json!({
        "means": advice.means.name(),
        "db": number(advice.group.db),
        "pattern": advice.pattern,
        "type": advice.group.kind.name(),
        "encoding": advice.group.encoding.name(),
        "keys": advice.keys,
        "saved": bytes(advice.saved),
        "saved_part": {
            "redis": part(advice.saved.redis, report.total.redis),
            "brisk": part(advice.saved.brisk, report.total.brisk),
        },
        "how": advice.how,
        "note": advice.note,
    })
}
