//! The kind of server that a test node runs: Brisk, the real Redis, or Valkey.

use crate::server::{Launch, Program, redis_binary};
use crate::skip::skipped;
use std::fmt;
use std::path::PathBuf;

/// Environment variable with the path of the real Valkey binary. If it is unset, combinations with Valkey are skipped.
pub const VALKEY_BIN: &str = "BRISK_VALKEY_BIN";

/// The kind of server that a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Brisk,
    /// The real Redis.
    Redis,
    /// The real Valkey.
    Valkey,
}

impl Kind {
    /// A server of this kind. It sends a snapshot to a replica without waiting for more replicas, pings its replicas
    /// every second, and ends the waits of blocked clients soon after their timeouts.
    ///
    /// # Panics
    /// If the kind is Valkey and this machine has no Valkey; see [`Kind::is_there`].
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

    /// Reports whether this machine has this server. If not, prints that the calling test skips a part.
    pub fn is_there(self) -> bool {
        let is_there = self != Kind::Valkey || valkey_binary().is_some();
        if !is_there {
            skipped(&format!("no {self} on this machine ({VALKEY_BIN})"));
        }
        is_there
    }

    /// Reports whether both kinds compute `DEBUG DIGEST` in the same way. Brisk computes the digest of Redis 7.0.
    /// Valkey's digest differs because it formats scores differently.
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

/// Reports whether this machine has all of `kinds`. If not, prints that the calling test skips a part.
pub fn are_there(kinds: &[Kind]) -> bool {
    kinds.iter().all(|kind| kind.is_there())
}

/// The replication chain, in one line.
pub fn named(kinds: &[Kind]) -> String {
    kinds.iter().map(Kind::to_string).collect::<Vec<_>>().join(" -> ")
}
