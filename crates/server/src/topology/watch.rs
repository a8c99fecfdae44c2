//! The thread `brisk-watch`, which takes a snapshot of the coordinator and then follows its events.

use super::coord::ErrorLog;
use super::watcher::{Found, Installation, TopologyWatcher};
use brisk_coordinate::CALL_MAX;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::values::{ClusterSnapshot, WatchEvent};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long one call waits for events.
const EVENTS_WAIT: Duration = Duration::from_secs(1);
/// A watch that has had neither events nor errors for this long works, because the etcd member has replied to a probe
/// in the meantime.
const SOUND_AFTER: Duration = Duration::from_secs(10);
/// The pause after a snapshot that failed or could not be installed.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Follows the events until the threads are stopped.
pub(super) fn run(watcher: &Arc<TopologyWatcher>) {
    let mut errors = ErrorLog::new(watcher.shared, "the watch of the topology");
    while !watcher.signal.is_stopped() {
        // If the document is rejected, the installation logs it.
        match watcher.snapshot(CALL_MAX) {
            // The events after the snapshot do not include this document, so it is read again.
            Ok((snapshot, Installation::Unfinished)) => {
                take_nodes(watcher, &snapshot);
                watcher.signal.pause(RETRY_PAUSE);
            }
            Ok((snapshot, _)) => {
                errors.clear();
                take_nodes(watcher, &snapshot);
                follow(watcher, &snapshot, &mut errors);
            }
            Err(CoordinatorError::Stopped) => return,
            Err(error) => {
                errors.note(&error.to_string());
                watcher.signal.pause(RETRY_PAUSE);
            }
        }
    }
}

fn take_nodes(watcher: &TopologyWatcher, snapshot: &ClusterSnapshot) {
    watcher.set_registered(&snapshot.nodes);
    watcher.is_watch_sound.store(true, Ordering::SeqCst);
    match snapshot.controller {
        Some(controller) => watcher.note_controller(controller),
        None => watcher.note_vacancy(),
    }
}

/// Follows the events after a snapshot until the coordinator no longer has the next events, a document could not be
/// installed, or the threads are stopped.
fn follow(watcher: &TopologyWatcher, snapshot: &ClusterSnapshot, errors: &mut ErrorLog) {
    let mut watch = watcher.coordinator.watch(snapshot.revision);
    let mut failed_at = Instant::now();
    while !watcher.signal.is_stopped() {
        if watcher.take_lost_lease() {
            return;
        }
        let known = watcher.known_revision();
        let events = match watch.next(EVENTS_WAIT) {
            Ok(events) => events,
            Err(CoordinatorError::Stopped) => return,
            Err(error) => {
                errors.note(&error.to_string());
                failed_at = Instant::now();
                watcher.is_watch_sound.store(false, Ordering::SeqCst);
                continue;
            }
        };
        let mut is_sound = false;
        if events.iter().any(|event| matches!(event, WatchEvent::NoLeader)) {
            failed_at = Instant::now();
            watcher.is_watch_sound.store(false, Ordering::SeqCst);
        } else if !events.is_empty() || failed_at.elapsed() > SOUND_AFTER {
            errors.clear();
            is_sound = true;
        }
        for event in events {
            match event {
                WatchEvent::Topology(topology) => {
                    // A later document may already be in force, so the known revision must not be higher than the
                    // revision of this event.
                    let known = known.min(topology.revision);
                    let found = Found { topology: &topology, known };
                    let until = Instant::now() + CALL_MAX;
                    // A slow script may be running. The next snapshot will include the nodes that leave or register in
                    // the meantime.
                    if watcher.install(found, until) == Installation::Unfinished {
                        return;
                    }
                }
                WatchEvent::NodeRegistered(node) => watcher.note_registered(&node),
                WatchEvent::NodeRemoved { node, .. } => watcher.note_removed(node),
                WatchEvent::ControllerElected(controller) => watcher.note_controller(controller),
                WatchEvent::ControllerRemoved { .. } => watcher.note_vacancy(),
                WatchEvent::Compacted { .. } => {
                    watcher.signal.pause(RETRY_PAUSE);
                    return;
                }
                WatchEvent::NoLeader => errors.note("etcd has no leader"),
            }
        }
        if is_sound {
            // Set this after handling the events, because they may show that a node has registered again.
            watcher.is_watch_sound.store(true, Ordering::SeqCst);
        }
    }
}
