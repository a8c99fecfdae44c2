//! One run: servers, clients, the network, the clock, and faults.

use super::checks::{Due, Record, Saved, check_acks, due, is_kept, present};
use super::client::{Client, Pending};
use super::model::{Change, DATABASES, LISTS, Model, STRINGS, long_string, string};
use super::network::{Connection, PsyncRequest};
use super::node::{Node, NodeView, Start, port};
use super::thread_group::PathState;
use super::trace;
use brisk_reactor::set_simulated_ms;
use brisk_structures::poison::EvenPoisoned;
use brisk_testkit::TempDir;
use brisk_testkit::random::Random;
use std::rc::Rc;

/// When runs begin, in Unix ms.
const BEGIN_MS: u64 = 1_700_000_000_000;
/// The time limit for the datasets of all servers to become equal after the last fault. Some connections carry a few
/// hundred bytes a second, and a replica of a replica waits for whole transactions.
const CALM_MS_MAX: u64 = 2_000_000;

/// During a period without faults, the number of times that bytes are delivered on each connection per step.
const CARRIED_AT_ONCE: usize = 30;

/// Number of requests with unusual offsets that are sent to a server at a time.
const PROBES: usize = 4;

/// Maximum number of times that a server and its upstream thread run alternately without the clock advancing.
const ROUNDS_MAX: usize = 50;

/// How many times each event was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) faults: u64,
    pub(super) units: u64,
    pub(super) partial: u64,
    pub(super) full: u64,
    pub(super) refused: u64,
    pub(super) promotions: u64,
    pub(super) handovers: u64,
    pub(super) starts: u64,
    pub(super) freed: u64,
    pub(super) waits: u64,
    /// Starts after which no replica can continue because too many keys have expired.
    pub(super) forgotten: u64,
}

struct Slot {
    /// `None` while the server is down.
    node: Option<Node>,
    start: Start,
    record: Record,
    client: Option<Client>,
}

/// The possible states of the path between two servers. `Open` is twice as likely as each of the others.
const PATH_STATES: [PathState; 4] =
    [PathState::Open, PathState::Open, PathState::Refused, PathState::Silent];

pub(super) struct World {
    random: Random,
    now_ms: u64,
    dir: TempDir,
    slots: Vec<Slot>,
    connections: Vec<Connection>,
    model: Model,
    pub(super) seen: Seen,
    /// A counter that makes each value unique.
    next: u64,
    prints: bool,
}

impl World {
    pub(super) fn new(seed: u64, prints: bool) -> World {
        let mut random = Random::new(seed);
        let count = 2 + random.below(3);
        let dir = TempDir::new();
        let mut world = World {
            now_ms: BEGIN_MS,
            dir,
            slots: Vec::new(),
            connections: Vec::new(),
            model: Model::default(),
            seen: Seen::default(),
            next: 0,
            prints,
            random: random.clone(),
        };
        world.advance(0);
        for index in 0..count {
            let start = Start {
                seed: random.bits(),
                primary: (index > 0).then(|| if random.percent(60) { 0 } else { index - 1 }),
                backlog_bytes: *random.pick(&[16 << 10, 16 << 10, 64 << 10, 1 << 20]),
                backlog_ttl_s: *random.pick(&[0, 2, 5, 3600]),
                timeout_s: *random.pick(&[3, 10, 60]),
                prints,
            };
            std::fs::create_dir_all(world.dir.path(&index.to_string())).expect("a directory");
            let record = Record::default();
            world.slots.push(Slot { node: None, start, record, client: None });
            world.start(index);
        }
        world
    }

    fn advance(&mut self, ms: u64) {
        self.now_ms += ms;
        set_simulated_ms(self.now_ms);
    }

    fn start(&mut self, index: usize) {
        self.seen.starts += 1;
        let seed = self.random.bits();
        let (count, dir) = (self.slots.len().max(4), self.dir.path(&index.to_string()));
        let slot = &mut self.slots[index];
        slot.start.seed = seed;
        trace::note(self.now_ms, format!("{index} starts, replica of {:?}", slot.start.primary));
        (slot.record.backlog_bytes, slot.record.backlog_ttl_s) =
            (slot.start.backlog_bytes, slot.start.backlog_ttl_s);
        slot.record.last = None;
        slot.record.gets_all = false;
        slot.node = Some(Node::start(index, count, dir, slot.start.clone()));
        self.settle(index);
    }

    fn node(&self, index: usize) -> &Node {
        self.slots[index].node.as_ref().expect("it is up")
    }

