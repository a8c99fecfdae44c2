//! S1: the cost of disconnecting a client while thousands are connected.

use super::finding::Measurement;
use super::stage::{Stage, measure};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s1",
    title: "8,000 clients with one connection per request",
    what: "8,000 connected clients send GETs, each over a new connection (100,000 requests, 24,000 \
           short). At most 240 wait for a reply at a time: more would overrun the listen queue of \
           511, and the kernel's retransmission timeouts would be measured. The article's server \
           handled 10,065 requests/s with a maximum latency of 969 ms while it searched a list for \
           each disconnecting client; the numbers shown are from after the fix.",
    run,
};

const CLIENTS: usize = 8000;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let workload = Material::default().own("GET".to_owned(), &["GET", "key"]);
            let plan = Plan {
                clients: CLIENTS,
                keep_alive: false,
                end: End::Requests(size.pick(24_000, 100_000)),
                ..size.plan(workload, &subject.target)
            };
            let measured = measure(&plan, subject)?;
            let latency = &measured.summary.latency_ms;
            Ok(vec![
                Measurement::more("throughput", "requests/s", measured.summary.rate)
                    .article(13_823.0)
                    .limited_as(&measured.summary),
                Measurement::less("latency, p50", "ms", latency.p50),
                Measurement::less("latency, longest", "ms", latency.max).article(431.0),
                Measurement::less("server CPU", "us/connection", measured.cpu_us),
            ])
        },
    )?;
    Ok(rows.into())
}
