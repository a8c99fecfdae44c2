//! Compiles the code in the README and in the guides, unchanged.

#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(all(feature = "derive", feature = "json"))]
#[doc = include_str!("../docs/from-redis-rs.md")]
mod from_redis_rs {}

#[doc = include_str!("../docs/from-lettuce-and-jedis.md")]
mod from_lettuce_and_jedis {}

#[cfg(all(feature = "metrics", feature = "tracing"))]
#[doc = include_str!("../docs/observing.md")]
mod observing {}