    fn is_up(&self, index: usize) -> bool {
        self.slots[index].node.is_some()
    }

    /// Returns the last observed state, if the server is up and has its dataset.
    fn last(&self, index: usize) -> Option<&NodeView> {
        self.slots[index].record.last.as_ref().filter(|_| self.is_up(index))
    }

    /// Runs turns of a server and its upstream thread until nothing is due.
    fn settle(&mut self, index: usize) {
        for _ in 0..ROUNDS_MAX {
            let look = self.node(index).with(|machine| {
                machine.turn();
                machine.look(false)
            });
            self.check(index, look);
            let went_on = self.node(index).run_threads(self.now_ms);
            self.take_dials(index);
            if !went_on {
                return;
            }
        }
    }

    fn take_dials(&mut self, from: usize) {
        let dials = std::mem::take(&mut *self.node(from).group.dials.lock().even_poisoned());
        for dial in dials {
            let to = dial.to;
            self.next += 1;
            let (connection, end) = Connection::new(self.next, from, dial, &mut self.random);
            trace::note(self.now_ms, format!("{from} connects to {to}: {}", connection.number));
            if self.is_up(to) {
                self.node(to).with(move |machine| machine.accept(end));
                self.connections.push(connection);
            } else {
                connection.cut();
            }
        }
    }

    /// Observes a server, and checks that the observed state is possible.
    fn look(&mut self, index: usize) {
        self.look_again(index, false);
    }

    fn look_again(&mut self, index: usize, rereads: bool) {
        let look = self.node(index).with(move |machine| machine.look(rereads));
        self.check(index, look);
    }

    fn check(&mut self, index: usize, look: NodeView) {
        if look.is_loading {
            return;
        }
        let World { slots, model, seen, now_ms, .. } = self;
        slots[index].record.check_names(model, &look, *now_ms, seen);
        self.observe(index, &look);
        let World { slots, model, now_ms, .. } = self;
        slots[index].record.check_backlog(&look);
        slots[index].record.check_dataset(model, &look, *now_ms);
        let records: Vec<&Record> = slots.iter().map(|slot| &slot.record).collect();
        check_acks(&records, model, &look);
        let last = slots[index].record.last.as_ref();
        if last.is_none_or(|last| (&last.ids, last.offset) != (&look.ids, look.offset)) {
            trace::note(
                self.now_ms,
                format!("{index} is at {} of {}", look.offset, &look.ids.id[..6]),
            );
        }
        slots[index].record.note(look, self.now_ms);
    }

    /// Processes the replies that the server had sent to its client when this state was observed.
    fn observe(&mut self, index: usize, look: &NodeView) {
        let before = self.slots[index].record.last.as_ref().map_or(look.offset, |last| {
            let former = look.ids.former.as_ref().map(|former| former.end);
            if last.ids.id == look.ids.id { last.offset } else { former.unwrap_or(look.offset) }
        });
        let mut before = before;
        while let Some((pending, reply)) =
            self.slots[index].client.as_mut().and_then(Client::next_reply)
        {
            let is_error = reply.starts_with('-');
            match pending {
                Pending::Unit(unit) if !is_error => {
                    let present = self.model.at(&look.ids.id, before);
                    let mut dataset = (**present.first().expect("a dataset")).clone();
                    for (db, change) in &unit {
                        dataset.change(*db, change, self.now_ms);
                    }
                    self.seen.units += 1;
                    self.model.change(&look.ids.id, before, look.offset, Rc::new(dataset));
                    // Clients do not wait for changes that have no effect.
                    let changed = before < look.offset;
                    before = look.offset;
                    let wrote = Some((look.ids.id.clone(), look.offset));
                    if let Some(client) = self.slots[index].client.as_mut().filter(|_| changed) {
                        client.wrote = wrote;
                    }
                }
                // A server with another history does not have the write, so its reply is not checked.
                Pending::Wait(id, offset)
                    if !is_error && self.model.is_shared(&id, &look.ids.id, offset) =>
                {
                    let have: u64 = reply[1..].trim_end().parse().expect("a number");
                    let others = (0..self.slots.len()).filter(|other| *other != index);
                    let count = others
                        .filter(|other| {
                            self.slots[*other].record.has_reached(&self.model, &id, offset)
                        })
                        .count() as u64;
                    assert!(have <= count, "WAIT at {index}: {have}, and {count} have {offset}");
                    self.seen.waits += have;
                }
                Pending::Save if !is_error => {
                    let lineage = look.kept.map(|_| (look.ids.id.clone(), look.offset));
                    let place = (look.ids.id.as_str(), look.offset);
                    let saved_ms = self.now_ms;
                    let reread = self.node(index).with(|machine| machine.look(true));
                    let dataset = present(&self.model, place, &reread, self.now_ms);
                    self.slots[index].record.saved = Some(Saved { dataset, lineage, saved_ms });
                }
                Pending::Backlog(bytes) if !is_error => {
                    self.slots[index].record.backlog_bytes = bytes;
                }
                _ => {}
            }
        }
        if self.slots[index].client.as_ref().is_some_and(|client| client.is_closed) {
            self.slots[index].client = None;
        }
    }

