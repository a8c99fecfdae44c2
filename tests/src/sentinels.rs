//! Three real sentinels that monitor a primary and two replicas. Each server is behind a proxy. The sentinels, the
//! other servers and the clients know only the address of its proxy.

use crate::links::{Node, wait_until_caught_up};
use brisk_testkit::digest::assert_same;
use brisk_testkit::sentinels::Sentinels;
use brisk_testkit::{Conn, Kind, Launch, Proxy, wait_until};

/// A server and the proxy in front of it.
#[derive(Debug)]
pub struct Member {
    pub node: Node,
    pub door: Proxy,
    launch: Launch,
}

impl Member {
    #[track_caller]
    fn start(kind: Kind, launch: &impl Fn(Launch) -> Launch) -> Member {
        // The server has a configuration file, so that the changes that sentinels make survive its process.
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

    /// Restarts the server after it has been killed.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.launch.start_again(&mut self.node.server);
    }
}

/// The members and the sentinels that monitor them.
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

    /// The member that all sentinels consider the primary, if they agree.
    pub fn primary(&self) -> Option<usize> {
        let address = self.sentinels.primary()?;
        self.members.iter().position(|member| member.door.address() == address)
    }

    /// Requests a failover to a replica from the sentinels.
    #[track_caller]
    pub fn hand_over(&self) {
        self.sentinels.hand_over();
    }

    /// Waits until all sentinels report a primary other than this member.
    #[track_caller]
    pub fn wait_until_it_is_not(&self, former: usize) {
        wait_until("another primary", || self.primary().is_some_and(|primary| primary != former));
    }

    /// Waits until all sentinels and servers agree, and no work is left. Returns the primary.
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

    /// Waits until the replicas have everything, and asserts that the data is the same. No client may write during the
    /// call.
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
