//! Requests that go to several nodes: a batch, or a command with keys in several slots.
//!
//! Each request becomes one *leaf*, or one leaf for each slot of its keys. The leaves for one node are sent together,
//! as a *part*. All parts are in progress at the same time. A leaf that is redirected continues alone. When all leaves
//! have their replies, the replies are combined in the order of the requests.

use super::Cluster;
use super::redirect::{self, RedirectState};
use super::split::{Merge, SlotRouting, cross_slot_error, cut, slot_routing};
use crate::command::sealed::Target;
use crate::command::{Grouping, SendPlan, State};
use crate::error::{Error, Executed, Kind, Result};
use crate::reply::Reply;
use crate::request::Request;
use std::ops::Range;
use std::task::{Context, Poll};
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Spread {
    parts: Vec<Part>,
    /// The result of each leaf.
    outcomes: Vec<Option<Result<Reply>>>,
    /// The requests.
    wholes: Vec<Whole>,
    began: Option<Instant>,
    to_primary: bool,
}

/// A request, and its leaves.
#[derive(Debug)]
struct Whole {
    merge: Merge,
    leaves: Range<usize>,
    reads_only: bool,
}

/// The leaves that are sent together to one node.
#[derive(Debug)]
struct Part {
    /// The index of their shard in the map at the time of grouping.
    shard_index: usize,
    requests: Vec<Request>,
    leaves: Vec<usize>,
    state: State,
}

impl Spread {
    /// Groups requests by the nodes that serve them.
    pub(super) fn new(cluster: &Cluster, plan: &SendPlan<'_>, redirects: &RedirectState) -> Spread {
        // In a batch with writes, reads also go to the primary, to see these writes.
        let to_primary = !plan.requests.iter().all(|request| request.traits().reads_only);
        let mut spread = Spread {
            parts: Vec::new(),
            outcomes: Vec::new(),
            wholes: Vec::with_capacity(plan.requests.len()),
            began: redirects.began,
            to_primary,
        };
        for request in plan.requests {
            let first = spread.outcomes.len();
            let merge = match slot_routing(request) {
                SlotRouting::OneSlot(slot) => {
                    spread.assign(cluster.shard_index(slot), request.clone());
                    Merge::Only
                }
                SlotRouting::Split(merge, parts) => {
                    for (slot, part) in parts {
                        spread.assign(cluster.shard_index(Some(slot)), part);
                    }
                    merge
                }
                SlotRouting::CrossSlot => {
                    let text = format!("-{}\r\n", cross_slot_error().message());
                    spread.outcomes.push(Some(Ok(Reply::shared(text.into()))));
                    Merge::Only
                }
            };
            let (leaves, reads_only) = (first..spread.outcomes.len(), request.traits().reads_only);
            spread.wholes.push(Whole { merge, leaves, reads_only });
        }
        spread
    }

    fn assign(&mut self, shard_index: usize, request: Request) {
        let leaf = self.outcomes.len();
        self.outcomes.push(None);
        if let Some(part) = self.parts.iter_mut().find(|part| part.shard_index == shard_index) {
            part.requests.push(request);
            part.leaves.push(leaf);
            return;
        }
        let redirects = RedirectState::continued(self.began, self.to_primary);
        let state = State::Again { redirects };
        self.parts.push(Part { shard_index, requests: vec![request], leaves: vec![leaf], state });
    }

