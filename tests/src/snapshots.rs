//! Snapshots that take as long as a test wants.

use brisk_testkit::{Conn, Server, assert_reply};

/// `count` keys, so that a snapshot takes as many times `us_per_key`.
pub fn fill(conn: &mut Conn, count: usize, us_per_key: u64) {
    assert_reply!(conn, &format!("DEBUG POPULATE {count} key 10"), "OK");
    delay(conn, us_per_key);
}

/// Writers of later snapshots take this time for each key.
pub fn delay(conn: &mut Conn, us_per_key: u64) {
    assert_reply!(conn, &format!("CONFIG SET rdb-key-save-delay {us_per_key}"), "OK");
}

/// Snapshots last until a test ends them.
pub fn make_endless(conn: &mut Conn) {
    fill(conn, 100, 10_000_000);
}

/// Has a server's directory be gone, so that it can write no file.
///
/// # Panics
/// If the directory cannot be removed.
#[track_caller]
pub fn take_disk_away(server: &Server) {
    let gone = server.dir().join("gone");
    std::fs::create_dir(&gone).expect("a directory");
    let path = gone.to_str().expect("names of tests are text");
    let reply = server.connect().call(&["CONFIG", "SET", "dir", path]);
    assert_eq!(reply.to_string(), "OK");
    std::fs::remove_dir(&gone).expect("it is empty");
}
