//! The memory of a key in Redis 7 and in Brisk, in its current form and in others.
//!
//! | part | contents |
//! |---|---|
//! | [`shape`] | a value as numbers: elements, bytes of texts, and sizes in each form |
//! | [`redis`] | allocations of Redis 7.0 |
//! | [`brisk`] | allocations of Brisk |
//!
//! Both models return the bytes that the allocator reserves, which `used_memory` also counts. The tests fill real
//! servers and compare the results.

pub mod brisk;
pub mod redis;
pub mod shape;

pub use brisk::Brisk;
pub use redis::Redis;
pub use shape::Shape;

/// The size classes of jemalloc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classes {
    quantum: u64,
}

impl Classes {
    /// The classes of the jemalloc that Redis bundles, which is built with a quantum of 8 bytes.
    pub const BUNDLED: Classes = Classes { quantum: 8 };
    /// The classes of all other jemalloc builds: in distributions, and in Brisk.
    pub const USUAL: Classes = Classes { quantum: 16 };

    /// The classes with this quantum. Only 8 and 16 are supported.
    #[must_use]
    pub fn of_quantum(quantum: u64) -> Option<Classes> {
        match quantum {
            8 => Some(Classes::BUNDLED),
            16 => Some(Classes::USUAL),
            _ => None,
        }
    }

    /// The quantum: the steps between small classes.
    #[must_use]
    pub fn quantum(self) -> u64 {
        self.quantum
    }

    /// The memory of an allocation of `bytes`. Small classes are multiples of the quantum; above them there are four
    /// classes per doubling.
    #[must_use]
    pub fn of(self, bytes: u64) -> u64 {
        if bytes <= 8 {
            return 8;
        }
        let spacing = (1u64 << (bytes - 1).ilog2().saturating_sub(2)).max(self.quantum);
        bytes.div_ceil(spacing) * spacing
    }
}

/// Both models.
#[derive(Debug, Clone, Copy)]
pub struct Models {
    pub redis: Redis,
    pub brisk: Brisk,
}

impl Models {
    #[must_use]
    pub fn new(classes: Classes) -> Models {
        Models { redis: Redis::new(classes), brisk: Brisk }
    }
}

/// A number of bytes in both servers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bytes {
    pub redis: f64,
    pub brisk: f64,
}

impl Bytes {
    #[must_use]
    pub fn new(redis: u64, brisk: u64) -> Bytes {
        Bytes { redis: redis as f64, brisk: brisk as f64 }
    }

    /// Both numbers multiplied by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Bytes {
        Bytes { redis: self.redis * factor, brisk: self.brisk * factor }
    }

    /// Both differences, which may be negative.
    #[must_use]
    pub fn minus(self, other: Bytes) -> Bytes {
        Bytes { redis: self.redis - other.redis, brisk: self.brisk - other.brisk }
    }

    pub fn add(&mut self, other: Bytes) {
        self.redis += other.redis;
        self.brisk += other.brisk;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected sizes are those in jemalloc's documentation.
    #[test]
    fn sizes_are_rounded_as_jemalloc_does() {
        for (bytes, eight, sixteen) in [
            (1, 8, 8),
            (9, 16, 16),
            (17, 24, 32),
            (33, 40, 48),
            (64, 64, 64),
            (65, 80, 80),
            (113, 128, 128),
            (129, 160, 160),
            (257, 320, 320),
            (4097, 5120, 5120),
            (16_385, 20_480, 20_480),
        ] {
            assert_eq!(Classes::BUNDLED.of(bytes), eight, "{bytes}");
            assert_eq!(Classes::USUAL.of(bytes), sixteen, "{bytes}");
        }
    }
}
