//! Load generator for servers that speak the Redis protocol, and tool to compare them.
//!
//! A [`Workload`] describes the requests; a [`Plan`] describes the server, the number of clients and the rate. [`run`]
//! executes the plan and returns an [`Outcome`]. A [`Subject`] is a measured server with its resources, started by this
//! program or elsewhere. [`compare`](compare::compare) measures several of them in turn and returns a
//! [`Comparison`](compare::Comparison), which is plain data for reports.
//!
//! | module | contents |
//! |---|---|
//! | [`load`] | the requests to send: commands, keys, sizes, mixtures |
//! | [`scan`] | counting replies without decoding them |
//! | [`engine`] | the threads that send and measure |
//! | `library` | sending requests with the client library instead |
//! | [`cluster`] | the primaries of a cluster as the target |
//! | [`outcome`] | the results of a run |
//! | [`options`], [`report`] | redis-benchmark's command line and output |
//! | [`subject`], [`resources`], [`noise`] | servers, the resources that they use, other load on the machine |
//! | [`compare`] | several servers, measured in turn |
//! | [`experiments`] | reproductions of measurements in published articles |
//! | [`html`] | the report as a page |
//! | [`delay`] | a proxy that simulates a distant network |
//! | [`requester`], [`clock`], [`error`] | helpers for the other modules; addresses and TLS come from `brisk-dial` |
#![forbid(unsafe_code)]

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
pub mod requester;
pub mod resources;
pub mod scan;
pub mod subject;

pub use brisk_dial::{Address, address, tls};
pub use engine::plan::{
    Arrivals, End, LibraryLoad, OnError, Pace, Plan, SessionSetup, Source, Target,
};
pub use engine::{Progress, Unwatched, Watch, run};
pub use error::RunError;
pub use load::{Material, Workload};
pub use outcome::{Latency, Outcome, Summary};
pub use subject::Subject;
