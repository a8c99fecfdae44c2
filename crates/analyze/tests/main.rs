//! The analysis's integration tests, in one executable.

mod advice;
mod aof;
mod files;
mod harness;
mod live;
mod models;
