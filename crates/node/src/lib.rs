//! A node: what its workers and their sessions share, and what any of them does with a request.
//!
//! Each feature stands here with its state. What lies above is `brisk-server`: it accepts and
//! closes connections, runs the loops of the workers, and brings the table of commands. Those
//! commands reach this crate as rows and functions, so it does not know which there are.
//!
//! | folder | what it is for |
//! |---|---|
//! | `run` | from bytes to a command: batches, the gate, permissions, dispatch |
//! | `core` | what commands may use of a worker, and what all workers share |
//! | `clients` | who is connected, as whom, from where, and what it takes |
//! | `transactions` | MULTI and EXEC: what is queued, and how it runs |
//! | `script` | scripts and functions, from EVAL to the reply |
//! | `persistence` | the dataset in files |
//! | `replication` | the stream of changes that replicas follow; MIGRATE's connections |
//! | `pubsub` | messages and keyspace events, across all workers |
//! | `tracking` | client-side caching: who is sent invalidations |
//! | `monitor` | MONITOR: a line for each command |
#![forbid(unsafe_code)]

pub mod clients;
pub mod core;
pub mod monitor;
pub mod persistence;
pub mod pubsub;
pub mod replication;
pub mod run;
pub mod script;
pub mod tracking;
pub mod transactions;
