//! `--intrinsic-latency`: measures how long the kernel keeps the process off the CPU. No server is contacted.

use crate::options::Options;
use crate::screen;
use signal_hook::consts::SIGINT;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Number of steps per run, which takes a few hundred nanoseconds.
const STEPS: u64 = 64;

pub(super) fn run(options: &Options) -> i32 {
    let stopped = Arc::new(AtomicBool::new(false));
    // If this fails, Ctrl-C ends the program without a summary.
    let _ = signal_hook::flag::register(SIGINT, Arc::clone(&stopped));
    let time = Duration::from_secs(options.intrinsic_seconds);
    let begin = Instant::now();
    let (mut runs, mut most) = (0u64, 0);
    let mut before = begin;
    while before.duration_since(begin) < time && !stopped.load(Ordering::Relaxed) {
        work();
        let now = Instant::now();
        let micros = now.duration_since(before).as_micros();
        before = now;
        runs += 1;
        if micros > most {
            most = micros;
            screen::print(format!("Max latency so far: {most} microseconds.\n"));
            screen::flush();
        }
    }
    let mean = before.duration_since(begin).as_secs_f64() * 1e6 / runs.max(1) as f64;
    let times = if mean > 0.0 { most as f64 / mean } else { 0.0 };
    screen::print(format!(
        "\n{runs} total runs (avg latency: {mean:.4} microseconds / {:.2} nanoseconds per run).\n\
         Worst run took {times:.0}x longer than the average latency.\n",
        mean * 1000.0
    ));
    0
}

fn work() {
    let mut sum = 0u64;
    for step in 0..STEPS {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(step));
    }
    black_box(sum);
}
