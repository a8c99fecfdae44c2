//! A client for Redis-compatible servers: Brisk, Redis, Valkey.
//!
//! Commands of all tasks and threads share a few connections, go out together and are answered in order, without
//! a word about it in the program. What may wait is bounded, every command has a time limit, an error says
//! whether the command may have been executed, and a lost connection is made anew.
//!
//! | part | what it is |
//! |---|---|
//! | [`Client`] | shared connections to a server; commands are its methods |
//! | [`commands`] | all commands, with nobody to send them yet |
//! | [`Command`] | a command on its way: a future, or [waited for](Command::wait) |
//! | [`wait`] | everything else without a runtime: sessions, scripts, listeners |
//! | [`ToArg`], [`ToArgs`] | what can be a word of a command |
//! | [`FromReply`] | what a reply can be made into |
//! | [`Observer`] | who is told what the client does |
//! | [`consumer`] | members of consumer groups |
//! | [`recipes`] | structures made of simpler ones |
//! | [`Error`] | what happened, how far the command had come, whether it may have been executed |
//!
//! Features, each off by default: `derive` (structs as hashes), `json` (`Json<T>`), `tracing` and `metrics` (ready
//! observers), `mock` (a scripted server for tests).
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
pub use arg::{Item, ToArg, ToArgs, Words};
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
