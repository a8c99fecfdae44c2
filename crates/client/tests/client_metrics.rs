//! The data that the included observers pass to the crates `tracing` and `metrics`: names, fields, labels, and never
//! keys or values.
#![cfg(all(feature = "tracing", feature = "metrics"))]

use brisk::{Client, Lanes, commands};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::Launch;
use brisk_testkit::wait::wait_until;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span;

type Fields = BTreeMap<String, String>;

#[derive(Default)]
struct Written {
    /// The spans, in the order of their IDs: the name, the ID of the parent, and the fields.
    spans: Vec<(&'static str, Option<u64>, Fields)>,
    closed: usize,
    events: Vec<Fields>,
}

/// Records spans and events of the library's target, and spans of this test.
#[derive(Clone, Default)]
struct Subscriber {
    written: Arc<Mutex<Written>>,
    entered: Arc<Mutex<Vec<u64>>>,
}

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl tracing::Subscriber for Subscriber {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "brisk" || metadata.target() == "test"
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields::new();
        attributes.record(&mut Into(&mut fields));
        let around = self.entered.lock().expect("not poisoned").last().copied();
        let mut written = self.written.lock().expect("not poisoned");
        written.spans.push((attributes.metadata().name(), around, fields));
        span::Id::from_u64(written.spans.len() as u64)
    }

    fn record(&self, id: &span::Id, values: &span::Record<'_>) {
        let mut written = self.written.lock().expect("not poisoned");
        let at = id.into_u64() as usize - 1;
        values.record(&mut Into(&mut written.spans[at].2));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Into(&mut fields));
        self.written.lock().expect("not poisoned").events.push(fields);
    }

    fn enter(&self, id: &span::Id) {
        self.entered.lock().expect("not poisoned").push(id.into_u64());
    }

    fn exit(&self, _: &span::Id) {
        self.entered.lock().expect("not poisoned").pop();
    }

    fn try_close(&self, _: span::Id) -> bool {
        self.written.lock().expect("not poisoned").closed += 1;
        true
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

async fn waited_for(what: &'static str, is_so: impl FnMut() -> bool + Send + 'static) {
    tokio::task::spawn_blocking(move || wait_until(what, is_so)).await.expect("it came");
}

#[test]
fn spans_and_events_have_the_names_of_opentelemetry_and_no_keys() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    let subscriber = Subscriber::default();
    let written = Arc::clone(&subscriber.written);
    tracing::subscriber::with_default(subscriber, || {
        run(async {
            let builder = Client::builder(&link.address()).lanes(Lanes::Count(1)).db(3);
            let db = builder.observer(brisk::Tracing::new()).connect().await.unwrap();
            let around = tracing::info_span!(target: "test", "request");
            let mut set = Box::pin(db.set("secret-key", "secret-value"));
            assert!(around.in_scope(|| futures_util::FutureExt::now_or_never(&mut set)).is_none());
            set.await.unwrap();
            db.lpush("secret-key", "secret-value").await.unwrap_err();
            db.batch((commands::incr("n"), commands::incr("n"))).await.unwrap();
            link.cut(Disconnect::Reset);
            let heard = Arc::clone(&written);
            waited_for("it to be connected again", move || {
                heard.lock().expect("not poisoned").events.len() >= 3
            })
            .await;
        });
    });
    let written = written.lock().expect("not poisoned");
    let port = link.address().rsplit_once(':').map(|(_, port)| port.to_owned()).unwrap();
    let expected = |name: &str, more: &[(&str, &str)]| {
        let fields = [
            ("otel.name", name),
            ("otel.kind", "client"),
            ("db.system.name", "redis"),
            ("db.operation.name", name),
            ("db.namespace", "3"),
            ("server.address", "127.0.0.1"),
            ("server.port", &*port),
        ];
        let fields =
            fields.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string()));
        fields.collect::<Fields>()
    };
    let failed = [
        ("otel.status_code", "ERROR"),
        ("error.type", "WRONGTYPE"),
        ("db.response.status_code", "WRONGTYPE"),
    ];
    let spans = [
        ("request", None, Fields::new()),
        ("command", Some(1), expected("SET", &[])),
        ("command", None, expected("LPUSH", &failed)),
        ("command", None, expected("PIPELINE INCR", &[("db.operation.batch.size", "2")])),
    ];
    assert_eq!(written.spans, spans);
    assert_eq!(written.closed, 4);
    let text = |event: &Fields| event["message"].clone();
    let events: Vec<_> = written.events.iter().map(text).collect();
    assert_eq!(events[..3], ["connected", "disconnected", "connected"]);
    assert_eq!(written.events[0]["network.peer.address"], "127.0.0.1");
    assert_eq!(written.events[0]["network.peer.port"], port);
    assert_eq!(written.events[1]["error.type"], "disconnected");
    assert!(!format!("{:?} {:?}", written.spans, written.events).contains("secret"));
}

