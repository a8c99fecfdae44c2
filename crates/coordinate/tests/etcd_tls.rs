//! `etcds://`: certificates of the server and of the client.

use crate::gateway::enable_authentication;
use crate::subject::open_endpoints;
use brisk_coordinate::Coordinator;
use brisk_coordinate::error::CoordinatorError;
use brisk_coordinate::etcd::EtcdOptions;
use brisk_coordinate::values::{ChangeOutcome, Revision, TopologyChange, WatchEvent};
use brisk_testkit::TempDir;
use brisk_testkit::etcd::EtcdLaunch;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use std::path::PathBuf;
use std::time::Duration;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Writes a certificate for 127.0.0.1 and its key.
    fn issue(&self, dir: &TempDir, name: &str, common_name: Option<&str>) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("good names");
        params.distinguished_name = DistinguishedName::new();
        if let Some(common_name) = common_name {
            params.distinguished_name.push(DnType::CommonName, common_name);
        }
        // etcd's gateway is a client of etcd with the server's certificate.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let certificate_file = write(dir, &format!("{name}.crt"), &certificate.pem());
        (certificate_file, write(dir, &format!("{name}.key"), &key.serialize_pem()))
    }
}

fn write(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path(name);
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn certificates_of_both_sides_are_checked() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let ca_file = write(&dir, "ca.crt", &authority.pem);
    let foreign = write(&dir, "foreign.crt", &Authority::new("theirs").pem);
    let (server, server_key) = authority.issue(&dir, "server", None);
    let (client, client_key) = authority.issue(&dir, "client", None);
    let (named, named_key) = authority.issue(&dir, "named", Some("brisk"));
    let argument = |name: &str, path: &PathBuf| format!("--{name}={}", path.display());
    let launch = EtcdLaunch::new(1)
        .tls()
        .arg(&argument("cert-file", &server))
        .arg(&argument("key-file", &server_key))
        .arg(&argument("trusted-ca-file", &ca_file))
        .arg("--client-cert-auth");
    // Authentication is enabled first, before TLS. With authentication, etcd rejects certificates
    // with common names.
    let Some(mut etcd) = EtcdLaunch::new(1).start() else { return };
    enable_authentication(&etcd);
    etcd.kill(0);
    etcd.restart_as(0, launch);
    etcd.wait_until_healthy(0);
    let open = |ca_file: &PathBuf, identity: Option<(&PathBuf, &PathBuf)>| {
        let options = EtcdOptions {
            user: Some("root".to_owned()),
            password: Some("secret".to_owned()),
            ca_file: Some(ca_file.clone()),
            certificate_file: identity.map(|(certificate, _)| certificate.clone()),
            key_file: identity.map(|(_, key)| key.clone()),
        };
        open_endpoints(&etcd.endpoints(), true, &options)
    };

    let good = open(&ca_file, Some((&client, &client_key)));
    let mut watch = good.watch(good.snapshot().unwrap().revision);
    // A document of many TLS records.
    let document = vec![b'd'; 300_000];
    let change = TopologyChange { expected: Revision::NONE, document: &document, controller: None };
    let outcome = good.change(&change);
    assert!(matches!(outcome, ChangeOutcome::Changed(_)), "{outcome:?}");
    let topology = good.read().unwrap();
    assert_eq!(topology.document.as_deref(), Some(&document[..]));
    let mut events = Vec::new();
    brisk_testkit::wait_until("the event", || {
        events.extend(watch.next(Duration::from_millis(100)).expect("the watch works"));
        !events.is_empty()
    });
    assert_eq!(events, [WatchEvent::Topology(topology)]);

    let error = open(&foreign, Some((&client, &client_key))).read().unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let anonymous = open(&ca_file, None).read();
    assert!(anonymous.is_err(), "{anonymous:?}");
    let error = open(&ca_file, Some((&named, &named_key))).read().unwrap_err();
    assert!(matches!(error, CoordinatorError::CommonName), "{error}");
    let plain = open_endpoints(&etcd.endpoints(), false, &EtcdOptions::default()).read();
    assert!(plain.is_err(), "{plain:?}");
}
