//! Tests of TLS settings: settings that apply after startup, and settings that prevent the server from starting.

use super::certificates::{Authority, Identity};
use super::client::{self, Site};
use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::wait_until;
use rustls::CipherSuite;
use rustls::version::{TLS12, TLS13};
use std::process::Command;

/// Returns the log of a server that does not start.
fn refusal(site: &Site, change: &[(&str, &str)]) -> String {
    let launch = change.iter().fold(site.launch(), |launch, (name, value)| launch.set(name, value));
    let why = launch.try_start().err().unwrap();
    assert!(why.contains("exit status: 1"), "{why}");
    assert!(why.contains("Failed to configure TLS. Check logs for more info."), "{why}");
    why
}

#[test]
fn unusable_settings_are_reported_and_end_the_server() {
    let site = Site::new();
    let other_key = site.dir.write("other.key", &site.authority.issue().key);
    let garbage = site.dir.write("garbage", "-----BEGIN CERTIFICATE-----\nno\n");
    for (change, said) in [
        (("tls-cert-file", ""), "No tls-cert-file configured!"),
        (("tls-key-file", ""), "No tls-key-file configured!"),
        (("tls-cert-file", "/nowhere"), "/nowhere"),
        (("tls-cert-file", garbage.as_str()), "garbage"),
        (("tls-key-file", garbage.as_str()), "garbage"),
        (("tls-key-file", site.certificate.as_str()), "server.crt"),
        (("tls-key-file", other_key.as_str()), ""),
        (("tls-ca-cert-file", "/nowhere"), ""),
        (("tls-ciphers", "AES1024-ROT13"), ""),
        (("tls-ciphersuites", "TLS_AES_1024_ROT13"), "TLS_AES_1024_ROT13"),
        (("tls-protocols", "TLSv9"), "tls-protocols"),
    ] {
        let log = refusal(&site, &[change]);
        assert!(log.contains(said), "{change:?}: {log}");
    }
    refusal(&site, &[("tls-auth-clients", "yes"), ("tls-ca-cert-file", "")]);
}

