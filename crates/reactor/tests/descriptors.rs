//! Tests that descriptors are neither leaked nor wrongly inherited. It runs in a process of its own
//! because it counts the descriptors of the process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test file uses its part")]
mod line_server;

use line_server::each_backend;
use std::io::{Read, Write};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn two_thousand_connections_leak_no_descriptor() {
    each_backend(|server| {
        let before = open_descriptors();
        for round in 0..20 {
            let mut clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
            for client in &mut clients {
                client.write_all(b"echo x\n").unwrap();
            }
            for (i, client) in clients.iter_mut().enumerate() {
                let mut reply = [0; 2];
                if (i + round) % 3 != 0 {
                    client.read_exact(&mut reply).unwrap();
                    assert_eq!(&reply, b"x\n");
                }
            }
        }
        line_server::wait_until("all were seen and closed", || server.reasons().len() == 2000);
        // A lower count is not a leak: the C library opens a file for a moment when a thread first
        // allocates, which the earlier count may include.
        line_server::wait_until("no descriptor is left", || open_descriptors() <= before);
        let counters = server.stop();
        assert_eq!((counters.accepted, counters.closes), (2000, 2000));
    });
}
