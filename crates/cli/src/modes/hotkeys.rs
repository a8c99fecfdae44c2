//! `--hotkeys`: the most frequently used keys, by the counters of an LFU policy. Without such a policy,
//! `hotkeys_sample.rs` samples the requests.

use super::bigkeys::percentage;
use super::keyspace::{self, KeyScan, failed};
use super::{LinkResult, hotkeys_sample};
use crate::info::InfoFields;
use crate::link::Link;
use crate::options::Options;
use crate::progress::{Progress, Unit};
use crate::quote::quote;
use crate::screen;

/// The number of keys in the result.
const KEPT: usize = 16;
const KEYS_PER_PROGRESS_LINE: u64 = 1_000_000;

/// The hottest keys and their counters, hottest first.
#[derive(Debug, Default)]
struct Hottest(Vec<(u64, String)>);

impl Hottest {
    /// Adds a key if it is among the hottest; returns whether it is.
    fn add(&mut self, counter: u64, key: &[u8]) -> bool {
        let coldest = if self.0.len() < KEPT { 0 } else { self.0[KEPT - 1].0 };
        if counter <= coldest {
            return false;
        }
        let at = self.0.partition_point(|(other, _)| *other >= counter);
        self.0.insert(at, (counter, quote(key)));
        self.0.truncate(KEPT);
        true
    }
}

pub(super) fn run(link: &mut Link, options: &Options) -> i32 {
    match policy(link) {
        Ok(Some(policy)) if !policy.ends_with("-lfu") => {
            return hotkeys_sample::run(link, options, &policy);
        }
        Ok(_) => {}
        Err(error) => return super::lost(&error),
    }
    let total = match keyspace::size(link) {
        Ok(Some(total)) => total,
        Ok(None) => return 1,
        Err(error) => return super::lost(&error),
    };
    keyspace::print_header("hot");
    let mut progress = Progress::new("Looking", Unit::Keys, Some(total));
    let mut scan = KeyScan::new(options.pattern.as_deref(), None);
    let (mut hottest, mut sampled) = (Hottest::default(), 0u64);
    loop {
        let keys = match scan.step(link) {
            Ok(Some(keys)) => keys,
            Ok(None) => break,
            Err(error) => return failed(error),
        };
        let percent = percentage(sampled, total);
        let counters = match counters(link, &keys) {
            Ok(counters) => counters,
            Err(error) => return super::lost(&error),
        };
        for (key, counter) in keys.iter().zip(counters) {
            sampled += 1;
            if sampled.is_multiple_of(KEYS_PER_PROGRESS_LINE) {
                screen::print(format!("[{percent:05.2}%] Sampled {sampled} keys so far\n"));
            }
            if hottest.add(counter, key) {
                progress.clear();
                let key = quote(key);
                screen::print(format!(
                    "[{percent:05.2}%] Hot key '{key}' found so far with counter {counter}\n"
                ));
            }
        }
        screen::flush();
        progress.at(sampled);
        scan.pause_if_due(options.interval_us);
    }
    progress.clear();
    let mut text =
        format!("\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!\n");
    for (counter, key) in &hottest.0 {
        text.push_str(&format!("hot key found with counter: {counter}\tkeyname: {key}\n"));
    }
    screen::print(text);
    0
}

/// The eviction policy, if the server reports it.
fn policy(link: &mut Link) -> LinkResult<Option<String>> {
    let reply = link.request(&["INFO", "memory"])?;
    let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
    Ok(InfoFields::parse(&text).get("maxmemory_policy").map(str::to_owned))
}

fn counters(link: &mut Link, keys: &[Vec<u8>]) -> LinkResult<Vec<u64>> {
    let request = |key: &Vec<u8>| vec![b"OBJECT".to_vec(), b"FREQ".to_vec(), key.clone()];
    let requests: Vec<_> = keys.iter().map(request).collect();
    let mut counters = Vec::with_capacity(keys.len());
    for (key, reply) in keys.iter().zip(link.request_all(&requests)?) {
        counters.push(match (reply.as_integer(), reply.as_error()) {
            (Some(counter), _) => u64::try_from(counter).unwrap_or(0),
            (None, Some(text)) => {
                screen::flush();
                screen::warn([b"Error: ", text, b"\n"].concat());
                screen::exit(1);
            }
            (None, None) => {
                let key = String::from_utf8_lossy(key);
                screen::warn(format!(
                    "Warning: OBJECT freq on '{key}' failed (may have been deleted)\n"
                ));
                0
            }
        });
    }
    Ok(counters)
}
