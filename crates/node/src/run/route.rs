//! Cluster mode: determines which commands this node serves, and where other commands are redirected.

use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::run::gate::{RequestFacts, Verdict};
use brisk_cluster::map::{
    MovedText, RouteDecision, RouteError, RouteKeys, RouteRequest, ScriptRouteError,
};
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Find, Flags, Group, InMulti};
use brisk_engine::keyspace::SlotId;
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Result};

/// Reports whether the gate must make a routing decision for these keys. Commands from the primary or a file need none:
/// they are all executed, although a replica serves no slots.
#[inline]
pub(crate) fn is_needed(core: &mut Core, session: &Session, keys: &[PreparedKey]) -> bool {
    core.cluster.must_route(keys) && !session.repeats()
}

/// Rejects a command on keys that this node does not serve. The keys of EXEC are the keys of all queued commands.
pub(crate) fn check(
    core: &mut Core,
    session: &Session,
    row: &Row,
    facts: &RequestFacts<'_>,
) -> Verdict {
    let keys = match session.transaction.queued() {
        Some(transaction) if row.spec.in_multi == InMulti::Executes => transaction.all_keys(),
        _ if is_rejected_by_parser(row, facts.words) => return Verdict::Pass,
        _ => facts.keys,
    };
    refusal(core, session, row, keys, facts.flags).map_or(Verdict::Pass, Verdict::Refuse)
}

/// The error for a command on keys that this node does not serve. `flags` are the flags of all commands that the
/// command runs.
#[inline]
pub(crate) fn refusal(
    core: &mut Core,
    session: &Session,
    row: &Row,
    keys: &[PreparedKey],
    flags: Flags,
) -> Option<CommandError> {
    if !core.cluster.must_route(keys) {
        return None;
    }
    let request = request(session, row, route_keys(row, keys), flags);
    not_served(core, session, &request)
}

/// The error for a command of a script on keys that this node does not serve.
pub(crate) fn script_error(
    core: &mut Core,
    session: &Session,
    row: &Row,
    keys: &[PreparedKey],
) -> Option<ScriptRouteError> {
    if !core.cluster.must_route(keys) {
        return None;
    }
    core.cluster.route(&request(session, row, route_keys(row, keys), row.spec.flags)).script_error()
}

/// The error for a blocked command whose keys this node no longer serves. As in Redis, a node that is down also
/// unblocks readers, because nothing can be written for them.
pub fn refusal_of_waiter(
    core: &mut Core,
    session: &Session,
    row: &Row,
    slot: SlotId,
) -> Option<CommandError> {
    if core.cluster.is_down() {
        return Some(CommandError::NotServed(RouteError::ClusterDown.to_string().into()));
    }
    let request = request(session, row, RouteKeys::One(slot), row.spec.flags);
    not_served(core, session, &request)
}

/// Repeats the check after a command has waited for all other workers to quiesce, because another topology may have
/// been installed in the meantime.
///
/// # Errors
/// [`CommandError::SlotBusy`] if another topology was installed. The command must then pass the gate again.
#[inline]
pub(crate) fn check_again_when_quiesced(core: &mut Core) -> Result<()> {
    if core.cluster.takes_newer() { Err(CommandError::SlotBusy) } else { Ok(()) }
}

fn request(session: &Session, row: &Row, keys: RouteKeys, flags: Flags) -> RouteRequest {
    RouteRequest {
        keys,
        is_write: flags.contains(Flags::WRITE),
        // Other Pub/Sub commands have no keys.
        is_sharded_pubsub: row.spec.group == Group::PubSub,
        is_readonly_session: session.record.has(flag::READS_REPLICA),
    }
}

#[cold]
fn not_served(core: &mut Core, session: &Session, request: &RouteRequest) -> Option<CommandError> {
    let kind = core.cluster.in_force()?.1;
    let text = match core.cluster.route(request) {
        RouteDecision::Serve => return None,
        RouteDecision::Refused(error) => error.to_string(),
        RouteDecision::Moved { slot, to } => {
            let is_tls = session.connection.is_encrypted();
            MovedText { slot, to, kind, is_tls }.to_string()
        }
    };
    Some(CommandError::NotServed(text.into()))
}

/// Reports whether the command's parser, which alone knows where the keys are, rejects the arguments. In this case,
/// Redis finds no keys, and the command uses none.
fn is_rejected_by_parser(row: &Row, args: &Args<'_>) -> bool {
    match row.spec.keys {
        [only] => {
            let found = only.finder.map(|find| find(args.argc(), &|at| args.argument(at)));
            found == Some(None)
        }
        _ => false,
    }
}

/// The keys of a command, in the form that routing uses. In ZUNIONSTORE and similar commands, Redis looks up the
/// sources before the destination.
fn route_keys(row: &Row, keys: &[PreparedKey]) -> RouteKeys {
    let counts_sources =
        matches!(row.spec.keys, [_, sources] if matches!(sources.find, Find::KeyNum { .. }));
    match keys {
        [] => RouteKeys::None,
        // The number of sources is wrong. In this case, Redis finds no keys, and the command uses none.
        [_] if counts_sources => RouteKeys::None,
        [first, rest @ ..] if rest.iter().all(|key| key.slot == first.slot) => {
            RouteKeys::One(first.slot)
        }
        [_, source, ..] if counts_sources => RouteKeys::Several(source.slot),
        [first, ..] => RouteKeys::Several(first.slot),
    }
}
