//! Encrypted connections. The settings and their directives.

use crate::config::choice::TlsClientAuth;
use crate::config::directive::{Directive, INT_MAX, choice, field};
use crate::config::value::Text;

/// Encrypted connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tls {
    /// `tls-port`. TLS port; 0 does not listen for TLS.
    pub port: i64,
    /// `tls-cert-file`.
    pub cert_file: Text,
    /// `tls-key-file`.
    pub key_file: Text,
    /// `tls-key-file-pass`.
    pub key_file_pass: Text,
    /// `tls-client-cert-file`.
    pub client_cert_file: Text,
    /// `tls-client-key-file`.
    pub client_key_file: Text,
    /// `tls-client-key-file-pass`.
    pub client_key_file_pass: Text,
    /// `tls-dh-params-file`.
    pub dh_params_file: Text,
    /// `tls-ca-cert-file`.
    pub ca_cert_file: Text,
    /// `tls-ca-cert-dir`.
    pub ca_cert_dir: Text,
    /// `tls-protocols`.
    pub protocols: Text,
    /// `tls-ciphers`.
    pub ciphers: Text,
    /// `tls-ciphersuites`.
    pub ciphersuites: Text,
    /// `tls-auth-clients`.
    pub auth_clients: TlsClientAuth,
    /// `tls-replication`.
    pub replication: bool,
    /// `tls-cluster`.
    pub cluster: bool,
    /// `tls-prefer-server-ciphers`.
    pub prefer_server_ciphers: bool,
    /// `tls-session-caching`.
    pub session_caching: bool,
    /// `tls-session-cache-size`.
    pub session_cache_size: i64,
    /// `tls-session-cache-timeout`.
    pub session_cache_timeout_s: i64,
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::integer("tls-port", "0", (0, 65535), field!(tls.port)).planned(),
    Directive::text("tls-cert-file", "", field!(tls.cert_file)).planned(),
    Directive::text("tls-key-file", "", field!(tls.key_file)).planned(),
    Directive::text("tls-key-file-pass", "", field!(tls.key_file_pass)).sensitive().planned(),
    Directive::text("tls-client-cert-file", "", field!(tls.client_cert_file)).planned(),
    Directive::text("tls-client-key-file", "", field!(tls.client_key_file)).planned(),
    Directive::text("tls-client-key-file-pass", "", field!(tls.client_key_file_pass))
        .sensitive()
        .planned(),
    Directive::text("tls-dh-params-file", "", field!(tls.dh_params_file)).planned(),
    Directive::text("tls-ca-cert-file", "", field!(tls.ca_cert_file)).planned(),
    Directive::text("tls-ca-cert-dir", "", field!(tls.ca_cert_dir)).planned(),
    Directive::text("tls-protocols", "", field!(tls.protocols)).planned(),
    Directive::text("tls-ciphers", "", field!(tls.ciphers)).planned(),
    Directive::text("tls-ciphersuites", "", field!(tls.ciphersuites)).planned(),
    Directive::choice("tls-auth-clients", "yes", choice!(tls.auth_clients)).planned(),
    Directive::switch("tls-replication", "no", field!(tls.replication)).planned(),
    Directive::switch("tls-cluster", "no", field!(tls.cluster)).planned(),
    Directive::switch("tls-prefer-server-ciphers", "no", field!(tls.prefer_server_ciphers))
        .planned(),
    Directive::switch("tls-session-caching", "yes", field!(tls.session_caching)).planned(),
    Directive::integer(
        "tls-session-cache-size",
        "20480",
        (0, INT_MAX),
        field!(tls.session_cache_size),
    )
    .planned(),
    Directive::integer(
        "tls-session-cache-timeout",
        "300",
        (0, INT_MAX),
        field!(tls.session_cache_timeout_s),
    )
    .planned(),
];
