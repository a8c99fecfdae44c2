//! Cluster mode: which commands this node serves, and where it redirects the others.

use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::run::gate::{RequestFacts, Verdict};
use brisk_cluster::map::{MovedText, RouteDecision, RouteKeys, RouteRequest};
use brisk_engine::CommandError;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, Group};
use brisk_engine::table::Row;

/// Rejects a command on keys that this node does not serve.
pub(crate) fn check(
    core: &mut Core,
    session: &Session,
    row: &Row,
    facts: &RequestFacts<'_>,
) -> Verdict {
    if !core.cluster.must_route(facts.keys) {
        return Verdict::Pass;
    }
    let request = RouteRequest {
        keys: route_keys(facts.keys),
        is_write: facts.flags.contains(Flags::WRITE),
        is_sharded_pubsub: row.spec.group == Group::PubSub,
        is_readonly_session: session.record.has(flag::READS_REPLICA),
    };
    let Some((_, kind)) = core.cluster.in_force() else { return Verdict::Pass };
    let text = match core.cluster.route(&request) {
        RouteDecision::Serve => return Verdict::Pass,
        RouteDecision::Refused(error) => error.to_string(),
        RouteDecision::Moved { slot, to } => {
            let is_tls = session.connection.is_encrypted();
            MovedText { slot, to, kind, is_tls }.to_string()
        }
    };
    Verdict::Refuse(CommandError::text(text))
}

/// The keys of a command, as routing sees them.
fn route_keys(keys: &[PreparedKey]) -> RouteKeys {
    match keys {
        [] => RouteKeys::None,
        [first, rest @ ..] if rest.iter().all(|key| key.slot == first.slot) => {
            RouteKeys::One(first.slot)
        }
        [first, ..] => RouteKeys::Several(first.slot),
    }
}
