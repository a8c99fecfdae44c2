//! The sequential model: a few commands on a few keys, and the reply that each command must give.
//!
//! Values are numbers. Keys are *texts* (strings that contain a number) and *lists*. A key never changes its type, so
//! that no command can fail. Transactions and scripts are sequences of the other operations. The keys that a client
//! watches are part of the state.

use super::linear::Model;
use crate::reply::Reply;
use std::collections::VecDeque;
use std::fmt;

pub const TEXTS: usize = 3;
pub const LISTS: usize = 2;

/// A key, by kind and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    Text(usize),
    List(usize),
}

impl Key {
    /// The bit of this key in the set of keys that a client watches.
    const fn bit(self) -> u8 {
        match self {
            Key::Text(at) => 1 << at,
            Key::List(at) => 1 << (TEXTS + at),
        }
    }
}

/// For example `t0` or `l1`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Text(at) => write!(f, "t{at}"),
            Key::List(at) => write!(f, "l{at}"),
        }
    }
}

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}

/// An operation. Texts and lists are named by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Get(usize),
    Set(usize, i64),
    /// GETSET.
    Swap(usize, i64),
    /// INCRBY.
    Add(usize, i64),
    /// GETDEL.
    Take(usize),
    SetAll(Vec<(usize, i64)>),
    GetAll(Vec<usize>),
    Delete(Vec<Key>),
    Push(usize, End, Vec<i64>),
    Pop(usize, End),
    Range(usize),
    /// LMOVE: source, destination, the end to pop from, the end to push to.
    Move(usize, usize, End, End),
    /// BLPOP or BRPOP.
    WaitPop(Vec<usize>, End),
    /// BLMOVE.
    WaitMove(usize, usize, End, End),
    Watch(Vec<Key>),
    Unwatch,
    /// MULTI, these operations, EXEC.
    Exec(Vec<Op>),
    /// MULTI, these operations, DISCARD.
    Discard(Vec<Op>),
    /// A script that runs these operations and returns all replies.
    Script(Vec<Op>),
    /// A script that sets a text to the second value if it contains the first, and returns whether it did.
    CompareAndSet(usize, i64, i64),
}

/// The keys that a client watches, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Watch {
    keys: u8,
    /// True if one of them was changed.
    broken: bool,
}

/// The keys, and what each client watches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub texts: [Option<i64>; TEXTS],
    pub lists: [VecDeque<i64>; LISTS],
    watches: Vec<Watch>,
}

impl State {
    /// A state without keys.
    pub fn new(clients: usize) -> State {
        State { watches: vec![Watch::default(); clients], ..State::default() }
    }

    fn touch(&mut self, key: Key) {
        for watch in &mut self.watches {
            watch.broken |= watch.keys & key.bit() != 0;
        }
    }

    fn write(&mut self, at: usize, value: Option<i64>) -> Option<i64> {
        self.touch(Key::Text(at));
        std::mem::replace(&mut self.texts[at], value)
    }

    fn push(&mut self, list: usize, end: End, value: i64) {
        self.touch(Key::List(list));
        match end {
            End::Left => self.lists[list].push_front(value),
            End::Right => self.lists[list].push_back(value),
        }
    }

    fn pop(&mut self, list: usize, end: End) -> Option<i64> {
        let value = match end {
            End::Left => self.lists[list].pop_front(),
            End::Right => self.lists[list].pop_back(),
        };
        if value.is_some() {
            self.touch(Key::List(list));
        }
        value
    }

    fn shift(&mut self, [from, to]: [usize; 2], [take, put]: [End; 2]) -> Reply {
        let value = self.pop(from, take);
        if let Some(value) = value {
            self.push(to, put, value);
        }
        text(value)
    }

    fn delete(&mut self, key: Key) -> bool {
        let there = match key {
            Key::Text(at) => self.texts[at].take().is_some(),
            Key::List(at) => !std::mem::take(&mut self.lists[at]).is_empty(),
        };
        if there {
            self.touch(key);
        }
        there
    }

