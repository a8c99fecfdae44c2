//! Simulates power failures and disk errors at any call that the append-only file makes.
//!
//! | file | purpose |
//! |---|---|
//! | `server` | the operations, which call the functions of the real server |
//! | `promises` | the data that the next start must find |
//! | `errors` | makes each call of each operation fail once |
//!
//! The number of a run is its seed. `BRISK_POWER_SEED=17` repeats run 17, and `BRISK_POWER_CUTS=1000000` sets the
//! number of runs.

mod errors;
mod promises;
mod server;

use crate::persistence::simulated::Simulated;
use brisk_config::choice::AppendFsync;
use brisk_testkit::random::Random;
use promises::{Promises, Seen};
use server::{DIR, Server, home, style, transaction};
use std::path::Path;

/// Default number of runs.
const RUNS: u64 = 3000;

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn acknowledged_writes_survive_any_loss_of_power() {
    if let Some(seed) = env_number("BRISK_POWER_SEED") {
        run(seed);
        return;
    }
    let (runs, mut seen) = (env_number("BRISK_POWER_CUTS").unwrap_or(RUNS), Seen::default());
    for seed in 0..runs {
        let Ok(of_run) = std::panic::catch_unwind(|| run(seed)) else {
            panic!("BRISK_POWER_SEED={seed} repeats this run");
        };
        seen.add(of_run);
    }
    println!("{runs} runs: {seen:?}");
    // Each event must occur: a disk that keeps everything, or files without writes, would test nothing.
    assert!(runs < RUNS || seen.least() > runs / 100, "{seen:?}");
}

/// Runs a server several times. Each run ends with a power failure or a signal.
fn run(seed: u64) -> Seen {
    let mut random = Random::new(seed);
    let disk = Simulated::new(random.bits());
    disk.put_dir(Path::new(DIR));
    let mut promises = Promises::default();
    if random.percent(15) {
        let commands = random.below(5) as u64;
        disk.put(&home().single, &old_file(commands, random.percent(50)));
        promises = Promises::of_old(commands);
    }
    for _ in 0..=random.below(4) {
        disk.repair();
        plan_faults(&disk, &mut random);
        promises = live(&disk, promises, &mut random);
    }
    disk.repair();
    promises = begin(&disk, promises, &mut random)
        .unwrap_or_else(|(reason, _)| panic!("{reason}"))
        .promises;
    disk.restart();
    promises.lose_power();
    begin(&disk, promises, &mut random)
        .unwrap_or_else(|(reason, _)| panic!("{reason}"))
        .promises
        .seen
}

/// The single file of a server older than Redis 7, followed by half a command if `is_torn`.
fn old_file(commands: u64, is_torn: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = (1..=commands).flat_map(|number| transaction(number, 1, 5)).collect();
    if is_torn {
        let half = transaction(commands + 1, 1, 100);
        bytes.extend_from_slice(&half[..half.len() / 2]);
    }
    bytes
}

fn plan_faults(disk: &Simulated, random: &mut Random) {
    if random.percent(80) {
        let calls = *random.pick(&[10, 40, 150]);
        disk.cut_at(random.below(calls));
    }
    match random.below(4) {
        0 => disk.fail_per_mille(*random.pick(&[5, 30, 100]), None),
        1 => disk.fail_per_mille(300, Some(*random.pick(&CALLS))),
        2 => disk.leave_room(random.below(20_000)),
        _ => {}
    }
}

fn begin(
    disk: &Simulated,
    promises: Promises,
    random: &mut Random,
) -> Result<Server, (String, Promises)> {
    let policy = *random.pick(&[AppendFsync::Always, AppendFsync::EverySecond, AppendFsync::No]);
    let style = style(random);
    Server::start(disk, promises, style, policy, random.percent(30))
}

/// The kinds of calls. In some runs, only calls of one kind fail.
const CALLS: [&str; 9] =
    ["create", "write", "sync", "sync_data", "set_len", "rename", "sync_dir", "remove", "read"];

/// Runs a server once, from startup to exit.
fn live(disk: &Simulated, promises: Promises, random: &mut Random) -> Promises {
    let mut server = match begin(disk, promises, random) {
        Ok(server) => server,
        Err((reason, promises)) => {
            assert!(disk.has_failed(), "{reason}");
            return cut(disk, promises);
        }
    };
    server.note_promises();
    for _ in 0..random.below(80) {
        let ends = step(&mut server, random).is_err();
        if ends && random.percent(50) {
            server.write_once_more();
        }
        server.note_promises();
        if disk.is_off() || ends {
            return cut(disk, server.promises);
        }
    }
    let is_cut = disk.is_off() || random.percent(50);
    if is_cut { cut(disk, server.promises) } else { server.promises }
}

fn cut(disk: &Simulated, mut promises: Promises) -> Promises {
    disk.restart();
    promises.lose_power();
    promises
}

fn step(server: &mut Server, random: &mut Random) -> Result<(), server::Ends> {
    match random.below(100) {
        0..40 => {
            for _ in 0..=random.below(3) {
                let padding = *random.pick(&[0, 10, 100, 600, 3000]);
                server.execute(1 + random.below(3) as u64, padding);
            }
            Ok(())
        }
        40..70 => server.write(),
        70..80 => server.sync_concurrently(),
        80..84 => {
            // A failure is ignored here. A real server logs the reason.
            let _ = server.begin_rewrite(random.percent(70));
            Ok(())
        }
        84..97 => {
            let _ = server.advance_rewrite(random.percent(80));
            Ok(())
        }
        97 => server.switch_off(),
        _ if server.rewrites() => server.write(),
        _ => Ok(()),
    }
}
