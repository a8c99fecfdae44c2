//! Invariants that are checked after each step of a server.

use super::model::{Dataset, Model};
use super::network::PsyncRequest;
use super::node::{NodeView, port};
use super::world::Seen;
use brisk_node::replication::history::FormerHistory;
use std::collections::HashMap;
use std::rc::Rc;

/// The state that a server finds on the disk when it starts.
#[derive(Clone)]
pub(super) struct Saved {
    pub(super) dataset: Rc<Dataset>,
    pub(super) lineage: Option<(String, u64)>,
    /// When the state was saved, in Unix ms.
    pub(super) saved_ms: u64,
}

/// The history of a server, in addition to its current state.
#[derive(Default)]
pub(super) struct Record {
    pub(super) saved: Option<Saved>,
    /// The last observed state. `None` if the server has not been observed since it was started.
    pub(super) last: Option<NodeView>,
    /// The largest offset that the server has reached in each history.
    reached: HashMap<String, u64>,
    /// True if the server's last request for the stream led to a full synchronization.
    pub(super) gets_all: bool,
    /// When the server was last seen with a replica, in Unix ms.
    followed_ms: u64,
    pub(super) backlog_bytes: u64,
    pub(super) backlog_ttl_s: i64,
}

/// The expected reply to a request for the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Continues,
    /// A rejection, because the server is handing over.
    FailsOver,
    /// The dataset or a rejection.
    Not,
}

impl Due {
    /// True if `reply` is the expected reply. `reply` is `None` if there is no reply yet.
    pub(super) fn is(self, reply: Option<&str>) -> bool {
        let begins = |text: &str| reply.is_some_and(|reply| reply.starts_with(text));
        let fails_over = "-NOMASTERLINK Can't SYNC while failing over";
        match self {
            Due::Continues => begins("+CONTINUE"),
            Due::FailsOver => reply == Some(fails_over),
            Due::Not => !begins("+CONTINUE") && reply != Some(fails_over),
        }
    }
}

/// Returns the server's dataset, which is one of the datasets that are possible at an offset.
pub(super) fn present(
    model: &Model,
    (id, offset): (&str, u64),
    look: &NodeView,
    now_ms: u64,
) -> Rc<Dataset> {
    let mut may_be = model.at(id, offset);
    // Compare the expiry times as well. If a change affects only an expiry time, the datasets before and after the
    // change have the same values.
    let matches_node = |one: &Rc<Dataset>| {
        look.shown.as_ref() == Some(&one.shown(now_ms))
            && look.deadlines.as_ref() == Some(&one.deadlines(now_ms))
    };
    let index = may_be.iter().position(matches_node).unwrap_or(0);
    may_be.swap_remove(index)
}

/// Returns the expected reply to PSYNC.
pub(super) fn due(model: &Model, look: &NodeView, psync: &PsyncRequest) -> Due {
    let follows = look.is_replica && !psync.takes_over;
    if look.is_loading {
        return Due::Not;
    }
    if psync.takes_over && (!look.is_replica || look.ids.id != psync.id) {
        return Due::Not;
    }
    if look.fails_over {
        return Due::FailsOver;
    }
    if follows && !look.is_up {
        return Due::Not;
    }
    let Ok(offset) = u64::try_from(psync.first - 1) else { return Due::Not };
    // A former id is valid up to the offset at which this server received the new id.
    let is_former =
        |former: &FormerHistory| !psync.takes_over && former.id == psync.id && offset <= former.end;
    let is_known = look.ids.id == psync.id || look.ids.former.as_ref().is_some_and(is_former);
    let is_same = model.is_shared(&psync.id, &look.ids.id, offset);
    if is_known && is_same && is_kept(look, psync) { Due::Continues } else { Due::Not }
}

/// True if the server's backlog has the bytes that a request lacks.
pub(super) fn is_kept(look: &NodeView, psync: &PsyncRequest) -> bool {
    let Ok(offset) = u64::try_from(psync.first - 1) else { return false };
    look.kept.is_some_and(|(first, _)| (first..=look.offset).contains(&offset))
}

impl Record {
    /// True if the server has ever had a history up to an offset.
    pub(super) fn has_reached(&self, model: &Model, id: &str, offset: u64) -> bool {
        let has = |(own, reached): (&String, &u64)| {
            *reached >= offset && model.is_shared(own, id, offset)
        };
        self.reached.iter().any(has)
    }

    /// Checks that the server's replication ids follow from past events.
    pub(super) fn check_names(
        &mut self,
        model: &mut Model,
        look: &NodeView,
        now_ms: u64,
        seen: &mut Seen,
    ) {
        let ids = &look.ids;
        let Some(last) = &self.last else {
            return self.check_start(model, look, now_ms, seen);
        };
        let former = ids.former.as_ref();
        if ids.id == last.ids.id {
            if ids.former != last.ids.former {
                assert!(former.is_none() && self.gets_all, "{ids:?} after {:?}", last.ids);
            }
            if let (Some(before), None) = (last.kept, look.kept) {
                panic!("the backlog from {before:?} was freed without a new replication id");
            }
        } else if model.knows(&ids.id) {
            match former {
                None => assert!(self.gets_all, "{ids:?} after {:?}", last.ids),
                Some(former) => {
                    assert_eq!((&former.id, former.end), (&last.ids.id, last.offset));
                    assert!(!self.gets_all);
                }
            }
        } else if let Some(former) = former {
            let is_in = (last.offset..=look.offset).contains(&former.end);
            assert!(former.id == last.ids.id && is_in, "{former:?} after {last:?}");
            let dataset = present(model, (&former.id, former.end), look, now_ms);
            model.begin(&ids.id, Some(former.id.clone()), former.end, dataset);
            seen.promotions += 1;
        } else {
            let alone_ms = now_ms.saturating_sub(self.followed_ms);
            let may_be_freed = self.backlog_ttl_s > 0
                && alone_ms >= self.backlog_ttl_s as u64 * 1000
                && !look.is_replica
                && look.acked.is_empty();
            let is_freed = last.kept.is_some() && look.kept.is_none();
            assert!(is_freed && may_be_freed, "{ids:?} after {last:?}");
            let dataset = present(model, (&last.ids.id, last.offset), look, now_ms);
            model.begin(&ids.id, Some(last.ids.id.clone()), look.offset, dataset);
            seen.freed += 1;
        }
    }

