//! A client for Redis-compatible servers: Brisk, Redis and Valkey.
//!
//! All tasks and threads share a few connections, and the client pipelines their commands automatically. Queues are
//! bounded, every command has a time limit, and lost connections are reestablished. An error says whether the server
//! may have executed the command.
//!
//! Start with [`Client`]: [`Client::connect`] opens the connections, and the commands are its methods.
//!
//! | item | purpose |
//! |---|---|
//! | [`Client`] | shared connections to a server or a cluster; commands are its methods |
//! | [`Builder`] | options of a client: time limits, TLS, replicas, credentials |
//! | [`Command`] | a command: a future, or [blocking](Command::wait) |
//! | [`commands`] | free functions that build a command without a client, for batches and transactions |
//! | [`Error`] | what happened, whether the command was sent, whether it may have been executed |
//! | [`Session`] | a connection for one caller: WATCH, SELECT, blocking commands |
//! | [`Subscriber`] | publish and subscribe |
//! | [`Cache`] | client-side caching |
//! | [`consumer`] | workers in a consumer group of a stream |
//! | [`recipes`] | data structures built from simpler ones |
//! | [`wait()`] | blocks on sessions, scripts and subscribers in programs without a runtime |
//! | [`ToArg`], [`ToArgs`] | types that can be arguments of a command |
//! | [`FromReply`] | types that a reply can be converted to |
//! | [`Observer`] | callbacks for logs, metrics and traces |
//!
//! Cargo features, each off by default: `derive` (structs as hashes), `json` (`Json<T>`), `tls` (TLS with rustls),
//! `tracing` and `metrics` (ready-made observers), `mock` (a scripted server for tests).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod arg;
mod batch;
mod blocking;
mod cache;
mod client;
mod command;
#[expect(
    clippy::type_complexity,
    reason = "the reply of a pop is an option of a pair, written out for readers"
)]
pub mod commands;
pub mod consumer;
mod credentials;
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod derived;
mod effects;
mod error;
#[cfg(doctest)]
mod guides;
#[cfg(feature = "json")]
mod json;
mod lane;
#[cfg(feature = "mock")]
pub mod mock;
mod observe;
mod poison;
pub mod recipes;
mod reply;
mod request;
mod scan;
mod script;
mod session;
mod streamed;
mod subscriber;
mod sync;
#[cfg(feature = "tls")]
mod tls;
mod wait;

pub use address::Address;
pub use arg::{Args, Item, ToArg, ToArgs};
pub use batch::{Batch, Commands, Transaction};
#[cfg(feature = "derive")]
pub use brisk_derive::{FromHash, FromReply, ToArg, ToHash};
pub use brisk_resp::reply::read::Part;
pub use brisk_resp::reply::value::Value;
pub use bytes::Bytes;
pub use cache::{Cache, CacheOptions, CacheStats};
pub use client::{Budget, Builder, Client, Lanes, ReadFrom};
pub use command::{Command, Replay, Required, Target};
pub use credentials::{BoxFuture, Credentials, Login, Rotating};
pub use error::{Code, Error, Executed, Kind, Phase, Result};
#[cfg(feature = "json")]
pub use json::Json;
pub use lane::cell::WhenFull;
#[cfg(feature = "metrics")]
pub use observe::Metrics;
#[cfg(feature = "tracing")]
pub use observe::Tracing;
pub use observe::{Call, Connected, Counts, Endpoint, Observer, Outcome, Statistics, Token};
pub use reply::{FromReply, Reader, Reply};
pub use request::{Request, Traits};
pub use scan::{Elements, Keys, Scan};
pub use script::Script;
pub use session::{Session, Step};
pub use streamed::Streamed;
pub use subscriber::{Confirmation, Event, KeyspaceEvent, Message, Subscriber};
#[cfg(feature = "tls")]
pub use tls::Tls;
pub use wait::wait;
