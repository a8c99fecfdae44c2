//! Many keys with one deadline. (How soon they are gone: `cargo xtask bench expiry`.)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_protocol, wait_until};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Keys that die at one instant; without optimisation, what is promised per second is less.
const MASS: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

/// The longest time that the keys may take to be made.
const PATIENCE_MAX: Duration = Duration::from_secs(300);

/// Makes the keys before their common deadline: a machine under load may need a later one.
fn fill(conn: &mut Conn) {
    let mut patience = Duration::from_millis(MASS as u64 / 20);
    loop {
        let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + patience;
        for chunk in 0..MASS / 1000 {
            let lines: Vec<String> = (0..1000)
                .map(|i| format!("SET key:{chunk}:{i} value PXAT {}", deadline.as_millis()))
                .collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            conn.pipeline(&lines);
        }
        if conn.cmd("DBSIZE").integer() as usize == MASS {
            return;
        }
        patience *= 2;
        assert!(patience < PATIENCE_MAX, "the keys were not made before their deadline");
    }
}

#[test]
fn mass_expiry_removes_keys_without_access() {
    each_protocol(|server| {
        let mut conn = server.connect();
        let before = conn.info("used_memory").parse::<i64>().unwrap();
        fill(&mut conn);
        let full = conn.info("used_memory").parse::<i64>().unwrap() - before;

        // Until the deadline nothing happens; then others are served while the dead are buried.
        let mut other = server.connect();
        let few = if subject_is_redis() { MASS as i64 } else { 0 };
        wait_until("the dead are gone without being touched", || {
            assert_reply!(other, "PING", "PONG");
            conn.cmd("DBSIZE").integer() <= few
        });
        let kept = conn.info("used_memory").parse::<i64>().unwrap() - before;
        assert!(kept < full / 4 || subject_is_redis(), "{kept} of {full} bytes are still used");
    });
}
