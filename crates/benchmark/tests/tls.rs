//! TLS: persistent and short connections, to servers whose CA certificate is trusted or not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_testkit::port::Port;
use brisk_testkit::{Launch, Server, wait_until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::PathBuf;
use std::process::{Command, Output};

/// Certificate files, and a port.
struct Site {
    dir: PathBuf,
    port: Port,
}

impl Site {
    fn new(name: &str) -> Site {
        let dir = std::env::temp_dir().join(format!("tool-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let site = Site { dir, port: Port::claim() };
        let (authority, issuer) = authority();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        site.write("ca.crt", &authority);
        site.write("other.crt", &self::authority().0);
        site.write("server.crt", &certificate.pem());
        site.write("server.key", &key.serialize_pem());
        site
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.join(name), text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    fn start(&self, launch: Launch) -> Server {
        launch
            .set("tls-port", &self.port.number().to_string())
            .set("tls-cert-file", &self.path("server.crt"))
            .set("tls-key-file", &self.path("server.key"))
            .set("tls-ca-cert-file", &self.path("ca.crt"))
            .set("tls-auth-clients", "no")
            .set("protected-mode", "no")
            .start()
    }

    fn tool(&self, arguments: &[&str]) -> Output {
        let port = self.port.number().to_string();
        Command::new(env!("CARGO_BIN_EXE_brisk-benchmark"))
            .args(["-p", &port, "--tls", "-q", "-n", "400", "-c", "10"])
            .args(arguments)
            .output()
            .unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

#[test]
fn requests_go_through_tls() {
    for launch in [Launch::redis(), Launch::subject()] {
        let site = Site::new("works");
        let server = site.start(launch);
        let authority = site.path("ca.crt");
        // The cases are values longer than a TLS record, batches longer than the session's buffers, and short
        // connections.
        for more in [
            &["-P", "16", "-t", "set,get", "-d", "5000", "--verify"][..],
            &["-k", "0", "-t", "set", "--threads", "2"],
            &["--rate", "4000", "-t", "get", "-d", "5000"],
        ] {
            let output = site.tool(&[&["--cacert", &authority], more].concat());
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{more:?}: {error}");
        }
        assert_eq!(server.connect().cmd("EXISTS key:__rand_int__").integer(), 1);
    }
}

#[test]
fn a_certificate_of_an_unknown_ca_is_rejected_unless_insecure() {
    let site = Site::new("authority");
    let _server = site.start(Launch::subject());
    let other = site.path("other.crt");
    let refused = site.tool(&["--cacert", &other, "-t", "set"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("certificate"), "{error}");
    let insecure = site.tool(&["--insecure", "-t", "set"]);
    assert!(insecure.status.success(), "{}", String::from_utf8_lossy(&insecure.stderr));
}

#[test]
fn a_cluster_is_reached_through_tls_with_a_password() {
    let site = Site::new("cluster");
    let bus = Port::claim();
    let launch = Launch::redis()
        .set("cluster-enabled", "yes")
        .set("tls-cluster", "yes")
        .set("cluster-port", &bus.number().to_string());
    let server = site.start(launch);
    let mut conn = server.connect();
    assert_eq!(conn.cmd("CLUSTER ADDSLOTSRANGE 0 16383").to_string(), "OK");
    wait_until("the cluster to be up", || {
        conn.cmd("CLUSTER INFO").text().contains("cluster_state:ok")
    });
    assert_eq!(conn.cmd("CONFIG SET requirepass secret").to_string(), "OK");
    let authority = site.path("ca.crt");
    let output = site.tool(&["--cacert", &authority, "--cluster", "-a", "secret", "-t", "set"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = site.tool(&["--cacert", &authority, "--cluster", "-a", "wrong", "-t", "set"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("WRONGPASS"), "{error}");
}
