//! The latency monitor: the latest spikes and the highest one for each kind of event.

use brisk_structures::poison::EvenPoisoned;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// Maximum number of spikes kept for an event.
pub const SAMPLES_MAX: usize = 160;

/// The spikes of one event, at most one per second, the latest last.
#[derive(Debug, Default, Clone)]
pub struct Series {
    pub samples: VecDeque<(u64, u64)>,
    pub worst_ms: u64,
}

/// All events with spikes.
#[derive(Debug, Default)]
pub struct Latency(Mutex<BTreeMap<&'static str, Series>>);

impl Latency {
    /// Records that `event` took `ms`. Only the highest value within one second is kept.
    pub fn add(&self, event: &'static str, unix_seconds: u64, ms: u64) {
        let mut events = self.lock();
        let series = events.entry(event).or_default();
        series.worst_ms = series.worst_ms.max(ms);
        match series.samples.back_mut() {
            Some((second, worst)) if *second == unix_seconds => *worst = (*worst).max(ms),
            _ => {
                if series.samples.len() == SAMPLES_MAX {
                    series.samples.pop_front();
                }
                series.samples.push_back((unix_seconds, ms));
            }
        }
    }

    /// Returns all series by event name.
    pub fn all(&self) -> BTreeMap<&'static str, Series> {
        self.lock().clone()
    }

    /// Resets one event, or all, and returns how many were reset.
    pub fn reset(&self, event: Option<&str>) -> usize {
        let mut events = self.lock();
        match event {
            Some(event) => usize::from(events.remove(event).is_some()),
            None => std::mem::take(&mut *events).len(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Series>> {
        self.0.lock().even_poisoned()
    }
}
