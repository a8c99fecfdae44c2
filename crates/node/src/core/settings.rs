//! The settings that all workers share: the settings in force, and the store that CONFIG changes.

use super::debug_switches::DebugSwitches;
use arc_swap::ArcSwap;
use brisk_config::{Config, Store};
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The settings. A worker keeps a reference to the settings in force and renews it when [`Settings::generation`] has
/// increased.
#[derive(Debug)]
pub struct Settings {
    in_force: ArcSwap<Config>,
    generation: AtomicU64,
    store: Mutex<Store>,
    /// Switches that DEBUG subcommands set. Some of them override settings.
    pub debug: DebugSwitches,
}

impl Settings {
    /// Creates the settings in force from `config`. `store` is used to change them.
    pub fn new(config: Config, store: Store) -> Settings {
        Settings {
            in_force: ArcSwap::from_pointee(config),
            generation: AtomicU64::new(1),
            store: Mutex::new(store),
            debug: DebugSwitches::default(),
        }
    }

    /// The settings in force.
    pub fn current(&self) -> Arc<Config> {
        self.in_force.load_full()
    }

    /// The generation of the settings, which increases with every change.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The store that CONFIG changes. Callers that only read use [`Settings::current`].
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().even_poisoned()
    }

    /// Puts new settings in force. Workers load them when they next check for changes, which [`Settings::announce`]
    /// triggers.
    pub fn replace(&self, config: Config) {
        self.in_force.store(Arc::new(config));
    }

    /// Makes every worker check for changes.
    pub fn announce(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}
