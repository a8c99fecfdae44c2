//! Settings whose value is one word of a list, and one kind with several words
//! (`shutdown-on-sig…`).
//!
//! `#[default]` marks only the value of a blank `Config`; the real default is in the directive's
//! row.

use brisk_engine::Dialect;

/// A type whose values are words. Error messages list them in the order of `WORDS`.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every word with its value.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the word of this value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }

    /// Returns the value of `word`, ignoring case.
    fn from_word(word: &[u8]) -> Option<Self> {
        let same = |(name, _): &&(&str, Self)| name.as_bytes().eq_ignore_ascii_case(word);
        Self::WORDS.iter().find(same).map(|(_, value)| *value)
    }

    /// Returns all words, for messages.
    fn list() -> String {
        Self::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
}

/// `appendfsync`: when the append-only file is synced to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppendFsync {
    /// `everysec`
    #[default]
    EverySecond,
    /// `always`
    Always,
    /// `no`
    No,
}

impl Choice for AppendFsync {
    const WORDS: &'static [(&'static str, Self)] =
        &[("everysec", Self::EverySecond), ("always", Self::Always), ("no", Self::No)];
}

/// `loglevel`: the lowest level that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `debug`
    #[default]
    Debug,
    /// `verbose`
    Verbose,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
}

impl Choice for LogLevel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("debug", Self::Debug),
        ("verbose", Self::Verbose),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
    ];
}

/// `maxmemory-policy`: which keys are evicted when memory is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionPolicy {
    /// `volatile-lru`
    VolatileLru,
    /// `volatile-lfu`
    VolatileLfu,
    /// `volatile-random`
    VolatileRandom,
    /// `volatile-ttl`
    VolatileTtl,
    /// `allkeys-lru`
    AllKeysLru,
    /// `allkeys-lfu`
    AllKeysLfu,
    /// `allkeys-random`
    AllKeysRandom,
    /// `noeviction`
    #[default]
    NoEviction,
}

impl Choice for EvictionPolicy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("volatile-lru", Self::VolatileLru),
        ("volatile-lfu", Self::VolatileLfu),
        ("volatile-random", Self::VolatileRandom),
        ("volatile-ttl", Self::VolatileTtl),
        ("allkeys-lru", Self::AllKeysLru),
        ("allkeys-lfu", Self::AllKeysLfu),
        ("allkeys-random", Self::AllKeysRandom),
        ("noeviction", Self::NoEviction),
    ];
}

/// `supervised`: the service manager to notify when the server is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Supervised {
    /// `upstart`
    #[default]
    Upstart,
    /// `systemd`
    Systemd,
    /// `auto`
    Auto,
    /// `no`
    No,
}

impl Choice for Supervised {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("upstart", Self::Upstart),
        ("systemd", Self::Systemd),
        ("auto", Self::Auto),
        ("no", Self::No),
    ];
}

/// `syslog-facility`: accepted and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyslogFacility {
    /// `user`
    #[default]
    User,
    /// `local0`
    Local0,
    /// `local1`
    Local1,
    /// `local2`
    Local2,
    /// `local3`
    Local3,
    /// `local4`
    Local4,
    /// `local5`
    Local5,
    /// `local6`
    Local6,
    /// `local7`
    Local7,
}

impl Choice for SyslogFacility {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("user", Self::User),
        ("local0", Self::Local0),
        ("local1", Self::Local1),
        ("local2", Self::Local2),
        ("local3", Self::Local3),
        ("local4", Self::Local4),
        ("local5", Self::Local5),
        ("local6", Self::Local6),
        ("local7", Self::Local7),
    ];
}

/// `repl-diskless-load`: how a replica loads a full sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisklessLoad {
    /// `disabled`
    #[default]
    Disabled,
    /// `on-empty-db`
    OnEmptyDb,
    /// `swapdb`
    SwapDb,
}

impl Choice for DisklessLoad {
    const WORDS: &'static [(&'static str, Self)] =
        &[("disabled", Self::Disabled), ("on-empty-db", Self::OnEmptyDb), ("swapdb", Self::SwapDb)];
}

/// `oom-score-adj`: how the kernel's out-of-memory score is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OomScoreAdjust {
    /// `no`
    #[default]
    No,
    /// `yes`
    Relative,
    /// `absolute`
    Absolute,
}

impl Choice for OomScoreAdjust {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("no", Self::No),
        ("yes", Self::Relative),
        ("relative", Self::Relative),
        ("absolute", Self::Absolute),
    ];
}

/// `acl-pubsub-default`: the channel permissions of a new user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PubsubDefault {
    /// `allchannels`
    #[default]
    AllChannels,
    /// `resetchannels`
    ResetChannels,
}

impl Choice for PubsubDefault {
    const WORDS: &'static [(&'static str, Self)] =
        &[("allchannels", Self::AllChannels), ("resetchannels", Self::ResetChannels)];
}

