//! Structures that are made of simpler ones, as people make them by hand.
//!
//! | recipe | what it is |
//! |---|---|
//! | [`ShardedMap`] | one huge map in many small hashes, each of which the server stores compactly |
//! | [`ShardedSet`] | the same for a set |
//! | [`shard_key`] | the rule by which both choose |
//! | [`Bloom`] | a set that only knows what it does not have, in a few bits for each item |
//!
//! They use no more of the server than anybody could, so other programs can share the data: what they
//! write, and by which rule, is part of what they promise.

mod bloom;
mod shard;
mod sharded_map;
mod sharded_set;

pub use bloom::Bloom;
pub use shard::shard_key;
pub use sharded_map::{Pages, ShardedMap};
pub use sharded_set::ShardedSet;

use crate::arg::{ToArg, Words};

/// A word's bytes.
fn bytes_of(arg: impl ToArg) -> Vec<u8> {
    let mut out = Vec::new();
    arg.write(&mut Words { out: &mut out, count: 0, failure: None });
    // `$length`, the bytes, and the ends of both lines.
    let begin = out.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    out.truncate(out.len().saturating_sub(2).max(begin));
    out.drain(..begin);
    out
}
