//! Metrics for the crate `metrics`, with OpenTelemetry's names where OpenTelemetry defines them.

use super::{Call, Connected, Endpoint, Observer, Outcome, Token};
use crate::error::Error;
use metrics::{Label, counter, gauge, histogram};
use std::time::Duration;

/// Records metrics of commands and connections: an [`Observer`] for [`Builder::observer`](crate::Builder::observer).
/// Requires the Cargo feature `metrics`.
///
/// ```no_run
/// # async fn example() -> brisk::Result<()> {
/// let db = brisk::Client::builder("redis://127.0.0.1").observer(brisk::Metrics::new()).connect().await?;
/// # Ok(())
/// # }
/// ```
///
/// | metric | type |
/// |---|---|
/// | `db.client.operation.duration` | histogram, in seconds |
/// | `db.client.connection.count` | gauge |
/// | `brisk.client.commands.pending` | gauge: commands that have started and not finished |
/// | `brisk.client.queue.full` | counter: commands that had to wait for room in the queue |
/// | `brisk.client.disconnections` | counter, with `error.type` |
/// | `brisk.client.connection.failures` | counter: failed attempts to reconnect |
///
/// Labels: `db.system.name`, `server.address`, `server.port`; durations also have `db.operation.name`,
/// `db.namespace`, `error.type` and `db.response.status_code`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metrics(());

impl Metrics {
    /// Returns an observer that records the metrics listed above.
    #[must_use]
    pub fn new() -> Metrics {
        Metrics(())
    }
}

fn labels(endpoint: &Endpoint) -> Vec<Label> {
    let mut labels = vec![
        Label::from_static_parts("db.system.name", "redis"),
        Label::new("server.address", endpoint.host().into_owned()),
    ];
    labels.extend(endpoint.port().map(|port| Label::new("server.port", port.to_string())));
    labels
}

fn failed(labels: &mut Vec<Label>, outcome: Outcome<'_>) {
    let kind = outcome.error_type();
    labels.extend(kind.map(|kind| Label::new("error.type", kind.to_owned())));
}

impl Observer for Metrics {
    fn command_started(&self, call: &Call<'_>) -> Token {
        gauge!("brisk.client.commands.pending", labels(call.endpoint())).increment(1);
        Token::default()
    }

    fn command_finished(&self, call: &Call<'_>, _: Token, time: Duration, outcome: Outcome<'_>) {
        let endpoint = call.endpoint();
        let mut labels = labels(endpoint);
        gauge!("brisk.client.commands.pending", labels.clone()).decrement(1);
        labels.push(Label::new("db.operation.name", call.name().to_owned()));
        labels.push(Label::new("db.namespace", endpoint.db().to_string()));
        failed(&mut labels, outcome);
        let code = outcome.status_code();
        labels.extend(code.map(|code| Label::new("db.response.status_code", code.to_owned())));
        histogram!("db.client.operation.duration", labels).record(time);
    }

    fn queue_full(&self, call: &Call<'_>) {
        counter!("brisk.client.queue.full", labels(call.endpoint())).increment(1);
    }

    fn connected(&self, endpoint: &Endpoint, _: &Connected) {
        gauge!("db.client.connection.count", labels(endpoint)).increment(1);
    }

    fn disconnected(&self, endpoint: &Endpoint, why: &Error) {
        let mut labels = labels(endpoint);
        gauge!("db.client.connection.count", labels.clone()).decrement(1);
        failed(&mut labels, Outcome::Failed(why));
        counter!("brisk.client.disconnections", labels).increment(1);
    }

    fn reconnecting(&self, endpoint: &Endpoint, _: &Error, _: Duration) {
        counter!("brisk.client.connection.failures", labels(endpoint)).increment(1);
    }
}
