//! M3: the memory and the lookup time of packed hashes by number of fields.

use super::finding::{Line, Measurement, Plot};
use super::stage::{Filler, Stage, growth_bytes, measure};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m3",
    title: "Limits of packed hashes",
    what: "Hashes of 128 to 2,000 fields (12 bytes each, with values of 8 bytes), packed and \
           unpacked: memory per field, and server CPU of HGET in pipelines of 16. The default limit \
           is 512 entries (now 128); the articles recommend 500 to 2,000.",
    run,
};

const SIZES: [usize; 5] = [128, 512, 1000, 1500, 2000];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = Vec::new();
    for fields in SIZES {
        for (how, limit) in [("packed", "2000"), ("unpacked", "0")] {
            let what = format!("{fields} fields, {how}");
            let settings = [("hash-max-listpack-entries", limit)];
            rows.extend(stage.alone(&settings, |subject, size, _| {
                let keys = size.pick(100_000, 500_000) / fields;
                let bytes = growth_bytes(subject, |filler| fill(filler, keys, fields))?;
                let material = Material { keyspace: Some(fields as u64), ..Material::default() };
                let words = ["HGET", "hash:0", "__rand_int__"];
                let plan = Plan {
                    clients: 10,
                    pipeline: 16,
                    end: End::Requests(size.pick(50_000, 300_000)),
                    ..size.plan(material.own("HGET".to_owned(), &words), &subject.target)
                };
                let measured = measure(&plan, subject)?;
                let per_field = bytes / (keys * fields) as f64;
                Ok(vec![
                    Measurement::less(format!("{what}: memory"), "bytes/field", per_field),
                    Measurement::less(
                        format!("{what}: HGET, server CPU"),
                        "us/request",
                        measured.cpu_us,
                    ),
                ])
            })?);
        }
    }
    let names: Vec<String> = stage.names().map(str::to_owned).collect();
    let plot = |title: &str, y: &str, first: usize| {
        let mut lines = Vec::new();
        for (server, name) in names.iter().enumerate() {
            for (how, offset, computed) in [("packed", 0, false), ("unpacked", 2, true)] {
                let points = SIZES.iter().enumerate().filter_map(|(i, &fields)| {
                    Some((fields as f64, rows.get(4 * i + offset + first)?.values[server]?))
                });
                let points = points.collect();
                lines.push(Line {
                    name: format!("{name}, {how}"),
                    server: Some(server),
                    computed,
                    points,
                });
            }
        }
        let (title, y) = (title.to_owned(), y.to_owned());
        Plot { title, x: "fields".to_owned(), y, logarithmic: false, lines }
    };
    let plots =
        vec![plot("Memory of a field", "bytes", 0), plot("Server time of an HGET", "us", 1)];
    Ok(Found { rows, plots })
}

fn fill(filler: &mut Filler, keys: usize, fields: usize) -> Result<(), String> {
    for key in 0..keys {
        let mut words = vec!["HSET".to_owned(), format!("hash:{key}")];
        for field in 0..fields {
            words.extend([format!("{field:012}"), format!("value{:03}", field % 1000)]);
        }
        filler.add(&words)?;
    }
    Ok(())
}
