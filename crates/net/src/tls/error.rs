//! Reasons why the TLS settings cannot be applied. They are written to the log. Clients only see
//! that the change failed.

use std::path::PathBuf;

/// A setting, a certificate or a key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A directive that must be set is empty.
    #[error("No {0} configured!")]
    Missing(&'static str),
    /// Client certificates are required, but there are no CA certificates to check them against.
    #[error(
        "tls-auth-clients needs certificates of trusted authorities: set tls-ca-cert-file or \
         tls-ca-cert-dir, or tls-auth-clients no"
    )]
    NoAuthorities,
    /// A file that cannot be read.
    #[error("{directive}: cannot read {path}: {cause}", path = .path.display())]
    Unreadable { directive: &'static str, path: PathBuf, cause: std::io::Error },
    /// A file that is larger than the limit.
    #[error("{directive}: {path} is larger than {limit} bytes", path = .path.display())]
    TooLarge { directive: &'static str, path: PathBuf, limit: u64 },
    /// A file that does not contain the expected items.
    #[error("{directive}: {path}: {reason}", path = .path.display())]
    Unusable { directive: &'static str, path: PathBuf, reason: String },
    /// A private key that is protected by a password.
    #[error(
        "{directive}: the private key in {path} is encrypted, which is not supported; store it \
         unencrypted (`openssl pkey -in KEY -out NEW`) in a file that only the server may read",
        path = .path.display()
    )]
    EncryptedKey { directive: &'static str, path: PathBuf },
    /// A certificate without the extensions that the check needs.
    #[error(
        "{directive}: the certificate in {path} has X.509 version 1, which is not supported; \
         issue one with version 3 (`openssl x509 -req` with -extfile)",
        path = .path.display()
    )]
    CertificateVersion { directive: &'static str, path: PathBuf },
    /// An invalid word in a list of protocols or ciphers.
    #[error("{directive}: '{word}' is {reason}")]
    Word { directive: &'static str, word: String, reason: &'static str },
    /// All names are valid, but nothing is selected.
    #[error("{directive}: {reason}")]
    Nothing { directive: &'static str, reason: &'static str },
    /// The certificate, key, versions and ciphers do not fit together.
    #[error("tls: {0}")]
    Refused(#[from] rustls::Error),
}
