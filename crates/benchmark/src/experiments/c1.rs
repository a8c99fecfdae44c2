//! C1: one connection that all callers share, on loopback and over a distant network.

use super::callers::{Callers, Mode, Sent};
use super::stage::{Size, Stage};
use super::{Experiment, Found};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "c1",
    title: "One connection for all callers",
    what: "The client library sends SETs with 5 bytes of key and value over one connection. One \
           caller waits for each reply; with 50, 100 and 200 callers, their commands are pipelined \
           automatically. Measured on loopback and with round trip times of 1 and 12 ms. The \
           article's numbers are for one Jedis connection at 12 ms and for one Lettuce connection \
           with 200 threads at 12 ms. The upper bound is callers divided by round trip time: 16,667 \
           per second in the last case. The library is the same for all servers.",
    run,
};

const CALLERS: [usize; 4] = [1, 50, 100, 200];
const RTTS_MS: [u64; 3] = [0, 1, 12];

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |_, _| Ok(()),
        |subject, size| {
            let mut measurements = Vec::new();
            for load in loads(size) {
                let article = match (load.rtt_ms, load.callers) {
                    (12, 1) => Some(80.0),
                    (12, 200) => Some(7000.0),
                    _ => None,
                };
                measurements.extend(load.measurements(subject, size, article)?);
            }
            Ok(measurements)
        },
    )?;
    Ok(rows.into())
}

fn loads(size: &Size) -> Vec<Callers> {
    let load = |rtt_ms, callers| Callers {
        sent: Sent::Set,
        mode: Mode::Lanes(1),
        callers,
        rtt_ms,
        has_timeouts: true,
    };
    let all = RTTS_MS.iter().flat_map(|rtt_ms| CALLERS.map(|callers| load(*rtt_ms, callers)));
    // A short run keeps only the extremes.
    all.filter(|load| !size.short || (load.rtt_ms != 1 && matches!(load.callers, 1 | 200)))
        .collect()
}
