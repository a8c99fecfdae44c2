//! Plain requests to etcd's gateway, as an operator's tool would send them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Sends a request; returns the whole answer with its head. Panics if there is none.
#[track_caller]
pub(crate) fn post(address: &str, path: &str, body: &str, token: Option<&str>) -> String {
    let mut stream = TcpStream::connect(address).expect("etcd accepts connections");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit can be set");
    let authorization = token.map(|token| format!("Authorization: {token}\r\n"));
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n{body}",
        body.len(),
        authorization.unwrap_or_default(),
    );
    stream.write_all(request.as_bytes()).expect("etcd reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("etcd answers");
    answer
}
