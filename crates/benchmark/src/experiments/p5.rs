//! P5: steps that depend on earlier results, as single requests, as pipelines, and as a script.

use super::finding::Measurement;
use super::stage::{Filler, Stage, connect, request};
use super::{Experiment, Found};
use crate::delay::{DelayPlan, DelayProxy};
use crate::requester::{Requester, text_of};
use crate::subject::{Subject, local_target};
use brisk_dial::address::Address;
use brisk_resp::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "p5",
    title: "A script compared with a pipeline",
    what: "A lookup of three steps, each of which reads the key found by the previous step. One \
           client does 10,000 such lookups (2,000 short) with single GETs and with one script per \
           lookup, and 100,000 (20,000 short) with pipelines of 100 GETs, one pipeline per step, \
           and with pipelines of 100 scripts; then all of this with a round trip time of 0.5 ms \
           (200 and 5,000 lookups). The article says that a script is faster than a pipeline if a \
           step needs the result of the previous one, and gives no numbers: a speedup above 1 confirms \
           it.",
    run,
};

const STEPS: usize = 3;
const CHAINS: usize = 1000;
const BATCH: usize = 100;
/// The number of lookups over the distant network one by one. The next constant is the number of concurrent ones.
const FAR: usize = 200;
const FAR_TOGETHER: usize = 5000;
const LAN: Duration = Duration::from_micros(250);
const SCRIPT: &str =
    "local key = KEYS[1]; for _ = 1, 3 do key = redis.call('GET', key) end; return key";

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let rows = stage.turns(
        &[],
        |subject, _| fill(subject),
        |subject, size| {
            let mut near = connect(subject)?;
            let sha = request(&mut near, &["SCRIPT", "LOAD", SCRIPT])?;
            let sha = text_of(&sha).ok_or("SCRIPT LOAD returned no digest")?;
            let (few, many) = (size.pick(2000, 10_000), size.pick(20_000, 100_000));
            let singles = timed(subject, few, |lookups| single(&mut near, lookups, 1))?;
            let pipelines = timed(subject, many, |lookups| single(&mut near, lookups, BATCH))?;
            let scripts = timed(subject, few, |lookups| scripted(&mut near, &sha, lookups, 1))?;
            let together =
                timed(subject, many, |lookups| scripted(&mut near, &sha, lookups, BATCH))?;
            let (_proxy, mut far) = far(subject)?;
            let far_singles = timed(subject, FAR, |lookups| single(&mut far, lookups, 1))?.us;
            let far_scripts =
                timed(subject, FAR, |lookups| scripted(&mut far, &sha, lookups, 1))?.us;
            let far_pipelines =
                timed(subject, FAR_TOGETHER, |lookups| single(&mut far, lookups, BATCH))?.us;
            let far_together =
                timed(subject, FAR_TOGETHER, |lookups| scripted(&mut far, &sha, lookups, BATCH))?
                    .us;
            let mut measurements = Vec::new();
            for (what, spent) in [
                ("single GETs", &singles),
                ("pipelines of GETs", &pipelines),
                ("a script each", &scripts),
                ("pipelines of scripts", &together),
            ] {
                measurements.push(Measurement::less(
                    format!("loopback: {what}"),
                    "us/lookup",
                    spent.us,
                ));
                let what = format!("loopback: {what}, server CPU");
                measurements.push(Measurement::less(what, "us CPU/lookup", spent.cpu_us));
            }
            measurements.extend([
                Measurement::less("LAN: single GETs", "us/lookup", far_singles),
                Measurement::less("LAN: pipelines of GETs", "us/lookup", far_pipelines),
                Measurement::less("LAN: a script each", "us/lookup", far_scripts),
                Measurement::less("LAN: pipelines of scripts", "us/lookup", far_together),
            ]);
            for (what, without, with) in [
                ("loopback: scripts over single GETs", singles.us, scripts.us),
                ("loopback: pipelined scripts over pipelined GETs", pipelines.us, together.us),
                ("LAN: scripts over single GETs", far_singles, far_scripts),
                ("LAN: pipelined scripts over pipelined GETs", far_pipelines, far_together),
            ] {
                measurements.push(Measurement::plain(
                    format!("speedup, {what}"),
                    "×",
                    without / with,
                ));
            }
            Ok(measurements)
        },
    )?;
    Ok(rows.into())
}

