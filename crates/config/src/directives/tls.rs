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
        .about("TCP port for TLS connections; 0 does not listen for them."),
    Directive::text("tls-cert-file", "", field!(tls.cert_file))
        .about("File of the server's certificate, with its chain."),
    Directive::text("tls-key-file", "", field!(tls.key_file))
        .about("File of the private key that belongs to it."),
    Directive::text("tls-key-file-pass", "", field!(tls.key_file_pass))
        .about("Password of that file; keys with a password are not read.")
        .sensitive()
        .ignored(),
    Directive::text("tls-client-cert-file", "", field!(tls.client_cert_file))
        .about("Certificate for connections that this server opens; empty is the server's."),
    Directive::text("tls-client-key-file", "", field!(tls.client_key_file))
        .about("Private key that belongs to it."),
    Directive::text("tls-client-key-file-pass", "", field!(tls.client_key_file_pass))
        .about("Password of that file.")
        .sensitive()
        .planned(),
    Directive::text("tls-dh-params-file", "", field!(tls.dh_params_file))
        .about("Parameters of a key exchange that is not used.")
        .ignored(),
    Directive::text("tls-ca-cert-file", "", field!(tls.ca_cert_file))
        .about("File of the certificates of authorities that are trusted."),
    Directive::text("tls-ca-cert-dir", "", field!(tls.ca_cert_dir))
        .about("Directory of such certificates."),
    Directive::text("tls-protocols", "", field!(tls.protocols))
        .about("Versions of TLS that are spoken, as \"TLSv1.2 TLSv1.3\"; empty is both."),
    Directive::text("tls-ciphers", "", field!(tls.ciphers))
        .about("Ciphers up to TLS 1.2, in the syntax of OpenSSL; empty is a good choice."),
    Directive::text("tls-ciphersuites", "", field!(tls.ciphersuites))
        .about("Ciphers of TLS 1.3; empty is all that are safe."),
    Directive::choice("tls-auth-clients", "yes", choice!(tls.auth_clients))
        .about("Whether clients must show a certificate of a trusted authority."),
    Directive::switch("tls-replication", "no", field!(tls.replication))
        .about("Encrypt the link to the primary."),
    Directive::switch("tls-cluster", "no", field!(tls.cluster))
        .about(
            "Encrypt the connections between the nodes of a cluster. tls-replication is for replication.",
        ),
    Directive::switch("tls-prefer-server-ciphers", "no", field!(tls.prefer_server_ciphers))
        .about("Let the server's order of ciphers decide instead of the client's."),
    Directive::switch("tls-session-caching", "yes", field!(tls.session_caching))
        .about("Let clients resume sessions, which is cheaper than a new handshake."),
    Directive::integer(
        "tls-session-cache-size",
        "20480",
        (0, INT_MAX),
        field!(tls.session_cache_size),
    )
    .about("Sessions that are kept for it; 0 is no limit."),
    Directive::integer(
        "tls-session-cache-timeout",
        "300",
        (0, INT_MAX),
        field!(tls.session_cache_timeout_s),
    )
    .about("Seconds for which such a session is kept."),
];
