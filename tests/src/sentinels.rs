//! Three real sentinels that watch a primary and two replicas, each of which is behind a proxy: what
//! the sentinels, the other servers and the clients know of a server is its proxy's address.

use crate::links::{Node, wait_until_caught_up};
use brisk_testkit::digest::assert_same;
use brisk_testkit::sentinels::Sentinels;
use brisk_testkit::{Conn, Kind, Launch, Proxy, wait_until};

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
    sentinels: Sentinels,
}

impl Group {
    /// Starts all servers, and waits until the sentinels know one another and the replicas.
    #[track_caller]
    pub fn start(kinds: [Kind; 3], launch: impl Fn(Launch) -> Launch) -> Group {
        let members: Vec<Member> =
            kinds.into_iter().map(|kind| Member::start(kind, &launch)).collect();
        for member in &members[1..] {
            member.node.follow(members[0].door.port());
            member.node.wait_until_it_follows();
            member.node.server.connect().cmd("CONFIG REWRITE");
        }
        let sentinels = Sentinels::watch(members[0].door.port(), members.len() - 1);
        Group { members, sentinels }
    }

    /// The addresses of the sentinels that clients query for the primary.
    pub fn finder(&self) -> impl Fn() -> Option<String> + Send + use<> {
        self.sentinels.finder()
    }

    /// Which member all sentinels take for the primary, if they agree.
    pub fn primary(&self) -> Option<usize> {
        let told = self.sentinels.primary()?;
        self.members.iter().position(|member| member.door.address() == told)
    }

    /// Has the sentinels hand over to a replica.
    #[track_caller]
    pub fn hand_over(&self) {
        self.sentinels.hand_over();
    }

    /// Waits until another member than this one is the primary by all sentinels.
    #[track_caller]
    pub fn wait_until_it_is_not(&self, former: usize) {
        wait_until("another primary", || self.primary().is_some_and(|primary| primary != former));
    }

    /// Waits until all sentinels and servers agree, and no work is left; returns the primary.
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
        let healthy = self.sentinels.are_content();
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

    /// While no client writes: waits until the replicas have everything, and asserts that the data is the same.
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
