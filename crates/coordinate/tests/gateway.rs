//! Plain requests to etcd's gateway, as an operator's tool would send them.

use brisk_testkit::etcd::Etcd;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Sends a request and returns the whole response, including its head. Panics if there is no
/// response.
#[track_caller]
pub(crate) fn post(address: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("etcd accepts connections");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit can be set");
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    stream.write_all(request.as_bytes()).expect("etcd reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("etcd replies");
    response
}

/// Enables authentication: the user `root`, and the user `stranger` without a role. Both have the
/// password `secret`.
pub(crate) fn enable_authentication(etcd: &Etcd) {
    let address = &etcd.endpoints()[0];
    let requests = [
        ("/v3/auth/user/add", r#"{"name":"root","password":"secret"}"#),
        ("/v3/auth/role/add", r#"{"name":"root"}"#),
        ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("/v3/auth/user/add", r#"{"name":"stranger","password":"secret"}"#),
        ("/v3/auth/enable", "{}"),
    ];
    for (path, body) in requests {
        let response = post(address, path, body);
        assert!(response.starts_with("HTTP/1.1 200"), "{path}: {response}");
    }
}