    /// Returns a client that has no pending request.
    fn client(&mut self, index: usize) -> Option<&mut Client> {
        if !self.is_up(index) {
            return None;
        }
        if self.slots[index].client.is_none() {
            let (client, end) = Client::new();
            self.slots[index].client = Some(client);
            self.node(index).with(move |machine| machine.accept(end));
        }
        self.slots[index].client.as_mut().filter(|client| client.pending.is_empty())
    }

    /// Makes a server execute a command from a client.
    fn request(&mut self, index: usize, words: &[&str], pending: Pending) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let Some(client) = self.client(index) else { return };
        client.request(&words, pending);
        trace::note(self.now_ms, format!("{index} receives {}", words.join(" ")));
        self.serve(index);
    }

    fn serve(&mut self, index: usize) {
        let look = self.node(index).with(|machine| {
            machine.serve();
            machine.look(false)
        });
        self.check(index, look);
    }

    fn write(&mut self, index: usize) {
        let unit = self.unit();
        self.write_unit(index, unit);
    }

    fn write_unit(&mut self, index: usize, unit: Vec<(u32, Change)>) {
        self.look(index);
        let Some(client) = self.client(index) else { return };
        let description = format!("{index} is to change {:.100}", format!("{unit:?}"));
        client.change(unit);
        trace::note(self.now_ms, description);
        self.serve(index);
    }

    fn unit(&mut self) -> Vec<(u32, Change)> {
        let len = if self.random.percent(30) { 2 + self.random.below(3) } else { 1 };
        let db = self.random.below(DATABASES as usize) as u32;
        let changes_db = self.random.percent(20);
        (0..len)
            .map(|nth| {
                let other = changes_db && nth + 1 == len;
                let db = if other { (db + 1) % DATABASES } else { db };
                (db, self.change(db))
            })
            .collect()
    }

    fn change(&mut self, db: u32) -> Change {
        self.next += 1;
        let random = &mut self.random;
        let is_long = random.percent(1) && db == 0;
        let string = if is_long { long_string() } else { string(random.below(STRINGS)) };
        let list = format!("l{}", random.below(LISTS));
        let bytes = if random.percent(8) { random.below(9000) } else { random.below(40) };
        let value = format!("{}{}", self.next, "x".repeat(bytes));
        match random.below(16) {
            0..4 => Change::Set(string, value, None),
            4 => Change::Set(string, self.next.to_string(), None),
            5 | 6 => Change::Set(string, value, Some(1 + random.below(3000) as u64)),
            7 => Change::Append(string, format!("+{}", self.next)),
            8..10 => Change::Increment(string),
            10..12 => Change::Push(list, value),
            12 => Change::Pop(list),
            13 => Change::Expire(string, 1 + random.below(5000) as u64),
            14 => Change::Expire(list, 1 + random.below(5000) as u64),
            _ => Change::Delete(if random.percent(50) { string } else { list }),
        }
    }

    /// Delivers some of the bytes in flight. Returns true if there were any.
    fn carry(&mut self, percent: usize) -> bool {
        let (mut at, mut came) = (0, false);
        while at < self.connections.len() {
            self.collect(at);
            if self.random.percent(percent) {
                came |= self.carry_there(at);
            }
            if self.random.percent(percent) {
                let World { connections, random, .. } = self;
                came |= connections[at].deliver_back(random);
            }
            if self.connections[at].is_over() {
                let connection = self.connections.remove(at);
                trace::note(self.now_ms, format!("{} is over", connection.number));
                connection.cut();
            } else {
                at += 1;
            }
        }
        came
    }

    fn carry_there(&mut self, at: usize) -> bool {
        let World { connections, random, .. } = self;
        let had_psync = connections[at].psync.is_some();
        if !connections[at].deliver_there(random) {
            return false;
        }
        let to = connections[at].to;
        let psync = connections[at].psync.clone().filter(|_| !had_psync);
        let due = psync.map(|psync| (self.due(to, &psync), psync));
        self.serve(to);
        let reply = self.collect(at);
        if let Some((due, psync)) = due {
            self.check_reply(to, due, &psync, reply.as_deref());
        }
        true
    }

    /// Returns the expected reply of a server to a request for the stream at this time.
    fn due(&mut self, index: usize, psync: &PsyncRequest) -> Due {
        self.look(index);
        let look = self.node(index).with(|machine| machine.look(false));
        if psync.takes_over && look.is_replica && look.ids.id == psync.id {
            self.seen.handovers += 1;
        }
        due(&self.model, &look, psync)
    }

    fn check_reply(&mut self, index: usize, due: Due, psync: &PsyncRequest, reply: Option<&str>) {
        trace::note(
            self.now_ms,
            format!("PSYNC {} {}: {reply:?}", &psync.id[..6.min(psync.id.len())], psync.first),
        );
        if due == Due::Continues && Due::Not.is(reply) {
            // A timer may have trimmed the backlog before the server read the request.
            let look = self.node(index).with(|machine| machine.look(false));
            if !is_kept(&look, psync) {
                return;
            }
        }
        assert!(due.is(reply), "the reply to {psync:?} was {reply:?} instead of {due:?}");
    }

    /// Takes the bytes that both ends of a connection have sent. Returns the reply to the request when it arrives.
    fn collect(&mut self, at: usize) -> Option<String> {
        let connection = &mut self.connections[at];
        let reply = connection.collect()?;
        let record = &mut self.slots[connection.from].record;
        match reply.split(' ').next() {
            Some("+CONTINUE") => {
                record.gets_all = false;
                self.seen.partial += 1;
            }
            Some("+FULLRESYNC") => {
                record.gets_all = true;
                self.seen.full += 1;
            }
            _ => self.seen.refused += 1,
        }
        trace::note(self.now_ms, format!("{} hears {reply}", connection.from));
        Some(reply)
    }

    /// Requests the stream as replicas with unusual offsets would.
    fn probe(&mut self, index: usize) {
        for _ in 0..PROBES {
            let Some(look) = self.last(index).cloned() else { return };
            let ids = &look.ids;
            let mut places = vec![(&ids.id, look.offset)];
            places.extend(look.kept.iter().map(|kept| (&ids.id, kept.0)));
            if let Some(former) = &ids.former {
                // Most requests are for the end of the former history, where a single byte makes a difference.
                places.extend([(&former.id, former.end); 4]);
            }
            let unknown = "0123456789".repeat(4);
            places.push((&unknown, look.offset));
            let (id, place) = *self.random.pick(&places);
            let first = place as i64 + *self.random.pick(&[-1, 0, 1, 1, 2, 2, 3]);
            self.probe_at(index, PsyncRequest { id: id.clone(), first, takes_over: false });
        }
    }

    fn probe_at(&mut self, index: usize, psync: PsyncRequest) {
        let due = self.due(index, &psync);
        let (mut client, end) = Client::new();
        self.node(index).with(move |machine| machine.accept(end));
        let first = psync.first.to_string();
        client.request(&["PSYNC".to_owned(), psync.id.clone(), first], Pending::Any);
        self.serve(index);
        let reply = client.heard();
        self.check_reply(index, due, &psync, reply.lines().next());
    }

    fn crash(&mut self, index: usize) {
        trace::note(self.now_ms, format!("{index} crashes"));
        if let Some(node) = self.slots[index].node.take() {
            node.group.kill();
        }
        self.slots[index].client = None;
        let (severed, left) = std::mem::take(&mut self.connections)
            .into_iter()
            .partition(|connection| connection.from == index || connection.to == index);
        self.connections = left;
        Vec::into_iter(severed).for_each(Connection::cut);
    }

    fn follow(&mut self, index: usize, primary: Option<usize>) {
        match primary {
            Some(primary) => {
                self.serve(index);
                let before = self.last(index).cloned();
                let port = port(primary).to_string();
                self.request(index, &["REPLICAOF", "127.0.0.1", &port], Pending::Any);
                // This must not change the server's data.
                if let Some((before, now)) = before.as_ref().zip(self.last(index)) {
                    assert_eq!(now.acked, before.acked, "the replicas are still attached");
                }
            }
            None => self.request(index, &["REPLICAOF", "NO", "ONE"], Pending::Any),
        }
        self.slots[index].start.primary = primary;
    }

    /// Sets the state of the network path between two servers.
    fn set_path(&mut self, from: usize, to: usize, state: PathState) {
        if let Some(node) = &self.slots[from].node {
            node.group.paths.lock().even_poisoned()[to] = state;
        }
    }

    fn disturb(&mut self) {
        self.seen.faults += 1;
        let count = self.slots.len();
        let index = self.random.below(count);
        let other = (index + 1 + self.random.below(count - 1)) % count;
        let followed: Vec<usize> = (0..count)
            .filter(|one| self.last(*one).is_some_and(|last| !last.acked.is_empty()))
            .collect();
        match self.random.below(28) {
            26.. if !followed.is_empty() => {
                let index = followed[0];
                self.lose_power_after_save(index);
            }
            20.. if !self.connections.is_empty() => {
                let at = self.random.below(self.connections.len());
                let connection = self.connections.swap_remove(at);
                trace::note(self.now_ms, format!("{} is cut and comes again", connection.number));
                let from = connection.from;
                connection.cut();
                self.settle(from);
                self.flow(1000);
            }
            0..4 if !self.connections.is_empty() => {
                let at = self.random.below(self.connections.len());
                let connection = self.connections.swap_remove(at);
                trace::note(self.now_ms, format!("{} is cut", connection.number));
                connection.cut();
            }
            4..6 if !self.connections.is_empty() => {
                let at = self.random.below(self.connections.len());
                let connection = &mut self.connections[at];
                let is_back = self.random.percent(50);
                let lane = if is_back { &mut connection.back } else { &mut connection.forth };
                lane.is_held = !lane.is_held;
                trace::note(
                    self.now_ms,
                    format!("{} is held: {}", connection.number, lane.is_held),
                );
            }
            6 => {
                let state = *self.random.pick(&PATH_STATES);
                self.set_path(index, other, state);
            }
            7 | 8 if self.is_up(index) => {
                self.crash(index);
                if self.random.percent(70) {
                    self.restart(index);
                }
            }
            9..11 if self.is_up(index) => {
                self.look(index);
                self.request(index, &["SAVE"], Pending::Save);
            }
            11..13 if self.is_up(index) => self.follow(index, Some(other)),
            13 if self.is_up(index) => self.follow(index, None),
            14 | 15 if self.is_up(index) => {
                // Prefer a server that has a replica.
                let index = followed.first().copied().unwrap_or(index);
                let port = port(other).to_string();
                let timeout = (1 + self.random.below(5000)).to_string();
                let to = ["FAILOVER", "TO", "127.0.0.1", &port, "TIMEOUT", &timeout];
                let any = ["FAILOVER", "TIMEOUT", &timeout];
                let words: &[&str] = if self.random.percent(50) { &to } else { &any };
                self.request(index, words, Pending::Any);
                if self.random.percent(60) {
                    self.flow(200);
                }
            }
            16 if self.is_up(index) => {
                let bytes = *self.random.pick(&[16 << 10, 32 << 10, 1 << 20]);
                let words = ["CONFIG", "SET", "repl-backlog-size", &bytes.to_string()];
                self.request(index, &words, Pending::Backlog(bytes));
            }
            17 => {
                for _ in 0..self.random.below(8) {
                    self.pass(1000, 100);
                }
            }
            _ if self.is_up(index) => self.probe(index),
            _ => self.restart(index),
        }
    }

    /// Waits until all replicas of a server have its data, and saves the data. Then the server is down for a while, and
    /// its replicas reconnect.
    fn lose_power_after_save(&mut self, index: usize) {
        for _ in 0..5 {
            self.flow(300);
        }
        if self.random.percent(80) {
            // This key expires while the server is down.
            let key = if self.random.percent(70) { long_string() } else { string(0) };
            let ttl = 310 + self.random.below(1000) as u64;
            self.write_unit(index, vec![(0, Change::Set(key, "x".to_owned(), Some(ttl)))]);
            self.flow(300);
        }
        self.look(index);
        self.request(index, &["SAVE"], Pending::Save);
        self.carry(100);
        self.crash(index);
        self.flow(100);
        let ms = self.random.below(3000) as u64;
        self.pass(ms, 100);
        self.start(index);
        for _ in 0..10 {
            self.write(index);
            self.flow(300);
        }
    }

    fn restart(&mut self, index: usize) {
        if self.random.percent(30) {
            self.slots[index].start.primary = None;
        }
        self.start(index);
    }

    /// Advances the clock and runs the tasks that are due.
    fn pass(&mut self, ms: u64, percent: usize) {
        self.advance(ms);
        self.carry(percent);
        for index in 0..self.slots.len() {
            if self.is_up(index) && self.random.percent(percent) {
                self.settle(index);
            }
        }
    }

    /// Advances the clock and delivers all bytes in flight.
    fn flow(&mut self, ms: u64) {
        self.pass(ms, 100);
        for _ in 0..CARRIED_AT_ONCE {
            if !self.carry(100) {
                break;
            }
        }
    }

    /// Runs the given number of steps, some of them with faults. Then runs until the datasets of all servers are equal.
    pub(super) fn run(&mut self, steps: usize) -> Seen {
        for _ in 0..steps {
            match self.random.below(100) {
                0..50 => {
                    let index = self.random.below(self.slots.len());
                    // Prefer a server that is a primary.
                    let is_replica = self.last(index).is_some_and(|last| last.is_replica);
                    if self.is_up(index) && (!is_replica || self.random.percent(5)) {
                        self.write(index);
                    }
                }
                50..58 => {
                    let index = self.random.below(self.slots.len());
                    let count = (1 + self.random.below(3)).to_string();
                    let ms = (1 + self.random.below(3000)).to_string();
                    let wrote = self.client(index).and_then(|client| client.wrote.clone());
                    if let Some((id, offset)) = wrote {
                        self.request(index, &["WAIT", &count, &ms], Pending::Wait(id, offset));
                    }
                }
                58..76 => {
                    let ms = *self.random.pick(&[1, 20, 100, 400, 1000]);
                    self.pass(ms, 60);
                }
                76..84 => {
                    self.carry(60);
                }
                84..92 => {
                    for _ in 0..self.random.below(20) {
                        self.flow(100);
                    }
                }
                _ => self.disturb(),
            }
        }
        self.calm();
        self.seen
    }

    /// Ends all faults and makes all servers follow one of them. Eventually all datasets must be equal.
    fn calm(&mut self) {
        trace::note(self.now_ms, "the faults end".to_owned());
        let count = self.slots.len();
        for index in 0..count {
            if !self.is_up(index) {
                self.start(index);
            }
        }
        for connection in &mut self.connections {
            (connection.forth.is_held, connection.back.is_held) = (false, false);
        }
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
            self.set_path(from, to, PathState::Open);
        }
        for _ in 0..3 {
            self.flow(1000);
        }
        for index in 0..count {
            self.slots[index].client = None;
            self.request(index, &["FAILOVER", "ABORT"], Pending::Any);
        }
        let top = self.random.below(count);
        let is_chain = self.random.percent(50);
        self.follow(top, None);
        for nth in 1..count {
            let index = (top + nth) % count;
            let before = (top + nth - 1) % count;
            self.follow(index, Some(if is_chain { before } else { top }));
        }
        for _ in 0..3 {
            self.write(top);
        }
        let until = self.now_ms + CALM_MS_MAX;
        while !self.is_same(top) {
            assert!(self.now_ms < until, "the datasets do not become equal");
            self.flow(500);
        }
        for index in 0..count {
            self.look_again(index, true);
        }
    }

    fn is_same(&self, top: usize) -> bool {
        let place = |index| self.last(index).map(|last| (&last.ids.id, last.offset));
        let is_well = |index: usize| index == top || self.last(index).is_some_and(|one| one.is_up);
        (0..self.slots.len()).all(|index| place(index) == place(top) && is_well(index))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.prints && std::thread::panicking() {
            for index in 0..self.slots.len() {
                let log = self.dir.path(&index.to_string()).join("log");
                println!("{index}:\n{}", std::fs::read_to_string(log).unwrap_or_default());
            }
        }
        for slot in &mut self.slots {
            if let Some(node) = slot.node.take() {
                node.group.kill();
            }
        }
    }
}

impl Seen {
    pub(super) fn counts(&self) -> [u64; 11] {
        let Seen { faults, units, partial, full, refused, .. } = *self;
        let Seen { promotions, handovers, starts, freed, waits, forgotten, .. } = *self;
        let roles = [promotions, handovers, starts, freed, waits, forgotten];
        let mut counts = [faults, units, partial, full, refused, 0, 0, 0, 0, 0, 0];
        counts[5..].copy_from_slice(&roles);
        counts
    }
}