/// The time per lookup.
struct Spent {
    /// Elapsed time for the client, in µs.
    us: f64,
    /// CPU time of the server, in µs.
    cpu_us: Option<f64>,
}

/// Measures `lookups` lookups, after some unmeasured ones, because a server does additional setup for its first script.
fn timed(
    subject: &Subject,
    lookups: usize,
    mut work: impl FnMut(usize) -> Result<(), String>,
) -> Result<Spent, String> {
    work(BATCH)?;
    let (before, begun) = (subject.usage(), Instant::now());
    work(lookups)?;
    let us = begun.elapsed().as_secs_f64() * 1e6 / lookups as f64;
    let used = subject.usage().zip(before);
    let cpu_us = used.map(|(after, before)| {
        after.cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1000.0 / lookups as f64
    });
    Ok(Spent { us, cpu_us })
}

/// The key of a step. Its value is the key of the next step.
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

fn far(subject: &Subject) -> Result<(DelayProxy, Requester), String> {
    let Address::Tcp { resolved, .. } = &subject.target.address else {
        return Err("the proxy uses TCP: specify a server by host and port".to_owned());
    };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let plan = DelayPlan { listen, to: *resolved, delay: LAN, jitter: Duration::ZERO };
    let proxy = DelayProxy::start(plan).map_err(|error| error.to_string())?;
    let requester = Requester::connect(&local_target(proxy.address().port()));
    Ok((proxy, requester.map_err(|error| error.to_string())?))
}

/// Lookups by GET, `side_by_side` at a time. Each step of these lookups is one pipeline.
fn single(requester: &mut Requester, lookups: usize, side_by_side: usize) -> Result<(), String> {
    for first in (0..lookups).step_by(side_by_side) {
        let chains: Vec<usize> = (first..first + side_by_side).map(|i| i % CHAINS).collect();
        let mut keys: Vec<String> = chains.iter().map(|&chain| key(chain, 0)).collect();
        for _ in 0..STEPS {
            let requests: Vec<[&str; 2]> = keys.iter().map(|key| ["GET", key.as_str()]).collect();
            keys = text_replies(requester, &requests)?;
        }
        check(&chains, &keys)?;
    }
    Ok(())
}

/// Lookups by script, `together` in one pipeline.
fn scripted(
    requester: &mut Requester,
    sha: &str,
    lookups: usize,
    together: usize,
) -> Result<(), String> {
    for first in (0..lookups).step_by(together) {
        let chains: Vec<usize> = (first..first + together).map(|i| i % CHAINS).collect();
        let keys: Vec<String> = chains.iter().map(|&chain| key(chain, 0)).collect();
        let requests: Vec<[&str; 4]> = keys.iter().map(|key| ["EVALSHA", sha, "1", key]).collect();
        check(&chains, &text_replies(requester, &requests)?)?;
    }
    Ok(())
}

fn check(chains: &[usize], found: &[String]) -> Result<(), String> {
    match chains.iter().zip(found).find(|&(&chain, found)| *found != key(chain, STEPS)) {
        Some((chain, found)) => Err(format!("chain {chain} ended at \"{found}\"")),
        None => Ok(()),
    }
}

fn text_replies<W: AsRef<[u8]>>(
    requester: &mut Requester,
    requests: &[impl AsRef<[W]>],
) -> Result<Vec<String>, String> {
    let mut bytes = Vec::new();
    requests.iter().for_each(|words| brisk_resp::request::encode(&mut bytes, words.as_ref()));
    requester.send(&bytes).map_err(|error| error.to_string())?;
    let text_reply = |_| match requester.reply().map_err(|error| error.to_string())? {
        Value::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        value => text_of(&value).ok_or_else(|| "not a string".to_owned()),
    };
    (0..requests.len()).map(text_reply).collect()
}
