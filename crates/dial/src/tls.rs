//! TLS for a client: settings from files, and sessions over blocking and non-blocking sockets.

use crate::address::Address;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The paths of the files with trusted CA certificates on most systems.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];
/// Maximum number of files in a directory of CA certificates.
const AUTHORITY_FILES_MAX: usize = 1000;

/// The TLS options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The requested server name (SNI), which the certificate must contain; the host name by
    /// default.
    pub server_name: Option<String>,
    /// A file with trusted CA certificates.
    pub ca_file: Option<PathBuf>,
    /// A directory with such files.
    pub ca_dir: Option<PathBuf>,
    /// Accepts any certificate.
    pub insecure: bool,
    /// The client's certificate.
    pub certificate: Option<PathBuf>,
    /// The key of the client's certificate.
    pub key: Option<PathBuf>,
    /// Names of cipher suites, separated by colons, in rustls's or OpenSSL's spelling for TLS 1.3;
    /// if there is none, all are offered.
    pub ciphers: Option<String>,
}

/// The settings that all sessions share.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

impl TlsClient {
    /// Reads the files.
    ///
    /// # Errors
    /// A text that names the missing or unusable part.
    pub fn new(options: &TlsOptions) -> Result<TlsClient, String> {
        let mut provider = ring::default_provider();
        if let Some(list) = &options.ciphers {
            let wanted: Vec<String> = list.split(':').map(plain_name).collect();
            provider
                .cipher_suites
                .retain(|suite| wanted.contains(&plain_name(&format!("{:?}", suite.suite()))));
            if provider.cipher_suites.is_empty() {
                return Err(format!("no cipher of \"{list}\" is known"));
            }
        }
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = if options.insecure {
            let verifier = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(authorities(options)?)
        };
        let config = match (&options.certificate, &options.key) {
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("{}: {error}", key.display()))?;
                builder
                    .with_client_auth_cert(certificates(certificate)?, key)
                    .map_err(|error| error.to_string())?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err("--cert and --key belong together".to_owned()),
        };
        Ok(TlsClient { config: Arc::new(config), server_name: options.server_name.clone() })
    }

    /// A new session with the server at this address.
    ///
    /// # Errors
    /// The host name cannot occur in a certificate.
    pub fn session(&self, address: &Address) -> Result<ClientConnection, String> {
        let host = self.server_name.clone().unwrap_or_else(|| address.host().to_owned());
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        let mut session = ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| error.to_string())?;
        // A batch may be long, and is passed to the session before the handshake is complete.
        session.set_buffer_limit(None);
        Ok(session)
    }
}

/// Returns the name in lower case, without the parts in which the spellings of a cipher suite
/// differ.
fn plain_name(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let name = name.trim_start_matches("tls13_").trim_start_matches("tls_");
    name.replace(['_', '-'], "").replace("with", "")
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))?.collect();
    let all = all.map_err(|error| bad(&error))?;
    if all.is_empty() { Err(bad(&"no certificate in PEM format")) } else { Ok(all) }
}

fn authorities(options: &TlsOptions) -> Result<RootCertStore, String> {
    let mut files: Vec<PathBuf> = options.ca_file.iter().cloned().collect();
    if let Some(dir) = &options.ca_dir {
        let entries =
            std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(paths.filter(|path| path.is_file()).take(AUTHORITY_FILES_MAX));
    }
    if options.ca_file.is_none() && options.ca_dir.is_none() {
        files.extend(SYSTEM_AUTHORITIES.iter().map(PathBuf::from).find(|path| path.exists()));
    }
    let mut store = RootCertStore::empty();
    for file in &files {
        // A directory may also contain other files, but a file that the user named must be valid.
        match certificates(file) {
            Ok(all) => drop(store.add_parsable_certificates(all)),
            Err(error) if options.ca_file.as_ref() == Some(file) => return Err(error),
            Err(_) => {}
        }
    }
    if store.is_empty() {
        return Err("no trusted authorities: name them with --cacert or --cacertdir".to_owned());
    }
    Ok(store)
}

/// `--insecure`: signatures are checked, but not whose certificate it is.
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
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Passes plain bytes to a session; they are sent with [`flush`].
///
/// # Errors
/// The session is broken.
pub fn write_plain(session: &mut ClientConnection, bytes: &[u8]) -> io::Result<()> {
    session.writer().write_all(bytes)
}

/// Sends the session's pending output until the socket takes no more. Returns false if some output
/// is left.
///
/// # Errors
/// The socket fails.
pub fn flush(session: &mut ClientConnection, socket: &mut impl Write) -> io::Result<bool> {
    while session.wants_write() {
        match session.write_tls(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Decrypts the received bytes, and appends their content to `plain`.
///
/// # Errors
/// The session fails: certificates, alerts, broken records.
pub fn read_plain(
    session: &mut ClientConnection,
    mut received: &[u8],
    plain: &mut Vec<u8>,
) -> io::Result<()> {
    while !received.is_empty() {
        session.read_tls(&mut received)?;
        let state = session.process_new_packets().map_err(io::Error::other)?;
        let available = state.plaintext_bytes_to_read();
        if available > 0 {
            let before = plain.len();
            plain.resize(before + available, 0);
            session.reader().read_exact(&mut plain[before..])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_are_known_by_both_spellings() {
        assert_eq!(plain_name("TLS13_AES_128_GCM_SHA256"), plain_name("TLS_AES_128_GCM_SHA256"));
        assert_eq!(
            plain_name("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            plain_name("ECDHE-RSA-AES-128-GCM-SHA256".replace("AES-128", "AES128").as_str())
        );
    }

    #[test]
    fn missing_files_and_options_are_named() {
        let missing = TlsOptions { ca_file: Some("nowhere.pem".into()), ..TlsOptions::default() };
        assert!(TlsClient::new(&missing).unwrap_err().contains("nowhere.pem"));
        let half =
            TlsOptions { insecure: true, key: Some("k.pem".into()), ..TlsOptions::default() };
        assert!(TlsClient::new(&half).unwrap_err().contains("belong together"));
        let cipher =
            TlsOptions { insecure: true, ciphers: Some("RC4".into()), ..TlsOptions::default() };
        assert!(TlsClient::new(&cipher).unwrap_err().contains("RC4"));
        assert!(TlsClient::new(&TlsOptions { insecure: true, ..TlsOptions::default() }).is_ok());
    }
}
