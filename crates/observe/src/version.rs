//! The versions this server tells its clients.

/// The version of Redis whose behaviour clients may expect.
pub const REDIS_VERSION: &str = "7.2.4";
/// This server's own version.
pub const BRISK_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A version as `0x00MMmmpp`.
pub fn number_of(version: &str) -> u32 {
    let parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    parts.take(3).fold(0, |number, part| number << 8 | part.min(255))
}
