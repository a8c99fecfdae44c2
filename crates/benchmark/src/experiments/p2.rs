//! P2: 10,000 PINGs one by one, and in one pipeline.

use super::finding::Measurement;
use super::stage::{Stage, measure};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "p2",
    title: "10,000 PINGs, with and without a pipeline",
    what: "One client sends 10,000 PINGs: first one at a time, waiting for each reply, then all at \
           once.",
    run,
};

const PINGS: usize = 10_000;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let milliseconds = |pipeline| {
                let plan = Plan {
                    clients: 1,
                    pipeline,
                    end: End::Requests(PINGS as u64),
                    ..size.plan(
                        Material::default().own("PING".to_owned(), &["PING"]),
                        &subject.target,
                    )
                };
                measure(&plan, subject).map(|measured| measured.summary.seconds * 1000.0)
            };
            let (single, together) = (milliseconds(1)?, milliseconds(PINGS)?);
            Ok(vec![
                Measurement::less("one by one", "ms", single).article(263.6),
                Measurement::less("in one pipeline", "ms", together).article(9.6),
                Measurement::plain("speedup", "×", single / together).article(27.0),
            ])
        },
    )?;
    Ok(rows.into())
}
