//! How clients reach the server: the listeners of the workers, and the TLS settings.

use brisk_net::listeners::{OpenListeners, Purpose, Reopened};
use brisk_net::tls::{TlsSettings, TlsStream};
use brisk_reactor::Listener;
use rustls::ServerConfig;
use std::sync::Arc;

/// The listeners and the TLS settings that all workers share.
#[derive(Debug, Default)]
pub struct Network {
    tls: TlsSettings,
    listeners: OpenListeners,
}

impl Network {
    /// Sets the TLS settings for new connections.
    pub fn set_tls(&self, settings: Arc<ServerConfig>) {
        self.tls.put(settings);
    }

    /// Creates the TLS stream of a new connection; `None` if TLS is not configured.
    ///
    /// # Errors
    /// The settings cannot serve a connection.
    pub fn new_tls_stream(&self) -> Option<Result<Box<TlsStream>, rustls::Error>> {
        let settings = self.tls.current()?;
        Some(TlsStream::new(settings).map(Box::new))
    }

    /// Records open listeners, so that they can be stopped later.
    pub fn note_listeners<'l>(&self, listeners: impl IntoIterator<Item = &'l (Purpose, Listener)>) {
        self.listeners.note(listeners);
    }

    /// Records the new listeners and stops the previous listeners with the same purpose.
    pub fn replace_listeners(&self, new: &Reopened) {
        self.listeners.replace(new);
    }

    /// Stops accepting connections because the server is shutting down.
    pub fn close(&self) {
        self.listeners.stop();
    }
}
