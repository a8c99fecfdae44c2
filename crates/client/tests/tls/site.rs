//! Certificates for one test, and servers that present them.

use brisk::{Builder, Client, Tls};
use brisk_testkit::port::Port;
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::temp_dir::TempDir;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// A certificate and its key, as PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    /// Creates an authority. Each authority must have its own name, because a certificate names its issuer.
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("good names");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// Files and a port for a server that speaks TLS.
pub(crate) struct Site {
    pub(crate) authority: Authority,
    port: Port,
    dir: TempDir,
}

impl Site {
    pub(crate) fn new() -> Site {
        Site::named(&["localhost", "127.0.0.1"])
    }

    /// Creates a site whose server certificate is for these names.
    pub(crate) fn named(names: &[&str]) -> Site {
        let site =
            Site { authority: Authority::new("ours"), port: Port::claim(), dir: TempDir::new() };
        let server = site.authority.issue(names);
        site.write("ca.crt", &site.authority.pem);
        site.write("server.crt", &server.certificate);
        site.write("server.key", &server.key);
        site
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir.path(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    pub(crate) fn launch(&self, launch: Launch) -> Launch {
        let path = |name| self.dir.path(name).display().to_string();
        launch
            .set("tls-port", &self.port.number().to_string())
            .set("tls-cert-file", &path("server.crt"))
            .set("tls-key-file", &path("server.key"))
            .set("tls-ca-cert-file", &path("ca.crt"))
            .set("tls-auth-clients", "no")
    }

    pub(crate) fn start(&self, launch: Launch) -> Server {
        self.launch(launch).start()
    }

    /// The address for TLS connections.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    pub(crate) fn tls(&self) -> Tls {
        Tls::new().ca_pem(self.authority.pem.clone())
    }

    /// A builder for a client of the server at this address. The client trusts the site's certificate authority.
    pub(crate) fn client(&self, address: &str) -> Builder {
        Client::builder(&format!("rediss://{address}")).tls(self.tls())
    }
}
