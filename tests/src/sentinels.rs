//! Three real sentinels that watch a primary and two replicas, each of which is behind a proxy: what
//! the sentinels, the other servers and the clients know of a server is its proxy's address.

use crate::links::{Node, wait_until_caught_up};
use brisk_testkit::digest::assert_same;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::{Program, redis_binary};
use brisk_testkit::{Conn, Kind, Launch, Proxy, Server, wait_until};
use std::time::Duration;

/// The name under which sentinels know the group.
const NAME: &str = "group";
const QUORUM: u32 = 2;
const SENTINELS: usize = 3;
/// A silent sentinel is passed over.
const PATIENCE: Duration = Duration::from_secs(1);
/// How sentinels are made quick, and quick to recover on a busy machine: SENTINEL DEBUG.
const PERIODS: &str =
    "SENTINEL DEBUG info-period 300 publish-period 300 ask-period 200 tilt-period 1000";

/// A server and what is in front of it.
#[derive(Debug)]
pub struct Member {
    pub node: Node,
    pub door: Proxy,
    launch: Launch,
}

impl Member {
    #[track_caller]
    fn start(kind: Kind, launch: &impl Fn(Launch) -> Launch) -> Member {
        // It has a file, so that what sentinels tell it outlives its process.
        let launch = launch(kind.launch()).file("");
        let node = Node { kind, server: launch.clone().start() };
        let door = Proxy::to(&node.server.address());
        let mut conn = node.server.connect();
        let port = format!("CONFIG SET replica-announce-port {}", door.port());
        for line in ["CONFIG SET replica-announce-ip 127.0.0.1", &port, "CONFIG REWRITE"] {
            let reply = conn.cmd(line);
            assert!(!reply.is_error(), "{line}: {reply}");
        }
        Member { node, door, launch }
    }

    /// Starts it again after it was killed.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.launch.start_again(&mut self.node.server);
    }
}

/// The members and those who watch them.
#[derive(Debug)]
pub struct Group {
    pub members: Vec<Member>,
    sentinels: Vec<Server>,
}

impl Group {
    /// Starts everybody, and waits until the sentinels know one another and the replicas.
    #[track_caller]
    pub fn start(kinds: [Kind; 3], launch: impl Fn(Launch) -> Launch) -> Group {
        let members: Vec<Member> =
            kinds.into_iter().map(|kind| Member::start(kind, &launch)).collect();
        for member in &members[1..] {
            member.node.follow(members[0].door.port());
            member.node.wait_until_it_follows();
            member.node.server.connect().cmd("CONFIG REWRITE");
        }
        let port = members[0].door.port();
        let sentinels = (0..SENTINELS).map(|_| sentinel(port)).collect();
        let group = Group { members, sentinels };
        for sentinel in &group.sentinels {
            let mut conn = sentinel.connect();
            assert_eq!(conn.cmd(PERIODS).to_string(), "OK");
        }
        for sentinel in &group.sentinels {
            let mut conn = sentinel.connect();
            wait_until("the sentinels to know everybody", || {
                let state = conn.cmd(&format!("SENTINEL MASTER {NAME}"));
                let count = |field: &str| state.field(field).map(Reply::text).unwrap_or_default();
                count("num-slaves") == "2" && count("num-other-sentinels") == "2"
            });
        }
        group
    }

    /// Where clients ask who the primary is.
    pub fn finder(&self) -> impl Fn() -> Option<String> + Send + use<> {
        let sentinels: Vec<String> = self.sentinels.iter().map(Server::address).collect();
        move || sentinels.iter().find_map(|sentinel| primary_by(sentinel))
    }

    /// Which member all sentinels take for the primary, if they agree.
    pub fn primary(&self) -> Option<usize> {
        let told: Vec<Option<String>> =
            self.sentinels.iter().map(|sentinel| primary_by(&sentinel.address())).collect();
        let first = told.first()?.as_ref()?;
        let do_agree = told.iter().all(|other| other.as_ref() == Some(first));
        let position = self.members.iter().position(|member| member.door.address() == *first)?;
        do_agree.then_some(position)
    }

    /// Has the sentinels hand over to a replica.
    #[track_caller]
    pub fn hand_over(&self) {
        let mut conn = self.sentinels[0].connect();
        // For a while after one failover it refuses another.
        wait_until("the sentinel to begin", || {
            conn.cmd(&format!("SENTINEL FAILOVER {NAME}")).to_string() == "OK"
        });
    }

    /// Waits until another member than this one is the primary by all sentinels.
    #[track_caller]
    pub fn wait_until_it_is_not(&self, former: usize) {
        wait_until("another primary", || self.primary().is_some_and(|primary| primary != former));
    }

    /// Waits until all agree, sentinels and servers, and nothing is left to be done; the primary.
    #[track_caller]
    pub fn wait_until_settled(&self) -> usize {
        let mut settled = 0;
        wait_until("one primary with two replicas that are online", || {
            self.primary().is_some_and(|primary| {
                settled = primary;
                self.agrees_on(primary).unwrap_or(false)
            })
        });
        settled
    }

    fn agrees_on(&self, primary: usize) -> Option<bool> {
        let healthy = self.sentinels.iter().all(|sentinel| {
            let state = sentinel.connect().cmd(&format!("SENTINEL MASTER {NAME}"));
            state.field("flags").is_some_and(|flags| flags.text() == "master")
        });
        let info = |member: &Member| {
            let mut conn = Conn::try_tcp(&member.node.server.address()).ok()?;
            Some(conn.try_cmd("INFO replication").ok()?.text())
        };
        let port = self.members[primary].door.port();
        let has_two = {
            let text = info(&self.members[primary])?;
            text.contains("role:master") && text.matches("state=online").count() == 2
        };
        let mut others = self.members.iter().enumerate().filter(|(at, _)| *at != primary);
        let follow = others.all(|(_, member)| {
            info(member).is_some_and(|text| {
                text.contains("role:slave")
                    && text.contains("master_link_status:up")
                    && text.contains(&format!("master_port:{port}\r\n"))
            })
        });
        Some(healthy && has_two && follow)
    }

    /// While nobody writes: waits until the replicas have everything, and asserts that it is the same.
    #[track_caller]
    pub fn assert_agrees(&self, primary: usize) {
        let first = &self.members[primary].node;
        for (at, member) in self.members.iter().enumerate() {
            if at != primary {
                wait_until_caught_up(&first.server, &member.node.server);
                assert_same(&first.holder(), &member.node.holder());
            }
        }
    }
}

fn sentinel(primary_port: u16) -> Server {
    let file = format!(
        "sentinel monitor {NAME} 127.0.0.1 {primary_port} {QUORUM}\n\
         sentinel down-after-milliseconds {NAME} 1000\n\
         sentinel failover-timeout {NAME} 2000\n\
         sentinel parallel-syncs {NAME} 1\n"
    );
    Launch::bare(Program::At(redis_binary())).file(&file).word("--sentinel").start()
}

/// What this sentinel says who the primary is.
fn primary_by(sentinel: &str) -> Option<String> {
    let mut conn = Conn::try_tcp(sentinel).ok()?;
    conn.give_up_after(PATIENCE);
    let reply = conn.try_cmd(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}")).ok()?;
    match reply.elements()[..] {
        [host, port] => Some(format!("{}:{}", host.text(), port.text())),
        _ => None,
    }
}
