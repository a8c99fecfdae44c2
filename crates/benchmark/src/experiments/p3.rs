//! P3: throughput by pipeline depth, on loopback and over a distant network, and the prediction of the article's
//! formula.

use super::finding::{Line, Measurement, Plot, Row};
use super::stage::{Size, Stage, measure};
use super::{Experiment, Found};
use crate::delay::{DelayPlan, DelayProxy};
use crate::engine::plan::{End, Plan, Target};
use crate::load::Material;
use crate::load::suite::test_named;
use crate::subject::{Subject, local_target};
use brisk_dial::address::Address;
use std::net::SocketAddr;
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "p3",
    title: "Throughput by pipeline depth",
    what: "SET and GET at pipeline depths 1 to 100: 50 clients on loopback, as in the article; then \
           one client on loopback, and with round trip times of 0.5 ms (LAN) and 20 ms (WAN), both \
           simulated by `delay-proxy`. The formula is n*1000/(L+R*n) for latency L and service time \
           R in ms: R comes from depths 1 and 100 on loopback, L from depth 1 of each network, and \
           the depths in between are predicted. The article gives only the first and the last \
           number of its LAN, whose delay is unknown.",
    run,
};

const DEPTHS: [usize; 6] = [1, 5, 10, 20, 50, 100];
const LAN: Duration = Duration::from_micros(250);
const WAN: Duration = Duration::from_millis(10);

/// One series of pipeline depths.
struct Sweep {
    network: &'static str,
    /// The delay in each direction.
    delay: Option<Duration>,
    clients: usize,
    test: &'static str,
    article: [Option<f64>; 6],
}

const UNKNOWN: [Option<f64>; 6] = [None; 6];

const fn ends(first: f64, last: f64) -> [Option<f64>; 6] {
    [Some(first), None, None, None, None, Some(last)]
}

const SWEEPS: [Sweep; 7] = [
    Sweep {
        network: "loopback, 50 clients",
        delay: None,
        clients: 50,
        test: "set",
        article: [
            Some(74_963.0),
            Some(253_165.0),
            Some(362_319.0),
            Some(487_805.0),
            Some(591_716.0),
            Some(657_895.0),
        ],
    },
    Sweep {
        network: "loopback, 50 clients",
        delay: None,
        clients: 50,
        test: "get",
        article: [
            Some(76_982.0),
            Some(288_184.0),
            Some(456_621.0),
            Some(641_026.0),
            Some(884_956.0),
            Some(980_392.0),
        ],
    },
    Sweep { network: "loopback", delay: None, clients: 1, test: "set", article: UNKNOWN },
    Sweep { network: "loopback", delay: None, clients: 1, test: "get", article: UNKNOWN },
    Sweep {
        network: "LAN",
        delay: Some(LAN),
        clients: 1,
        test: "set",
        article: ends(9805.0, 290_698.0),
    },
    Sweep {
        network: "LAN",
        delay: Some(LAN),
        clients: 1,
        test: "get",
        article: ends(9637.0, 344_828.0),
    },
    Sweep { network: "WAN", delay: Some(WAN), clients: 1, test: "get", article: UNKNOWN },
];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let mut measurements = Vec::new();
            for sweep in &SWEEPS {
                measurements.extend(sweep.measurements(subject, size)?);
            }
            Ok(measurements)
        },
    )?;
    let names: Vec<String> = stage.names().map(str::to_owned).collect();
    let plots = SWEEPS.iter().enumerate().map(|(i, sweep)| {
        let service = SWEEPS.iter().position(|other| {
            other.delay.is_none() && other.clients == 1 && other.test == sweep.test
        });
        let near = service.and_then(|at| rows.get(at * DEPTHS.len()..(at + 1) * DEPTHS.len()));
        sweep.plot(&rows[i * DEPTHS.len()..(i + 1) * DEPTHS.len()], near, &names)
    });
    let plots = plots.collect();
    Ok(Found { rows, plots })
}

impl Sweep {
    fn measurements(&self, subject: &Subject, size: &Size) -> Result<Vec<Measurement>, String> {
        let (_proxy, target) = self.target(subject)?;
        let test = test_named(self.test).ok_or("there is no such test")?;
        let name = self.test.to_uppercase();
        let mut measurements = Vec::new();
        for (&depth, &article) in DEPTHS.iter().zip(&self.article) {
            let plan = Plan {
                clients: self.clients,
                pipeline: depth,
                warmup: Duration::from_millis(100),
                end: End::After(Duration::from_millis(size.pick(400, 1500))),
                ..size.plan(Material::default().test(test), &target)
            };
            let run = measure(&plan, subject)?.summary;
            let what = format!("{}: {name}, depth {depth}", self.network);
            let rate = Measurement::more(what, "requests/s", run.rate);
            measurements.push(rate.article(article).limited_as(&run));
        }
        Ok(measurements)
    }