    /// Advances all parts. Returns the reply once all parts have their replies.
    pub(crate) fn poll(
        &mut self,
        target: &impl Target,
        plan: &SendPlan<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Reply>> {
        let mut at = 0;
        while let Some(part) = self.parts.get_mut(at) {
            let requests = &part.requests[..];
            let inner = SendPlan {
                requests,
                timeout: plan.timeout,
                replay: plan.replay,
                grouping: Grouping::Routed,
            };
            if requests.is_empty() {
                at += 1;
                continue;
            }
            match part.state.poll(target, &inner, cx) {
                Poll::Pending => at += 1,
                Poll::Ready(result) => self.settle(target.cluster(), at, result),
            }
        }
        if self.outcomes.iter().any(Option::is_none) {
            return Poll::Pending;
        }
        Poll::Ready(self.assemble())
    }

    /// Handles a part that has completed. Its leaves get their replies, or continue alone.
    fn settle(&mut self, cluster: Option<&Cluster>, at: usize, result: Result<Reply>) {
        let Some(part) = self.parts.get_mut(at) else { return };
        let shard_index = part.shard_index;
        let requests = std::mem::take(&mut part.requests);
        let leaves = std::mem::take(&mut part.leaves);
        let whole = result.and_then(|reply| {
            if leaves.len() == 1 {
                return Ok(vec![reply]);
            }
            let cut = cut(reply.as_bytes()).filter(|cut| cut.len() == leaves.len());
            let wrong = || {
                Error::new(
                    Kind::Protocol,
                    "the number of replies differs from the number of requests",
                )
            };
            let reader = reply.reader();
            let own = |bytes: &[u8]| {
                Reply::small(bytes).unwrap_or_else(|| Reply::shared(reader.share(bytes)))
            };
            Ok(cut.ok_or_else(wrong)?.into_iter().map(own).collect())
        });
        let replies = match whole {
            Ok(replies) => replies,
            Err(error) => {
                leaves.iter().for_each(|leaf| self.outcomes[*leaf] = Some(Err(error.clone())));
                return;
            }
        };
        let is_alone = leaves.len() == 1;
        for ((request, leaf), reply) in requests.into_iter().zip(leaves).zip(replies) {
            let mut redirects = RedirectState::continued(self.began, self.to_primary);
            // A leaf that was sent alone has already been redirected as many times as allowed.
            let rejected = if is_alone { None } else { redirect::error(reply.as_bytes()) };
            let retry = rejected.zip(cluster).and_then(|(text, cluster)| {
                redirects.at = cluster.primary(shard_index);
                Some((cluster, cluster.retry_rejected(text, &mut redirects)?))
            });
            let Some((cluster, retry)) = retry else {
                self.outcomes[leaf] = Some(Ok(reply));
                continue;
            };
            let state = State::retry(cluster, retry, redirects);
            // An index that no shard has, so that no other leaf joins this one.
            let shard_index = usize::MAX;
            self.parts.push(Part {
                shard_index,
                requests: vec![request],
                leaves: vec![leaf],
                state,
            });
        }
    }

    /// Combines the replies. The first error becomes the error of all commands, and records which other commands were
    /// executed.
    fn assemble(&mut self) -> Result<Reply> {
        let outcomes: Vec<Result<Reply>> = self.outcomes.drain(..).flatten().collect();
        if let Some(Err(error)) = outcomes.iter().find(|outcome| outcome.is_err()) {
            let each = self.wholes.iter().map(|whole| {
                let leaves = outcomes.get(whole.leaves.clone()).unwrap_or_default();
                (executed(leaves), whole.reads_only)
            });
            return Err(error.clone().of_several(each));
        }
        let mut replies: Vec<Reply> = outcomes.into_iter().flatten().collect();
        if replies.len() == 1 {
            return Ok(replies.remove(0));
        }
        let mut out = Vec::with_capacity(replies.iter().map(|reply| reply.as_bytes().len()).sum());
        for Whole { merge, leaves, reads_only } in &self.wholes {
            let parts: Vec<&[u8]> = replies
                .get(leaves.clone())
                .unwrap_or_default()
                .iter()
                .map(Reply::as_bytes)
                .collect();
            merge.write(&parts, *reads_only, &mut out);
        }
        Ok(Reply::small(&out).unwrap_or_else(|| Reply::shared(out.into())))
    }
}

/// Reports whether the request with these replies to its leaves was executed.
fn executed(leaves: &[Result<Reply>]) -> Executed {
    let of = |leaf: &Result<Reply>| match leaf {
        Ok(reply) if matches!(reply.as_bytes().first(), Some(b'-' | b'!')) => Executed::No,
        Ok(_) => Executed::Yes,
        Err(error) if error.maybe_applied() => Executed::Unknown,
        Err(_) => Executed::No,
    };
    let mut all = leaves.iter().map(of);
    let first = all.next().unwrap_or(Executed::No);
    if all.all(|leaf| leaf == first) { first } else { Executed::Unknown }
}