/// `sanitize-dump-payload`: which payloads are validated in depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SanitizeDump {
    /// `no`
    #[default]
    No,
    /// `yes`
    Yes,
    /// `clients`
    Clients,
}

impl Choice for SanitizeDump {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Yes), ("clients", Self::Clients)];
}

/// `enable-…-command` and `enable-protected-configs`: which connections may use a dangerous
/// feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// `no`
    #[default]
    No,
    /// `yes`
    Yes,
    /// `local`
    Local,
}

impl Choice for Protection {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Yes), ("local", Self::Local)];
}

/// `http-console`: whether the HTTP port serves the console, and whether its page offers changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Console {
    /// `no`
    #[default]
    No,
    /// `yes`: the page offers nothing that changes data or settings.
    Yes,
    /// `write`
    Write,
}

impl Choice for Console {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Yes), ("write", Self::Write)];
}

/// `cluster-etcd-loss`: what a primary does when it cannot renew its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoordinatorLoss {
    /// `safe`: it stops serving at its lease deadline.
    Safe,
    /// `availability`: it serves as long as every replica of its shard acknowledges.
    #[default]
    Availability,
}

impl Choice for CoordinatorLoss {
    const WORDS: &'static [(&'static str, Self)] =
        &[("safe", Self::Safe), ("availability", Self::Availability)];
}

/// `cluster-preferred-endpoint-type`: how nodes are named in replies to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointType {
    /// `ip`
    #[default]
    Ip,
    /// `hostname`
    Hostname,
    /// `unknown-endpoint`
    Unknown,
}

impl Choice for EndpointType {
    const WORDS: &'static [(&'static str, Self)] =
        &[("ip", Self::Ip), ("hostname", Self::Hostname), ("unknown-endpoint", Self::Unknown)];
}

/// `propagation-error-behavior`: what a replica does when a command of its primary fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PropagationError {
    /// `ignore`
    #[default]
    Ignore,
    /// `panic`
    Panic,
    /// `panic-on-replicas`
    PanicOnReplicas,
}

impl Choice for PropagationError {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ignore", Self::Ignore),
        ("panic", Self::Panic),
        ("panic-on-replicas", Self::PanicOnReplicas),
    ];
}

/// `tls-auth-clients`: whether clients must present a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsClientAuth {
    /// `no`
    #[default]
    No,
    /// `yes`
    Yes,
    /// `optional`
    Optional,
}

impl Choice for TlsClientAuth {
    const WORDS: &'static [(&'static str, Self)] =
        &[("no", Self::No), ("yes", Self::Yes), ("optional", Self::Optional)];
}

/// `io-backend`: the kernel interface of the event loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoBackend {
    /// `auto`: epoll, with receives and sends batched by io_uring if possible
    #[default]
    Auto,
    /// `epoll`
    Epoll,
    /// `io_uring`: for everything
    IoUring,
}

impl Choice for IoBackend {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("epoll", Self::Epoll), ("io_uring", Self::IoUring)];
}

/// `shutdown-on-sigint` and `shutdown-on-sigterm`: how a signal ends the server.
/// All false is `default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownMode {
    /// Save a snapshot even without save rules.
    pub save: bool,
    /// Save no snapshot even with save rules.
    pub nosave: bool,
    /// Do not wait for replicas.
    pub now: bool,
    /// Exit even if saving fails.
    pub force: bool,
}

impl ShutdownMode {
    const WORDS: [&'static str; 4] = ["save", "nosave", "now", "force"];

    fn bits(&mut self) -> [&mut bool; 4] {
        [&mut self.save, &mut self.nosave, &mut self.now, &mut self.force]
    }

    /// Parses several words. Returns `None` for an unknown word or if there are none.
    pub(super) fn from_words(words: &[Vec<u8>]) -> Option<Self> {
        let mut mode = Self::default();
        for word in words {
            if word.eq_ignore_ascii_case(b"default") {
                continue;
            }
            let at = Self::WORDS.iter().position(|w| w.as_bytes().eq_ignore_ascii_case(word))?;
            *mode.bits()[at] = true;
        }
        (!words.is_empty()).then_some(mode)
    }

    /// Returns the words, in the order of the list.
    pub(super) fn words(mut self) -> String {
        let set: Vec<_> = Self::WORDS
            .into_iter()
            .zip(self.bits())
            .filter(|(_, on)| **on)
            .map(|(w, _)| w)
            .collect();
        if set.is_empty() { "default".to_owned() } else { set.join(" ") }
    }

    /// Returns all words, for messages.
    pub(super) fn list() -> String {
        format!("default, {}", Self::WORDS.join(", "))
    }
}

impl Choice for Dialect {
    const WORDS: &'static [(&'static str, Self)] =
        &[("redis", Self::Redis), ("valkey", Self::Valkey)];
}
