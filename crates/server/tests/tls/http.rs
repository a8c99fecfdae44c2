//! Tests of `/metrics` and the other HTTP paths over TLS.

use super::certificates::Identity;
use super::client::{self, Site};
use brisk_testkit::each_backend;
use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Returns the server's whole response to a request with `Connection: close`.
fn http_get(
    port: &Port,
    site: &Site,
    identity: Option<&Identity>,
    path: &str,
) -> io::Result<String> {
    let socket = TcpStream::connect(("127.0.0.1", port.number()))?;
    socket.set_read_timeout(Some(client::DEADLINE))?;
    let config = client::config(&site.authority, identity, rustls::ALL_VERSIONS);
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    // A close without a notification is an error.
    stream.read_to_string(&mut response)?;
    Ok(response)
}

#[test]
fn requests_over_tls_get_responses_and_plain_ones_do_not() {
    if subject_is_redis() {
        return;
    }
    let (site, port) = (Site::new(), Port::claim());
    let launch = || {
        let launch = site.launch().set("http-port", &port.number().to_string());
        // The TLS port for clients may be disabled.
        launch.set("http-tls", "yes").set("tls-port", "0")
    };
    each_backend(launch, |_| {
        let response = http_get(&port, &site, None, "/ready").unwrap();
        assert!(
            response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nready\n")
        );
        // This response is longer than one record.
        let response = http_get(&port, &site, None, "/metrics").unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", body.len())) && body.len() > 20_000
        );
        let mut plain = TcpStream::connect(("127.0.0.1", port.number())).unwrap();
        plain.set_read_timeout(Some(client::DEADLINE)).unwrap();
        plain.write_all(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut rest = Vec::new();
        // The client gets an alert, and the connection closes. It may be reset, because the request was not read.
        let _ = plain.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP"));
    });
}

#[test]
fn clients_present_a_certificate_if_the_settings_require_one() {
    if subject_is_redis() {
        return;
    }
    let (site, port) = (Site::new(), Port::claim());
    let launch = site.launch().set("http-port", &port.number().to_string());
    let _server = launch.set("http-tls", "yes").set("tls-auth-clients", "yes").start();
    assert!(http_get(&port, &site, None, "/health").is_err());
    let identity = site.authority.issue();
    let response = http_get(&port, &site, Some(&identity), "/health").unwrap();
    assert!(response.ends_with("\r\n\r\nok\n"), "{response}");
}

#[test]
fn a_server_without_certificates_does_not_start_with_http_tls() {
    if subject_is_redis() {
        return;
    }
    let (site, port) = (Site::new(), Port::claim());
    let launch = site.launch().set("http-port", &port.number().to_string()).set("tls-port", "0");
    let why = launch.set("http-tls", "yes").set("tls-cert-file", "").try_start().err().unwrap();
    assert!(why.contains("No tls-cert-file configured!"), "{why}");
}
