//! Encrypted connections: TLS between the reactor and the session, implemented with `rustls`, which
//! does no I/O.
//!
//! ```text
//!  received ciphertext ── TlsStream::receive ── plaintext ──> session's input ── execute
//!  io.output <─ ciphertext ── TlsStream::send <── replies ──────────────────────────┘
//! ```
//!
//! The output of `rustls` is moved to the connection's output immediately, so that the limits on
//! unsent output cover all of it. The stream keeps only an incomplete record.
//!
//! | file | about |
//! |---|---|
//! | `settings` | the directives `tls-*`, certificates and keys; the settings that new connections use |
//! | `ciphers` | names of cipher suites and protocol versions |
//! | `outgoing` | connections to other servers |
//! | `session_cache` | sessions that clients may resume |
//! | `stream` | one connection |

mod ciphers;
mod error;
pub mod outgoing;
mod session_cache;
mod settings;
mod stream;

pub use error::TlsError;
pub use settings::TlsSettings;
pub use stream::{HANDSHAKE_MS_MAX, Received, TlsStream};
