//! TLS settings: trusted CA certificates, the client's certificate, and the configuration that all connections share.

use crate::error::{Error, Kind, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// TLS settings, for [`Builder::tls`](crate::Builder::tls). Requires the Cargo feature `tls`.
///
/// By default, the client trusts the system's CA certificates, requires that the server's certificate is valid for the
/// host in the address, and presents no certificate of its own.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let tls = brisk::Tls::new().ca_file("ca.crt").client_files("client.crt", "client.key");
/// let db = brisk::Client::builder("rediss://10.0.0.7").tls(tls.server_name("db.example.org")).connect().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "has no effect unless passed to `Builder::tls`"]
#[derive(Clone, Default)]
pub struct Tls {
    authorities: Vec<Pem>,
    identity: Option<(Pem, Pem)>,
    server_name: Option<String>,
    is_insecure: bool,
}

/// Text in PEM format, or the file that contains it.
#[derive(Clone)]
enum Pem {
    File(PathBuf),
    Text(Vec<u8>),
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::File(path) => write!(f, "{}", path.display()),
            Pem::Text(_) => f.write_str("the PEM text"),
        }
    }
}

/// Keys are not shown.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .field("is_insecure", &self.is_insecure)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Returns the default settings: the system's CA certificates, and no client certificate.
    pub fn new() -> Tls {
        Tls::default()
    }

    /// Trusts the CA certificates in this PEM file instead of the system's. Call it again to add more.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Tls {
        self.authorities.push(Pem::File(path.into()));
        self
    }

    /// Trusts these CA certificates, in PEM format, instead of the system's. Call it again to add more.
    pub fn ca_pem(mut self, text: impl Into<Vec<u8>>) -> Tls {
        self.authorities.push(Pem::Text(text.into()));
        self
    }

    /// Sets the client's certificate chain and its private key, as PEM files.
    pub fn client_files(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Tls {
        self.identity = Some((Pem::File(cert.into()), Pem::File(key.into())));
        self
    }

    /// Sets the client's certificate chain and its private key, in PEM format.
    pub fn client_pem(mut self, cert: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        self.identity = Some((Pem::Text(cert.into()), Pem::Text(key.into())));
        self
    }

    /// Sets the name for which the server's certificate must be valid, instead of the host in the address.
    pub fn server_name(mut self, name: impl Into<String>) -> Tls {
        self.server_name = Some(name.into());
        self
    }

    /// Accepts any server certificate. This protects only against passive eavesdropping, not against an attacker that
    /// impersonates the server, so use it only in tests. In a URL, write `?insecure` or `#insecure`.
    pub fn insecure(mut self) -> Tls {
        self.is_insecure = true;
        self
    }
}

/// The TLS configuration that all connections share.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

fn invalid(text: String) -> Error {
    Error::new(Kind::Invalid, text)
}

impl TlsClient {
    /// Reads the files.
    pub(crate) fn new(tls: &Tls) -> Result<TlsClient> {
        let provider = Arc::new(ring::default_provider());
        let failed = |error: rustls::Error| invalid(format!("TLS: {error}"));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(failed)?;
        let builder = if tls.is_insecure {
            let verifier = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(authorities(&tls.authorities)?)
        };
        let config = match &tls.identity {
            Some((cert, key)) => {
                builder.with_client_auth_cert(certificates(cert)?, private_key(key)?).map_err(
                    |error| invalid(format!("TLS: certificate {cert} with key {key}: {error}")),
                )?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(TlsClient { config: Arc::new(config), server_name: tls.server_name.clone() })
    }

    /// A session with the server at this host, before the handshake.
    pub(crate) fn session(&self, host: &str) -> Result<ClientConnection> {
        let name = self.server_name.as_deref().unwrap_or(host);
        let bad = |error: &dyn fmt::Display| invalid(format!("TLS: the name '{name}': {error}"));
        let name = ServerName::try_from(name.to_owned()).map_err(|error| bad(&error))?;
        ClientConnection::new(Arc::clone(&self.config), name).map_err(|error| bad(&error))
    }
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>> {
    let bad = |error: &dyn fmt::Display| invalid(format!("TLS: certificates of {pem}: {error}"));
    let read: std::result::Result<Vec<_>, _> = match pem {
        Pem::File(path) => {
            CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))?.collect()
        }
        Pem::Text(text) => CertificateDer::pem_slice_iter(text).collect(),
    };
    let all = read.map_err(|error| bad(&error))?;
    if all.is_empty() { Err(bad(&"there is none in PEM format")) } else { Ok(all) }
}

fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>> {
    let read = match pem {
        Pem::File(path) => PrivateKeyDer::from_pem_file(path),
        Pem::Text(text) => PrivateKeyDer::from_pem_slice(text),
    };
    read.map_err(|error| invalid(format!("TLS: key of {pem}: {error}")))
}

fn authorities(named: &[Pem]) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    for pem in named {
        for certificate in certificates(pem)? {
            store
                .add(certificate)
                .map_err(|error| invalid(format!("TLS: authority of {pem}: {error}")))?;
        }
    }
    if named.is_empty() {
        let system = rustls_native_certs::load_native_certs();
        // A system may have certificates that cannot be parsed; they are skipped.
        let _ = store.add_parsable_certificates(system.certs);
        if store.is_empty() {
            let why = system.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            return Err(invalid(format!("TLS: the system has no trusted root certificates{why}")));
        }
    }
    Ok(store)
}

type Checked<T> = std::result::Result<T, rustls::Error>;

/// A verifier that accepts any certificate. It verifies only the signatures of the handshake, not who issued the
/// certificate or for which name.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Checked<ServerCertVerified> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Checked<HandshakeSignatureValid> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Checked<HandshakeSignatureValid> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
