//! The tests of the coordinators: one contract for all, and the faults of each.

mod contract;
mod etcd_faults;
mod etcd_responses;
mod etcd_tls;
mod gateway;
mod local_processes;
mod subject;
