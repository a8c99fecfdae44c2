//! P5: steps that need each other's results, as single requests, as pipelines and as a script.

use super::finding::Figure;
use super::stage::{Filler, Stage, ask, connect};
use super::{Experiment, Found};
use crate::address::Address;
use crate::ask::{Asker, text_of, write_request};
use crate::delay::{DelayPlan, DelayProxy};
use crate::subject::{Subject, local_target};
use brisk_resp::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "p5",
    title: "A script against a pipeline",
    what: "A lookup of three steps, each of which reads the key that the step before found. One client \
           does 2,000 such lookups: with single GETs, with pipelines of 100 GETs (one pipeline per \
           step), with a script per lookup, and with pipelines of 100 scripts; then the first and the \
           third with a round trip of 0.5 ms (200 lookups). The article gives no figures.",
    run,
};

const STEPS: usize = 3;
const CHAINS: usize = 1000;
const BATCH: usize = 100;
const LAN: Duration = Duration::from_micros(250);
const SCRIPT: &str =
    "local key = KEYS[1]; for _ = 1, 3 do key = redis.call('GET', key) end; return key";

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |subject, _| fill(subject),
        |subject, _| {
            const NEAR: usize = 2000;
            const FAR: usize = 200;
            let mut near = connect(subject)?;
            let sha = ask(&mut near, &["SCRIPT", "LOAD", SCRIPT])?;
            let sha = text_of(&sha).ok_or("SCRIPT LOAD gave no digest")?;
            let timed = |lookups: usize, work: &mut dyn FnMut() -> Result<(), String>| {
                let begun = Instant::now();
                work()?;
                Ok::<f64, String>(begun.elapsed().as_secs_f64() * 1e6 / lookups as f64)
            };
            let singles = timed(NEAR, &mut || single(&mut near, NEAR, 1))?;
            let pipelines = timed(NEAR, &mut || single(&mut near, NEAR, BATCH))?;
            let scripts = timed(NEAR, &mut || scripted(&mut near, &sha, NEAR, 1))?;
            let together = timed(NEAR, &mut || scripted(&mut near, &sha, NEAR, BATCH))?;
            let (_proxy, mut far) = far(subject)?;
            let far_singles = timed(FAR, &mut || single(&mut far, FAR, 1))?;
            let far_scripts = timed(FAR, &mut || scripted(&mut far, &sha, FAR, 1))?;
            Ok(vec![
                Figure::less("loopback: single GETs", "us/lookup", singles),
                Figure::less("loopback: pipelines of GETs", "us/lookup", pipelines),
                Figure::less("loopback: a script each", "us/lookup", scripts),
                Figure::less("loopback: pipelines of scripts", "us/lookup", together),
                Figure::less("LAN: single GETs", "us/lookup", far_singles),
                Figure::less("LAN: a script each", "us/lookup", far_scripts),
                Figure::plain("LAN: gain of the script", "times", far_singles / far_scripts),
            ])
        },
    )?;
    Ok(rows.into())
}

/// The key of a step; its value is the key of the next.
fn key(chain: usize, step: usize) -> String {
    format!("chain:{chain}:{step}")
}

fn fill(subject: &Subject) -> Result<(), String> {
    let mut filler = Filler::new(subject)?;
    for chain in 0..CHAINS {
        for step in 0..STEPS {
            filler.add(&["SET", &key(chain, step), &key(chain, step + 1)])?;
        }
    }
    filler.flush()
}

fn far(subject: &Subject) -> Result<(DelayProxy, Asker), String> {
    let Address::Tcp { resolved, .. } = &subject.target.address else {
        return Err("the proxy speaks TCP: name a server by host and port".to_owned());
    };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let plan = DelayPlan { listen, to: *resolved, delay: LAN, jitter: Duration::ZERO };
    let proxy = DelayProxy::start(plan).map_err(|error| error.to_string())?;
    let asker = Asker::connect(&local_target(proxy.address().port()));
    Ok((proxy, asker.map_err(|error| error.to_string())?))
}

/// Lookups by GET, so many side by side; each step of all of them is one pipeline.
fn single(asker: &mut Asker, lookups: usize, side_by_side: usize) -> Result<(), String> {
    for first in (0..lookups).step_by(side_by_side) {
        let chains: Vec<usize> = (first..first + side_by_side).map(|i| i % CHAINS).collect();
        let mut keys: Vec<String> = chains.iter().map(|&chain| key(chain, 0)).collect();
        for _ in 0..STEPS {
            let requests: Vec<[&str; 2]> = keys.iter().map(|key| ["GET", key.as_str()]).collect();
            keys = answers(asker, &requests)?;
        }
        check(&chains, &keys)?;
    }
    Ok(())
}

/// Lookups by script, so many in a pipeline.
fn scripted(asker: &mut Asker, sha: &str, lookups: usize, together: usize) -> Result<(), String> {
    for first in (0..lookups).step_by(together) {
        let chains: Vec<usize> = (first..first + together).map(|i| i % CHAINS).collect();
        let keys: Vec<String> = chains.iter().map(|&chain| key(chain, 0)).collect();
        let requests: Vec<[&str; 4]> = keys.iter().map(|key| ["EVALSHA", sha, "1", key]).collect();
        check(&chains, &answers(asker, &requests)?)?;
    }
    Ok(())
}

fn check(chains: &[usize], found: &[String]) -> Result<(), String> {
    match chains.iter().zip(found).find(|&(&chain, found)| *found != key(chain, STEPS)) {
        Some((chain, found)) => Err(format!("chain {chain} led to \"{found}\"")),
        None => Ok(()),
    }
}

fn answers<W: AsRef<[u8]>>(
    asker: &mut Asker,
    requests: &[impl AsRef<[W]>],
) -> Result<Vec<String>, String> {
    let mut bytes = Vec::new();
    requests.iter().for_each(|words| write_request(&mut bytes, words.as_ref()));
    asker.send(&bytes).map_err(|error| error.to_string())?;
    let answer = |_| match asker.reply().map_err(|error| error.to_string())? {
        Value::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        value => text_of(&value).ok_or_else(|| "no string".to_owned()),
    };
    (0..requests.len()).map(answer).collect()
}
