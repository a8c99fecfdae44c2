//! The versions that this server reports to clients.

/// The Redis version whose behavior clients can expect.
pub const REDIS_VERSION: &str = "7.2.4";
/// The version of this server.
pub const BRISK_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns a version as `0x00MMmmpp`.
pub fn number_of(version: &str) -> u32 {
    let parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    parts.take(3).fold(0, |number, part| number << 8 | part.min(255))
}
