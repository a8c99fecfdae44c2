//! The clock of leases: `CLOCK_BOOTTIME`, which keeps running while the machine is suspended.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A time of the coordinator's clock in nanoseconds. For [`local`](crate::local) and
/// [`etcd`](crate::etcd) it is `CLOCK_BOOTTIME`; for the model it is the virtual clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootTime(pub u64);

impl BootTime {
    /// The current time of `CLOCK_BOOTTIME`.
    #[must_use]
    pub fn now() -> BootTime {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
        BootTime(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }

    /// The time `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> BootTime {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        BootTime(self.0.saturating_add(nanoseconds))
    }

    /// The time from `self` until `later`; zero if `later` has passed.
    #[must_use]
    pub fn until(self, later: BootTime) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }
}
