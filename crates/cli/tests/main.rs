//! The integration tests of `brisk-cli`, in one executable.

mod analyze;
mod cluster_page;
mod cluster_status;
mod clusters;
mod commands;
mod doctor;
mod formats;
mod harness;
mod local_clusters;
mod migrate;
mod modes;
mod peek;
mod prompt;
mod sessions;
mod tls;
mod top;
