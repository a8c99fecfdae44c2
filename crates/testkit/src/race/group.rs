//! A group of clients that work on their own keys. Rounds are planned, run and checked.
//!
//! ```text
//!  client 0   |  burst ────── burst ──       |
//!  client 1   |   burst ───── burst ───────  |        a round; all begin together
//!  client 2   |     BLPOP ─────────────────x |  x     released: by a push, or CLIENT UNBLOCK
//!  keeper     |                        push  | read   of all keys: the state at the next round's start
//! ```
//!
//! The reads at the end are part of the round's history. They leave only one state in which the round can have ended.
//! So rounds can be checked one by one, and together they form the whole history.

use super::linear::{Event, EventOf, Verdict, check};
use super::model::{End, Key, LISTS, Op, State, TEXTS};
use super::plan::{Plan, Planner};
use super::wire::Names;
use super::{Found, Options, Summary};
use crate::conn::Conn;
use crate::random::Random;
use crate::reply::Reply;
use crate::wait::DEADLINE;
use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Clients that are still blocked after this time get an element, or are unblocked.
const RELEASE_AFTER: Duration = Duration::from_millis(2);
/// Limit on the nodes of one round's search, a few hundred times the number that the longest round needs.
const NODES_MAX: usize = 2_000_000;
/// The maximum number of values in the lists at the end of a round. If there are more, the round empties the keys.
const VALUES_MAX: usize = 24;

type Happened = EventOf<State>;

/// State that all groups of a run share.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub address: &'a str,
    pub options: &'a Options,
    pub begun: Instant,
    /// Operations done so far.
    pub done: AtomicU64,
    /// Set when a group has found a violation.
    pub stop: AtomicBool,
}

impl Run<'_> {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }
}

/// Runs a group to the end of the run.
///
/// # Errors
/// If a connection fails, or an operation never gets a reply.
pub(super) fn run(run: &Run<'_>, group: usize) -> Result<(Summary, Option<Found>)> {
    let clients = run.options.clients;
    let names = &Names::new(group);
    let barrier = &Barrier::new(clients);
    let (report, reports) = channel();
    let mut ids = Vec::new();
    let mut orders = Vec::new();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (order, ordered) = channel::<Plan>();
            let mut conn = Conn::try_tcp(run.address).context("a client")?;
            if client % 2 == 1 {
                conn.hello(3);
            }
            ids.push(conn.id());
            orders.push(order);
            let report = report.clone();
            scope.spawn(move || {
                let worker = Client { run, names, conn, client };
                worker.work(&ordered, &report, barrier);
            });
        }
        let random = Random::derived(run.options.seed, group as u64);
        let conn = Conn::try_tcp(run.address).context("a keeper")?;
        let state = State::new(clients + 1);
        let planner = Planner::new(random);
        let mut keeper =
            Keeper { run, names, conn, ids, orders, reports, planner, state, group, rounds: 0 };
        keeper.work()
    })
}

/// One client's thread.
struct Client<'a> {
    run: &'a Run<'a>,
    names: &'a Names,
    conn: Conn,
    client: usize,
}

/// The report of a client about a round.
type Report = Result<Vec<Happened>, String>;

impl Client<'_> {
    /// Carries out plans until no more come.
    fn work(mut self, plans: &Receiver<Plan>, report: &Sender<Report>, barrier: &Barrier) {
        while let Ok(plan) = plans.recv() {
            barrier.wait();
            let done = self.carry_out(plan);
            if report.send(done.map_err(|error| error.to_string())).is_err() {
                break;
            }
        }
    }

    fn carry_out(&mut self, plan: Plan) -> std::io::Result<Vec<Happened>> {
        let (client, mut happened) = (self.client, Vec::new());
        let mut bytes = Vec::new();
        for burst in plan {
            bytes.clear();
            burst.iter().for_each(|op| self.names.encode(op, &mut bytes));
            let invoked = self.run.now();
            self.conn.try_send_raw(&bytes)?;
            for op in burst {
                let reply = self.names.read_reply(&op, &mut self.conn)?;
                let returned = self.run.now();
                happened.push(Event { client, invoked, returned, op, reply });
            }
        }
        Ok(happened)
    }
}

/// Plans rounds, unblocks waiting clients, and checks the histories.
struct Keeper<'a> {
    run: &'a Run<'a>,
    names: &'a Names,
    conn: Conn,
    /// The clients' ids.
    ids: Vec<i64>,
    orders: Vec<Sender<Plan>>,
    reports: Receiver<Report>,
    planner: Planner,
    /// The state at the beginning of the round.
    state: State,
    group: usize,
    rounds: u64,
}

