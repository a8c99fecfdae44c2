//! Turns the directives `tls-*` into the configuration of new connections.
//!
//! Everything is read and checked before anything is applied, so a change takes effect completely
//! or not at all. Existing connections keep the settings with which they began, and new connections
//! use the new ones.

use super::session_cache::SessionCache;
use super::{TlsError, ciphers};
use arc_swap::ArcSwapOption;
use brisk_config::Config;
use brisk_config::choice::TlsClientAuth;
use brisk_config::directives::tls::Tls;
use brisk_config::value::Text;
use brisk_observe::log::Log;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a certificate chain or key file, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum size of a file of CA certificates, in bytes. The bundle of a whole system has about 250
/// KiB.
const AUTHORITIES_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of files that are read from `tls-ca-cert-dir`.
const AUTHORITY_FILES_MAX: usize = 4096;

/// The settings that new TLS connections use; empty while TLS is off.
#[derive(Debug, Default)]
pub struct TlsSettings {
    in_force: ArcSwapOption<ServerConfig>,
}

impl TlsSettings {
    /// The configuration of a new connection; `None` while TLS is off.
    pub fn current(&self) -> Option<Arc<ServerConfig>> {
        self.in_force.load_full()
    }

    /// Applies settings: new connections use them from now on.
    pub fn put(&self, settings: Arc<ServerConfig>) {
        self.in_force.store(Some(settings));
    }

    /// Loads the settings and logs any error in them. If neither `tls-port` nor HTTP over TLS is
    /// configured, nothing is loaded or checked, as in Redis.
    ///
    /// # Errors
    /// Those of [`TlsSettings::load`].
    pub fn prepare(config: &Config, log: &Log) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        if config.tls.port == 0 && !config.network.has_encrypted_http() {
            return Ok(None);
        }
        for note in notes(config) {
            log.warning(format_args!("{note}"));
        }
        let loaded = TlsSettings::load(config);
        if let Err(error) = &loaded {
            log.warning(format_args!("{error}"));
        }
        loaded.map(Some)
    }

    /// Reads certificates and keys, and creates the settings of connections from them and from the
    /// other directives. Blocks on the file system.
    ///
    /// # Errors
    /// The first item that is missing or cannot be used, and where it is.
    pub fn load(config: &Config) -> Result<Arc<ServerConfig>, TlsError> {
        let tls = &config.tls;
        let chain = certificates(config, "tls-cert-file", &tls.cert_file)?;
        let key = private_key(config, "tls-key-file", &tls.key_file)?;
        let (provider, versions) = protocol(tls)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?;
        let builder = match client_verifier(config, provider)? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let refused = |error| refused_chain(config.path_in_dir(&tls.cert_file), error);
        let mut settings = builder.with_single_cert(chain, key).map_err(refused)?;
        settings.ignore_client_order = tls.prefer_server_ciphers;
        if tls.session_caching {
            let age_max = Duration::from_secs(tls.session_cache_timeout_s.max(0) as u64);
            let sessions_max = usize::try_from(tls.session_cache_size).unwrap_or(0);
            settings.session_storage = Arc::new(SessionCache::new(sessions_max, age_max));
        } else {
            settings.session_storage = Arc::new(NoServerSessionStorage {});
            settings.send_tls13_tickets = 0;
        }
        Ok(Arc::new(settings))
    }
}

/// The cipher suites and versions of incoming and outgoing connections.
pub(super) fn protocol(
    tls: &Tls,
) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), TlsError> {
    let mut suites = ciphers::tls13(&tls.ciphersuites.to_string_lossy())?;
    suites.extend(ciphers::tls12(&tls.ciphers.to_string_lossy())?);
    let (versions, _) = ciphers::versions(&tls.protocols.to_string_lossy())?;
    let ring = rustls::crypto::ring::default_provider();
    Ok((Arc::new(CryptoProvider { cipher_suites: suites, ..ring }), versions))
}

/// The reason why the server's own certificate chain and key were rejected.
fn refused_chain(path: PathBuf, error: rustls::Error) -> TlsError {
    match &error {
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if other.0.to_string() == UNSUPPORTED_VERSION =>
        {
            TlsError::CertificateVersion { directive: "tls-cert-file", path }
        }
        rustls::Error::InvalidCertificate(_) => unusable("tls-cert-file", &path, error),
        _ => TlsError::Refused(error),
    }
}

/// The name of the error that the certificate library returns for a certificate that does not have
/// version 3.
const UNSUPPORTED_VERSION: &str = "UnsupportedCertVersion";

/// Notes for the administrator about accepted settings that have less effect than they suggest.
fn notes(config: &Config) -> Vec<String> {
    let tls = &config.tls;
    let mut notes = Vec::new();
    if let Ok((_, old)) = ciphers::versions(&tls.protocols.to_string_lossy()) {
        for word in old {
            notes.push(format!(
                "tls-protocols: {word} is not supported: this server supports TLSv1.2 and TLSv1.3"
            ));
        }
    }
    if !tls.dh_params_file.is_empty() {
        notes.push(
            "tls-dh-params-file has no effect: all key exchanges use elliptic curves".to_owned(),
        );
    }
    notes
}

