//! C3: the cost of a time limit for each command.

use super::callers::{Callers, Mode, Sent};
use super::finding::{Better, Measurement, Row};
use super::stage::Stage;
use super::{Experiment, Found};
use crate::compare::statistics::median;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "c3",
    title: "A time limit for each command",
    what: "200 callers send SETs over one connection of the client library, with the default time \
           limit of 3 s per command and without a time limit. Each variant runs four times, in \
           turns; the results are medians. In the article the timers of Lettuce, and its wrappers \
           for pooled connections, cost 20 %.",
    run,
};

const CALLERS: usize = 200;
/// Number of measurements with the time limit, and of measurements without it. The two alternate.
const TURNS: usize = 4;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let (mut rates, mut cpus) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
            for turn in 0..size.pick(2, 2 * TURNS) {
                let load = Callers {
                    sent: Sent::Set,
                    mode: Mode::Lanes(1),
                    callers: CALLERS,
                    rtt_ms: 0,
                    has_timeouts: turn % 2 == 0,
                };
                let summary = load.measure(subject, size)?.summary;
                rates[turn % 2].push(summary.rate);
                cpus[turn % 2].push(summary.generator_us);
            }
            let [with, without] = rates.map(|rates| median(&rates));
            let [cpu_with, cpu_without] = cpus.map(|cpus| median(&cpus));
            Ok(vec![
                Measurement::more("with a time limit", "requests/s", with),
                Measurement::more("without", "requests/s", without),
                Measurement::less("with a time limit: client CPU", "us/request", cpu_with),
                Measurement::less("without: client CPU", "us/request", cpu_without),
            ])
        },
    )?;
    if let [with, without, ..] = rows.as_slice() {
        let pairs = with.values.iter().zip(&without.values);
        let values = pairs.map(|(with, without)| Some((1.0 - (*with)? / (*without)?) * 100.0));
        rows.insert(
            0,
            Row {
                what: "rate lost to time limits".to_owned(),
                unit: "%".to_owned(),
                better: Better::Neither,
                article: Some(20.0),
                values: values.collect(),
                details: Vec::new(),
            },
        );
    }
    Ok(rows.into())
}
