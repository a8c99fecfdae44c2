//! Makes each call of each operation fail once. The error must be reported, except in cleanup steps. No data is lost,
//! regardless of what happens next, and a later attempt succeeds.

use super::old_file;
use super::promises::Promises;
use super::server::{DIR, Server, home};
use crate::persistence::aof::files::BaseStyle;
use crate::persistence::disk::Disk;
use crate::persistence::simulated::Simulated;
use brisk_config::choice::AppendFsync;
use brisk_persist::aof::BaseFormat;
use std::path::Path;

/// Number of random variations of the effect of a failure and of a power failure.
const SEEDS: u64 = 8;

/// A disk, and a server if one is running.
struct World {
    disk: Simulated,
    server: Option<Server>,
    promises: Promises,
    format: BaseFormat,
}

impl World {
    fn empty(seed: u64, format: BaseFormat) -> World {
        let disk = Simulated::new(seed);
        disk.put_dir(Path::new(DIR));
        World { disk, server: None, promises: Promises::default(), format }
    }

    /// A disk with the single file of a server older than Redis 7.
    fn old(seed: u64, format: BaseFormat) -> World {
        let world = World::empty(seed, format);
        world.disk.put(&home().single, &old_file(4, true));
        World { promises: Promises::of_old(4), ..world }
    }

    /// A running server that has written some data. A part of the data is durable.
    fn running(seed: u64, format: BaseFormat) -> World {
        let mut world = World::empty(seed, format);
        world.start().unwrap();
        world.append().unwrap();
        let server = world.server();
        server.execute(2, 700);
        server.write().unwrap();
        server.note_promises();
        world
    }

    /// The files that a running server leaves when it is killed, with a torn end.
    fn left(seed: u64, format: BaseFormat) -> World {
        let mut world = World::running(seed, format);
        world.kill();
        let increment = home().dir.join("appendonly.aof.1.incr.aof");
        let file = world.disk.open_to_append(&increment).unwrap();
        world.disk.append(&file, b"#B:9:100:01234567:5\r\n", b"*3\r\n$5\r\nRPU").unwrap();
        world
    }

    fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("the server runs")
    }

    fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            self.promises = server.promises;
        }
    }

    fn start(&mut self) -> Result<(), String> {
        self.kill();
        let style = BaseStyle { format: self.format, by_steps: false, has_timestamps: true };
        let promises = self.promises.clone();
        match Server::start(&self.disk, promises, style, AppendFsync::Always, false) {
            Ok(server) => {
                self.server = Some(server);
                Ok(())
            }
            Err((reason, _)) => Err(reason),
        }
    }

    fn append(&mut self) -> Result<(), String> {
        let server = self.server();
        server.execute(1, 20);
        server.execute(3, 200);
        let written = server.write();
        server.note_promises();
        if written.is_err() {
            self.kill();
            return Err("it ends".to_owned());
        }
        if self.server().aof.has_pending() { Err("not all is written".to_owned()) } else { Ok(()) }
    }

    fn rewrite(&mut self) -> Result<(), String> {
        self.server().begin_rewrite(true)?;
        self.append()?;
        self.server().advance_rewrite(true)?;
        self.server().advance_rewrite(true)?;
        self.server().note_promises();
        if self.server().rewrites() { Err("it goes on".to_owned()) } else { self.append() }
    }

    fn switch(&mut self) -> Result<(), String> {
        if self.server().switch_off().is_err() {
            self.kill();
            return Err("it ends".to_owned());
        }
        self.server().execute(1, 20);
        self.rewrite()
    }
}

/// The possible events after a failure.
const THEN: [fn(&mut World); 3] = [|_| (), World::kill, lose_power];

fn lose_power(world: &mut World) {
    world.kill();
    world.disk.restart();
    world.promises.lose_power();
}

type Prepare = fn(u64, BaseFormat) -> World;
type Work = fn(&mut World) -> Result<(), String>;

/// Makes one call after another fail and checks the result. Returns the calls whose failure was not reported.
fn unreported(prepare: Prepare, work: Work, format: BaseFormat) -> Vec<&'static str> {
    let mut unreported = Vec::new();
    for call in 0.. {
        let (mut has_failed, mut was_reported) = (None, true);
        for (seed, then) in (0..SEEDS).flat_map(|seed| THEN.map(|then| (seed, then))) {
            let mut world = prepare(seed, format);
            let was_running = world.server.is_some();
            world.disk.repair();
            world.disk.fail_at(call);
            let result = work(&mut world);
            if !world.disk.has_failed() {
                break;
            }
            let name = world.disk.calls()[call];
            has_failed = Some(name);
            was_reported &= result.is_err();
            world.disk.repair();
            // Data that the disk lost stays in memory until the machine stops, so a process cannot notice the loss.
            let then = if name == "sync_data" { lose_power } else { then };
            then(&mut world);
            let expect = |result: Result<(), String>| {
                result.unwrap_or_else(|reason| panic!("{call} {name}, seed {seed}: {reason}"));
            };
            if world.server.is_none() {
                expect(world.start());
            }
            if was_running {
                expect(work(&mut world));
            }
            expect(world.append());
            // All data promised so far must exist, regardless of earlier failures.
            lose_power(&mut world);
            expect(world.start());
        }
        match has_failed {
            Some(name) if !was_reported => unreported.push(name),
            Some(_) => {}
            None => break,
        }
    }
    unreported
}

#[test]
fn each_failure_is_reported_loses_nothing_and_a_later_attempt_succeeds() {
    let sizes = ["len_of", "len_of"];
    // The history files are removed, and a manifest that no longer names them is written.
    let tidied = ["remove", "remove", "create", "write", "sync", "rename", "sync_dir"];
    for format in [BaseFormat::Rdb, BaseFormat::Commands] {
        // The snapshot is written first and then converted to commands.
        let snapshot = if format == BaseFormat::Rdb { &[][..] } else { &["remove"] };
        let begins = [snapshot, &sizes[..]].concat();
        assert_eq!(unreported(World::empty, World::start, format), begins, "the first start");
        // Write commands get the error later.
        let goes_on = ["write", "len_of", "len_of"];
        assert_eq!(unreported(World::left, World::start, format), goes_on, "a start");
        assert_eq!(unreported(World::old, World::start, format), sizes, "an upgrade");
        let none: [&str; 0] = [];
        assert_eq!(unreported(World::running, World::append, format), none, "writing");
        let rewrite = [snapshot, &tidied, &sizes].concat();
        assert_eq!(unreported(World::running, World::rewrite, format), rewrite, "a rewrite");
        assert_eq!(unreported(World::running, World::switch, format), rewrite, "off and on");
    }
}
