//! The versions this server tells its clients.

/// The version of Redis whose behaviour clients may expect.
pub const REDIS_VERSION: &str = "7.2.4";
/// This server's own version.
pub const BRISK_VERSION: &str = env!("CARGO_PKG_VERSION");
