//! S2: persistent connections compared with a connection per request, with 10,000 clients.

use super::finding::Measurement;
use super::stage::{Stage, measure};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;
use crate::load::suite::test_named;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s2",
    title: "10,000 connections, long-lived or short",
    what: "10,000 clients send PINGs, inline and as arrays, over long-lived connections (500,000 \
           PINGs, 100,000 short) and over one connection per PING (100,000 and 20,000; at most 240 \
           at a time, see s1). Before the article's server removed clients in constant time, it \
           handled 15,188 and 16,472 PINGs per second over short connections.",
    run,
};

const CLIENTS: usize = 10_000;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let mut measurements = Vec::new();
            for (name, test, keep_alive, article) in [
                ("long, inline", "ping_inline", true, 92_902.0),
                ("long, array", "ping_mbulk", true, 93_580.0),
                ("short, inline", "ping_inline", false, 21_884.0),
                ("short, array", "ping_mbulk", false, 21_455.0),
            ] {
                let test = test_named(test).ok_or("the suite has no PING")?;
                let requests = match keep_alive {
                    true => size.pick(100_000, 500_000),
                    false => size.pick(20_000, 100_000),
                };
                let plan = Plan {
                    clients: CLIENTS,
                    keep_alive,
                    end: End::Requests(requests),
                    ..size.plan(Material::default().test(test), &subject.target)
                };
                let measured = measure(&plan, subject)?;
                let rate = measured.summary.rate;
                measurements.extend([
                    Measurement::more(name, "requests/s", rate)
                        .article(article)
                        .limited_as(&measured.summary),
                    Measurement::less(format!("{name}: server CPU"), "us/request", measured.cpu_us),
                ]);
            }
            Ok(measurements)
        },
    )?;
    Ok(rows.into())
}
