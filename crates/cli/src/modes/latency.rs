//! `--latency` and `--latency-history`: the latency of PING, sampled a hundred times per second.

use crate::format::Output;
use crate::link::LinkError;
use crate::session::Session;
use crate::{pause, screen};
use std::time::{Duration, Instant};

/// Interval between two samples.
pub(super) const SAMPLED_EVERY: Duration = Duration::from_millis(10);
const INTERVAL: Duration = Duration::from_secs(1);
const INTERVAL_OF_HISTORY: Duration = Duration::from_secs(15);

/// Latencies of an interval, in milliseconds.
#[derive(Debug, Default)]
struct Samples {
    least: u64,
    most: u64,
    sum: u64,
    count: u64,
}

impl Samples {
    fn add(&mut self, latency: u64) {
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.most = self.most.max(latency);
        self.sum += latency;
        self.count += 1;
    }

    fn shown(&self, output: Output) -> String {
        let Samples { least, most, sum, count } = self;
        let mean = if *count == 0 { 0.0 } else { *sum as f64 / *count as f64 };
        match output {
            Output::Standard => {
                format!("min: {least}, max: {most}, avg: {mean:.2} ({count} samples)")
            }
            Output::Csv => format!("{least},{most},{mean:.2},{count}\n"),
            Output::Raw => format!("{least} {most} {mean:.2} {count}\n"),
            Output::Json | Output::QuotedJson => format!(
                "{{\"min\": {least}, \"max\": {most}, \"avg\": {mean:.2}, \"count\": {count}}}\n"
            ),
        }
    }
}

/// Measures the latency of one PING.
pub(super) fn sample(session: &mut Session) -> Result<Duration, LinkError> {
    let begin = Instant::now();
    session.request(&["PING"])?;
    Ok(begin.elapsed())
}

pub(super) fn run(session: &mut Session) -> i32 {
    let output = session.options.output;
    let history = session.options.latency_history;
    let interval = match (session.options.interval_us, history) {
        (0, true) => INTERVAL_OF_HISTORY,
        (0, false) => INTERVAL,
        (interval, _) => Duration::from_micros(interval),
    };
    let (mut samples, mut begin) = (Samples::default(), Instant::now());
    loop {
        match sample(session) {
            Ok(latency) => samples.add(u64::try_from(latency.as_millis()).unwrap_or(u64::MAX)),
            Err(_) => {
                screen::flush();
                screen::warn("\nI/O error\n");
                return 1;
            }
        }
        let took = begin.elapsed();
        let is_over = took > interval;
        match output {
            Output::Standard => screen::print(format!("\x1b[0G\x1b[2K{}", samples.shown(output))),
            _ if history => screen::print(samples.shown(output)),
            _ if is_over => {
                screen::print(samples.shown(output));
                return 0;
            }
            _ => {}
        }
        if history && is_over {
            if output == Output::Standard {
                screen::print(format!(" -- {:.2} seconds range\n", took.as_secs_f64()));
            }
            (samples, begin) = (Samples::default(), Instant::now());
        }
        screen::flush();
        pause::pause(SAMPLED_EVERY);
    }
}
