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
//! | [`ToArg`], [`ToArgs`] | what can be a word of a command |
//! | [`FromReply`] | what a reply can be made into |
//! | [`consumer`] | members of consumer groups |
//! | [`recipes`] | structures made of simpler ones |
//! | [`Error`] | what happened, how far the command had come, whether it may have been executed |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod arg;
mod batch;
mod client;
mod command;
pub mod commands;
pub mod consumer;
mod error;
mod lane;
mod poison;
pub mod recipes;
mod reply;
mod request;
mod script;
mod session;
mod subscriber;

pub use address::Address;
pub use arg::{Item, ToArg, ToArgs, Words};
pub use batch::{Batch, Commands, Transaction};
pub use brisk_resp::reply::read::Part;
pub use brisk_resp::reply::value::Value;
pub use bytes::Bytes;
pub use client::{Budget, Builder, Client, Lanes};
pub use command::{Command, Replay, Required, Target};
pub use error::{Code, Error, Kind, Phase, Result};
pub use lane::cell::WhenFull;
pub use reply::{FromReply, Reader, Reply};
pub use request::{Request, Traits};
pub use script::Script;
pub use session::{Session, Step};
pub use subscriber::{Event, Message, Subscriber};
