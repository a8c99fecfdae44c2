//! The coordinator of cluster mode: it holds the one topology document that all nodes follow, and
//! knows which nodes are alive and which one is the controller.
//!
//! ```text
//!  brisk-lease ── register, renew, read ──────────────────────────┐
//!  brisk-coord ── change, campaign, put_status ───────────────────┤
//!                                                                 ├── Coordinator ── local: files of one machine
//!  brisk-watch ── snapshot, watch ────────────────────────────────┘             ├── etcd: JSON gateway
//!                                                                               ├── fixed: a document from a file
//!                                                                               └── model: memory, for simulations
//! ```
//!
//! | module | about |
//! |---|---|
//! | [`values`] | revisions, leases, registrations, changes and their outcomes |
//! | [`error`] | why a call failed |
//! | [`clock`] | the clock of leases |
//! | [`setting`] | the setting `cluster-coordinator` |
//! | [`local`] | `local:DIR`: files and locks of one machine |
//! | [`etcd`] | `etcd://`: etcd, through its JSON gateway |
//! | [`fixed`] | `static:FILE`: a document that never changes |
//! | [`model`] | in memory with a virtual clock, faults from a seed |
//!
//! The document is opaque here; the crate that plans the topology knows its content.
#![forbid(unsafe_code)]

pub mod clock;
mod coordinator;
pub mod error;
pub mod etcd;
pub mod fixed;
pub mod local;
pub mod model;
mod open;
pub mod setting;
mod stop;
pub mod values;

pub use self::coordinator::{CALL_MAX, Coordinator, Watch};
pub use self::open::open;
