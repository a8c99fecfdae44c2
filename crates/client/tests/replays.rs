//! The time limit of commands that are sent again.

use brisk::{Client, Kind, Lanes, Phase};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// A server that replies to the setup requests, holds a command for a while, and closes the connection.
fn closing(keeps: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                let read = socket.read(&mut bytes).unwrap_or(0);
                // Each request is an array, and no argument contains an asterisk.
                let requests = bytes[..read].iter().filter(|byte| **byte == b'*').count();
                let _ = socket.write_all("+OK\r\n".repeat(requests).as_bytes());
                if matches!(socket.read(&mut bytes), Ok(1..)) {
                    // Waits until the peer sends more, but no longer than this.
                    let _ = socket.set_read_timeout(Some(keeps));
                    let _ = socket.read(&mut bytes);
                }
            });
        }
    });
    address
}

#[test]
fn all_attempts_of_a_read_share_one_time_limit() {
    let address = closing(Duration::from_millis(600));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let db = Client::builder(&address).protocol(2).lanes(Lanes::Count(1));
        let db = db.timeout(Duration::from_secs(1)).connect().await.unwrap();
        // Four attempts, each within the limit, would end with a lost connection instead of a timeout.
        let error = db.get::<String>("k").await.unwrap_err();
        assert_eq!(error.kind(), Kind::Timeout(Phase::Sent), "{error}");
    });
}
