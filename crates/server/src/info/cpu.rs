//! INFO cpu: CPU time, as sampled ten times a second.

use super::View;
use brisk_observe::text::Text;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let metrics = &view.shared.observe.metrics;
    let us = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    text.seconds("used_cpu_sys", us(&metrics.cpu_process.system_us));
    text.seconds("used_cpu_user", us(&metrics.cpu_process.user_us));
    text.seconds("used_cpu_sys_children", us(&metrics.cpu_children.system_us));
    text.seconds("used_cpu_user_children", us(&metrics.cpu_children.user_us));
    // These fields show the first worker's thread, which accepts and serves clients. The main thread only waits for the
    // shutdown.
    text.seconds("used_cpu_sys_main_thread", us(&metrics.cpu_first_worker.system_us));
    text.seconds("used_cpu_user_main_thread", us(&metrics.cpu_first_worker.user_us));
}