    /// The server, or the proxy in front of it.
    fn target(&self, subject: &Subject) -> Result<(Option<DelayProxy>, Target), String> {
        let Some(delay) = self.delay else { return Ok((None, subject.target.clone())) };
        let Address::Tcp { resolved, .. } = &subject.target.address else {
            return Err("the proxy uses TCP: specify a server by host and port".to_owned());
        };
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let plan = DelayPlan { listen, to: *resolved, delay, jitter: Duration::ZERO };
        let proxy = DelayProxy::start(plan).map_err(|error| error.to_string())?;
        let target = local_target(proxy.address().port());
        Ok((Some(proxy), target))
    }

    /// The measured lines. For one client, also the lines of the formula.
    fn plot(&self, rows: &[Row], near: Option<&[Row]>, names: &[String]) -> Plot {
        let mut lines = Vec::new();
        for (server, name) in names.iter().enumerate() {
            let points = DEPTHS.iter().zip(rows);
            let points = points.filter_map(|(&n, row)| Some((n as f64, row.values[server]?)));
            lines.push(Line {
                name: name.clone(),
                server: Some(server),
                computed: false,
                points: points.collect(),
            });
            let formula = (self.clients == 1).then(|| predicted(rows, near?, server)).flatten();
            lines.extend(formula.map(|points| Line {
                name: format!("{name}, formula"),
                server: Some(server),
                computed: true,
                points,
            }));
        }
        let article = DEPTHS.iter().zip(&self.article);
        let points: Vec<(f64, f64)> =
            article.filter_map(|(&n, value)| Some((n as f64, (*value)?))).collect();
        if !points.is_empty() {
            lines.push(Line { name: "article".to_owned(), server: None, computed: false, points });
        }
        Plot {
            title: format!("{}, {}", self.test.to_uppercase(), self.network),
            x: "pipeline depth".to_owned(),
            y: "requests/s".to_owned(),
            logarithmic: true,
            lines,
        }
    }
}

/// The formula's prediction for all depths. R is computed from the first and the last depth on loopback, and L from the
/// first depth of this series.
fn predicted(rows: &[Row], near: &[Row], server: usize) -> Option<Vec<(f64, f64)>> {
    // The time per batch, in ms.
    let batch_ms = |rows: &[Row], i: usize| -> Option<f64> {
        Some(DEPTHS[i] as f64 * 1000.0 / rows.get(i)?.values[server]?)
    };
    let last = DEPTHS.len() - 1;
    let more = (DEPTHS[last] - DEPTHS[0]) as f64;
    let service_ms = ((batch_ms(near, last)? - batch_ms(near, 0)?) / more).max(0.0);
    let latency_ms = batch_ms(rows, 0)? - service_ms;
    let at = |&n: &usize| (n as f64, throughput(n as f64, latency_ms, service_ms));
    Some(DEPTHS.iter().map(at).collect())
}

/// The article's formula: requests per second in batches of `n`.
fn throughput(n: f64, latency_ms: f64, service_ms: f64) -> f64 {
    n * 1000.0 / (latency_ms + service_ms * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::finding::Better;

    #[test]
    fn the_formula_finds_its_own_constants() {
        let rows = |latency_ms: f64| -> Vec<Row> {
            let row = |&n: &usize| Row {
                what: String::new(),
                unit: String::new(),
                better: Better::More,
                article: None,
                values: vec![Some(throughput(n as f64, latency_ms, 0.002))],
                details: Vec::new(),
            };
            DEPTHS.iter().map(row).collect()
        };
        let (near, far) = (rows(0.05), rows(20.0));
        for (got, wanted) in predicted(&far, &near, 0).unwrap().iter().zip(&far) {
            let wanted = wanted.values[0].unwrap();
            assert!((got.1 - wanted).abs() < wanted * 1e-9, "{got:?} {wanted}");
        }
        // 100 requests take 1 ms + 100 * 0.01 ms.
        assert!((throughput(100.0, 1.0, 0.01) - 50_000.0).abs() < 1e-6);
    }
}
