//! I1: what INFO costs while thousands of clients are connected and do nothing.

use super::finding::{Better, Figure, Row};
use super::stage::{Stage, connect, info, measure};
use super::{Experiment, Found};
use crate::address::Address;
use crate::engine::allow_descriptors;
use crate::engine::plan::{End, Plan};
use crate::load::Material;
use crate::subject::Subject;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "i1",
    title: "INFO beside 9,999 idle clients",
    what: "One client sends INFO again and again, alone and beside 9,999 clients that are connected and \
           silent. The article's server used 20 % of a processor alone and 80 % beside them.",
    run,
};

const IDLE: usize = 9999;
/// Open files besides the idle clients.
const DESCRIPTORS_BESIDE: usize = 64;
/// How long the server may take until it has seen all clients.
const PATIENCE: Duration = Duration::from_secs(60);

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let plan = Plan {
                clients: 1,
                end: End::Requests(size.pick(5000, 20_000)),
                ..size.plan(Material::default().own("INFO".to_owned(), &["INFO"]), &subject.target)
            };
            let alone = measure(&plan, subject)?;
            let crowd = Crowd::connect(subject, IDLE)?;
            let beside = measure(&plan, subject)?;
            drop(crowd);
            Ok(vec![
                Figure::less("server CPU, alone", "us/INFO", alone.cpu_us),
                Figure::less("server CPU, beside idle clients", "us/INFO", beside.cpu_us),
                Figure::more("alone", "INFO/s", alone.summary.rate),
                Figure::more("beside idle clients", "INFO/s", beside.summary.rate),
            ])
        },
    )?;
    if let [alone, beside, ..] = rows.as_slice() {
        let factors = beside.values.iter().zip(&alone.values);
        let values = factors.map(|(beside, alone)| Some((*beside)? / (*alone)?)).collect();
        rows.insert(
            0,
            Row {
                what: "CPU beside idle clients over CPU alone".to_owned(),
                unit: "times".to_owned(),
                better: Better::Less,
                article: Some(4.0),
                values,
            },
        );
    }
    Ok(rows.into())
}

/// Connections that say nothing.
enum Crowd {
    Tcp(#[expect(dead_code, reason = "held open")] Vec<TcpStream>),
    Unix(#[expect(dead_code, reason = "held open")] Vec<UnixStream>),
}

impl Crowd {
    /// Connects so many, and waits until the server has seen them.
    fn connect(subject: &Subject, count: usize) -> Result<Crowd, String> {
        allow_descriptors(count + DESCRIPTORS_BESIDE).map_err(|error| error.to_string())?;
        let told = |error: std::io::Error| format!("an idle client: {error}");
        let crowd = match &subject.target.address {
            Address::Tcp { resolved, .. } => {
                let all = (0..count).map(|_| TcpStream::connect(resolved));
                Crowd::Tcp(all.collect::<Result<_, _>>().map_err(told)?)
            }
            Address::Unix(path) => {
                let all = (0..count).map(|_| UnixStream::connect(path));
                Crowd::Unix(all.collect::<Result<_, _>>().map_err(told)?)
            }
        };
        let mut asker = connect(subject)?;
        let begun = Instant::now();
        loop {
            let seen = info(&mut asker, "clients", "connected_clients")?;
            if seen.parse::<usize>().is_ok_and(|seen| seen > count) {
                return Ok(crowd);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("of {count} idle clients the server has seen {seen}"));
            }
        }
    }
}