    /// Runs an operation of a client, and returns its reply.
    pub fn apply(&mut self, client: usize, op: &Op) -> Reply {
        match op {
            Op::Get(at) => text(self.texts[*at]),
            Op::GetAll(keys) => Reply::Array(keys.iter().map(|at| text(self.texts[*at])).collect()),
            Op::Set(at, value) => {
                self.write(*at, Some(*value));
                ok()
            }
            Op::SetAll(pairs) => {
                for (at, value) in pairs {
                    self.write(*at, Some(*value));
                }
                ok()
            }
            Op::Swap(at, value) => text(self.write(*at, Some(*value))),
            Op::Add(at, delta) => {
                let sum = self.texts[*at].unwrap_or(0) + delta;
                self.write(*at, Some(sum));
                Reply::Integer(sum)
            }
            Op::Take(at) => {
                let value = self.texts[*at];
                self.delete(Key::Text(*at));
                text(value)
            }
            Op::Delete(keys) => count(keys.iter().filter(|key| self.delete(**key)).count()),
            Op::Push(list, end, values) => {
                values.iter().for_each(|value| self.push(*list, *end, *value));
                count(self.lists[*list].len())
            }
            Op::Pop(list, end) => text(self.pop(*list, *end)),
            Op::Range(list) => {
                Reply::Array(self.lists[*list].iter().map(|value| text(Some(*value))).collect())
            }
            Op::Move(from, to, take, put) | Op::WaitMove(from, to, take, put) => {
                self.shift([*from, *to], [*take, *put])
            }
            Op::WaitPop(lists, end) => {
                let found = lists.iter().find_map(|list| Some((*list, self.pop(*list, *end)?)));
                found.map_or(Reply::Null, |(list, value)| popped(list, value))
            }
            Op::CompareAndSet(at, old, new) => {
                let holds = self.texts[*at] == Some(*old);
                if holds {
                    self.write(*at, Some(*new));
                }
                Reply::Integer(i64::from(holds))
            }
            Op::Script(ops) => self.all(client, ops),
            Op::Watch(_) | Op::Unwatch | Op::Exec(_) | Op::Discard(_) => self.guarded(client, op),
        }
    }

    /// Runs WATCH, and the operations that depend on watched keys.
    fn guarded(&mut self, client: usize, op: &Op) -> Reply {
        if let Op::Watch(keys) = op {
            let watch = &mut self.watches[client];
            watch.keys |= keys.iter().fold(0, |bits, key| bits | key.bit());
            return ok();
        }
        let watch = std::mem::take(&mut self.watches[client]);
        match op {
            Op::Exec(_) if watch.broken => Reply::Null,
            Op::Exec(ops) => self.all(client, ops),
            _ => ok(),
        }
    }

    fn all(&mut self, client: usize, ops: &[Op]) -> Reply {
        Reply::Array(ops.iter().map(|op| self.apply(client, op)).collect())
    }
}

impl Model for State {
    type Op = Op;
    type Reply = Reply;

    fn step(&self, client: usize, op: &Op, reply: &Reply) -> Option<State> {
        let mut next = self.clone();
        // A client that waits for several lists gets an element of the list that the server noticed first, which need
        // not be the first list in the command.
        if let (Op::WaitPop(lists, end), Reply::Array(_)) = (op, reply) {
            let fits = |list: &&usize| {
                let head = match end {
                    End::Left => self.lists[**list].front(),
                    End::Right => self.lists[**list].back(),
                };
                head.is_some_and(|value| popped(**list, *value) == *reply)
            };
            let list = *lists.iter().find(fits)?;
            next.pop(list, *end);
            return Some(next);
        }
        (next.apply(client, op) == *reply).then_some(next)
    }

    fn only_looks(op: &Op, reply: &Reply) -> bool {
        match op {
            Op::Get(_) | Op::GetAll(_) | Op::Range(_) => true,
            Op::Take(_) | Op::Pop(..) | Op::Move(..) | Op::WaitPop(..) | Op::WaitMove(..) => {
                *reply == Reply::Null
            }
            Op::Delete(_) | Op::CompareAndSet(..) => *reply == Reply::Integer(0),
            Op::Script(ops) => {
                let replies = reply.elements();
                ops.len() == replies.len()
                    && ops.iter().zip(replies).all(|(op, reply)| State::only_looks(op, reply))
            }
            _ => false,
        }
    }
}

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn count(number: usize) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn text(value: Option<i64>) -> Reply {
    value.map_or(Reply::Null, |value| Reply::Bulk(value.to_string().into_bytes()))
}

fn popped(list: usize, value: i64) -> Reply {
    let name = Key::List(list).to_string().into_bytes();
    Reply::Array(vec![Reply::Bulk(name), text(Some(value))])
}
