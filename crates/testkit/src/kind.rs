//! Which server a node of a test is, as data: ours, the real Redis, or Valkey.

use crate::server::{Launch, Program, redis_binary};
use crate::skip::skipped;
use std::fmt;
use std::path::PathBuf;

/// Path of the real Valkey's binary; without it, combinations with Valkey are skipped.
pub const VALKEY_BIN: &str = "BRISK_VALKEY_BIN";

/// Which server a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Brisk,
    /// The real Redis.
    Redis,
    /// The real Valkey.
    Valkey,
}

impl Kind {
    /// A server of this kind. It sends a snapshot to a replica without waiting for more replicas,
    /// pings its replicas every second, and times out blocked clients soon after their time.
    ///
    /// # Panics
    /// If it is Valkey and there is none, see [`Kind::is_there`].
    pub fn launch(self) -> Launch {
        let program = match self {
            Kind::Brisk => Program::Brisk,
            Kind::Redis => Program::At(redis_binary()),
            Kind::Valkey => Program::At(valkey_binary().expect("callers ask whether it is there")),
        };
        let launch = Launch::new(program)
            .set("repl-diskless-sync-delay", "0")
            .set("repl-ping-replica-period", "1")
            .set("hz", "100");
        if self == Kind::Brisk { launch.set("threads", "2") } else { launch }
    }

    /// Reports whether this machine has it. If not, the calling test skips a part of itself and
    /// says so.
    pub fn is_there(self) -> bool {
        let is_there = self != Kind::Valkey || valkey_binary().is_some();
        if !is_there {
            skipped(&format!("no {self} on this machine ({VALKEY_BIN})"));
        }
        is_there
    }

    /// Reports whether both compute `DEBUG DIGEST` in the same way: ours computes the one of Redis
    /// 7.0, and Valkey prints other digits of scores.
    pub fn has_digest_of(self, other: Kind) -> bool {
        (self == Kind::Valkey) == (other == Kind::Valkey)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Brisk => "Brisk",
            Kind::Redis => "Redis",
            Kind::Valkey => "Valkey",
        })
    }
}

fn valkey_binary() -> Option<PathBuf> {
    std::env::var_os(VALKEY_BIN).map(PathBuf::from)
}

/// Reports whether this machine has all of `kinds`; if not, the calling test says so.
pub fn are_there(kinds: &[Kind]) -> bool {
    kinds.iter().all(|kind| kind.is_there())
}

/// The chain of replication, in one line.
pub fn named(kinds: &[Kind]) -> String {
    kinds.iter().map(Kind::to_string).collect::<Vec<_>>().join(" -> ")
}
