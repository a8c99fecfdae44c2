//! I1: the cost of INFO while thousands of clients are connected but idle.

use super::crowd::{Crowd, SETTLING};
use super::finding::{Better, Measurement, Row};
use super::stage::{Stage, measure};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "i1",
    title: "INFO next to 9,999 idle clients",
    what: "One client sends INFO repeatedly, first alone and then with 9,999 idle clients \
           connected. The article's server used 20 % of a CPU alone and 80 % with the idle clients.",
    run,
};

const IDLE: usize = 9999;
fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let plan = Plan {
                clients: 1,
                warmup: SETTLING,
                end: End::Requests(size.pick(20_000, 50_000)),
                ..size.plan(Material::default().own("INFO".to_owned(), &["INFO"]), &subject.target)
            };
            let alone = measure(&plan, subject)?;
            let crowd = Crowd::connect(subject, IDLE)?;
            let with_idle = measure(&plan, subject)?;
            drop(crowd);
            Ok(vec![
                Measurement::less("server CPU, alone", "us/INFO", alone.cpu_us),
                Measurement::less("server CPU, next to idle clients", "us/INFO", with_idle.cpu_us),
                Measurement::more("alone", "INFO/s", alone.summary.rate).limited_as(&alone.summary),
                Measurement::more("next to idle clients", "INFO/s", with_idle.summary.rate)
                    .limited_as(&with_idle.summary),
            ])
        },
    )?;
    if let [alone, with_idle, ..] = rows.as_slice() {
        let factors = with_idle.values.iter().zip(&alone.values);
        let values = factors.map(|(with_idle, alone)| Some((*with_idle)? / (*alone)?)).collect();
        rows.insert(
            0,
            Row {
                what: "CPU next to idle clients over CPU alone".to_owned(),
                unit: "×".to_owned(),
                better: Better::Less,
                article: Some(4.0),
                values,
                details: Vec::new(),
            },
        );
    }
    Ok(rows.into())
}
