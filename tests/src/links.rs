//! Nodes that replicate from one another, with an unreliable network between them.

use brisk_testkit::digest::{Holder, assert_same};
use brisk_testkit::proxy::{Direction, Disconnect, Split};
use brisk_testkit::random::Random;
use brisk_testkit::writers::{Writers, wait_until_nothing_expires};
use brisk_testkit::{Kind, Launch, Proxy, Server, wait_until};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A size or seed that an environment variable can set.
#[track_caller]
pub fn sized<T: FromStr>(variable: &str, usual: T) -> T {
    match std::env::var(variable).ok().map(|text| text.parse()) {
        None => usual,
        Some(Ok(size)) => size,
        Some(Err(_)) => panic!("{variable} is no number"),
    }
}

/// A server of the chain.
#[derive(Debug)]
pub struct Node {
    pub kind: Kind,
    pub server: Server,
}

impl Node {
    pub fn start(kind: Kind, launch: impl Fn(Launch) -> Launch) -> Node {
        Node { kind, server: launch(kind.launch()).start() }
    }

    /// Makes it a replica of the server on this port.
    #[track_caller]
    pub fn follow(&self, port: u16) {
        let reply = self.server.connect().cmd(&format!("REPLICAOF 127.0.0.1 {port}"));
        assert!(!reply.is_error(), "{}: {reply}", self.kind);
    }

    #[track_caller]
    pub fn wait_until_it_follows(&self) {
        self.server.wait_for_info("master_link_status", |status| status == "up");
    }

    pub fn holder(&self) -> Holder {
        Holder::new(self.kind, &self.server.address())
    }

    /// The numbers of full and partial synchronizations that it has served as a primary.
    pub fn served(&self) -> [u64; 2] {
        let mut conn = self.server.connect();
        ["sync_full", "sync_partial_ok"]
            .map(|field| conn.info(field).parse().expect("INFO counts them"))
    }
}

/// Waits until the replica has everything that its primary, or the primary's primary, has.
#[track_caller]
pub fn wait_until_caught_up(primary: &Server, replica: &Server) {
    let (mut one, mut other) = (primary.connect(), replica.connect());
    wait_until("the replica to have everything", || {
        other.info("role") == "slave"
            && other.info("master_link_status") == "up"
            && other.info("slave_repl_offset") == one.info("master_repl_offset")
    });
}

/// A chain of nodes. Each replicates from the previous one, through a proxy.
#[derive(Debug)]
pub struct Chain {
    pub nodes: Vec<Node>,
    /// The proxy with number n is between node n and node n + 1.
    pub links: Vec<Proxy>,
}

impl Chain {
    /// Starts servers, the primary first, and waits until each replicates from the previous one.
    #[track_caller]
    pub fn start(kinds: &[Kind], launch: impl Fn(Launch) -> Launch) -> Chain {
        let nodes: Vec<Node> = kinds.iter().map(|kind| Node::start(*kind, &launch)).collect();
        let before = nodes.iter().take(nodes.len() - 1);
        let links: Vec<Proxy> = before.map(|node| Proxy::to(&node.server.address())).collect();
        let chain = Chain { nodes, links };
        for (link, node) in chain.links.iter().zip(&chain.nodes[1..]) {
            node.follow(link.port());
            node.wait_until_it_follows();
        }
        chain
    }

    pub fn primary(&self) -> &Server {
        &self.nodes[0].server
    }

    #[track_caller]
    pub fn wait_until_all_follow(&self) {
        self.nodes[1..].iter().for_each(Node::wait_until_it_follows);
    }

    /// Waits until all nodes have the same offset, and asserts that all have the same data. No client may write during
    /// the call.
    #[track_caller]
    pub fn assert_agrees(&self) {
        self.links.iter().for_each(Proxy::heal);
        wait_until_nothing_expires(&self.primary().address());
        let [primary, replicas @ ..] = &self.nodes[..] else { return };
        for replica in replicas {
            wait_until_caught_up(&primary.server, &replica.server);
        }
        for replica in replicas {
            assert_same(&primary.holder(), &replica.holder());
        }
    }
}

/// Runs `body` while clients write values of all types to a server, after they have already written some.
#[track_caller]
pub fn while_written_to(server: &Server, body: impl FnOnce()) {
    const BEFORE: u64 = 500;
    /// Stops the clients even if something fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (steps, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (steps, is_over) = (&steps, &is_over);
        let _end = End(is_over);
        let goes_on = |_| {
            steps.fetch_add(1, Ordering::SeqCst);
            !is_over.load(Ordering::SeqCst)
        };
        let address = server.address();
        scope.spawn(move || Writers::to(&address, 7).run(2, goes_on));
        wait_until("some data", || steps.load(Ordering::SeqCst) >= BEFORE);
        body();
    });
}

/// Limits how much writers write, so that a run has the same length on any machine.
#[derive(Debug, Default)]
pub struct Budget {
    granted: AtomicU64,
    used: AtomicU64,
    is_over: AtomicBool,
}

impl Budget {
    /// Allows this number of additional steps.
    pub fn grant(&self, steps: u64) {
        self.granted.fetch_add(steps, Ordering::SeqCst);
    }

    /// Number of steps made so far.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// Waits until at least this number of steps was made, as long as there is progress.
    #[track_caller]
    pub fn wait_until_used(&self, steps: u64) {
        let mut used = self.used();
        while used < steps {
            wait_until("writers to write", || self.used() > used);
            used = self.used();
        }
    }

    /// Lets writers make the granted steps, and then end.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Waits until a step may be made. Returns false if the writers must end.
    #[track_caller]
    pub fn take(&self) -> bool {
        let mut goes_on = false;
        wait_until("a grant or the end", || {
            let granted = self.granted.load(Ordering::SeqCst);
            let take = |used| (used < granted).then_some(used + 1);
            goes_on = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
            goes_on || self.is_over.load(Ordering::SeqCst)
        });
        goes_on
    }
}

/// Disturbs the link in a random way, and then breaks the connection. Writers write within the budget during this time.
pub fn break_link(link: &Proxy, random: &mut Random, budget: &Budget, grant: u64) {
    let how = *random.pick(&[Disconnect::Reset, Disconnect::End]);
    let begun = budget.used();
    budget.grant(grant);
    link.heal();
    match random.below(8) {
        // During this time, no written data passes the link.
        0 => {
            link.part();
            budget.wait_until_used(begun + grant / 2);
        }
        1 => {
            link.stall(Direction::ToServer, true);
            budget.wait_until_used(begun + grant / 2);
        }
        2 => {
            link.refuse(true);
            link.cut(how);
            budget.wait_until_used(begun + grant / 2);
        }
        // The next connection is slow.
        3 => link.delay(Duration::from_millis(1 + random.below(20) as u64)),
        4 => link.throttle(Some(200_000)),
        5 => {
            let seed = random.bits();
            link.split(Some(Split { single_bytes: 300, bytes_max: 40, seed }));
        }
        // The next connection breaks, during the handshake or after some commands.
        6 => {
            let direction = *random.pick(&Direction::BOTH);
            link.cut_next_after(direction, 1 + random.below(3000) as u64, how);
        }
        _ => {}
    }
    link.cut(how);
    link.stall(Direction::ToServer, false);
    link.stall(Direction::ToClient, false);
    link.refuse(false);
}
