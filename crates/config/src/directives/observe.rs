//! Slow log, latency monitor, notifications. The settings and their directives.

use crate::directive::{Directive, Kind, LONG_MAX, field};
use crate::notify::{self, NotifyClasses};
use crate::special;

/// Slow log, latency monitor, notifications.
#[derive(Clone, Default, PartialEq)]
pub struct Observe {
    /// `slowlog-log-slower-than`: microseconds from which a command is logged as slow; -1 never.
    pub slowlog_log_slower_than_us: i64,
    /// `slowlog-max-len`: entries kept.
    pub slowlog_max_len: i64,
    /// `latency-monitor-threshold`: milliseconds from which an event is recorded; 0 never.
    pub latency_monitor_threshold_ms: i64,
    /// `latency-tracking`: keep latency histograms by command.
    pub latency_tracking: bool,
    /// `latency-tracking-info-percentiles`: percentiles shown by INFO latencystats.
    pub latency_percentiles: Vec<f64>,
    /// `notify-keyspace-events`: classes of keyspace notifications.
    pub notify: NotifyClasses,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer(
        "slowlog-log-slower-than",
        "10000",
        (-1, LONG_MAX),
        field!(observe.slowlog_log_slower_than_us),
    ),
    Directive::integer("slowlog-max-len", "128", (0, LONG_MAX), field!(observe.slowlog_max_len)),
    Directive::integer(
        "latency-monitor-threshold",
        "0",
        (0, LONG_MAX),
        field!(observe.latency_monitor_threshold_ms),
    ),
    Directive::switch("latency-tracking", "yes", field!(observe.latency_tracking)),
    Directive::new(
        "latency-tracking-info-percentiles",
        "50 99 99.9",
        Kind::Many(special::PERCENTILES),
    )
    .binary(),
    Directive::new("notify-keyspace-events", "", Kind::One(notify::NOTIFY)),
];
