//! Encrypted connections. The settings and their directives.

use crate::choice::TlsClientAuth;
use crate::directive::{Directive, INT_MAX, choice, field};
use crate::value::Text;

/// Encrypted connections.
#[derive(Clone, Default, PartialEq)]
pub struct Tls {
    /// `tls-port`: TLS port; 0 does not listen for TLS.
    pub port: i64,
    /// `tls-cert-file`: certificate.
    pub cert_file: Text,
    /// `tls-key-file`: private key.
    pub key_file: Text,
    /// `tls-key-file-pass`: password of the private key.
    pub key_file_pass: Text,
    /// `tls-client-cert-file`: certificate of outgoing connections.
    pub client_cert_file: Text,
    /// `tls-client-key-file`: private key of outgoing connections.
    pub client_key_file: Text,
    /// `tls-client-key-file-pass`: its password.
    pub client_key_file_pass: Text,
    /// `tls-dh-params-file`: Diffie-Hellman parameters.
    pub dh_params_file: Text,
    /// `tls-ca-cert-file`: certificates of authorities.
    pub ca_cert_file: Text,
    /// `tls-ca-cert-dir`: directory of certificates of authorities.
    pub ca_cert_dir: Text,
    /// `tls-protocols`: protocol versions.
    pub protocols: Text,
    /// `tls-ciphers`: ciphers up to TLS 1.2.
    pub ciphers: Text,
    /// `tls-ciphersuites`: ciphers of TLS 1.3.
    pub ciphersuites: Text,
    /// `tls-auth-clients`: whether clients must show a certificate.
    pub auth_clients: TlsClientAuth,
    /// `tls-replication`: encrypt links to the primary.
    pub replication: bool,
    /// `tls-cluster`: encrypt the cluster bus.
    pub cluster: bool,
    /// `tls-prefer-server-ciphers`: the server's order of ciphers counts.
    pub prefer_server_ciphers: bool,
    /// `tls-session-caching`: resume sessions.
    pub session_caching: bool,
    /// `tls-session-cache-size`: sessions kept; 0 for no limit.
    pub session_cache_size: i64,
    /// `tls-session-cache-timeout`: seconds a session is kept.
    pub session_cache_timeout_s: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer("tls-port", "0", (0, 65535), field!(tls.port)),
    Directive::text("tls-cert-file", "", field!(tls.cert_file)),
    Directive::text("tls-key-file", "", field!(tls.key_file)),
    Directive::text("tls-key-file-pass", "", field!(tls.key_file_pass)).sensitive().ignored(),
    Directive::text("tls-client-cert-file", "", field!(tls.client_cert_file)),
    Directive::text("tls-client-key-file", "", field!(tls.client_key_file)),
    Directive::text("tls-client-key-file-pass", "", field!(tls.client_key_file_pass))
        .sensitive()
        .planned(),
    Directive::text("tls-dh-params-file", "", field!(tls.dh_params_file)).ignored(),
    Directive::text("tls-ca-cert-file", "", field!(tls.ca_cert_file)),
    Directive::text("tls-ca-cert-dir", "", field!(tls.ca_cert_dir)),
    Directive::text("tls-protocols", "", field!(tls.protocols)),
    Directive::text("tls-ciphers", "", field!(tls.ciphers)),
    Directive::text("tls-ciphersuites", "", field!(tls.ciphersuites)),
    Directive::choice("tls-auth-clients", "yes", choice!(tls.auth_clients)),
    Directive::switch("tls-replication", "no", field!(tls.replication)),
    Directive::switch("tls-cluster", "no", field!(tls.cluster)).planned(),
    Directive::switch("tls-prefer-server-ciphers", "no", field!(tls.prefer_server_ciphers)),
    Directive::switch("tls-session-caching", "yes", field!(tls.session_caching)),
    Directive::integer(
        "tls-session-cache-size",
        "20480",
        (0, INT_MAX),
        field!(tls.session_cache_size),
    ),
    Directive::integer(
        "tls-session-cache-timeout",
        "300",
        (0, INT_MAX),
        field!(tls.session_cache_timeout_s),
    ),
];
