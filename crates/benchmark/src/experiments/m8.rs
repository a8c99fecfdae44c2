//! M8: the savings of shorter names and denser values, and the cost of APPEND and of bits at large offsets.

use super::finding::Measurement;
use super::stage::{Filler, Stage, connect, growth_bytes, measure, request};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;
use crate::subject::Subject;
use brisk_resp::Value;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m8",
    title: "Short names, dense values, offsets",
    what: "500,000 keys (100,000 short) with a long and a short name, and with a value as JSON and \
           as a line of fields: memory per key. MEMORY USAGE of a string of 100,000 bytes before \
           and after one byte is appended. Server CPU of GETBIT and SETRANGE at the beginning and \
           at the end of a string of 64 MiB, in pipelines of 16. The article gives no numbers.",
    run,
};

const STRING_BYTES: usize = 64 << 20;
const APPENDED_TO: usize = 100_000;

type Write = fn(&mut Filler, usize) -> Result<(), String>;

/// Different names and formats for the same data.
const LAYOUTS: [(&str, Write); 4] = [
    ("long names", |filler, i| {
        filler.add(&["SET", &format!("application:customer:profile:nickname:{i}"), "short"])
    }),
    ("short names", |filler, i| filler.add(&["SET", &format!("a:c:n:{i}"), "short"])),
    ("values as JSON", |filler, i| {
        let value = format!(
            "{{\"name\":\"user {i}\",\"points\":{},\"city\":\"Springfield\",\"active\":true}}",
            i % 1000
        );
        filler.add(&["SET", &format!("u:{i}"), &value])
    }),
    ("values as a line of fields", |filler, i| {
        let value = format!("user {i}|{}|Springfield|1", i % 1000);
        filler.add(&["SET", &format!("u:{i}"), &value])
    }),
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = Vec::new();
    for (what, write) in LAYOUTS {
        rows.extend(stage.alone(&[], |subject, size, _| {
            let keys = size.pick(100_000, 500_000);
            let bytes =
                growth_bytes(subject, |filler| (0..keys).try_for_each(|i| write(filler, i)))?;
            Ok(vec![Measurement::less(what, "bytes/key", bytes / keys as f64)])
        })?);
    }
    rows.extend(stage.alone(&[], |subject, size, _| {
        let mut measurements = appending(subject)?;
        let end = (STRING_BYTES - 1).to_string();
        let end_bit = (STRING_BYTES * 8 - 1).to_string();
        request(&mut connect(subject)?, &["SETRANGE", "bits", &end, "x"])?;
        for (what, words) in [
            ("GETBIT at the beginning", ["GETBIT", "bits", "0"].to_vec()),
            ("GETBIT at the end", ["GETBIT", "bits", &end_bit].to_vec()),
            ("SETRANGE at the beginning", ["SETRANGE", "bits", "0", "x"].to_vec()),
            ("SETRANGE at the end", ["SETRANGE", "bits", &end, "x"].to_vec()),
        ] {
            let plan = Plan {
                clients: 10,
                pipeline: 16,
                end: End::Requests(size.pick(50_000, 300_000)),
                ..size.plan(Material::default().own(what.to_owned(), &words), &subject.target)
            };
            let cpu = measure(&plan, subject)?.cpu_us;
            measurements.push(Measurement::less(format!("{what}: server CPU"), "us/request", cpu));
        }
        Ok(measurements)
    })?);
    Ok(rows.into())
}

fn appending(subject: &Subject) -> Result<Vec<Measurement>, String> {
    let mut requester = connect(subject)?;
    request(&mut requester, &["SET", "text", &"x".repeat(APPENDED_TO)])?;
    let mut usage = || match request(&mut requester, &["MEMORY", "USAGE", "text"])? {
        Value::Integer(bytes) => {
            request(&mut requester, &["APPEND", "text", "y"])?;
            Ok(bytes as f64)
        }
        other => Err(format!("MEMORY USAGE: {other:?}")),
    };
    let (before, after): (f64, f64) = (usage()?, usage()?);
    Ok(vec![
        Measurement::less("string of 100,000 bytes", "bytes", before),
        Measurement::less("string of 100,000 bytes, one appended", "bytes", after),
    ])
}
