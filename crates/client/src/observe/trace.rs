//! Spans and events for the crate `tracing`, with OpenTelemetry's names for Redis clients.

use super::{Call, Connected, Endpoint, Observer, Outcome, Token};
use crate::error::{Error, Kind};
use std::time::Duration;
use tracing::field::Empty;
use tracing::{Span, debug, info, info_span, warn};

/// An [`Observer`] for [`Builder::observer`](crate::Builder::observer), which opens a span for each command and emits
/// an event for each change of a connection. Requires the Cargo feature `tracing`.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let db = brisk::Client::builder("redis://127.0.0.1").observer(brisk::Tracing::new()).connect().await?;
/// db.set("user:1", "ana").await?;
/// # Ok(())
/// # }
/// ```
///
/// Spans have the name `command` (in OpenTelemetry, the command's name), the target `brisk` and the level INFO. They
/// are children of the caller's span. They have the following fields, and never contain keys, values or error texts:
///
/// | field | content |
/// |---|---|
/// | `otel.name`, `otel.kind` | the command's name, `client` |
/// | `db.system.name` | `redis` |
/// | `db.operation.name` | `GET`, `CONFIG GET`, `PIPELINE`, `MULTI SET` |
/// | `db.operation.batch.size` | the number of commands, if several |
/// | `db.namespace` | the database that is selected when a connection opens |
/// | `server.address`, `server.port` | the server, as named in the options of the client |
/// | `db.response.status_code` | the code of the server's error reply, for example `WRONGTYPE` |
/// | `error.type` | that code, or `timeout`, `disconnected`, `overloaded`, `cancelled` … |
/// | `otel.status_code` | `ERROR` if there is an `error.type` |
///
/// Events are `connected` (with `network.peer.address` and `network.peer.port`), `disconnected`, `reconnecting` and
/// `queue full`. `queue full` is for troubleshooting, because under load it occurs for each command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracing(());

impl Tracing {
    /// Returns an observer that creates the spans and events listed above.
    #[must_use]
    pub fn new() -> Tracing {
        Tracing(())
    }
}

impl Observer for Tracing {
    fn command_started(&self, call: &Call<'_>) -> Token {
        let endpoint = call.endpoint();
        let several = (call.commands() != 1).then_some(call.commands() as u64);
        let span = info_span!(
            target: "brisk",
            "command",
            otel.name = call.name(),
            otel.kind = "client",
            otel.status_code = Empty,
            db.system.name = "redis",
            db.operation.name = call.name(),
            db.operation.batch.size = several,
            db.namespace = endpoint.db().to_string(),
            server.address = &*endpoint.host(),
            server.port = endpoint.port(),
            db.response.status_code = Empty,
            error.type = Empty,
        );
        Token::new(span)
    }

    fn command_finished(&self, _: &Call<'_>, token: Token, _: Duration, outcome: Outcome<'_>) {
        let (Some(span), Some(kind)) = (token.into::<Span>(), outcome.error_type()) else { return };
        span.record("error.type", kind);
        span.record("otel.status_code", "ERROR");
        if let Some(code) = outcome.status_code() {
            span.record("db.response.status_code", code);
        }
    }

    fn queue_full(&self, call: &Call<'_>) {
        let endpoint = call.endpoint();
        // Under load, there is one event for each command.
        debug!(
            target: "brisk", { db.operation.name = call.name(),
            server.address = &*endpoint.host(),
            server.port = endpoint.port() }, "queue full",
        );
    }

    fn connected(&self, endpoint: &Endpoint, connection: &Connected) {
        info!(
            target: "brisk", { db.system.name = "redis",
            server.address = &*endpoint.host(),
            server.port = endpoint.port(),
            network.peer.address = connection.peer.map(|peer| peer.ip().to_string()),
            network.peer.port = connection.peer.map(|peer| peer.port()),
            network.protocol.name = "resp",
            network.protocol.version = connection.protocol }, "connected",
        );
    }

    fn disconnected(&self, endpoint: &Endpoint, why: &Error) {
        let (host, port) = (endpoint.host(), endpoint.port());
        if why.kind() == Kind::Closed {
            info!(target: "brisk", { server.address = &*host, server.port = port }, "closed");
            return;
        }
        warn!(
            target: "brisk", { server.address = &*host,
            server.port = port,
            error.type = Outcome::Failed(why).error_type(),
            why = why.message() }, "disconnected",
        );
    }

    fn reconnecting(&self, endpoint: &Endpoint, why: &Error, wait: Duration) {
        warn!(
            target: "brisk", { server.address = &*endpoint.host(),
            server.port = endpoint.port(),
            error.type = Outcome::Failed(why).error_type(),
            why = why.message(),
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }, "reconnecting",
        );
    }
}
