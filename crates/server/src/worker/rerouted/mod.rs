//! Cluster mode: ends waits and subscriptions if this node no longer serves their slot.
//!
//! Clients that are blocked on keys in the slot get the error that their command would get now. Subscriptions to shard
//! channels of the slot end with the push message of SUNSUBSCRIBE. Redis does the same in its timers, so in both
//! servers this may happen shortly after the change.

use super::Worker;
use super::delivery::push_to_idle;
use brisk_engine::CommandError;
use brisk_engine::keyspace::{SlotId, Waiter};
use brisk_node::pubsub::{Space, subscribe};
use brisk_node::run::route;
use brisk_reactor::{Control, Token};
use brisk_resp::reply::encode;
use std::sync::Arc;

impl Worker {
    /// Ends waits and subscriptions of this worker's sessions whose slots other nodes now serve. Called after the
    /// topology or the state of the cluster has changed. O(sessions + shard channels).
    #[cold]
    pub(super) fn end_rerouted(&mut self, io: &mut Control) {
        self.end_rerouted_waits(io);
        self.end_rerouted_subscriptions(io);
    }

    fn end_rerouted_waits(&mut self, io: &mut Control) {
        for index in 0..self.sessions.len() {
            if let Some((token, waiter, error)) = self.rerouted_wait(index)
                && waiter.end()
            {
                self.refuse_waiting(io, token, &waiter, &error);
            }
        }
    }

    /// The wait of the session with this index, and the error that ends it, if this node does not serve the keys that
    /// the session waits for.
    fn rerouted_wait(&mut self, index: usize) -> Option<(Token, Arc<Waiter>, CommandError)> {
        let session = self.sessions.at(index)?;
        let waiter = session.blocked.waiter()?;
        let slot = waiter.slot()?;
        let row = self.core.shared.table.find_spec(waiter.command())?;
        let error = route::refusal_of_waiter(&mut self.core, session, row, slot)?;
        Some((session.token, Arc::clone(waiter), error))
    }

    fn end_rerouted_subscriptions(&mut self, io: &mut Control) {
        let core = &mut self.core;
        let mut names: Vec<Arc<[u8]>> =
            core.topics.names(Space::ShardChannel).map(Arc::clone).collect();
        names.retain(|name| !core.cluster.is_own(SlotId::of_key(name)));
        for name in names {
            let topic = self.core.topics.find(Space::ShardChannel, &name);
            let members = topic.map(|topic| topic.members.clone()).unwrap_or_default();
            for member in members {
                let Some(mut session) = self.sessions.take(member.token) else { continue };
                subscribe::unsubscribe(&mut self.core, &mut session, Space::ShardChannel, &name);
                let left = session.push.subscriptions().count(Space::ShardChannel);
                let mut wire = Vec::new();
                encode::array(&mut wire, 3);
                encode::bulk(&mut wire, b"sunsubscribe");
                encode::bulk(&mut wire, &name);
                encode::integer(&mut wire, left as i64);
                push_to_idle(&self.core, io, &mut session, wire);
                self.sessions.put(session);
            }
        }
    }
}

#[cfg(test)]
mod tests;
