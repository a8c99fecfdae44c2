//! Loads of the client library, on loopback and over a distant network, which C1, C2 and C3 share.

use super::finding::Measurement;
use super::stage::{Measured, Size, measure};
use crate::delay::{DelayPlan, DelayProxy};
use crate::engine::plan::{End, LibraryLoad, Plan, SessionSetup, Source, Target};
use crate::load::{Ingredient, Material, Workload};
use crate::subject::{Subject, local_target};
use brisk_dial::address::Address;
use std::net::SocketAddr;
use std::time::Duration;

/// The article sets one 5-byte key to one 5-byte value, and chooses a random connection for each call. Here the key
/// determines the connection, so there are several keys.
const KEYS: usize = 64;
const VALUE: &str = "value";

/// The command to send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Set,
    Get,
}

impl Sent {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Sent::Set => "SET",
            Sent::Get => "GET",
        }
    }

    fn workload(self) -> Result<Workload, String> {
        let words = |n: usize| {
            let key = format!("key{n:02}").into_bytes();
            match self {
                Sent::Set => vec![b"SET".to_vec(), key, VALUE.into()],
                Sent::Get => vec![b"GET".to_vec(), key],
            }
        };
        let parts: Vec<_> = (0..KEYS).map(|n| (Ingredient::Own(words(n)), 1)).collect();
        Material::default().mix(self.name().to_owned(), &parts)
    }
}

/// How callers use connections.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// This number of connections that all callers share.
    Lanes(usize),
    /// A pool with this number of connections.
    Pool(usize),
}

impl Mode {
    pub(super) fn name(self) -> String {
        match self {
            Mode::Lanes(1) => "one connection".to_owned(),
            Mode::Lanes(count) => format!("{count} shared"),
            Mode::Pool(count) => format!("pool of {count}"),
        }
    }
}

/// The maximum number of times that a load is measured until at least one request gets its reply.
const MEASUREMENTS_MAX: usize = 20;

/// A load of the client library.
#[derive(Clone, Copy)]
pub(super) struct Callers {
    pub(super) sent: Sent,
    pub(super) mode: Mode,
    pub(super) callers: usize,
    pub(super) rtt_ms: u64,
    pub(super) has_timeouts: bool,
}

impl Callers {
    pub(super) fn name(&self) -> String {
        let (sent, mode, callers) = (self.sent.name(), self.mode.name(), self.callers);
        let callers =
            if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
        match self.rtt_ms {
            0 => format!("{sent}, {mode}, {callers}"),
            rtt_ms => format!("{sent}, {mode}, {callers}, {rtt_ms} ms"),
        }
    }

    pub(super) fn measure(&self, subject: &Subject, size: &Size) -> Result<Measured, String> {
        let proxy = match self.rtt_ms {
            0 => None,
            rtt_ms => Some(distant(&subject.target, Duration::from_micros(rtt_ms * 500))?),
        };
        let target = match &proxy {
            Some(proxy) => local_target(proxy.address().port()),
            None => subject.target.clone(),
        };
        // The library's default protocol.
        let session = SessionSetup { resp3: true, ..target.session };
        let (connections, is_pool) = match self.mode {
            Mode::Lanes(count) => (count, false),
            Mode::Pool(count) => (count, true),
        };
        let load = LibraryLoad { callers: self.callers, is_pool, has_timeouts: self.has_timeouts };
        let plan = Plan {
            clients: connections,
            warmup: size.pick(Duration::from_millis(50), Duration::from_millis(400)),
            end: End::After(size.pick(Duration::from_millis(120), Duration::from_secs(1))),
            source: Source::Library(load),
            ..size.plan(self.sent.workload()?, &Target { session, ..target })
        };
        // On a busy machine, a short measurement may end before the first reply arrives. In this case it is repeated.
        let mut measured = measure(&plan, subject)?;
        for _ in 1..MEASUREMENTS_MAX {
            if measured.summary.operations > 0 {
                break;
            }
            measured = measure(&plan, subject)?;
        }
        Ok(measured)
    }

    /// The results of a load: rate, latencies, and CPU time on both sides.
    pub(super) fn measurements(
        &self,
        subject: &Subject,
        size: &Size,
        article: Option<f64>,
    ) -> Result<Vec<Measurement>, String> {
        let measured = self.measure(subject, size)?;
        let (name, summary) = (self.name(), &measured.summary);
        let measurement =
            |what: &str, unit, value| Measurement::less(format!("{name}: {what}"), unit, value);
        Ok(vec![
            Measurement::more(name.clone(), "requests/s", summary.rate).article(article),
            measurement("p50", "ms", Some(summary.latency_ms.p50)),
            measurement("p99", "ms", Some(summary.latency_ms.p99)),
            measurement("client CPU", "us/request", Some(summary.generator_us)),
            measurement("server CPU", "us/request", measured.cpu_us),
        ])
    }
}

/// A proxy to the same server that adds this delay in each direction.
fn distant(target: &Target, delay: Duration) -> Result<DelayProxy, String> {
    let Address::Tcp { resolved, .. } = target.address else {
        return Err("the simulated network uses TCP: specify a server by host and port".to_owned());
    };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let plan = DelayPlan { listen, to: resolved, delay, jitter: Duration::ZERO };
    DelayProxy::start(plan).map_err(|error| error.to_string())
}
