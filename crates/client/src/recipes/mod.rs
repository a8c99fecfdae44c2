//! Data structures built from simpler ones.
//!
//! | recipe | purpose |
//! |---|---|
//! | [`ShardedMap`] | stores a large map in many small hashes, which the server stores compactly |
//! | [`ShardedSet`] | stores a large set of integers in many small sets |
//! | [`shard_key`] | the rule that assigns an element to a shard |
//! | [`Bloom`] | a Bloom filter: uses a few bits per item, and reports reliably that an item is not in the set |
//!
//! The recipes use ordinary commands, so other programs can share the data. The format and the rules are stable: they
//! are part of the public interface.

mod bloom;
mod shard;
mod sharded_map;
mod sharded_set;

pub use bloom::Bloom;
pub use shard::shard_key;
pub use sharded_map::{Pages, ShardedMap};
pub use sharded_set::ShardedSet;

use crate::arg::{Args, ToArg};

/// The bytes of an argument.
fn bytes_of(arg: impl ToArg) -> Vec<u8> {
    let mut out = Vec::new();
    arg.write(&mut Args { out: &mut out, count: 0, failure: None });
    // Skips `$length` and the line ends around the bytes.
    let begin = out.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    out.truncate(out.len().saturating_sub(2).max(begin));
    out.drain(..begin);
    out
}
