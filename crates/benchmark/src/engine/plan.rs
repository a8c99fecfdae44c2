//! The requested run.

use crate::cluster::Cluster;
use crate::load::Workload;
use brisk_dial::address::Address;
use brisk_dial::tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// Most connections of a run.
pub const CLIENTS_MAX: usize = 1 << 20;
/// Most threads, as in redis-benchmark.
pub const THREADS_MAX: usize = 500;
/// Most requests a connection has under way.
pub const PIPELINE_MAX: usize = 1 << 20;

/// Which server, and how to speak with it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub address: Address,
    /// Settings for TLS, if it is to be used.
    pub tls: Option<Arc<TlsClient>>,
    /// What each connection begins with.
    pub session: Session,
}

/// The commands of a connection before its first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// For AUTH.
    pub password: Option<String>,
    /// For AUTH with a user; needs a password.
    pub user: Option<String>,
    /// For SELECT, unless 0.
    pub database: u32,
    /// Sends `HELLO 3`.
    pub resp3: bool,
    /// Sends `CLIENT TRACKING on`.
    pub tracking: bool,
}

impl Session {
    /// The requests, and how many they are.
    #[must_use]
    pub fn prelude(&self) -> (Vec<u8>, usize) {
        let mut commands: Vec<Vec<&str>> = Vec::new();
        let database = self.database.to_string();
        if let Some(password) = &self.password {
            match &self.user {
                Some(user) => commands.push(vec!["AUTH", user, password]),
                None => commands.push(vec!["AUTH", password]),
            }
        }
        if self.tracking {
            commands.push(vec!["CLIENT", "TRACKING", "on"]);
        }
        if self.database != 0 {
            commands.push(vec!["SELECT", &database]);
        }
        if self.resp3 {
            // Before tracking, whose messages need it.
            let at = usize::from(self.password.is_some());
            commands.insert(at, vec!["HELLO", "3"]);
        }
        let mut bytes = Vec::new();
        for words in &commands {
            brisk_resp::request::encode(&mut bytes, words);
        }
        (bytes, commands.len())
    }
}

/// When the next request is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// After the reply to the previous request: each client waits.
    Closed,
    /// At scheduled times, even if earlier requests have no reply yet; latencies count from the scheduled time.
    Open {
        /// Requests per second, of all clients together.
        rate: f64,
        /// How they follow each other.
        arrivals: Arrivals,
    },
    /// Never: clients connect and stay.
    Idle,
}

/// The distribution of requests over time in an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// All alike.
    #[default]
    Even,
    /// Exponentially distributed, as of many independent users.
    Poisson,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After this number of requests (in whole pipelines).
    Requests(u64),
    /// After this time; requests under way are waited for.
    After(Duration),
}

/// The effect of an error reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Ends the run, as in redis-benchmark.
    #[default]
    Stop,
    /// Is counted.
    Count,
}

/// The sender of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// This crate's own engine, which costs little: the server is what is measured.
    #[default]
    Engine,
    /// The client library: what a program that uses it would see.
    Library(LibraryLoad),
}

/// How the client library is used; the connections are the plan's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryLoad {
    /// The number of callers; each sends a request when the previous one has its reply.
    pub callers: usize,
    /// Whether connections are taken in turns; else all callers share them.
    pub is_pool: bool,
    /// Whether commands have a time limit, as they have by default.
    pub has_timeouts: bool,
}

/// Everything about a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The requests.
    pub workload: Arc<Workload>,
    /// The server.
    pub target: Target,
    /// The cluster whose primaries get the requests, in place of the target.
    pub cluster: Option<Arc<Cluster>>,
    /// Connections.
    pub clients: usize,
    /// Threads that share them.
    pub threads: usize,
    /// Requests sent together (closed loop), or at most under way on a connection (open loop).
    pub pipeline: usize,
    /// Whether connections stay; otherwise each carries one batch and is replaced.
    pub keep_alive: bool,
    /// When requests are sent.
    pub pace: Pace,
    /// When it is over.
    pub end: End,
    /// Load before the measurement begins.
    pub warmup: Duration,
    /// Whether every reply is judged.
    pub verify: bool,
    /// What error replies do.
    pub on_error: OnError,
    /// Significant digits of latencies, 1 to 5.
    pub precision: u8,
    /// Of all random choices.
    pub seed: u64,
    /// CPUs for the threads, one each in turn; empty leaves the choice to the system.
    pub cpus: Vec<usize>,
    /// The sender of the requests.
    pub source: Source,
}

impl Plan {
    /// A run as redis-benchmark does it without options: 100,000 requests of 50 clients.
    #[must_use]
    pub fn new(workload: Workload, target: Target) -> Plan {
        Plan {
            workload: Arc::new(workload),
            target,
            cluster: None,
            clients: 50,
            threads: 1,
            pipeline: 1,
            keep_alive: true,
            pace: Pace::Closed,
            end: End::Requests(100_000),
            warmup: Duration::ZERO,
            verify: false,
            on_error: OnError::Stop,
            precision: 3,
            seed: 1,
            cpus: Vec::new(),
            source: Source::Engine,
        }
    }

    /// Brings counts within their bounds: at least one client for each node and one thread, no thread
    /// without client.
    #[must_use]
    pub fn bounded(mut self) -> Plan {
        let nodes = self.cluster.as_ref().map_or(1, |cluster| cluster.nodes().len());
        self.clients = self.clients.clamp(nodes, CLIENTS_MAX);
        self.threads = self.threads.clamp(1, THREADS_MAX).min(self.clients);
        self.pipeline = self.pipeline.clamp(1, PIPELINE_MAX);
        self.precision = self.precision.clamp(1, 5);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prelude_says_what_the_session_needs() {
        let session = Session {
            password: Some("secret".to_owned()),
            user: Some("ann".to_owned()),
            database: 7,
            resp3: true,
            tracking: true,
        };
        let (bytes, count) = session.prelude();
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", " ");
        assert_eq!(count, 4);
        assert_eq!(
            text,
            "*3 $4 AUTH $3 ann $6 secret *2 $5 HELLO $1 3 \
             *3 $6 CLIENT $8 TRACKING $2 on *2 $6 SELECT $1 7 "
        );
        assert_eq!(Session::default().prelude(), (Vec::new(), 0));
    }
}
