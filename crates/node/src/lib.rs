//! A node: the state that workers and their sessions share, and the handling of requests.
//!
//! Each feature has a module that contains its state. The crate `brisk-server` builds on this crate. It accepts and
//! closes connections, runs the event loops of the workers, and provides the command table. This crate receives the
//! commands as table rows and functions, so it does not depend on particular commands.
//!
//! | directory | purpose |
//! |---|---|
//! | `run` | from bytes to a command: batches, the command gate, permissions, dispatch |
//! | `core` | the parts of a worker that commands may use, and the state that all workers share |
//! | `clients` | the connected clients, with their users, addresses and memory |
//! | `transactions` | MULTI and EXEC: the queue and its execution |
//! | `script` | scripts and functions, from EVAL to the reply |
//! | `persistence` | snapshots and the append-only file |
//! | `replication` | the stream of changes that replicas follow; MIGRATE's connections |
//! | `pubsub` | messages and keyspace events, across all workers |
//! | `cluster` | cluster mode: the topology in force, and the routing of commands |
//! | `tracking` | client-side caching: which clients are sent invalidations |
//! | `monitor` | MONITOR: a line for each command |
#![forbid(unsafe_code)]

pub mod clients;
pub mod cluster;
pub mod core;
pub mod monitor;
pub mod persistence;
pub mod pubsub;
pub mod replication;
pub mod run;
pub mod script;
pub mod tracking;
pub mod transactions;
