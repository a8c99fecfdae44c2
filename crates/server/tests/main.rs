//! Integration tests of the server program, in one executable. Most tests of its behavior are in the package
//! `brisk-tests`.

mod command;
mod config;
mod info;
mod listeners;
mod permission_rules;
mod service;
mod tls;
