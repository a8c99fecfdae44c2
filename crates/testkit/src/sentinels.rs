//! Real sentinels that monitor a primary and quickly detect its failure.

use crate::conn::Conn;
use crate::reply::Reply;
use crate::server::{Launch, Program, Server, redis_binary};
use crate::wait::{DEADLINE, holds_within, wait_until};
use std::time::Duration;

/// The name under which sentinels know the primary and its replicas.
pub const SERVICE: &str = "group";
const QUORUM: u32 = 2;
const COUNT: usize = 3;
/// A sentinel that does not reply within this time is skipped.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// Settings with shorter periods than the defaults, so that sentinels react quickly, and recover quickly from delays on
/// a busy machine.
const PERIODS: &str =
    "SENTINEL DEBUG info-period 300 publish-period 300 ask-period 200 tilt-period 1000";

/// Three running sentinels.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<Server>,
    launch: Launch,
    password: Option<String>,
}

impl Sentinels {
    /// Starts the sentinels, and waits until they know one another and all replicas.
    #[track_caller]
    pub fn watch(primary_port: u16, replicas: usize) -> Sentinels {
        Sentinels::start(primary_port, replicas, None)
    }

    /// Like [`Sentinels::watch`], but clients of these sentinels need this password.
    #[track_caller]
    pub fn with_password(primary_port: u16, replicas: usize, password: &str) -> Sentinels {
        Sentinels::start(primary_port, replicas, Some(password))
    }

    #[track_caller]
    fn start(primary_port: u16, replicas: usize, password: Option<&str>) -> Sentinels {
        let mut file = format!(
            "sentinel monitor {SERVICE} 127.0.0.1 {primary_port} {QUORUM}\n\
             sentinel down-after-milliseconds {SERVICE} 1000\n\
             sentinel failover-timeout {SERVICE} 2000\n\
             sentinel parallel-syncs {SERVICE} 1\n"
        );
        if let Some(password) = password {
            file += &format!("requirepass {password}\nsentinel sentinel-pass {password}\n");
        }
        let launch = Launch::bare(Program::At(redis_binary())).file(&file).word("--sentinel");
        let servers = (0..COUNT).map(|_| launch.clone().start()).collect();
        let sentinels = Sentinels { servers, launch, password: password.map(str::to_owned) };
        for at in 0..COUNT {
            assert_eq!(sentinels.connect(at).cmd(PERIODS).to_string(), "OK");
        }
        for at in 0..COUNT {
            let mut conn = sentinels.connect(at);
            wait_until("the sentinels to know everybody", || {
                let state = conn.cmd(&format!("SENTINEL MASTER {SERVICE}"));
                let count = |field: &str| state.field(field).map(Reply::text).unwrap_or_default();
                count("num-slaves") == replicas.to_string()
                    && count("num-other-sentinels") == (COUNT - 1).to_string()
            });
        }
        sentinels
    }

    /// The addresses of the sentinels.
    pub fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(Server::address).collect()
    }

    /// The processes of the sentinels.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// A connection to one of them.
    #[track_caller]
    pub fn connect(&self, at: usize) -> Conn {
        let mut conn = self.servers[at].connect();
        if let Some(password) = &self.password {
            assert_eq!(conn.cmd(&format!("AUTH {password}")).to_string(), "OK");
        }
        conn
    }

    /// Kills a sentinel and restarts it with its saved state.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        self.servers[at].kill_for_now();
        self.launch.start_again(&mut self.servers[at]);
        assert_eq!(self.connect(at).cmd(PERIODS).to_string(), "OK");
    }

    /// The address of the primary according to each sentinel; `None` for one that does not reply.
    pub fn reported_primaries(&self) -> Vec<Option<String>> {
        let password = self.password.as_deref();
        self.servers.iter().map(|server| primary_by(&server.address(), password)).collect()
    }

    /// The address of the primary, if all sentinels agree.
    pub fn primary(&self) -> Option<String> {
        let reported = self.reported_primaries();
        let first = reported.first()?.clone()?;
        reported.iter().all(|other| other.as_ref() == Some(&first)).then_some(first)
    }

    /// A function that queries the sentinels for the address of the primary.
    pub fn finder(&self) -> impl Fn() -> Option<String> + Send + use<> {
        let (sentinels, password) = (self.addresses(), self.password.clone());
        move || sentinels.iter().find_map(|sentinel| primary_by(sentinel, password.as_deref()))
    }

    /// Reports whether all of them consider the primary healthy.
    pub fn are_content(&self) -> bool {
        (0..COUNT).all(|at| {
            let state = self.connect(at).cmd(&format!("SENTINEL MASTER {SERVICE}"));
            state.field("flags").is_some_and(|flags| flags.text() == "master")
        })
    }

    /// Requests a failover to a replica, and waits until the sentinel reports another primary.
    #[track_caller]
    pub fn hand_over(&self) {
        let mut conn = self.connect(0);
        let mut state = || conn.cmd(&format!("SENTINEL MASTER {SERVICE}"));
        let address =
            |state: &Reply| ["ip", "port"].map(|name| state.field(name).map(Reply::to_string));
        let former = address(&state());
        let mut requests = self.connect(0);
        wait_until("the sentinel to report another primary", || {
            let state = state();
            if address(&state) != former {
                return true;
            }
            // For a while after a failover, a sentinel rejects requests for another one. If it has no recent state of a
            // replica, or if the replica is promoted too late, it ends the failover.
            if state.field("failover-state").is_none() {
                requests.cmd(&format!("SENTINEL FAILOVER {SERVICE}"));
            }
            false
        });
    }

    /// Waits until all sentinels report a different primary than this one. Returns its address.
    #[track_caller]
    pub fn wait_until_it_is_not(&self, former: &str) -> String {
        let mut primary = None;
        // Sentinels that could not agree in time retry after a while.
        let is_found = holds_within(3 * DEADLINE, || {
            primary = self.primary().filter(|primary| primary != former);
            primary.is_some()
        });
        assert!(is_found, "there is no other primary than {former}");
        primary.unwrap_or_default()
    }
}

/// The address of the primary according to this sentinel.
fn primary_by(sentinel: &str, password: Option<&str>) -> Option<String> {
    let mut conn = Conn::try_tcp(sentinel).ok()?;
    conn.give_up_after(REPLY_TIMEOUT);
    if let Some(password) = password {
        conn.try_cmd(&format!("AUTH {password}")).ok()?;
    }
    let reply = conn.try_cmd(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {SERVICE}")).ok()?;
    match reply.elements()[..] {
        [host, port] => Some(format!("{}:{}", host.text(), port.text())),
        _ => None,
    }
}
