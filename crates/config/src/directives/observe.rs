//! Slow log, latency monitor, notifications. The settings and their directives.

use crate::directive::{Directive, Kind, LONG_MAX, field};
use crate::notify::{self, NotifyClasses};
use crate::special;

/// Slow log, latency monitor, notifications.
#[derive(Clone, Default, PartialEq)]
pub struct Observe {
    /// `slowlog-log-slower-than`.
    pub slowlog_log_slower_than_us: i64,
    /// `slowlog-max-len`.
    pub slowlog_max_len: i64,
    /// `latency-monitor-threshold`.
    pub latency_monitor_threshold_ms: i64,
    /// `latency-tracking`.
    pub latency_tracking: bool,
    /// `latency-tracking-info-percentiles`.
    pub latency_percentiles: Vec<f64>,
    /// `notify-keyspace-events`.
    pub notify: NotifyClasses,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer(
        "slowlog-log-slower-than",
        "10000",
        (-1, LONG_MAX),
        field!(observe.slowlog_log_slower_than_us),
    )
    .about(
        "Minimum duration of commands in the slow log, in microseconds; 0 logs all \
             commands, -1 logs none.",
    ),
    Directive::integer("slowlog-max-len", "128", (0, LONG_MAX), field!(observe.slowlog_max_len))
        .about("Maximum number of entries in the slow log."),
    Directive::integer(
        "latency-monitor-threshold",
        "0",
        (0, LONG_MAX),
        field!(observe.latency_monitor_threshold_ms),
    )
    .about(
        "Minimum duration of events that are recorded for LATENCY, in milliseconds; 0 \
             records none.",
    ),
    Directive::switch("latency-tracking", "yes", field!(observe.latency_tracking))
        .about("Keep a histogram of latencies for each command."),
    Directive::new(
        "latency-tracking-info-percentiles",
        "50 99 99.9",
        Kind::Many(special::PERCENTILES),
    )
    .about("Percentiles of the latency histograms that INFO shows, from 0 to 100.")
    .binary(),
    Directive::new("notify-keyspace-events", "", Kind::One(notify::NOTIFY)).about(
        "Key changes to publish: K and E select the channels, g $ l s h z x e t d m n the \
             classes, A most of them. Empty publishes none.",
    ),
];
