//! The settings that commands depend on.

use crate::base::event::EventClass;
use crate::types::EncodingLimits;

/// The settings that commands depend on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `proto-max-bulk-len`: longest string, in bytes.
    pub string_bytes_max: u64,
    /// True if `maxmemory` sets a limit.
    pub limited: bool,
    pub eviction: EvictionPolicy,
    pub maxmemory_samples: u32,
    pub lfu_log_factor: u32,
    pub lfu_decay_minutes: u32,
    pub lazy_expire: bool,
    pub lazy_eviction: bool,
    /// True if keys that commands empty are propagated as UNLINK.
    pub lazy_server_del: bool,
    pub lazy_user_del: bool,
    pub lazy_user_flush: bool,
    pub events: EventClass,
    pub limits: EncodingLimits,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: payloads are accepted regardless of their checksum.
    pub skips_checksums: bool,
    /// `cluster-enabled`: commands use only database 0, and only keys that they name.
    pub in_cluster: bool,
    pub dialect: Dialect,
}

impl Default for Settings {
    /// Redis's defaults.
    fn default() -> Settings {
        Settings {
            string_bytes_max: 512 * 1024 * 1024,
            limited: false,
            eviction: EvictionPolicy::NoEviction,
            maxmemory_samples: 5,
            lfu_log_factor: 10,
            lfu_decay_minutes: 1,
            lazy_expire: false,
            lazy_eviction: false,
            lazy_server_del: false,
            lazy_user_del: false,
            lazy_user_flush: false,
            events: EventClass::empty(),
            limits: EncodingLimits::default(),
            skips_checksums: false,
            in_cluster: false,
            dialect: Dialect::Redis,
        }
    }
}

/// `dialect`: the server whose wording and rules apply where Redis and Valkey differ, as listed in
/// docs/compatibility.md.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Redis 7.
    #[default]
    Redis,
    /// Valkey 8.
    Valkey,
}

impl Dialect {
    /// The server's name for itself in errors.
    pub const fn title(self) -> &'static str {
        match self {
            Dialect::Redis => "Redis",
            Dialect::Valkey => "Valkey",
        }
    }

    /// The term for a replica's primary in log lines.
    pub const fn primary_words(self) -> PrimaryWords {
        match self {
            Dialect::Redis => PrimaryWords { lower: "master", title: "Master", upper: "MASTER" },
            Dialect::Valkey => {
                PrimaryWords { lower: "primary", title: "Primary", upper: "PRIMARY" }
            }
        }
    }
}

/// A dialect's term for a primary, in the spellings that log lines use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimaryWords {
    /// In lower case.
    pub lower: &'static str,
    /// With a capital.
    pub title: &'static str,
    /// In capitals.
    pub upper: &'static str,
}

/// `maxmemory-policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionPolicy {
    NoEviction,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
}

impl EvictionPolicy {
    /// Reports whether access clocks count frequency, not recency.
    pub const fn is_lfu(self) -> bool {
        matches!(self, EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu)
    }
    /// Reports whether access clocks order keys by recency.
    pub const fn is_lru(self) -> bool {
        matches!(self, EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru)
    }
    /// Reports whether only keys with a TTL may be evicted.
    pub const fn volatile_only(self) -> bool {
        matches!(
            self,
            EvictionPolicy::VolatileLru
                | EvictionPolicy::VolatileLfu
                | EvictionPolicy::VolatileRandom
                | EvictionPolicy::VolatileTtl
        )
    }
}
