//! `--latency-dist`: the distribution of latencies, as a band of colors for each second.

use super::latency::{SAMPLED_EVERY, sample};
use crate::session::Session;
use crate::{pause, screen};
use std::fmt::Write;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);
/// Number of bands after which the legend is repeated.
const BANDS_PER_LEGEND: u64 = 21;

/// Colors from none to all of the samples, as numbers of the terminal's 256 colors.
const COLOURS: &[u8] =
    &[0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];
const GREYS: &[u8] = &[0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253];

/// The classes, each with its upper limit in microseconds and its letter. The last class contains all higher latencies.
const CLASSES: &[(u64, char)] = &[
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (60_000_000, 'Q'),
    (u64::MAX, '?'),
];

pub(super) fn run(session: &mut Session) -> i32 {
    let interval = match session.options.interval_us {
        0 => INTERVAL,
        interval => Duration::from_micros(interval),
    };
    let palette = if session.options.monochrome { GREYS } else { COLOURS };
    let mut counts = vec![0u64; CLASSES.len()];
    let (mut bands, mut begin) = (0u64, Instant::now());
    loop {
        let Ok(latency) = sample(session) else {
            screen::flush();
            screen::warn("\nI/O error\n");
            return 1;
        };
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let class = CLASSES.iter().position(|(most, _)| micros <= *most);
        counts[class.unwrap_or(CLASSES.len() - 1)] += 1;
        if begin.elapsed() > interval {
            if bands.is_multiple_of(BANDS_PER_LEGEND) {
                screen::print(legend(palette));
            }
            bands += 1;
            screen::print(band(&counts, palette));
            screen::flush();
            counts.fill(0);
            begin = Instant::now();
        }
        pause::pause(SAMPLED_EVERY);
    }
}

fn legend(palette: &[u8]) -> String {
    let line = "-".repeat(45);
    let mut text = format!(
        "{line}\n\
         . - * #          .01 .125 .25 .5 milliseconds\n\
         1,2,3,...,9      from 1 to 9     milliseconds\n\
         A,B,C,D,E        10,20,30,40,50  milliseconds\n\
         F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n\
         K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n\
         From 0 to 100%: "
    );
    for color in palette {
        // Writing to a string cannot fail.
        let _ = write!(text, "\x1b[48;5;{color}m ");
    }
    text + "\x1b[0m\n" + &line + "\n"
}

fn band(counts: &[u64], palette: &[u8]) -> String {
    let total: u64 = counts.iter().sum();
    let mut text = "\x1b[38;5;0m".to_owned();
    for (count, (_, letter)) in counts.iter().zip(CLASSES) {
        let share = if total == 0 { 0.0 } else { *count as f64 / total as f64 };
        // Round up, so that every class with samples has a color.
        let at = (share * (palette.len() - 1) as f64).ceil() as usize;
        let _ = write!(text, "\x1b[48;5;{}m{letter}", palette[at.min(palette.len() - 1)]);
    }
    text + "\x1b[0m\n"
}