    fn check_start(&mut self, model: &mut Model, look: &NodeView, now_ms: u64, seen: &mut Seen) {
        self.followed_ms = now_ms;
        let (ids, saved) = (&look.ids, self.saved.clone());
        let lineage = saved.as_ref().and_then(|saved| saved.lineage.clone());
        let saved_ms = saved.as_ref().map_or(now_ms, |saved| saved.saved_ms);
        let dataset = saved.map_or_else(Rc::default, |saved| saved.dataset);
        let former = ids.former.as_ref().map(|former| (former.id.clone(), former.end));
        match (model.knows(&ids.id), lineage) {
            (true, Some((id, offset))) => {
                assert!(look.is_replica && former.is_none());
                assert_eq!((&ids.id, look.offset), (&id, offset));
            }
            (false, Some((id, offset))) => {
                assert!(!look.is_replica && former == Some((id.clone(), offset)));
                self.check_expired(look, offset, (&dataset, saved_ms), now_ms, seen);
                model.begin(&ids.id, Some(id), offset, dataset);
            }
            (false, None) => {
                assert_eq!(former, None);
                model.begin(&ids.id, None, look.offset, dataset);
            }
            (true, None) => panic!("a server without a saved history has the known {ids:?}"),
        }
    }

    /// Checks the stream of a primary after a start. The stream begins with deletions of the keys that have expired
    /// since the dataset was saved. If they exceed the backlog, the stream before them is not kept.
    fn check_expired(
        &self,
        look: &NodeView,
        offset: u64,
        (dataset, saved_ms): (&Dataset, u64),
        now_ms: u64,
        seen: &mut Seen,
    ) {
        let (first, _) = look.kept.expect("there is a backlog from the start");
        // A key that had expired before the dataset was saved may have been saved or removed.
        let may_be = dataset.expired_bytes(0, now_ms);
        let least = dataset.expired_bytes(saved_ms, now_ms);
        if least > self.backlog_bytes {
            assert!((least..=may_be).contains(&(first - offset)), "{look:?} after {offset}");
            seen.forgotten += 1;
        } else if may_be <= self.backlog_bytes {
            let (comes, is_full) =
                (look.offset - offset, look.offset - first >= self.backlog_bytes);
            assert!(first == offset || is_full, "{look:?} after {offset}");
            assert!(comes >= least && (comes > 0) <= (may_be > 0), "{look:?} after {offset}");
        }
    }

    /// Checks that the backlog has the configured size.
    pub(super) fn check_backlog(&self, look: &NodeView) {
        let Some((first, end)) = look.kept else { return };
        assert!(first <= end && end <= look.offset, "{look:?}");
        let last = self.last.as_ref().filter(|last| last.ids.id == look.ids.id && !self.gets_all);
        if let Some((before, _)) = last.and_then(|last| last.kept) {
            assert!(first >= before, "the backlog now begins at an earlier offset");
            let is_enough = end - first >= self.backlog_bytes;
            assert!(first == before || is_enough, "{look:?} of {}", self.backlog_bytes);
        }
    }

    /// Checks that the dataset is the expected one at the server's offset.
    pub(super) fn check_dataset(&mut self, model: &Model, look: &NodeView, now_ms: u64) {
        let Some(shown) = &look.shown else { return };
        let may_be = model.at(&look.ids.id, look.offset);
        let has_deadlines = |dataset: &Dataset| {
            look.deadlines.as_ref().is_none_or(|has| dataset.deadlines(now_ms) == *has)
        };
        let is_so =
            may_be.iter().any(|dataset| dataset.shown(now_ms) == *shown && has_deadlines(dataset));
        if !is_so {
            let wanted = may_be.first().map(|dataset| dataset.shown(now_ms));
            let deadlines = (&look.deadlines, may_be.first().map(|one| one.deadlines(now_ms)));
            panic!(
                "at {} of {:?}\n  has {shown:?}\nwants {wanted:?}\n{deadlines:?}",
                look.offset, look.ids
            );
        }
        let reached = self.reached.entry(look.ids.id.clone()).or_default();
        *reached = look.offset.max(*reached);
    }

    pub(super) fn note(&mut self, look: NodeView, now_ms: u64) {
        if !look.acked.is_empty() {
            self.followed_ms = now_ms;
        }
        self.last = Some(look);
    }
}

/// Checks that no replica has acknowledged an offset that it has not reached.
pub(super) fn check_acks(records: &[&Record], model: &Model, look: &NodeView) {
    for (at, acked) in look.acked.iter().filter(|(_, acked)| *acked > 0) {
        let Some(node) = (0..records.len()).find(|node| port(*node) == *at) else { continue };
        let has = records[node].has_reached(model, &look.ids.id, *acked);
        assert!(
            has,
            "server {node} has acknowledged offset {acked} of {:?}, which it has not reached",
            look.ids
        );
    }
}
