//! Memory usage by purpose.

use crate::core::Core;
use crate::core::shared::Shared;
use brisk_engine::DbIndex;
use brisk_engine::Result;
use brisk_engine::keyspace::{SLOTS, Slot};
use brisk_observe::memory::{Holding, resident, used};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// The allocator this program was built with: `mem_allocator` in INFO.
pub const ALLOCATOR: &str = if cfg!(feature = "jemalloc") {
    "jemalloc-5.3.0"
} else if cfg!(feature = "mimalloc") {
    "mimalloc"
} else {
    "libc"
};

/// Bytes of the slots of one database, without their tables.
pub const DATABASE_BYTES: u64 = (SLOTS * size_of::<Slot>()) as u64;

/// Bytes of memory of all sessions, including their input and output. O(workers).
pub fn of_clients(shared: &Shared) -> u64 {
    shared.clients.weights.total()
}

/// Memory usage by purpose, in bytes.
#[derive(Debug, Clone)]
pub struct Usage {
    pub allocated: u64,
    /// The largest amount of allocated memory that has been measured.
    pub peak: u64,
    /// Allocated before the first client connected.
    pub startup: u64,
    pub resident: u64,
    pub holding: Holding,
    /// Sessions with their input and output.
    pub clients: u64,
    /// The replication stream: the bytes of the backlog, and the bytes beyond it that are held for slow replicas.
    pub stream: (u64, u64),
    /// Keys of all databases.
    pub keys: u64,
    /// For each database with keys: memory of its slots and tables without the entries.
    pub databases: Vec<(DbIndex, u64)>,
}

impl Usage {
    /// Measures the memory usage. O(slots of databases in use), so it should not be called many times a second.
    ///
    /// # Errors
    /// As [`Core::keys_to_walk`].
    pub fn measure(core: &Core) -> Result<Usage> {
        let shared = &core.shared;
        let (allocated, resident) = (used(), resident());
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let in_use = shared.keyspace.databases().filter(|db| shared.keyspace.key_count(*db) > 0);
        let databases = in_use.map(|db| Ok((db, table_bytes(core, db)?)));
        let databases: Vec<(DbIndex, u64)> = databases.collect::<Result<_>>()?;
        Ok(Usage {
            allocated,
            peak: peak(shared, allocated),
            startup: load(&shared.observe.metrics.startup_memory),
            resident,
            holding: Holding::query(allocated, resident),
            clients: of_clients(shared),
            stream: shared.replication.stream.memory(),
            keys: databases.iter().map(|(db, _)| shared.keyspace.key_count(*db)).sum(),
            databases,
        })
    }

    /// All memory that is not used for keys and values.
    pub fn overhead(&self) -> u64 {
        let tables: u64 = self.databases.iter().map(|(_, bytes)| bytes).sum();
        self.startup + self.clients + self.stream.0 + self.stream.1 + tables
    }
}

/// The largest amount of allocated memory that has been measured, including `allocated`.
pub fn peak(shared: &Shared, allocated: u64) -> u64 {
    let peak = &shared.observe.metrics.peak_memory;
    peak.fetch_max(allocated, Ordering::Relaxed).max(allocated)
}

fn table_bytes(core: &Core, db: DbIndex) -> Result<u64> {
    let keys = core.keys_to_walk(db)?;
    let mut bytes = DATABASE_BYTES;
    keys.each_slot(db, |_, slot| {
        bytes += slot.table().allocated_bytes() as u64;
        ControlFlow::Continue(())
    });
    Ok(bytes)
}
