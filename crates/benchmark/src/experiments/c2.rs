//! C2: compares one shared connection, several shared connections, and pools.

use super::callers::{Callers, Mode, Sent};
use super::finding::{Line, Plot, Row};
use super::stage::{Size, Stage};
use super::{Experiment, Found};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "c2",
    title: "Shared connections against pools",
    what: "The client library with one connection that all callers share, with 2, 4 and 8 shared \
           connections, and with pools of 8, 50 and 200, in which a connection carries one command \
           at a time. 50, 100 and 200 callers send SETs with 5 bytes of key and value on loopback, \
           200 callers do so with round trip times of 1 and 12 ms, and 200 callers send GETs. The \
           article compares a Jedis pool (best with 50 connections, at about 90,000 per second and \
           above one Lettuce connection; worst with 200), a Lettuce pool and 8 shared Lettuce \
           connections, which were the fastest, with 200 threads on 8 CPUs. The article's text \
           gives only this one number of its table.",
    run,
};

const MODES: [Mode; 7] = [
    Mode::Lanes(1),
    Mode::Lanes(2),
    Mode::Lanes(4),
    Mode::Lanes(8),
    Mode::Pool(8),
    Mode::Pool(50),
    Mode::Pool(200),
];
/// The loads of a mode: the command, the number of callers, and the round-trip time in ms.
const LOADS: [(Sent, usize, u64); 6] = [
    (Sent::Set, 50, 0),
    (Sent::Set, 100, 0),
    (Sent::Set, 200, 0),
    (Sent::Get, 200, 0),
    (Sent::Set, 200, 1),
    (Sent::Set, 200, 12),
];
/// The number of results per load.
const MEASUREMENTS: usize = 5;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let loads = loads(&stage.size);
    let rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let mut measurements = Vec::new();
            for load in &loads {
                let is_in_article = (load.sent, load.callers, load.rtt_ms) == (Sent::Set, 200, 0)
                    && load.mode == Mode::Pool(50);
                let article = is_in_article.then_some(90_000.0);
                measurements.extend(load.measurements(subject, size, article)?);
            }
            Ok(measurements)
        },
    )?;
    let plots = plots(&loads, &rows, &stage.names().map(str::to_owned).collect::<Vec<_>>());
    Ok(Found { rows, plots })
}

fn loads(size: &Size) -> Vec<Callers> {
    let load =
        |mode, (sent, callers, rtt_ms)| Callers { sent, mode, callers, rtt_ms, has_timeouts: true };
    let all = LOADS.iter().flat_map(|what| MODES.map(|mode| load(mode, *what)));
    // A short run has one load of each kind.
    let is_short = |load: &Callers| {
        let is_one = matches!(load.mode, Mode::Lanes(1 | 4) | Mode::Pool(8));
        is_one && load.callers != 100 && load.rtt_ms != 12
    };
    all.filter(|load| !size.short || is_short(load)).collect()
}

/// Rates by number of callers on loopback, with a line for each mode and server.
fn plots(loads: &[Callers], rows: &[Row], names: &[String]) -> Vec<Plot> {
    let mut lines = Vec::new();
    for (server, name) in names.iter().enumerate() {
        for mode in MODES {
            let points: Vec<(f64, f64)> = loads
                .iter()
                .zip(rows.chunks(MEASUREMENTS))
                .filter(|(load, _)| load.mode == mode && load.sent == Sent::Set && load.rtt_ms == 0)
                .filter_map(|(load, rows)| {
                    Some((load.callers as f64, (*rows.first()?.values.get(server)?)?))
                })
                .collect();
            if points.len() > 1 {
                let name = format!("{name}, {}", mode.name());
                lines.push(Line { name, server: Some(server), computed: false, points });
            }
        }
    }
    let plot = Plot {
        title: "SET on loopback".to_owned(),
        x: "callers".to_owned(),
        y: "requests/s".to_owned(),
        logarithmic: false,
        lines,
    };
    if plot.lines.is_empty() { Vec::new() } else { vec![plot] }
}