/// The verifier of client certificates; `None` if none is requested.
fn client_verifier(
    config: &Config,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let tls = &config.tls;
    let named = !tls.ca_cert_file.is_empty() || !tls.ca_cert_dir.is_empty();
    if !named && tls.auth_clients != TlsClientAuth::No {
        return Err(TlsError::NoAuthorities);
    }
    // A file that cannot be used is an error even if clients are not checked, because replication
    // and cluster links check against the same CA certificates.
    let authorities = Arc::new(authorities(config)?);
    if tls.auth_clients == TlsClientAuth::No {
        return Ok(None);
    }
    if authorities.is_empty() {
        return Err(TlsError::NoAuthorities);
    }
    let builder = WebPkiClientVerifier::builder_with_provider(authorities, provider);
    let builder = match tls.auth_clients {
        TlsClientAuth::Optional => builder.allow_unauthenticated(),
        TlsClientAuth::Yes | TlsClientAuth::No => builder,
    };
    let verifier = builder.build().map_err(|error| rustls::Error::General(error.to_string()))?;
    Ok(Some(verifier))
}

pub(super) fn authorities(config: &Config) -> Result<RootCertStore, TlsError> {
    let tls = &config.tls;
    let mut store = RootCertStore::empty();
    if !tls.ca_cert_file.is_empty() {
        let (directive, path) = ("tls-ca-cert-file", config.path_in_dir(&tls.ca_cert_file));
        for certificate in certificates_in(directive, &path, AUTHORITIES_BYTES_MAX)? {
            let bad = |error: rustls::Error| unusable(directive, &path, error);
            store.add(certificate).map_err(bad)?;
        }
    }
    if !tls.ca_cert_dir.is_empty() {
        let directive = "tls-ca-cert-dir";
        for path in hashed_files(directive, &config.path_in_dir(&tls.ca_cert_dir))? {
            for certificate in certificates_in(directive, &path, AUTHORITIES_BYTES_MAX)? {
                store.add(certificate).map_err(|error| unusable(directive, &path, error))?;
            }
        }
    }
    Ok(store)
}

/// The files in `dir` that OpenSSL would use. They are named by `openssl rehash`: eight
/// hexadecimal digits, a dot and a number. Other files are not trusted.
fn hashed_files(directive: &'static str, dir: &Path) -> Result<Vec<PathBuf>, TlsError> {
    let unreadable = |cause| TlsError::Unreadable { directive, path: dir.to_owned(), cause };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_hashed = name.split_once('.').is_some_and(|(hash, number)| {
            hash.len() == 8
                && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if is_hashed {
            files.push(path);
        }
        if files.len() > AUTHORITY_FILES_MAX {
            return Err(unusable(directive, dir, "too many files"));
        }
    }
    Ok(files)
}

pub(super) fn certificates(
    config: &Config,
    directive: &'static str,
    name: &Text,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    if name.is_empty() {
        return Err(TlsError::Missing(directive));
    }
    certificates_in(directive, &config.path_in_dir(name), KEY_FILE_BYTES_MAX)
}

/// All certificates of a PEM file; at least one.
fn certificates_in(
    directive: &'static str,
    path: &Path,
    limit: u64,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(directive, path, limit)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|error| unusable(directive, path, error))?;
    if all.is_empty() {
        return Err(unusable(directive, path, "no certificate in PEM format"));
    }
    Ok(all)
}

pub(super) fn private_key(
    config: &Config,
    directive: &'static str,
    name: &Text,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    if name.is_empty() {
        return Err(TlsError::Missing(directive));
    }
    let path = config.path_in_dir(name);
    let pem = read(directive, &path, KEY_FILE_BYTES_MAX)?;
    if is_encrypted(&pem) {
        return Err(TlsError::EncryptedKey { directive, path });
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| match error {
        rustls_pki_types::pem::Error::NoItemsFound => {
            unusable(directive, &path, "no private key in PEM format")
        }
        error => unusable(directive, &path, error),
    })
}

/// Reports whether a PEM text says, in either of the two forms, that its key is encrypted.
fn is_encrypted(pem: &[u8]) -> bool {
    pem.split(|&byte| byte == b'\n').any(|line| {
        line.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
            || (line.starts_with(b"Proc-Type:") && line.trim_ascii_end().ends_with(b"ENCRYPTED"))
    })
}

fn read(directive: &'static str, path: &Path, limit: u64) -> Result<Vec<u8>, TlsError> {
    let unreadable = |cause| TlsError::Unreadable { directive, path: path.to_owned(), cause };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(TlsError::TooLarge { directive, path: path.to_owned(), limit });
    }
    Ok(bytes)
}

fn unusable(directive: &'static str, path: &Path, reason: impl ToString) -> TlsError {
    TlsError::Unusable { directive, path: path.to_owned(), reason: reason.to_string() }
}
