//! TLS for the connections to etcd (`etcds://`).

use super::EtcdOptions;
use crate::error::CoordinatorError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

/// The files in which most systems keep their CA certificates.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// The settings of all TLS sessions.
#[derive(Debug, Clone)]
pub(super) struct EtcdTls(Arc<ClientConfig>);

impl EtcdTls {
    /// Reads the files of the options.
    pub(super) fn new(options: &EtcdOptions) -> Result<EtcdTls, CoordinatorError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| CoordinatorError::Tls(error.to_string()))?
            .with_root_certificates(authorities(options.ca_file.as_deref())?);
        let config = match (&options.certificate_file, &options.key_file) {
            (Some(certificate), Some(key)) => {
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &error))?;
                builder
                    .with_client_auth_cert(certificates(certificate)?, secret)
                    .map_err(|error| bad(certificate, &error))?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => {
                let why = "a client certificate and its key must be given together";
                return Err(CoordinatorError::Tls(why.to_owned()));
            }
        };
        Ok(EtcdTls(Arc::new(config)))
    }

    /// A session with a host, whose certificate must be valid for this name or address.
    pub(super) fn session(&self, host: &str) -> Result<ClientConnection, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        ClientConnection::new(Arc::clone(&self.0), name).map_err(|error| error.to_string())
    }
}

fn bad(path: &Path, error: &dyn Display) -> CoordinatorError {
    CoordinatorError::Tls(format!("{}: {error}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CoordinatorError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| bad(path, &error))?.collect();
    let found = found.map_err(|error| bad(path, &error))?;
    if found.is_empty() { Err(bad(path, &"no certificate in PEM format")) } else { Ok(found) }
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, CoordinatorError> {
    let system = || SYSTEM_AUTHORITIES.iter().map(Path::new).find(|path| path.exists());
    let Some(path) = file.or_else(system) else {
        let why = "no certificate authorities: set cluster-coordinator-ca-file";
        return Err(CoordinatorError::Tls(why.to_owned()));
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates(path)?);
    if added == 0 { Err(bad(path, &"no usable certificate")) } else { Ok(store) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_or_half_of_a_pair_is_named() {
        let missing = EtcdOptions { ca_file: Some("none.pem".into()), ..EtcdOptions::default() };
        assert!(EtcdTls::new(&missing).unwrap_err().to_string().contains("none.pem"));
    }
}
