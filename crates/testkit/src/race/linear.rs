//! Checks whether a history is linearizable: searches for an order of its operations that a sequential model allows and
//! that respects real time.
//!
//! The search is the algorithm of Wing and Gong with Lowe's cache of visited positions. At each step, the next
//! operation of every client is a candidate, unless another operation that has not been placed yet returned before it
//! was invoked. A position of the search consists of the progress of each client and the state. A position that has
//! been visited is not entered again.
//!
//! One reduction keeps the search short: a candidate can always be placed immediately if it leaves unchanged every
//! state in which its reply is possible. If a valid order has this operation at a later position, the operation can be
//! moved here: the other operations are not affected, and real time permits it. (It would not be enough if the
//! operation left only the current state unchanged, because it might change the state at the later position.)

use std::collections::HashSet;
use std::hash::Hash;

/// One operation of the history. All times are from one clock, in any unit.
#[derive(Debug, Clone)]
pub struct Event<Op, Reply> {
    /// A client's operations take effect in their order in the history.
    pub client: usize,
    pub invoked: u64,
    pub returned: u64,
    pub op: Op,
    pub reply: Reply,
}

/// A sequential specification: a state, and the replies that it allows.
pub trait Model: Clone + Eq + Hash {
    type Op;
    type Reply;

    /// The state after `op` of `client`, or `None` if the operation cannot give this reply in the current state.
    fn step(&self, client: usize, op: &Self::Op, reply: &Self::Reply) -> Option<Self>;

    /// Reports whether an operation with this reply leaves unchanged every state in which the reply is possible.
    fn only_looks(op: &Self::Op, reply: &Self::Reply) -> bool;
}

/// The events of a model's histories.
pub type EventOf<M> = Event<<M as Model>::Op, <M as Model>::Reply>;

/// The result of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<M> {
    /// There is a valid order, and it ends in this state.
    Linearizable(M),
    /// There is no valid order. Contains the maximum number of operations of each client that could be placed.
    Violation(Vec<usize>),
    /// The search was given up.
    Undecided,
}

/// One node of the search: the progress of each client, and the candidates that have not been tried yet.
struct Node<M> {
    placed: Vec<usize>,
    ways: Vec<(usize, M)>,
}

/// Searches for an order of `history` from the state `initial`, in at most `nodes_max` nodes.
///
/// Takes O(events × clients) time if the replies determine the order. In the worst case, the time is exponential in the
/// number of overlapping operations.
pub fn check<M: Model>(initial: &M, history: &[EventOf<M>], nodes_max: usize) -> Verdict<M> {
    let clients = history.iter().map(|event| event.client + 1).max().unwrap_or(0);
    let mut queues: Vec<Vec<&EventOf<M>>> = vec![Vec::new(); clients];
    for event in history {
        queues[event.client].push(event);
    }
    if history.is_empty() {
        return Verdict::Linearizable(initial.clone());
    }
    let mut seen: HashSet<(Vec<usize>, M)> = HashSet::new();
    let mut deepest = vec![0; clients];
    let start = vec![0; clients];
    let mut path = vec![Node { ways: ways(&queues, &start, initial), placed: start }];
    while let Some(node) = path.last_mut() {
        let Some((client, state)) = node.ways.pop() else {
            path.pop();
            continue;
        };
        let mut placed = node.placed.clone();
        placed[client] += 1;
        let depth: usize = placed.iter().sum();
        if depth == history.len() {
            return Verdict::Linearizable(state);
        }
        if depth > deepest.iter().sum() {
            deepest.clone_from(&placed);
        }
        if seen.len() == nodes_max {
            return Verdict::Undecided;
        }
        if seen.insert((placed.clone(), state.clone())) {
            path.push(Node { ways: ways(&queues, &placed, &state), placed });
        }
    }
    Verdict::Violation(deepest)
}

