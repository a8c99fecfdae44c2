//! Encrypted connections. The settings and their directives.

use crate::choice::TlsClientAuth;
use crate::directive::{Directive, INT_MAX, choice, field};
use crate::value::Text;

/// Encrypted connections.
#[derive(Clone, Default, PartialEq)]
pub struct Tls {
    /// `tls-port`.
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
    Directive::integer("tls-port", "0", (0, 65535), field!(tls.port))
        .about("TCP port for TLS connections; 0 disables it."),
    Directive::text("tls-cert-file", "", field!(tls.cert_file))
        .about("File with the server's certificate and its chain."),
    Directive::text("tls-key-file", "", field!(tls.key_file))
        .about("File with the private key of the server's certificate."),
    Directive::text("tls-key-file-pass", "", field!(tls.key_file_pass))
        .about("Password of tls-key-file.")
        .sensitive()
        .ignored("Encrypted key files are not supported."),
    Directive::text("tls-client-cert-file", "", field!(tls.client_cert_file)).about(
        "File with the certificate for outgoing connections; empty uses the server's \
             certificate.",
    ),
    Directive::text("tls-client-key-file", "", field!(tls.client_key_file))
        .about("File with the private key of the client certificate."),
    Directive::text("tls-client-key-file-pass", "", field!(tls.client_key_file_pass))
        .about("Password of tls-client-key-file.")
        .sensitive()
        .planned("Encrypted key files are not supported."),
    Directive::text("tls-dh-params-file", "", field!(tls.dh_params_file))
        .about("File with Diffie-Hellman parameters.")
        .ignored("This key exchange is not used."),
    Directive::text("tls-ca-cert-file", "", field!(tls.ca_cert_file))
        .about("File with trusted CA certificates."),
    Directive::text("tls-ca-cert-dir", "", field!(tls.ca_cert_dir))
        .about("Directory with trusted CA certificates."),
    Directive::text("tls-protocols", "", field!(tls.protocols))
        .about("Supported TLS versions, for example \"TLSv1.2 TLSv1.3\"; empty means both."),
    Directive::text("tls-ciphers", "", field!(tls.ciphers))
        .about("Ciphers for TLS 1.2, in OpenSSL's syntax; empty uses a secure default."),
    Directive::text("tls-ciphersuites", "", field!(tls.ciphersuites))
        .about("Cipher suites for TLS 1.3; empty uses all secure ones."),
    Directive::choice("tls-auth-clients", "yes", choice!(tls.auth_clients))
        .about("Require clients to present a certificate signed by a trusted CA."),
    Directive::switch("tls-replication", "no", field!(tls.replication))
        .about("Use TLS for the connection to the primary."),
    Directive::switch("tls-cluster", "no", field!(tls.cluster))
        .about(
            "Encrypt the connections between the nodes of a cluster. tls-replication is for replication.",
        ),
    Directive::switch("tls-prefer-server-ciphers", "no", field!(tls.prefer_server_ciphers))
        .about("Prefer the server's order of ciphers to the client's."),
    Directive::switch("tls-session-caching", "yes", field!(tls.session_caching))
        .about("Let clients resume TLS sessions, which costs less than a full handshake."),
    Directive::integer(
        "tls-session-cache-size",
        "20480",
        (0, INT_MAX),
        field!(tls.session_cache_size),
    )
    .about("Maximum number of cached TLS sessions, at most 1048576; 0 means 1048576."),
    Directive::integer(
        "tls-session-cache-timeout",
        "300",
        (0, INT_MAX),
        field!(tls.session_cache_timeout_s),
    )
    .about("Seconds for which a TLS session is cached."),
];
