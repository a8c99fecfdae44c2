//! A clock that is cheap enough to read around every command: the CPU's time stamp counter, if it
//! is reliable.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. `_rdtsc` is executed only on x86-64, where the instruction always exists.
//!  2. `clock_gettime` gets a pointer to a local `timespec` that it may fill.
//!
//! The clock uses the counter if two conditions hold. First, the CPU reports that the counter runs
//! at a constant rate in every sleep state (CPUID leaf 0x8000_0007, EDX bit 8). Second, the kernel
//! does not consider the counter unstable; if it did, its clock source would be `hpet` or
//! `acpi_pm`. If either condition fails, ticks are nanoseconds of `CLOCK_MONOTONIC`. The process
//! measures the counter's rate once against that clock, accurate to a few parts per million.
//!
//! With debug assertions, or with the feature `simulated-time`, a process can set the time itself
//! ([`set_simulated_ms`]). The time then stands still between two calls. Only tests do this; an
//! optimized build of the server has neither.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long the counter is compared with the kernel's clock. Two readings differ by about 50 ns, so
/// 5 ms give an accuracy of 10 ppm.
const CALIBRATION_NS: u64 = 5_000_000;

/// Fraction bits of the conversion factor. Ticks come at 1-5 GHz, so the factor stays below 2^33
/// even at 1 GHz.
const SHIFT: u32 = 32;

/// The process's tick clock: the source of ticks and their conversion to nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    counter: bool,
    ns_per_tick_scaled: u64,
}

/// Returns the process's clock. The first call takes 5 ms; later calls take one load.
#[inline]
pub fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::calibrate)
}

/// Returns ticks since an arbitrary moment. Only differences are meaningful; [`Clock::ns`] converts
/// them.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    clock().ticks()
}

impl Clock {
    /// Returns the current ticks. About 6 ns with the counter, 25 ns without.
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        if self.counter { counter() } else { monotonic_ns() }
    }

    /// Converts ticks to nanoseconds, rounded down.
    #[inline]
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]
        {
            ((u128::from(ticks) * u128::from(self.ns_per_tick_scaled)) >> SHIFT) as u64
        }
    }

    /// Converts ticks to microseconds, rounded down.
    #[inline]
    #[must_use]
    pub fn us(&self, ticks: u64) -> u64 {
        self.ns(ticks) / 1000
    }

    /// Returns true if ticks come from the CPU's counter, false if they come from the kernel's
    /// clock.
    #[must_use]
    pub fn uses_counter(&self) -> bool {
        self.counter
    }

    fn calibrate() -> Self {
        let kernel_clock = Self { counter: false, ns_per_tick_scaled: 1 << SHIFT };
        if simulated_ms().is_some() || !counter_is_trustworthy() {
            return kernel_clock;
        }
        let (ns, ticks) = (monotonic_ns(), counter());
        let (mut ns_passed, mut ticks_passed) = (0, 0);
        while ns_passed < CALIBRATION_NS {
            std::hint::spin_loop();
            ns_passed = monotonic_ns().saturating_sub(ns);
            ticks_passed = counter().saturating_sub(ticks);
        }
        if ticks_passed == 0 {
            return kernel_clock;
        }
        let scaled = (u128::from(ns_passed) << SHIFT) / u128::from(ticks_passed);
        u64::try_from(scaled)
            .map_or(kernel_clock, |ns_per_tick_scaled| Self { counter: true, ns_per_tick_scaled })
    }
}

/// Returns nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    if let Some(ms) = simulated_ms() {
        return ms * 1_000_000;
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: invariant 2: `now` is a local the call may fill.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    #[expect(clippy::cast_sign_loss, reason = "the monotonic clock starts at 0")]
    {
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: invariant 1.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    monotonic_ns()
}

#[cfg(target_arch = "x86_64")]
fn counter_is_trustworthy() -> bool {
    use std::arch::x86_64::__cpuid;
    const INVARIANT_LEAF: u32 = 0x8000_0007;
    let invariant =
        __cpuid(0x8000_0000).eax >= INVARIANT_LEAF && __cpuid(INVARIANT_LEAF).edx & (1 << 8) != 0;
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    invariant && !source.is_ok_and(|name| matches!(name.trim(), "hpet" | "acpi_pm"))
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_trustworthy() -> bool {
    false
}

/// Returns the wall-clock time in milliseconds since 1970.
#[must_use]
pub fn unix_ms() -> u64 {
    if let Some(ms) = simulated_ms() {
        return ms;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// Returns the wall-clock time in microseconds since 1970.
#[must_use]
pub fn unix_us() -> u64 {
    if let Some(ms) = simulated_ms() {
        return ms * 1000;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// The simulated time; 0 if it was never set.
#[cfg(any(debug_assertions, feature = "simulated-time"))]
static SIMULATED_MS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Sets the time of this process, in milliseconds since 1970. Must be called before anything reads
/// a clock.
#[cfg(any(debug_assertions, feature = "simulated-time"))]
pub fn set_simulated_ms(ms: u64) {
    SIMULATED_MS.store(ms, std::sync::atomic::Ordering::SeqCst);
}

#[inline]
fn simulated_ms() -> Option<u64> {
    #[cfg(any(debug_assertions, feature = "simulated-time"))]
    {
        let ms = SIMULATED_MS.load(std::sync::atomic::Ordering::SeqCst);
        (ms > 0).then_some(ms)
    }
    #[cfg(not(any(debug_assertions, feature = "simulated-time")))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converted_ticks_agree_with_the_kernel_clock() {
        let clock = Clock::calibrate();
        let (ns, ticks) = (monotonic_ns(), clock.ticks());
        while monotonic_ns() - ns < 2_000_000 {}
        let outer_after = clock.ns(clock.ticks() - ticks);
        let ns_passed = monotonic_ns() - ns;
        // The tick interval is inside the kernel interval, so it is never longer, except for the
        // error of the rate.
        assert!(outer_after <= ns_passed + ns_passed / 1000, "{outer_after} against {ns_passed}");
        assert!(outer_after >= 1_900_000, "{outer_after}");
    }

    #[test]
    fn a_million_seconds_of_ticks_do_not_overflow() {
        let clock = Clock { counter: true, ns_per_tick_scaled: 1 << (SHIFT - 2) };
        assert_eq!(clock.ns(4_000_000_000_000_000), 1_000_000_000_000_000);
    }
}
