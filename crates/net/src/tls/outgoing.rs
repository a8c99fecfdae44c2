//! TLS for connections to other servers (`tls-replication`).
//!
//! The peer's certificate must be issued by one of the CAs against which client certificates are checked. It may be for
//! any name, because nodes are known by their addresses, which change.

use super::TlsError;
use super::settings::{authorities, certificates, private_key, protocol};
use brisk_config::Config;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::net::IpAddr;
use std::sync::Arc;

/// Begins an encrypted connection to the server at `peer`.
///
/// # Errors
/// A certificate, key or CA certificate that is missing or cannot be used.
pub fn connection(config: &Config, peer: IpAddr) -> Result<ClientConnection, TlsError> {
    let settings = Arc::new(settings(config)?);
    Ok(ClientConnection::new(settings, ServerName::IpAddress(peer.into()))?)
}

fn settings(config: &Config) -> Result<ClientConfig, TlsError> {
    let tls = &config.tls;
    let (provider, versions) = protocol(tls)?;
    let roots = authorities(config)?;
    if roots.is_empty() {
        return Err(TlsError::NoAuthorities);
    }
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyName(verifier)));
    // As in Redis: the certificate for other servers, if one is configured, otherwise the one for
    // clients.
    let (cert, key) = match tls.client_cert_file.is_empty() {
        true => (("tls-cert-file", &tls.cert_file), ("tls-key-file", &tls.key_file)),
        false => (
            ("tls-client-cert-file", &tls.client_cert_file),
            ("tls-client-key-file", &tls.client_key_file),
        ),
    };
    if cert.1.is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let chain = certificates(config, cert.0, cert.1)?;
    Ok(builder.with_client_auth_cert(chain, private_key(config, key.0, key.1)?)?)
}

/// Verifies a certificate except for its host name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is checked only after everything else has been found valid.
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