/// Records metrics by name and labels.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<BTreeMap<String, f64>>>);

struct Metric(Recorder, String);

impl Metric {
    fn add(&self, more: f64) {
        *self.0.0.lock().expect("not poisoned").entry(self.1.clone()).or_default() += more;
    }
}

impl metrics::CounterFn for Metric {
    fn increment(&self, more: u64) {
        self.add(more as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl metrics::GaugeFn for Metric {
    fn increment(&self, more: f64) {
        self.add(more);
    }

    fn decrement(&self, less: f64) {
        self.add(-less);
    }

    fn set(&self, _: f64) {}
}

impl metrics::HistogramFn for Metric {
    fn record(&self, seconds: f64) {
        assert!((0.0..60.0).contains(&seconds));
        self.add(1.0);
    }
}

impl Recorder {
    fn metric(&self, key: &metrics::Key) -> Arc<Metric> {
        let labels = key.labels().filter(|label| !label.key().starts_with("server."));
        let labels: Vec<_> =
            labels.map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Metric(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn describe_gauge(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn describe_histogram(
        &self,
        _: metrics::KeyName,
        _: Option<metrics::Unit>,
        _: metrics::SharedString,
    ) {
    }

    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        metrics::Counter::from_arc(self.metric(key))
    }

    fn register_gauge(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::from_arc(self.metric(key))
    }

    fn register_histogram(
        &self,
        key: &metrics::Key,
        _: &metrics::Metadata<'_>,
    ) -> metrics::Histogram {
        metrics::Histogram::from_arc(self.metric(key))
    }
}

#[test]
fn metrics_count_commands_by_name_and_outcome_and_connections() {
    let server = Launch::subject().start();
    let recorder = Recorder::default();
    metrics::with_local_recorder(&recorder, || {
        run(async {
            let builder = Client::builder(&server.address()).lanes(Lanes::Count(1));
            let db = builder.observer(brisk::Metrics::new()).connect().await.unwrap();
            for _ in 0..3 {
                db.set("secret", "x").await.unwrap();
            }
            db.incr("secret").await.unwrap_err();
            let pending = db.set("secret", "y");
            let mut pending = Box::pin(pending);
            assert!(futures_util::poll!(&mut pending).is_pending());
            let recorded = recorder.0.lock().expect("not poisoned").clone();
            let redis = "db.system.name=redis";
            let operation = format!("db.client.operation.duration {redis} db.operation.name");
            let expected = [
                (format!("brisk.client.commands.pending {redis}"), 1.0),
                (format!("db.client.connection.count {redis}"), 1.0),
                (
                    format!(
                        "{operation}=INCR db.namespace=0 error.type=ERR db.response.status_code=ERR"
                    ),
                    1.0,
                ),
                (format!("{operation}=SET db.namespace=0"), 3.0),
            ];
            assert_eq!(recorded, BTreeMap::from(expected));
        });
    });
}
