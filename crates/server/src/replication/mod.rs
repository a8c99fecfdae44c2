//! The stream of effects that replicas follow: what transactions of all workers changed, in one
//! order.
//!
//! | file | about |
//! |---|---|
//! | `feed` | transactions come in by ticket, bytes go out in order |
//! | `replica` | sessions that follow the stream |

pub mod migration;

pub mod feed;
pub mod replica;
