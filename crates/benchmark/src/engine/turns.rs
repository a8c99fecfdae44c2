//! Decides which lane sends next if every request has its own connection.
//!
//! Connections wait in a server's listen queue until the server accepts them. The queue has 511 entries by default. If
//! it is full, the kernel drops further connections, and retries them after one second, then two, four and so on, while
//! later ones overtake them. Thousands of clients that reconnect as soon as they have their reply would measure these
//! retries. Therefore:
//!
//! - at most [`ACTIVE_MAX`] clients wait for a reply at a time;
//! - if there are more clients, those whose turn is over reconnect immediately and hold the connection until their next
//!   turn, so that the server has connections from all of them;
//! - for at most [`UNSEEN_MAX`] open connections, it is unknown whether the server has accepted them. A reply shows
//!   that the server has accepted its connection and all earlier ones, because there is one queue. To get a reply that
//!   covers all connections, the newest connection occasionally gets a turn; all other turns go to the oldest
//!   connections.
//!
//! With several listeners there are several queues, so a reply only makes it likely that earlier connections were
//! accepted. But several queues also have more room.

use std::collections::VecDeque;

/// Maximum number of clients of all threads that wait for a reply at a time. Together with [`UNSEEN_MAX`], they fit in
/// a listen queue with 511 entries.
pub(super) const ACTIVE_MAX: usize = 240;
/// Maximum number of connections of all threads that the server may not have accepted yet.
const UNSEEN_MAX: usize = 240;

/// The turns of one worker's lanes.
#[derive(Debug)]
pub(super) struct Turns {
    /// Lanes that can send, in the order in which they began to wait.
    ready: VecDeque<u32>,
    /// The number of each lane's connection.
    numbers: Vec<u64>,
    /// Number of connections opened so far.
    made: u64,
    /// The highest number that the server is known to have accepted.
    seen: u64,
    /// The connection whose reply will show that it was accepted.
    probe: u64,
    active_max: usize,
    unseen_max: u64,
    /// True if lanes connect before it is their turn.
    ahead: bool,
}

impl Turns {
    /// The turns for `lanes` lanes of one worker. `clients` is the number of clients of all `threads`.
    pub(super) fn new(lanes: usize, clients: usize, threads: usize) -> Turns {
        Turns {
            ready: VecDeque::new(),
            numbers: vec![0; lanes],
            made: 0,
            seen: 0,
            probe: 0,
            active_max: (ACTIVE_MAX / threads).max(1),
            unseen_max: (UNSEEN_MAX / threads).max(2) as u64,
            ahead: clients > ACTIVE_MAX,
        }
    }

    /// Reports whether lanes connect as soon as their last turn is over.
    pub(super) const fn connect_ahead(&self) -> bool {
        self.ahead
    }

    /// Called when the lane has begun to connect.
    pub(super) fn connects(&mut self, lane: usize) {
        self.made += 1;
        self.numbers[lane] = self.made;
    }

    /// Called when a reply has arrived on the lane's connection.
    pub(super) fn reply_arrived(&mut self, lane: usize) {
        self.seen = self.seen.max(self.numbers[lane]);
    }

    /// Called when the lane begins to wait for its turn.
    pub(super) fn wait(&mut self, lane: u32) {
        self.ready.push_back(lane);
    }

    /// The lane that may send now, while `active` lanes wait for replies.
    pub(super) fn next(&mut self, active: usize) -> Option<u32> {
        if active >= self.active_max {
            return None;
        }
        if !self.ahead {
            return self.ready.pop_front();
        }
        let unseen = self.made - self.seen;
        let newest = self.ready.back().map(|&lane| self.numbers[lane as usize])?;
        if unseen > self.unseen_max / 2 && newest > self.seen && self.probe <= self.seen {
            self.probe = newest;
            return self.ready.pop_back();
        }
        // If no client waits for a reply, none will arrive, so do not wait for unseen connections, which may be lost.
        if unseen > self.unseen_max && active > 0 { None } else { self.ready.pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTEN_QUEUE: usize = 511;

    /// A server that accepts `accepts` connections per round, then replies to the requests on its
    /// accepted connections.
    struct Server {
        accepts: usize,
        queue: VecDeque<u32>,
        longest_queue: usize,
        accepted: Vec<bool>,
        has_request: Vec<bool>,
    }

    impl Server {
        fn connect(&mut self, turns: &mut Turns, lane: u32) {
            turns.connects(lane as usize);
            self.accepted[lane as usize] = false;
            self.queue.push_back(lane);
            self.longest_queue = self.longest_queue.max(self.queue.len());
        }

        fn round(&mut self) -> Vec<u32> {
            for _ in 0..self.accepts.min(self.queue.len()) {
                let lane = self.queue.pop_front().unwrap();
                self.accepted[lane as usize] = true;
            }
            let lanes = 0..u32::try_from(self.has_request.len()).unwrap();
            let served =
                |&lane: &u32| self.accepted[lane as usize] && self.has_request[lane as usize];
            let served_lanes: Vec<u32> = lanes.filter(served).collect();
            served_lanes.iter().for_each(|&lane| self.has_request[lane as usize] = false);
            served_lanes
        }
    }

    /// The number of turns of each client, and the maximum length of the listen queue.
    fn simulated(clients: usize, accepts: usize, requests: usize) -> (Vec<usize>, usize) {
        let mut turns = Turns::new(clients, clients, 1);
        let mut server = Server {
            accepts,
            queue: VecDeque::new(),
            longest_queue: 0,
            accepted: vec![false; clients],
            has_request: vec![false; clients],
        };
        let mut had = vec![0; clients];
        for lane in 0..u32::try_from(clients).unwrap() {
            if turns.connect_ahead() {
                server.connect(&mut turns, lane);
                // Connections are opened slowly enough that the server keeps up.
                server.round();
                turns.reply_arrived(lane as usize);
            }
            turns.wait(lane);
        }
        let (mut active, mut replies) = (0, 0);
        for _ in 0..1_000_000 {
            if replies >= requests {
                return (had, server.longest_queue);
            }
            while let Some(lane) = turns.next(active) {
                if !turns.connect_ahead() {
                    server.connect(&mut turns, lane);
                }
                had[lane as usize] += 1;
                server.has_request[lane as usize] = true;
                active += 1;
            }
            assert!(active <= ACTIVE_MAX);
            for lane in server.round() {
                active -= 1;
                replies += 1;
                turns.reply_arrived(lane as usize);
                if turns.connect_ahead() {
                    server.connect(&mut turns, lane);
                }
                turns.wait(lane);
            }
        }
        panic!("no client got another turn after {replies} replies");
    }

    #[test]
    fn the_listen_queue_is_never_overrun_and_each_client_gets_turns() {
        for clients in [50, 240, 241, 1000, 8000] {
            for accepts in [1, 10, 1000] {
                let (had, queue) = simulated(clients, accepts, 5 * clients);
                assert!(queue <= LISTEN_QUEUE, "{clients} clients, {accepts} accepts: {queue}");
                let least = had.iter().min().unwrap();
                assert!(*least >= 2, "{clients} clients, {accepts} accepts: {least} turns");
            }
        }
    }

    #[test]
    fn threads_share_what_is_allowed() {
        let mut turns = Turns::new(500, 2000, 4);
        (0..500).for_each(|lane| turns.wait(lane));
        let mut active = 0;
        while turns.next(active).is_some() {
            active += 1;
        }
        assert_eq!(active, ACTIVE_MAX / 4);
    }
}
