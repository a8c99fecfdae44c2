//! Load generator and comparer of servers that speak the Redis protocol.
//!
//! A [`Workload`] describes the requests; a [`Plan`] describes the server, the number of clients and the rate.
//! [`run`] carries the plan out and returns an [`Outcome`]. A [`Subject`] is a server that is measured,
//! started here or elsewhere, with its resources; [`compare`](compare::compare) lets several of
//! them take turns and gives a [`Comparison`](compare::Comparison),
//! which is plain data for reports.
//!
//! | module | about |
//! |---|---|
//! | [`load`] | commands, keys, sizes, mixtures: what is sent |
//! | [`scan`] | counting replies without decoding them |
//! | [`engine`] | the threads that send and measure |
//! | `library` | the client library that sends instead |
//! | [`cluster`] | the primaries of a cluster as the target |
//! | [`outcome`] | what a run gave |
//! | [`options`], [`report`] | redis-benchmark's command line and output |
//! | [`subject`], [`resources`], [`noise`] | servers, what they use, what else the machine does |
//! | [`compare`] | several servers in turns |
//! | [`experiments`] | what the articles measured |
//! | [`html`] | the report as a page |
//! | [`delay`] | a proxy that simulates a distant network |
//! | [`ask`], [`clock`], [`error`] | what these need; addresses and TLS are those of `brisk-dial` |
#![forbid(unsafe_code)]

pub mod ask;
pub mod clock;
pub mod cluster;
pub mod compare;
pub mod delay;
pub mod engine;
pub mod error;
pub mod experiments;
pub mod html;
mod library;
pub mod load;
pub mod noise;
pub mod options;
pub mod outcome;
pub mod report;
pub mod resources;
pub mod scan;
pub mod subject;

pub use brisk_dial::{Address, address, tls};
pub use engine::plan::{Arrivals, End, LibraryLoad, OnError, Pace, Plan, Session, Source, Target};
pub use engine::{Progress, Unwatched, Watch, run};
pub use error::RunError;
pub use load::{Material, Workload};
pub use outcome::{Latency, Outcome, Summary};
pub use subject::Subject;
