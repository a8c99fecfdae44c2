//! `--scan`: prints all keys, one per line.

use super::keyspace::{KeyScan, failed};
use crate::format::Output;
use crate::link::Link;
use crate::options::Options;
use crate::quote::quote;
use crate::{pause, screen};
use std::time::Duration;

/// The server's default for COUNT.
const COUNT_OF_SERVERS: i64 = 10;

pub(super) fn run(link: &mut Link, options: &Options) -> i32 {
    let count = (options.count != COUNT_OF_SERVERS).then_some(options.count);
    let mut scan = KeyScan::new(options.pattern.as_deref(), count);
    loop {
        match scan.step(link) {
            Ok(Some(keys)) => {
                for key in keys {
                    match options.output {
                        Output::Standard => screen::print(format!("{}\n", quote(&key))),
                        _ => screen::print([&key[..], b"\n"].concat()),
                    }
                }
                if options.interval_us > 0 {
                    screen::flush();
                    pause::pause(Duration::from_micros(options.interval_us));
                }
            }
            Ok(None) => return 0,
            Err(error) => return failed(error),
        }
    }
}
