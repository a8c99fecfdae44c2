//! Snapshots that take as long as a test needs.

use brisk_testkit::{Conn, Server, assert_reply};

/// Creates `count` keys, so that a snapshot takes `count` times `us_per_key`.
pub fn fill(conn: &mut Conn, count: usize, us_per_key: u64) {
    assert_reply!(conn, &format!("DEBUG POPULATE {count} key 10"), "OK");
    delay(conn, us_per_key);
}

/// Sets the time per key that later snapshots take.
pub fn delay(conn: &mut Conn, us_per_key: u64) {
    assert_reply!(conn, &format!("CONFIG SET rdb-key-save-delay {us_per_key}"), "OK");
}

/// Makes snapshots run until a test ends them.
pub fn make_endless(conn: &mut Conn) {
    fill(conn, 100, 10_000_000);
}

/// Removes a server's directory, so that it cannot write files.
///
/// # Panics
/// If the directory cannot be removed.
#[track_caller]
pub fn take_disk_away(server: &Server) {
    let missing = server.dir().join("gone");
    std::fs::create_dir(&missing).expect("a directory");
    let path = missing.to_str().expect("names of tests are text");
    let reply = server.connect().call(&["CONFIG", "SET", "dir", path]);
    assert_eq!(reply.to_string(), "OK");
    std::fs::remove_dir(&missing).expect("it is empty");
}
