//! The limits on the memory that clients may use: for their unsent output, their requests, and both together.
//!
//! A worker computes the limits from the settings in advance, so that it only compares numbers while it serves clients.

use brisk_config::Config;
use brisk_config::value::{ClientClass, OutputLimit};
use brisk_resp::Limits;

/// The soft limit of each client in bytes, while all clients together hold more unsent output than the global limit
/// allows.
const TIGHT_SOFT_LIMIT: usize = 16 * 1024;

/// Output up to this size counts toward no limit. It is the size of Redis's static reply buffer, which Redis does not
/// count either.
const UNCOUNTED_OUTPUT_BYTES: u64 = 16 * 1024;

/// A subscriber with at least this much unsent output is checked with each message, even if its limits are higher.
const PUBSUB_WATCH_BYTES: u64 = 16 * 1024;

/// The limits of clients, as one worker applies them.
#[derive(Debug)]
pub struct ClientLimits {
    /// If there is less unsent output than this, it need not be checked against soft limits.
    output_watch_bytes: usize,
    requests: Limits,
    /// `output-soft-limit`.
    output_soft: usize,
    /// `output-total-limit`.
    output_total: u64,
    /// Unsent output up to this size is below every limit for subscribers.
    pubsub_watch_bytes: usize,
    /// Bytes of memory that all inputs may take together.
    inputs_total: u64,
    /// `maxmemory-clients` in bytes; 0 for no limit.
    clients_total: u64,
    /// `client-output-buffer-limit`, by [`ClientClass`].
    output_classes: [OutputLimit; 3],
    /// Unread output at which a monitor is closed.
    output_of_monitor: u64,
}

impl ClientLimits {
    pub(super) fn new(config: &Config) -> ClientLimits {
        let clients = &config.clients;
        let output_soft = clients.output_soft_limit.max(1) as usize;
        let output_total = brisk_observe::memory::output_total_limit(config);
        let mut output_classes = clients.output_limits;
        let hard = |class: ClientClass| clients.output_limits[class as usize].hard_bytes;
        // In Redis, monitors count as normal clients.
        let of_monitor = [hard(ClientClass::Normal), hard(ClientClass::Pubsub)];
        let of_monitor = of_monitor.into_iter().find(|bytes| *bytes > 0);
        let pubsub = &clients.output_limits[ClientClass::Pubsub as usize];
        let bounds = [pubsub.hard_bytes, pubsub.soft_bytes, PUBSUB_WATCH_BYTES];
        let least = bounds.into_iter().filter(|bytes| *bytes > 0).min();
        let replica = &mut output_classes[ClientClass::Replica as usize];
        if replica.hard_bytes > 0 {
            // Otherwise, a replica that resumes the stream would be disconnected if it needs the whole backlog.
            replica.hard_bytes = replica.hard_bytes.max(config.replication.repl_backlog_size);
        }
        ClientLimits {
            output_watch_bytes: output_soft.min(TIGHT_SOFT_LIMIT),
            pubsub_watch_bytes: least.map_or(0, |bytes| bytes as usize),
            output_soft,
            output_total,
            output_classes,
            output_of_monitor: of_monitor.unwrap_or(output_total).min(output_total),
            requests: Limits {
                bulk_bytes_max: clients.proto_max_bulk_len,
                multibulk_max: i64::from(i32::MAX),
                inline_bytes_max: 64 * 1024,
                authenticated: true,
            },
            inputs_total: match clients.input_total_limit {
                0 => brisk_observe::memory::total_system() / 4,
                limit => limit,
            },
            clients_total: clients.maxmemory_clients.limit(config.memory.maxmemory).unwrap_or(0),
        }
    }

    /// The limits on the requests of a client.
    #[inline]
    pub fn requests(&self, authenticated: bool) -> Limits {
        Limits { authenticated, ..self.requests }
    }

    /// The limits on requests that a server has already accepted: requests from the primary and from an append-only
    /// file.
    pub fn accepted_requests(&self) -> Limits {
        Limits { bulk_bytes_max: u64::MAX, ..self.requests }
    }

    /// If a client has less unsent output than this, it need not be compared with [`ClientLimits::soft`].
    #[inline]
    pub fn output_watch_bytes(&self) -> usize {
        self.output_watch_bytes
    }

    /// The unsent output at which a client's pipeline pauses, if all clients together have `all` bytes of unsent
    /// output.
    pub(super) fn soft(&self, all: u64) -> usize {
        match self.exceeds_total(all) {
            true => self.output_soft.min(TIGHT_SOFT_LIMIT),
            false => self.output_soft,
        }
    }

    /// Reports whether `bytes` bytes of output are more than all clients together may have.
    #[inline]
    pub fn exceeds_total(&self, bytes: u64) -> bool {
        bytes > self.output_total
    }

    /// The unread output of all clients that does not count as memory in use.
    #[inline]
    pub(super) fn unread_max(&self) -> u64 {
        self.output_total
    }

