//! Many keys that expire at the same time. (`cargo xtask bench expiry` measures how soon they are removed.)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, assert_reply, each_protocol, wait_until};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Number of keys that expire at the same time. It is smaller in unoptimized builds, which are slower.
const MASS: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

/// The maximum time for creating the keys.
const FILL_TIME_MAX: Duration = Duration::from_secs(300);

/// Creates the keys before their common expiry time. On a loaded machine, a later time may be necessary.
fn fill(conn: &mut Conn) {
    let mut fill_time = Duration::from_millis(MASS as u64 / 20);
    loop {
        let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + fill_time;
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
        fill_time *= 2;
        assert!(fill_time < FILL_TIME_MAX, "the keys were not made before their deadline");
    }
}

#[test]
fn mass_expiry_removes_keys_without_access() {
    each_protocol(|server| {
        let mut conn = server.connect();
        let before = conn.info("used_memory").parse::<i64>().unwrap();
        fill(&mut conn);
        let full = conn.info("used_memory").parse::<i64>().unwrap() - before;

        // Nothing happens before the expiry time. Then other clients are served while the keys are removed.
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