#[test]
fn an_encrypted_key_is_rejected_with_advice() {
    if subject_is_redis() {
        return; // Redis can read them
    }
    let site = Site::new();
    let out = site.dir.path().join("encrypted.key");
    let status = Command::new("openssl")
        .args(["pkcs8", "-topk8", "-passout", "pass:secret", "-in", &site.key, "-out"])
        .arg(&out)
        .status()
        .unwrap();
    assert!(status.success());
    let key = out.to_str().unwrap();
    let log = refusal(&site, &[("tls-key-file", key), ("tls-key-file-pass", "secret")]);
    assert!(log.contains("is encrypted, which is not supported"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

/// Creates a certificate like the one that `openssl x509 -req` creates without -extfile.
fn certificate_of_version_1(site: &Site) -> String {
    let [request, out] = ["old.csr", "old.crt"].map(|name| site.dir.path().join(name));
    let openssl = |words: &[&str]| {
        let run = Command::new("openssl").args(words).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    };
    let [request, out] = [&request, &out].map(|path| path.to_str().unwrap());
    openssl(&["req", "-new", "-key", &site.key, "-subj", "/CN=localhost", "-out", request]);
    openssl(&["x509", "-req", "-in", request, "-signkey", &site.key, "-out", out]);
    out.to_owned()
}

#[test]
fn a_certificate_of_version_1_is_rejected_with_advice() {
    if subject_is_redis() {
        return; // Redis accepts them
    }
    let site = Site::new();
    let old = certificate_of_version_1(&site);
    let log = refusal(&site, &[("tls-cert-file", &old)]);
    let said = format!("tls-cert-file: the certificate in {old} has X.509 version 1");
    assert!(log.contains(&said) && log.contains("issue one with version 3"), "{log}");
    // A CA certificate may have version 1.
    let _server =
        site.launch().set("tls-ca-cert-file", &old).set("tls-auth-clients", "yes").start();
}

/// The expected lines are those of Valkey 8.0.1.
#[test]
fn info_lists_the_listeners() {
    if subject_is_redis() {
        return; // version 7.0 does not show them
    }
    let site = Site::new();
    let server = site.launch().set("bind", "127.0.0.1 -::1").start();
    let (plain, tls) = (server.port(), site.port.number());
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("listener")).map(str::to_owned).collect()
    };
    let unix = format!("listener1:name=unix,bind={}", server.unix_socket().display());
    let mut conn = server.connect();
    assert_eq!(
        lines(&conn.cmd("INFO server").text()),
        [
            format!("listener0:name=tcp,bind=127.0.0.1,bind=-::1,port={plain}"),
            unix.clone(),
            format!("listener2:name=tls,bind=127.0.0.1,bind=-::1,port={tls}"),
        ]
    );
    assert_eq!(conn.cmd("CONFIG SET tls-port 0 bind 127.0.0.1").text(), "OK");
    assert_eq!(
        lines(&conn.cmd("INFO server").text()),
        [format!("listener0:name=tcp,bind=127.0.0.1,port={plain}"), unix.clone()]
    );
    let other = site.launch().set("port", "0").set("tls-port", "0").start();
    let unix = format!("listener1:name=unix,bind={}", other.unix_socket().display());
    assert_eq!(lines(&other.connect_unix().cmd("INFO server").text()), [unix]);
}

#[test]
fn protocols_and_ciphers_are_as_set() {
    let site = Site::new();
    let one = |launch: brisk_testkit::Launch, good, bad: Option<_>, suite| {
        let _server = launch.start();
        let client = site.try_client(None, &[good]).unwrap();
        assert_eq!(client.stream.conn.negotiated_cipher_suite().unwrap().suite(), suite);
        if let Some(bad) = bad {
            assert!(site.try_client(None, &[bad]).is_err());
        }
    };
    one(
        site.launch()
            .set("tls-protocols", "\"TLSv1.2\"")
            .set("tls-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        &TLS12,
        Some(&TLS13),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    );
    one(
        site.launch()
            .set("tls-protocols", "TLSv1.3")
            .set("tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"),
        &TLS13,
        Some(&TLS12),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    );
    one(
        site.launch()
            .set("tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256")
            .set("tls-prefer-server-ciphers", "yes"),
        &TLS13,
        None,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    );
}

#[test]
fn sessions_are_resumed_unless_that_is_off() {
    if subject_is_redis() {
        return; // Redis resumes with tickets when the cache is off
    }
    let site = Site::new();
    for (caching, expected) in
        [("yes", rustls::HandshakeKind::Resumed), ("no", rustls::HandshakeKind::Full)]
    {
        let _server = site.launch().set("tls-session-caching", caching).start();
        for version in [&TLS12, &TLS13] {
            let config = client::config(&site.authority, None, &[version]);
            let connect = || {
                let port = site.port.number();
                let client = client::Client::connect(port, config.clone()).unwrap();
                client.stream.conn.handshake_kind().unwrap()
            };
            assert_eq!(connect(), rustls::HandshakeKind::Full);
            assert_eq!(connect(), expected, "{caching}, {version:?}");
        }
    }
}

#[test]
fn ca_certificates_can_be_in_a_directory() {
    let site = Site::new();
    let dir = site.dir.path().join("authorities");
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(&site.authority_file, dir.join("ca.pem")).unwrap();
    assert!(Command::new("openssl").arg("rehash").arg(&dir).status().unwrap().success());
    let _server = site
        .launch()
        .set("tls-ca-cert-file", "")
        .set("tls-ca-cert-dir", dir.to_str().unwrap())
        .set("tls-auth-clients", "yes")
        .start();
    let identity = site.authority.issue();
    assert!(site.try_client(Some(&identity), rustls::ALL_VERSIONS).is_ok());
    assert!(site.try_client(None, rustls::ALL_VERSIONS).is_err());
}

#[test]
fn redis_cli_connects_with_tls() {
    let site = Site::new();
    let identity = site.authority.issue();
    let certificate = site.dir.write("client.crt", &identity.certificate);
    let key = site.dir.write("client.key", &identity.key);
    let _server = site.launch().set("tls-auth-clients", "yes").start();
    let port = site.port.number().to_string();
    let output = Command::new("redis-cli")
        .args(["-p", &port, "--tls", "--cacert", &site.authority_file])
        .args(["--cert", &certificate, "--key", &key, "ECHO", "from the shell"])
        .output();
    // The tool is not installed everywhere, and may be built without TLS.
    if let Ok(output) = output
        && !String::from_utf8_lossy(&output.stderr).contains("Unrecognized option")
    {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "from the shell\n");
    }
}

#[test]
fn new_certificates_serve_new_connections_and_old_ones_continue() {
    let site = Site::new();
    let server = site.start();
    let mut old = site.client();
    let other = Authority::new("the next authority");
    let Identity { certificate, key } = other.issue();
    let next_certificate = site.dir.write("next.crt", &certificate);
    let next_key = site.dir.write("next.key", &key);
    let set = format!("CONFIG SET tls-cert-file {next_certificate} tls-key-file {next_key}");
    assert_eq!(server.connect().cmd(&set).text(), "OK");
    let trusting = |authority| {
        let config = client::config(authority, None, rustls::ALL_VERSIONS);
        client::Client::connect(site.port.number(), config)
    };
    assert!(trusting(&other).is_ok());
    assert!(trusting(&site.authority).is_err());
    assert_eq!(old.request(&["PING"]).text(), "PONG");
}

#[test]
fn files_named_again_are_read_again() {
    let site = Site::new();
    let server = site.start();
    let other = Authority::new("the next authority");
    let Identity { certificate, key } = other.issue();
    site.dir.write("server.crt", &certificate);
    site.dir.write("server.key", &key);
    let set = format!("CONFIG SET tls-cert-file {}", site.certificate);
    assert_eq!(server.connect().cmd(&set).text(), "OK");
    let config = client::config(&other, None, rustls::ALL_VERSIONS);
    assert!(client::Client::connect(site.port.number(), config).is_ok());
}

#[test]
fn settings_that_cannot_be_used_change_nothing() {
    let site = Site::new();
    let server = site.start();
    let mut plain = server.connect();
    let garbage = site.dir.write("garbage", "no certificate");
    for (name, value) in [
        ("tls-cert-file", "/nowhere"),
        ("tls-key-file", garbage.as_str()),
        ("tls-ca-cert-file", garbage.as_str()),
        ("tls-protocols", "SSLv2"),
        ("tls-ciphersuites", "nonsense"),
    ] {
        let before = plain.cmd(&format!("CONFIG GET {name}"));
        assert_eq!(
            plain.cmd(&format!("CONFIG SET {name} {value}")).text(),
            format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - Unable to update \
                 TLS configuration. Check server logs."
            )
        );
        assert_eq!(plain.cmd(&format!("CONFIG GET {name}")), before);
        assert_eq!(site.client().request(&["PING"]).text(), "PONG");
    }
}

#[test]
fn the_tls_port_moves_and_ends_at_run_time() {
    let site = Site::new();
    let server = site.start();
    let mut client = site.client();
    let next = Port::claim();
    let mut plain = server.connect();
    assert_eq!(plain.cmd(&format!("CONFIG SET tls-port {}", next.number())).text(), "OK");
    let connects = |port: &Port| {
        let config = client::config(&site.authority, None, rustls::ALL_VERSIONS);
        client::Client::connect(port.number(), config).is_ok()
    };
    assert!(connects(&next));
    wait_until("the old port to be closed", || !connects(&site.port));
    assert_eq!(client.request(&["PING"]).text(), "PONG");
    assert_eq!(plain.cmd("CONFIG SET tls-port 0").text(), "OK");
    wait_until("the port to be closed", || !connects(&next));
    assert_eq!(client.request(&["PING"]).text(), "PONG");
}
