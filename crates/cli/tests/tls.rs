//! TLS: a trusted server is accepted, and an untrusted one is rejected unless verification is disabled.
#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::{Case, assert_same, ours, run, text};
use brisk_testkit::port::Port;
use brisk_testkit::{Launch, TempDir};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// An authority's certificate, and the key with which it signs.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    (certificate, Issuer::new(params, key))
}

#[test]
fn trusted_servers_are_accepted_and_others_rejected() {
    let home = TempDir::new();
    let path = |name: &str| home.path(name).display().to_string();
    let (trusted, issuer) = authority();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    // A certificate with the same name as its authority would be considered self-signed.
    params.distinguished_name.push(DnType::CommonName, "server");
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let client_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "client");
    let client = params.signed_by(&client_key, &issuer).unwrap();
    for (name, text) in [
        ("ca.crt", trusted),
        ("client.crt", client.pem()),
        ("client.key", client_key.serialize_pem()),
        ("other.crt", authority().0),
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ] {
        std::fs::write(home.path(name), text).unwrap();
    }
    let (ca, other) = (path("ca.crt"), path("other.crt"));
    for launch in [Launch::redis(), Launch::subject()] {
        let claimed = Port::claim();
        let port = claimed.number().to_string();
        let _server = launch
            .set("tls-port", &port)
            .set("tls-cert-file", &path("server.crt"))
            .set("tls-key-file", &path("server.key"))
            .set("tls-ca-cert-file", &ca)
            .set("tls-auth-clients", "no")
            .start();
        let at = ["-p", &port, "--tls"];
        assert_same(&Case::new(&[&at[..], &["--cacert", &ca, "set", "a", "b"]].concat()));
        assert_same(&Case::new(&[&at[..], &["--insecure", "get", "a"]].concat()));
        let address = format!("rediss://127.0.0.1:{port}");
        assert_same(&Case::new(&["-u", &address, "--cacert", &ca, "ping"]));
        let input: Vec<u8> = b"*1\r\n$4\r\nPING\r\n".repeat(20_000);
        let piped = Case::new(&[&at[..], &["--cacert", &ca, "--pipe"]].concat()).with_stdin(&input);
        let found = run(&ours(), &piped);
        assert!(text(&found.stdout).ends_with("errors: 0, replies: 20000\n"));
        let refused = run(&ours(), &Case::new(&[&at[..], &["--cacert", &other, "ping"]].concat()));
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("Could not negotiate a TLS connection: "));
        let named = [&at[..], &["--cacert", &ca, "--sni", "elsewhere.example", "ping"]].concat();
        assert_eq!(run(&ours(), &Case::new(&named)).status.code(), Some(1));
    }
    for launch in [Launch::redis(), Launch::subject()] {
        let claimed = Port::claim();
        let port = claimed.number().to_string();
        let _server = launch
            .set("tls-port", &port)
            .set("tls-cert-file", &path("server.crt"))
            .set("tls-key-file", &path("server.key"))
            .set("tls-ca-cert-file", &ca)
            .set("tls-auth-clients", "yes")
            .start();
        let (own, key) = (path("client.crt"), path("client.key"));
        let at = ["-p", &port, "--tls", "--cacert", &ca];
        let known = [&at[..], &["--cert", &own, "--key", &key, "ping"]].concat();
        assert_same(&Case::new(&known));
        assert_eq!(text(&run(&ours(), &Case::new(&known)).stdout), "PONG\n");
        // With TLS 1.3, a client learns of the rejection when it reads.
        let unknown = run(&ours(), &Case::new(&[&at[..], &["ping"]].concat()));
        assert_eq!(unknown.status.code(), Some(1));
        assert!(!unknown.stderr.is_empty());
        let half = run(&ours(), &Case::new(&[&at[..], &["--cert", &own, "ping"]].concat()));
        assert!(text(&half.stderr).contains("--cert and --key belong together"));
        let named = [&at[..], &["--cert", &own, "--key", &key, "--sni", "127.0.0.1", "ping"]];
        assert_eq!(text(&run(&ours(), &Case::new(&named.concat())).stdout), "PONG\n");
        let suite = ["--tls-ciphersuites", "TLS_AES_128_GCM_SHA256", "ping"];
        let chosen = [&at[..], &["--cert", &own, "--key", &key], &suite].concat();
        assert_same(&Case::new(&chosen));
    }
    let missing = run(&ours(), &Case::new(&["--tls", "--cacert", "/nowhere", "ping"]));
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/nowhere"));
}
