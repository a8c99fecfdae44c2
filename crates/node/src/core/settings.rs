//! The settings that all workers share: those in force, and where CONFIG changes them.

use arc_swap::ArcSwap;
use brisk_config::{Config, Store};
use brisk_structures::poison::EvenPoisoned;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A worker keeps a reference to the settings and renews it
/// when [`Settings::generation`] has grown.
#[derive(Debug)]
pub struct Settings {
    in_force: ArcSwap<Config>,
    generation: AtomicU64,
    store: Mutex<Store>,
}

impl Settings {
    /// With these in force, which `store` may change.
    pub fn new(config: Config, store: Store) -> Settings {
        Settings {
            in_force: ArcSwap::from_pointee(config),
            generation: AtomicU64::new(1),
            store: Mutex::new(store),
        }
    }

    /// Those in force.
    pub fn current(&self) -> Arc<Config> {
        self.in_force.load_full()
    }

    /// Grows with every change.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Where CONFIG works; whoever only reads takes [`Settings::current`].
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().even_poisoned()
    }

    /// Puts new ones in force. Workers see them once they look,
    /// which [`Settings::announce`] asks for.
    pub fn replace(&self, config: Config) {
        self.in_force.store(Arc::new(config));
    }

    /// Has every worker look again.
    pub fn announce(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}