impl Keeper<'_> {
    fn work(&mut self) -> Result<(Summary, Option<Found>)> {
        let mut summary = Summary::default();
        self.one(Op::Delete(all_keys()))?;
        while self.run.done.load(Ordering::Relaxed) < self.run.options.operations
            && !self.run.stop.load(Ordering::Relaxed)
        {
            let history = self.round()?;
            self.run.done.fetch_add(history.len() as u64, Ordering::Relaxed);
            summary.note(&history);
            self.rounds += 1;
            let placed = match check(&self.state, &history, NODES_MAX) {
                Verdict::Linearizable(state) => {
                    self.state = state;
                    continue;
                }
                Verdict::Violation(placed) => Some(placed),
                Verdict::Undecided => None,
            };
            self.run.stop.store(true, Ordering::Relaxed);
            let (group, round, state) = (self.group, self.rounds, self.state.clone());
            return Ok((summary, Some(Found { group, round, state, history, placed })));
        }
        summary.rounds = self.rounds;
        Ok((summary, None))
    }

    /// Runs one round. Returns its history, including the reads at its end.
    fn round(&mut self) -> Result<Vec<Happened>> {
        for order in &self.orders {
            let plan = self.planner.plan(&self.state);
            ensure!(order.send(plan).is_ok(), "a client's thread is gone");
        }
        let begun = Instant::now();
        let mut history = Vec::new();
        let mut open = self.orders.len();
        while open > 0 {
            match self.reports.recv_timeout(RELEASE_AFTER) {
                Ok(report) => {
                    history.extend(report.map_err(anyhow::Error::msg)?);
                    open -= 1;
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < DEADLINE => {
                    history.extend(self.release()?);
                }
                Err(error) => bail!("a client never got its replies: {error}"),
            }
        }
        let values = |event: &Happened| event.reply.elements().len();
        let mut look = vec![Op::GetAll((0..TEXTS).collect())];
        look.extend((0..LISTS).map(Op::Range));
        if self.state.lists.iter().map(VecDeque::len).sum::<usize>() > VALUES_MAX
            || history.iter().map(values).max() > Some(VALUES_MAX)
        {
            look.push(Op::Delete(all_keys()));
        }
        history.push(self.one(Op::Exec(look))?);
        Ok(history)
    }

    /// Unblocks waiting clients: pushes a value to one of the lists, or ends their waits.
    fn release(&mut self) -> Result<Option<Happened>> {
        if self.planner.percent(50) {
            let (list, value) = (self.planner.list(), self.planner.fresh());
            return self.one(Op::Push(list, End::Right, vec![value])).map(Some);
        }
        for id in &self.ids {
            self.conn.try_cmd(&format!("CLIENT UNBLOCK {id}"))?;
        }
        Ok(None)
    }

    /// Runs one operation of the keeper itself.
    fn one(&mut self, op: Op) -> Result<Happened> {
        let client = self.orders.len();
        let mut bytes = Vec::new();
        self.names.encode(&op, &mut bytes);
        let invoked = self.run.now();
        self.conn.try_send_raw(&bytes)?;
        let reply = self.names.read_reply(&op, &mut self.conn)?;
        Ok(Event { client, invoked, returned: self.run.now(), op, reply })
    }
}

fn all_keys() -> Vec<Key> {
    (0..TEXTS).map(Key::Text).chain((0..LISTS).map(Key::List)).collect()
}

impl Summary {
    fn note(&mut self, history: &[Happened]) {
        self.operations += history.len() as u64;
        for event in history {
            match (&event.op, &event.reply) {
                (Op::Exec(_), Reply::Null) => self.aborted += 1,
                (Op::Exec(_), _) => self.transactions += 1,
                (Op::Script(_) | Op::CompareAndSet(..), _) => self.scripts += 1,
                (Op::WaitPop(..) | Op::WaitMove(..), reply) => {
                    self.waits += 1;
                    self.released += u64::from(*reply == Reply::Null);
                }
                _ => {}
            }
            let meets = |other: &Happened| {
                other.client != event.client
                    && other.invoked < event.returned
                    && event.invoked < other.returned
            };
            self.overlapping += u64::from(history.iter().any(meets));
        }
    }
}
