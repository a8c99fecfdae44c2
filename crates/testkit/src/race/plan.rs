//! Plans the operations of a round's clients. They are random, and are split into bursts, each of which is sent without
//! waiting for replies.

use super::model::{End, Key, LISTS, Op, State, TEXTS};
use crate::random::Random;

/// Operations of a client in one round: enough that clients overlap even though their threads do not start at the same
/// instant.
const OPS_MAX: usize = 12;
const OPS_MIN: usize = 6;
/// Operations in a transaction or script.
const INNER_MAX: usize = 4;
/// Number of recent values from which a compare-and-set takes its expected value.
const RECENT: usize = 12;
/// Distance between successive values, large enough that sums do not coincide with other values.
const SPACING: i64 = 1_000;

/// Bursts of operations, sent one after the other.
pub type Plan = Vec<Vec<Op>>;

/// Makes plans. Each value that a plan writes is new.
#[derive(Debug)]
pub struct Planner {
    random: Random,
    value: i64,
}

impl Planner {
    pub const fn new(random: Random) -> Planner {
        Planner { random, value: 0 }
    }

    /// The plan of one client for a round that begins in `state`.
    pub fn plan(&mut self, state: &State) -> Plan {
        let wanted = OPS_MIN + self.random.below(OPS_MAX - OPS_MIN + 1);
        let mut ops = Vec::new();
        while ops.len() < wanted {
            self.unit(state, &mut ops);
        }
        let burst_max = *self.random.pick(&[1, 2, 4, 16]);
        let mut bursts = Vec::new();
        while !ops.is_empty() {
            let len = (1 + self.random.below(burst_max)).min(ops.len());
            bursts.push(ops.drain(..len).collect());
        }
        bursts
    }

    /// Adds one operation, or a WATCH with the operations up to its EXEC or DISCARD.
    fn unit(&mut self, state: &State, ops: &mut Vec<Op>) {
        match self.random.below(100) {
            0..20 => {
                let keys = self.keys();
                ops.push(Op::Watch(keys));
                for _ in 0..self.random.below(3) {
                    let op = if self.random.percent(80) { self.read() } else { self.simple() };
                    ops.push(op);
                }
                let end = match self.random.below(20) {
                    0 => Op::Unwatch,
                    1 => Op::Discard(self.inner(false)),
                    _ => Op::Exec(self.inner(true)),
                };
                ops.push(end);
            }
            20..35 => {
                let inner = self.inner(true);
                ops.push(Op::Exec(inner));
            }
            35..50 => {
                let inner = self.inner(false);
                ops.push(Op::Script(inner));
            }
            50..56 => {
                let at = self.random.below(TEXTS);
                let recent = (self.value - self.random.below(RECENT) as i64) * SPACING;
                let old = state.texts[at].filter(|_| self.random.percent(50)).unwrap_or(recent);
                let new = self.fresh();
                ops.push(Op::CompareAndSet(at, old, new));
            }
            56..68 => {
                let op = self.waiting();
                ops.push(op);
            }
            _ => {
                let op = self.simple();
                ops.push(op);
            }
        }
    }

    fn inner(&mut self, may_wait: bool) -> Vec<Op> {
        let len = 1 + self.random.below(INNER_MAX);
        // Commands do not block inside a transaction.
        let waits = may_wait && self.random.percent(10);
        let mut ops: Vec<Op> = (0..len).map(|_| self.simple()).collect();
        if waits {
            ops[len - 1] = self.waiting();
        }
        ops
    }

    fn waiting(&mut self) -> Op {
        let end = self.end();
        match self.random.below(4) {
            0 => Op::WaitMove(self.list(), self.list(), end, self.end()),
            1 => {
                let first = self.list();
                Op::WaitPop(vec![first, (first + 1) % LISTS], end)
            }
            _ => Op::WaitPop(vec![self.list()], end),
        }
    }

    fn read(&mut self) -> Op {
        match self.random.below(3) {
            0 => Op::Get(self.random.below(TEXTS)),
            1 => Op::GetAll((0..TEXTS).collect()),
            _ => Op::Range(self.list()),
        }
    }

    fn simple(&mut self) -> Op {
        let at = self.random.below(TEXTS);
        match self.random.below(30) {
            0..6 => self.read(),
            6..8 => Op::Set(at, self.fresh()),
            8..11 => Op::Swap(at, self.fresh()),
            11..14 => Op::Add(at, 1 + self.random.below(3) as i64),
            14 => Op::Take(at),
            15 => Op::SetAll((0..TEXTS).map(|at| (at, self.fresh())).collect()),
            16 => Op::Delete(self.keys()),
            17..22 => {
                let (list, end) = (self.list(), self.end());
                let values = (0..=self.random.below(3)).map(|_| self.fresh()).collect();
                Op::Push(list, end, values)
            }
            22..27 => Op::Pop(self.list(), self.end()),
            _ => Op::Move(self.list(), self.list(), self.end(), self.end()),
        }
    }

    fn keys(&mut self) -> Vec<Key> {
        let one = match self.random.below(TEXTS + LISTS) {
            at if at < TEXTS => Key::Text(at),
            at => Key::List(at - TEXTS),
        };
        let mut keys = vec![one];
        if self.random.percent(30) && one != Key::Text(0) {
            keys.push(Key::Text(0));
        }
        keys
    }

    /// Returns a value that was never written before.
    pub fn fresh(&mut self) -> i64 {
        self.value += 1;
        self.value * SPACING
    }

    pub fn list(&mut self) -> usize {
        self.random.below(LISTS)
    }

    pub fn end(&mut self) -> End {
        if self.random.percent(50) { End::Left } else { End::Right }
    }

    pub fn percent(&mut self, percent: usize) -> bool {
        self.random.percent(percent)
    }
}