    /// Reports whether `bytes` bytes of unread output may be too much for a subscriber.
    #[inline]
    pub fn watches_subscriber(&self, bytes: usize) -> bool {
        bytes >= self.pubsub_watch_bytes
    }

    /// Unread output at which a monitor is closed: the hard limit for normal clients, as in Redis, or the hard limit
    /// for subscribers if the former is 0.
    pub fn of_monitor(&self) -> u64 {
        self.output_of_monitor
    }

    /// Reports whether `bytes` bytes of output are allowed for every class of clients.
    #[inline]
    pub(super) fn admits_any(&self, bytes: u64) -> bool {
        bytes <= UNCOUNTED_OUTPUT_BYTES
    }

    /// Reports whether a client has more output than `client-output-buffer-limit` allows for its
    /// class: either the hard limit, or the soft limit for its duration. `soft_since` is the time
    /// in Unix ms since which the client has exceeded the soft limit.
    pub(super) fn exceeds_class(
        &self,
        class: ClientClass,
        bytes: u64,
        soft_since: &mut Option<u64>,
        now_ms: u64,
    ) -> bool {
        let limit = &self.output_classes[class as usize];
        if self.admits_any(bytes) {
            *soft_since = None;
            return false;
        }
        let hard = limit.hard_bytes > 0 && bytes > limit.hard_bytes;
        let soft = limit.soft_bytes > 0 && bytes > limit.soft_bytes;
        let lasting = if soft {
            let since = *soft_since.get_or_insert(now_ms);
            now_ms.saturating_sub(since) > limit.soft_seconds.max(0) as u64 * 1000
        } else {
            *soft_since = None;
            false
        };
        hard || lasting
    }

    /// Reports whether the memory of all clients together is limited.
    #[inline]
    pub fn bounds_clients(&self) -> bool {
        self.clients_total != 0
    }

    /// Reports whether `bytes` bytes are more than `maxmemory-clients`.
    pub(super) fn exceeds_clients(&self, bytes: u64) -> bool {
        self.bounds_clients() && bytes > self.clients_total
    }

    /// Reports whether `bytes` bytes are more than all inputs may take together.
    pub(super) fn exceeds_inputs(&self, bytes: u64) -> bool {
        bytes > self.inputs_total
    }

    /// Bytes of memory that all inputs may take together.
    pub(super) fn inputs_total(&self) -> u64 {
        self.inputs_total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn limits(change: impl FnOnce(&mut Config)) -> ClientLimits {
        let mut config = Config::default();
        config.clients.output_limits =
            [OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 }; 3];
        change(&mut config);
        ClientLimits::new(&config)
    }

    #[test]
    fn a_soft_limit_is_exceeded_only_after_its_duration() {
        let limits = limits(|config| {
            let pubsub = &mut config.clients.output_limits[ClientClass::Pubsub as usize];
            *pubsub = OutputLimit { hard_bytes: 100 * KIB, soft_bytes: 20 * KIB, soft_seconds: 2 };
        });
        let mut since = None;
        let mut exceeds =
            |bytes, now_ms| limits.exceeds_class(ClientClass::Pubsub, bytes, &mut since, now_ms);
        assert!(!exceeds(30 * KIB, 1000) && !exceeds(30 * KIB, 3000));
        assert!(exceeds(30 * KIB, 3001));
        // The duration starts over after the output has been small once.
        assert!(!exceeds(20 * KIB, 3002) && !exceeds(30 * KIB, 3003));
        assert!(exceeds(101 * KIB, 3004));
    }

    #[test]
    fn a_replica_may_lack_the_whole_backlog() {
        let limits = limits(|config| {
            config.clients.output_limits[ClientClass::Replica as usize].hard_bytes = 20 * KIB;
            config.replication.repl_backlog_size = 50 * KIB;
        });
        let exceeds = |bytes| limits.exceeds_class(ClientClass::Replica, bytes, &mut None, 0);
        assert!(!exceeds(50 * KIB) && exceeds(50 * KIB + 1));
    }

    #[test]
    fn monitors_have_the_limit_of_subscribers_if_ordinary_clients_have_none() {
        let of = |normal, pubsub| {
            let limits = limits(|config| {
                config.clients.output_total_limit = 1000 * KIB;
                config.clients.output_limits[ClientClass::Normal as usize].hard_bytes = normal;
                config.clients.output_limits[ClientClass::Pubsub as usize].hard_bytes = pubsub;
            });
            limits.of_monitor()
        };
        assert_eq!(of(KIB, 2 * KIB), KIB);
        assert_eq!(of(0, 2 * KIB), 2 * KIB);
        assert_eq!(of(0, 0), 1000 * KIB);
    }

    #[test]
    fn pipelines_pause_early_while_all_output_is_large() {
        let limits = limits(|config| {
            config.clients.output_soft_limit = 64 * KIB;
            config.clients.output_total_limit = 100 * KIB;
        });
        assert_eq!(limits.soft(100 * KIB), 64 << 10);
        assert_eq!(limits.soft(100 * KIB + 1), TIGHT_SOFT_LIMIT);
    }
}
