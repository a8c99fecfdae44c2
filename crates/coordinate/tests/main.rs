//! The tests of the coordinators: one contract for all, and the faults of each.

mod contract;
mod gateway;
mod local_processes;
mod subject;
