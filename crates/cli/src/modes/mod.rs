//! The modes of the program other than sending commands. Each mode is selected by an option and has its own file.

mod analyze;
mod bigkeys;
mod doctor;
mod eval;
mod hotkeys;
mod hotkeys_sample;
mod intrinsic;
mod keyspace;
mod latency;
mod latency_dist;
mod lru;
mod migrate;
mod peek;
mod pipe;
mod pipe_cluster;
pub(crate) mod rdb;
pub(crate) mod replica;
mod sampling;
mod scan;
mod stat;
mod top;

use crate::info::InfoFields;
use crate::link::LinkError;
use crate::options::Mode;
use crate::screen;
use crate::session::{Loudness, Session};

/// Runs a mode until it ends. Returns the exit code.
pub(crate) fn run(mode: &Mode, session: &mut Session) -> i32 {
    match mode {
        // These modes need no connection of the session, or open their own.
        Mode::Command | Mode::Cluster => 0,
        Mode::Analyze => analyze::run(session),
        Mode::Migrate => migrate::run(session),
        Mode::IntrinsicLatency => intrinsic::run(&session.options),
        Mode::Eval => eval::run(session),
        _ => {
            // If the server rejected the password, the database or the protocol, a mode would read the wrong data.
            if session.connect(Loudness::Loud).is_err() {
                return 1;
            }
            match mode {
                Mode::Latency => latency::run(session),
                Mode::LatencyDist => latency_dist::run(session),
                Mode::LruTest => lru::run(session),
                Mode::Stat => stat::run(session),
                Mode::Top => top::run(session),
                Mode::Doctor => doctor::run(session),
                Mode::Peek => peek::run(session),
                _ => with_link(mode, session),
            }
        }
    }
}

/// Runs a mode that needs the connection for itself.
fn with_link(mode: &Mode, session: &mut Session) -> i32 {
    let Some(mut link) = session.take_link() else { return 1 };
    let options = &session.options;
    match mode {
        Mode::Pipe if options.cluster_mode => pipe_cluster::run(link, session),
        Mode::Pipe => pipe::run(&mut link, options),
        Mode::Rdb => rdb::run(&mut link, options),
        Mode::Replica => replica::run(link, session),
        Mode::Scan => scan::run(&mut link, options),
        Mode::BigKeys => bigkeys::run(&mut link, options, bigkeys::Measure::Elements),
        Mode::MemKeys => bigkeys::run(&mut link, options, bigkeys::Measure::Memory),
        Mode::HotKeys => hotkeys::run(&mut link, options),
        _ => 0,
    }
}

/// Ends the program because the connection is lost.
fn lost(error: &LinkError) -> i32 {
    screen::flush();
    screen::warn(format!("Error: {error}\n"));
    1
}

/// The result of a request in a mode that sends one request after another.
type LinkResult<T> = Result<T, LinkError>;

/// The name and the version of the server.
fn version(info: &InfoFields) -> String {
    let products =
        [("brisk_version", "Brisk"), ("valkey_version", "Valkey"), ("redis_version", "Redis")];
    let known = products.iter().find_map(|(field, name)| Some((*name, info.get(field)?)));
    known.map_or_else(|| "unknown server".to_owned(), |(name, version)| format!("{name} {version}"))
}
