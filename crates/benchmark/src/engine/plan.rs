//! The requested run.

use crate::cluster::Cluster;
use crate::load::Workload;
use brisk_dial::address::Address;
use brisk_dial::tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of connections of a run.
pub const CLIENTS_MAX: usize = 1 << 20;
/// Maximum number of threads, as in redis-benchmark.
pub const THREADS_MAX: usize = 500;
/// Maximum number of pending requests of a connection.
pub const PIPELINE_MAX: usize = 1 << 20;

/// A server, and how to connect to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address of the server.
    pub address: Address,
    /// The TLS settings, if TLS is used.
    pub tls: Option<Arc<TlsClient>>,
    /// The commands that each connection sends first.
    pub session: SessionSetup,
}

/// The commands that a connection sends before its first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSetup {
    /// The password for AUTH.
    pub password: Option<String>,
    /// The user for AUTH. Requires a password.
    pub user: Option<String>,
    /// The database for SELECT, unless it is 0.
    pub database: u32,
    /// Sends `HELLO 3`.
    pub resp3: bool,
    /// Sends `CLIENT TRACKING on`.
    pub tracking: bool,
}

impl SessionSetup {
    /// The encoded requests, and their number.
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
            // HELLO 3 comes before CLIENT TRACKING, whose messages require RESP3.
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
    /// When the reply to the previous request has arrived: each client waits for it.
    Closed,
    /// At scheduled times, even if earlier requests have no reply yet; latencies count from the scheduled time.
    Open {
        /// Requests per second, of all clients together.
        rate: f64,
        /// The distribution of the requests over time.
        arrivals: Arrivals,
    },
    /// Never: clients connect and stay idle.
    Idle,
}

/// The distribution of requests over time in an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal intervals.
    #[default]
    Even,
    /// Exponentially distributed intervals, like requests of many independent users.
    Poisson,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After this number of requests (in whole pipelines).
    Requests(u64),
    /// After this time. The run waits for the replies to pending requests.
    After(Duration),
}

/// The effect of an error reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It ends the run, as in redis-benchmark.
    #[default]
    Stop,
    /// It is counted.
    Count,
}

/// The sender of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// This crate's own engine, which uses little CPU time, to measure the server.
    #[default]
    Engine,
    /// The client library, to measure what a program that uses it sees.
    Library(LibraryLoad),
}

/// How the client library is used. The number of connections is the plan's `clients`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryLoad {
    /// The number of callers. Each sends its next request when it has received the reply to the previous one.
    pub callers: usize,
    /// True if callers take connections from a pool. Otherwise all callers share the connections.
    pub is_pool: bool,
    /// True if commands have a time limit, as by default.
    pub has_timeouts: bool,
}

/// Everything about a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The requests.
    pub workload: Arc<Workload>,
    /// The server.
    pub target: Target,
    /// The cluster whose primaries get the requests, instead of the target.
    pub cluster: Option<Arc<Cluster>>,
    /// Number of connections.
    pub clients: usize,
    /// Number of threads that share the connections.
    pub threads: usize,
    /// Requests sent together (closed loop), or the maximum number of pending requests per connection (open loop).
    pub pipeline: usize,
    /// True if connections are kept open. Otherwise each connection is closed after one batch, and a new one is opened.
    pub keep_alive: bool,
    /// When requests are sent.
    pub pace: Pace,
    /// When the run ends.
    pub end: End,
    /// Duration of the load before the measurement begins.
    pub warmup: Duration,
    /// True if every reply is checked.
    pub verify: bool,
    /// The effect of error replies.
    pub on_error: OnError,
    /// Significant digits of latencies, 1 to 5.
    pub precision: u8,
    /// The seed of all random choices.
    pub seed: u64,
    /// CPUs for the threads, assigned in turn. If the list is empty, the system chooses.
    pub cpus: Vec<usize>,
    /// The sender of the requests.
    pub source: Source,
}

impl Plan {
    /// A run with redis-benchmark's defaults: 100,000 requests from 50 clients.
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

    /// Brings counts within their bounds: at least one thread, at least one client for each node, and no thread without
    /// a client.
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
        let session = SessionSetup {
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
        assert_eq!(SessionSetup::default().prelude(), (Vec::new(), 0));
    }
}