/// The clients whose next operation may be placed now, with the state that follows. The last client in the list is
/// tried first, so the client whose operation returned first comes last.
fn ways<M: Model>(queues: &[Vec<&EventOf<M>>], placed: &[usize], state: &M) -> Vec<(usize, M)> {
    let next = |client: usize| queues[client].get(placed[client]);
    // A client's operations return in order, so none of its later operations returned before its next one.
    let returned = (0..queues.len()).filter_map(next).map(|event| event.returned).min();
    let Some(first_returned) = returned else { return Vec::new() };
    let mut found = Vec::new();
    for event in (0..queues.len()).filter_map(next) {
        if event.invoked > first_returned {
            continue;
        }
        let Some(after) = state.step(event.client, &event.op, &event.reply) else { continue };
        if M::only_looks(&event.op, &event.reply) {
            debug_assert!(after == *state, "it looks and changes");
            return vec![(event.client, after)];
        }
        found.push((event.returned, event.client, after));
    }
    found.sort_by_key(|(returned, ..)| std::cmp::Reverse(*returned));
    found.into_iter().map(|(_, client, after)| (client, after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register, whose operations write a value or read one.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    struct Register(u32);

    #[derive(Debug, Clone, Copy)]
    enum Use {
        Write(u32),
        Read,
    }

    impl Model for Register {
        type Op = Use;
        type Reply = u32;
        fn step(&self, _: usize, op: &Use, reply: &u32) -> Option<Register> {
            match op {
                Use::Write(value) => Some(Register(*value)),
                Use::Read => (self.0 == *reply).then(|| self.clone()),
            }
        }
        fn only_looks(op: &Use, _: &u32) -> bool {
            matches!(op, Use::Read)
        }
    }

    fn event(client: usize, invoked: u64, returned: u64, op: Use, reply: u32) -> EventOf<Register> {
        Event { client, invoked, returned, op, reply }
    }

    fn verdict(history: &[EventOf<Register>]) -> Verdict<Register> {
        check(&Register(0), history, 10_000)
    }

    #[test]
    fn overlapping_operations_can_have_any_order() {
        for seen in [0, 1] {
            let history = [event(0, 0, 10, Use::Write(1), 0), event(1, 1, 9, Use::Read, seen)];
            assert_eq!(verdict(&history), Verdict::Linearizable(Register(1)), "read {seen}");
        }
    }

    #[test]
    fn operations_that_returned_before_must_be_visible() {
        let history = [event(0, 0, 1, Use::Write(1), 0), event(1, 2, 3, Use::Read, 0)];
        assert_eq!(verdict(&history), Verdict::Violation(vec![1, 0]));
    }

    #[test]
    fn a_value_that_was_seen_is_not_unseen_again() {
        let history = [
            event(0, 0, 100, Use::Write(1), 0),
            event(1, 10, 20, Use::Read, 1),
            event(2, 30, 40, Use::Read, 0),
        ];
        assert!(matches!(verdict(&history), Verdict::Violation(_)));
    }

    #[test]
    fn one_client_is_in_order_even_if_all_was_sent_at_once() {
        let writes = |first, second| {
            [
                event(0, 0, 50, Use::Write(first), 0),
                event(0, 0, 50, Use::Write(second), 0),
                event(1, 60, 61, Use::Read, 2),
            ]
        };
        assert_eq!(verdict(&writes(1, 2)), Verdict::Linearizable(Register(2)));
        assert!(matches!(verdict(&writes(2, 1)), Verdict::Violation(_)));
    }

    #[test]
    fn a_search_has_an_end() {
        let mut history: Vec<_> =
            (0..8).map(|client| event(client, 0, 50, Use::Write(client as u32), 0)).collect();
        history.push(event(8, 60, 61, Use::Read, 99));
        assert!(matches!(verdict(&history), Verdict::Violation(_)));
        assert_eq!(check(&Register(0), &history, 100), Verdict::Undecided);
    }
}
