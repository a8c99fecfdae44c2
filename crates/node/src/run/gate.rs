//! The command gate: the checks that a command must pass before it runs, in an order that clients can observe.
//!
//! For most commands no check is armed, and one comparison skips all checks.

use crate::clients::flag;
use crate::core::Core;
use crate::core::conditions::{Condition, ConditionSet};
use crate::core::memory_limit;
use crate::core::pause::{Hold, Paused};
use crate::core::session::{Session, Stall};
use crate::persistence::bgsave;
use crate::replication::failover::FailoverPhase;
use crate::run::permission;
use crate::run::repeated;
use crate::run::route;
use crate::script::invoked;
use brisk_cluster::map::RouteError;
use brisk_config::choice::Protection;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, Group, InMulti, Scope};
use brisk_engine::ctx::full_name;
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError, Result};

/// The result of a check.
pub enum Verdict {
    Pass,
    /// The command is not run. This error is the reply.
    Refuse(CommandError),
    /// The command is run later.
    Wait(Stall),
}

/// The facts about the request that checks need.
pub struct RequestFacts<'a> {
    /// The effective flags of the command. For EXEC and scripts, these are the flags of the commands that they run.
    pub flags: Flags,
    pub keys: &'a [PreparedKey],
    pub words: &'a Args<'a>,
}

/// Collects the facts that the checks need about a request.
#[cold]
pub(crate) fn facts<'a>(
    core: &mut Core,
    session: &Session,
    row: &Row,
    keys: &'a [PreparedKey],
    args: &'a Args<'_>,
) -> RequestFacts<'a> {
    let flags = session.flags_of(row);
    let flags = if row.has(Flags::RUNS_SCRIPT) {
        invoked::flags_of_script(core, flags, row, args)
    } else {
        flags
    };
    RequestFacts { flags, keys, words: args }
}

type Check = fn(&mut Core, &Session, &Row, &RequestFacts<'_>) -> Verdict;

/// The checks with their names, in order.
pub const CHECKS: &[(&str, Check)] = &[
    ("protected", protected),
    ("authentication", authentication),
    ("transaction", transaction),
    ("permission", permission),
    ("route", route),
    ("redirect", redirect),
    ("memory", memory),
    ("disk", disk),
    ("replicas", replicas),
    ("read only", read_only),
    ("subscribed", subscribed),
    ("stale", stale),
    ("loading", loading),
    ("busy", busy),
    ("monitor", monitor),
    ("pause", pause),
    ("congestion", congestion),
    ("log congestion", log_congestion),
    ("route again", route_again),
];

/// The checks for commands from the primary. The primary has already executed them, so no check rejects a command.
const CHECKS_OF_PRIMARY: &[Check] =
    &[memory_of_primary, disk_of_primary, busy_of_primary, pause, congestion, log_congestion];

/// The checks that may apply if no condition is in force and neither the session nor the command has rules of its own.
/// All other checks depend on one of these.
const CHECKS_WITHOUT_CONDITIONS: &[Check] = &[transaction, route];

/// Reports whether any check may apply, except that keys may have to be routed.
#[inline]
pub fn is_armed(conditions: ConditionSet, session: &Session, row: &Row) -> bool {
    (!conditions.is_empty() && concerns(conditions, session, row))
        || session.in_transaction()
        || has_own_rules(session, row)
}

/// Reports whether checks may apply because of what the session or the command is.
#[inline]
fn has_own_rules(session: &Session, row: &Row) -> bool {
    session.is_restricted()
        || session.push.listens()
        || session.replication.is_replica()
        || row.spec.flags.intersects(Flags::PROTECTED.union(Flags::UNSUBSCRIBES))
}

/// Reports whether a condition concerns a command. Two rules restrict only writes: clients of a replica may not write,
/// and writes need enough replicas. These rules do not apply to commands from a replica's primary.
#[inline]
fn concerns(conditions: ConditionSet, session: &Session, row: &Row) -> bool {
    conditions.concern_reads()
        || (row.spec.flags.intersects(Flags::WRITE.union(Flags::RUNS_SCRIPT))
            && !session.source.is_primary())
}

/// Runs all checks in order.
#[cold]
pub fn check(core: &mut Core, session: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if session.source.is_replay() {
        // The command was executed before and is repeated, regardless of the rules in force.
        return Verdict::Pass;
    }
    if session.source.is_primary() {
        return run_checks(core, session, row, facts, CHECKS_OF_PRIMARY.iter());
    }
    if core.shared.conditions.now().is_empty() && !has_own_rules(session, row) {
        let checks = CHECKS_WITHOUT_CONDITIONS.iter();
        return run_checks(core, session, row, facts, checks);
    }
    run_checks(core, session, row, facts, CHECKS.iter().map(|(_, check)| check))
}

fn run_checks<'c>(
    core: &mut Core,
    session: &Session,
    row: &Row,
    facts: &RequestFacts<'_>,
    checks: impl Iterator<Item = &'c Check>,
) -> Verdict {
    for check in checks {
        match check(core, session, row, facts) {
            Verdict::Pass => {}
            other => return other,
        }
    }
    Verdict::Pass
}

/// Reports whether the session uses the admin lane and the command does not touch keys. Conditions that block access to
/// keys do not apply to such a command. A command that may run during loading does not touch keys, and neither do
/// commands about the connection itself.
pub fn is_operator_request(session: &Session, row: &Row) -> bool {
    let spec = row.spec;
    let reaches_further = Flags::MAY_REPLICATE.union(Flags::PROTECTED).union(Flags::RUNS_SCRIPT);
    session.is_admin()
        && !session.in_transaction()
        && (spec.flags.contains(Flags::LOADING) || spec.group == Group::Connection)
        && !spec.flags.intersects(reaches_further)
}

/// Rejects DEBUG and MODULE unless the configuration allows them.
fn protected(core: &mut Core, session: &Session, row: &Row, _: &RequestFacts<'_>) -> Verdict {
    let security = &core.config.security;
    let (setting, directive) = if row.has(Flags::MODULE) {
        (security.enable_module_command, "enable-module-command")
    } else if row.has(Flags::DEBUG) {
        (security.enable_debug_command, "enable-debug-command")
    } else {
        return Verdict::Pass;
    };
    let allowed = match setting {
        Protection::Yes => true,
        Protection::Local => session.is_local(),
        Protection::No => false,
    };
    if allowed {
        return Verdict::Pass;
    }
    let name = row.parent.unwrap_or(row.spec).name.to_ascii_uppercase();
    Verdict::Refuse(CommandError::text(format!(
        "ERR {name} command not allowed. If the {directive} option is set to \"local\", you can \
         run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server."
    )))
}

/// Reports whether the session must authenticate before it may do anything else.
pub fn must_authenticate(core: &Core, session: &Session) -> bool {
    !session.is_authenticated() && !core.shared.accounts.default_is_open()
}

fn authentication(core: &mut Core, session: &Session, row: &Row, _: &RequestFacts<'_>) -> Verdict {
    if row.has(Flags::NO_AUTH) || !must_authenticate(core, session) {
        Verdict::Pass
    } else {
        Verdict::Refuse(CommandError::text("NOAUTH Authentication required."))
    }
}

/// Rejects commands that must not be queued in a transaction. With `dialect valkey`, this includes MULTI and WATCH,
/// which then abort the transaction.
fn transaction(core: &mut Core, session: &Session, row: &Row, _: &RequestFacts<'_>) -> Verdict {
    let aborts = || row.spec.in_multi == InMulti::Rejects && core.is_valkey();
    if session.in_transaction() && (row.has(Flags::NO_MULTI) || aborts()) {
        Verdict::Refuse(CommandError::text("ERR Command not allowed inside a transaction"))
    } else {
        Verdict::Pass
    }
}

fn permission(core: &mut Core, session: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if !session.is_restricted() {
        return Verdict::Pass;
    }
    match permission::permit_client(core, session, row, facts.words) {
        Ok(()) => Verdict::Pass,
        Err(error) => Verdict::Refuse(error),
    }
}

/// In cluster mode: rejects commands on keys that this node does not serve.
fn route(core: &mut Core, session: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    route::check(core, session, row, facts)
}

/// Makes a command pass the gate again if another topology was installed during its checks. This can happen because the
/// worker waits for slots when it evicts keys, and other workers may quiesce it while it waits.
fn route_again(core: &mut Core, _: &Session, _: &Row, _: &RequestFacts<'_>) -> Verdict {
    match route::check_again_when_quiesced(core) {
        Ok(()) => Verdict::Pass,
        Err(_) => Verdict::Wait(Stall::NextRound),
    }
}

/// Redirects clients that have requested redirection to the primary. This includes reads, unless the client sent
/// READONLY. While a failover is in progress, the primary might redirect the client back, so the command waits until
/// the failover ends.
fn redirect(core: &mut Core, session: &Session, _: &Row, facts: &RequestFacts<'_>) -> Verdict {
    let shared = core.shared;
    if !session.record.has(flag::REDIRECTS) || !shared.conditions.is_replica() {
        return Verdict::Pass;
    }
    let reads_here = session.record.has(flag::READS_REPLICA);
    let reads_there = facts.flags.contains(Flags::READONLY) && !reads_here;
    if !facts.flags.contains(Flags::WRITE) && !reads_there {
        return Verdict::Pass;
    }
    if shared.replication.failover.phase() == FailoverPhase::InProgress {
        return Verdict::Wait(Stall::Paused);
    }
    let config = shared.config();
    let Some(primary) = &config.replication.replicaof else { return Verdict::Pass };
    let host = primary.host.to_string_lossy().into_owned();
    Verdict::Refuse(CommandError::Redirect { host, port: primary.port })
}

/// Frees memory, and rejects commands that need more memory if none can be freed. This includes queueing any command,
/// except with `dialect valkey`. Nothing is evicted during a pause, because the data must not change.
fn memory(core: &mut Core, session: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if is_operator_request(session, row) {
        return Verdict::Pass;
    }
    // End the meter of the last reply, because `make_room` must count all memory.
    core.memory.end_reply();
    let fits = memory_limit::in_force(core) == 0 || memory_limit::make_room(core);
    if !facts.flags.intersects(Flags::WRITE.union(Flags::RUNS_SCRIPT)) {
        // The command's reply may have any size. Other workers must not evict keys because of it.
        core.memory.begin_reply();
    }
    if session.has_old_user() {
        // The session's user was changed in the meantime. The command is run again in the next round, where its
        // permissions are checked again.
        return Verdict::Wait(Stall::NextRound);
    }
    let grows_queue = session.in_transaction()
        && !matches!(row.spec.in_multi, InMulti::Ends | InMulti::Executes)
        && !core.is_valkey();
    if fits || !(grows_queue || facts.flags.contains(Flags::DENYOOM)) {
        Verdict::Pass
    } else {
        Verdict::Refuse(CommandError::OutOfMemory)
    }
}

/// Rejects changes that would be lost because the dataset cannot be saved. PING is also rejected,
/// so that monitoring notices.
fn disk(core: &mut Core, _: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    let concerns = facts.flags.contains(Flags::WRITE) || row.has(Flags::HEALTH_CHECK);
    if !concerns || !core.shared.conditions.has(Condition::DiskError) {
        return Verdict::Pass;
    }
    bgsave::refusal(core).map_or(Verdict::Pass, Verdict::Refuse)
}

/// The error for writes while there are fewer replicas than the settings require. A replica itself need not have
/// replicas.
pub(crate) fn refusal_for_replicas(core: &Core) -> Option<CommandError> {
    let conditions = core.shared.conditions.now();
    let lacks = conditions.has(Condition::FewReplicas) && !conditions.has(Condition::Replica);
    lacks.then(|| CommandError::text("NOREPLICAS Not enough good replicas to write."))
}

fn replicas(core: &mut Core, _: &Session, _: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if !facts.flags.contains(Flags::WRITE) {
        return Verdict::Pass;
    }
    refusal_for_replicas(core).map_or(Verdict::Pass, Verdict::Refuse)
}

/// Reports whether this server rejects writes by clients because it is a replica.
pub(crate) fn is_read_only(core: &Core) -> bool {
    core.shared.conditions.is_replica() && core.config.replication.replica_read_only
}

/// The error for writes to a replica.
pub(crate) const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

fn read_only(core: &mut Core, _: &Session, _: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if facts.flags.contains(Flags::WRITE) && is_read_only(core) {
        Verdict::Refuse(CommandError::text(READ_ONLY))
    } else {
        Verdict::Pass
    }
}

fn subscribed(core: &mut Core, session: &Session, row: &Row, _: &RequestFacts<'_>) -> Verdict {
    if !session.push.listens() && row.has(Flags::UNSUBSCRIBES) && core.is_valkey() {
        let name = full_name(row.parent, row.spec);
        let text = format!("NOSUB '{name}' command executed not in subscribed mode");
        return Verdict::Refuse(CommandError::text(text));
    }
    if !session.only_listens() || row.has(Flags::WHILE_SUBSCRIBED) {
        return Verdict::Pass;
    }
    let text = format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context",
        full_name(row.parent, row.spec)
    );
    Verdict::Refuse(CommandError::text(text))
}

/// Reports whether this replica rejects reads because its link to the primary is down.
pub(crate) fn is_stale(core: &Core) -> bool {
    core.shared.conditions.has(Condition::Stale)
}

/// The error of a replica whose data is stale.
pub(crate) const STALE: &str =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

fn stale(core: &mut Core, _: &Session, _: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if is_stale(core) && !facts.flags.contains(Flags::STALE) {
        Verdict::Refuse(CommandError::text(STALE))
    } else {
        Verdict::Pass
    }
}

/// While the dataset is being loaded, rejects commands that touch keys. Also rejects PING, which checks whether the
/// server is usable. Commands within EXEC are not checked, because they could not have been queued. While another
/// dataset is being loaded and the current one is served, rejects only commands about saving and replication.
fn loading(core: &mut Core, _: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    let shared = core.shared;
    let is_refused = match shared.conditions.is_loading() {
        true => !row.spec.flags.intersects(Flags::LOADING.union(Flags::LOADING_OF_VALKEY)),
        false => {
            shared.conditions.is_loading_async() && facts.flags.contains(Flags::NO_ASYNC_LOADING)
        }
    };
    if !is_refused {
        return Verdict::Pass;
    }
    Verdict::Refuse(refuse_while_loading(core))
}

/// The error for commands that cannot run while a dataset is being loaded.
pub fn refuse_while_loading(core: &Core) -> CommandError {
    bgsave::refused_while_loading(core)
}

/// Repeats the check for loading after a command has waited for all other workers to quiesce, because a replica may
/// have started to load its primary's dataset in the meantime.
pub(crate) fn check_again_when_quiesced(core: &Core, session: &Session, row: &Row) -> Result<()> {
    let is_refused =
        core.shared.conditions.is_loading() && !row.has(Flags::LOADING) && !session.repeats();
    if is_refused { Err(refuse_while_loading(core)) } else { Ok(()) }
}

/// Blocks access to data that a slow script uses.
fn busy(core: &mut Core, session: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if !core.shared.conditions.is_busy() || is_operator_request(session, row) {
        return Verdict::Pass;
    }
    let scripting = &core.shared.scripting.running;
    let refusal = match session.transaction.queued() {
        Some(transaction) if row.spec.in_multi == InMulti::Executes => {
            let watched = session.transaction.watched_slots();
            let places = transaction.places(watched).filter(|places| !places.is_empty());
            let mut places = places.map(Vec::into_iter);
            scripting.refusal(places.as_mut().map(|places| places as _))
        }
        _ if row.has(Flags::ALLOW_BUSY) => None,
        _ if facts.keys.is_empty() || row.spec.scope != Scope::Keys => scripting.refusal(None),
        _ => {
            let mut places = facts.keys.iter().map(|key| (session.db(), key.slot));
            scripting.refusal(Some(&mut places))
        }
    };
    refusal.map_or(Verdict::Pass, |text| Verdict::Refuse(CommandError::text(text)))
}

/// Makes writes wait while the disk cannot keep up with the append-only file.
fn log_congestion(
    core: &mut Core,
    session: &Session,
    row: &Row,
    facts: &RequestFacts<'_>,
) -> Verdict {
    let shared = core.shared;
    if !shared.conditions.has(Condition::LogCongestion) {
        return Verdict::Pass;
    }
    if !shared.persistence.aof.is_congested() {
        shared.conditions.set(Condition::LogCongestion, false);
        return Verdict::Pass;
    }
    let grows_log = match session.in_transaction() {
        // A command that is being queued changes nothing yet.
        true => row.spec.in_multi == InMulti::Executes,
        false => {
            let runs_script = row.has(Flags::RUNS_SCRIPT) && !row.has(Flags::READONLY);
            facts.flags.contains(Flags::WRITE) || runs_script
        }
    };
    if grows_log { Verdict::Wait(Stall::NextRound) } else { Verdict::Pass }
}

/// Makes commands wait while inboxes are too full, because any command may publish at least a keyspace event.
fn congestion(core: &mut Core, session: &Session, row: &Row, _: &RequestFacts<'_>) -> Verdict {
    if core.is_congested() && !is_operator_request(session, row) {
        Verdict::Wait(Stall::NextRound)
    } else {
        Verdict::Pass
    }
}

/// Rejects access to keys by replicas and by sessions that run MONITOR, which Redis treats as replicas.
fn monitor(_: &mut Core, session: &Session, _: &Row, facts: &RequestFacts<'_>) -> Verdict {
    let touches_keys = facts.flags.intersects(Flags::WRITE.union(Flags::READONLY));
    if touches_keys && session.record.has(flag::MONITOR | flag::REPLICA) {
        Verdict::Refuse(CommandError::text("ERR Replica can't interact with the keyspace"))
    } else {
        Verdict::Pass
    }
}

/// Makes commands wait during CLIENT PAUSE, and while the server itself pauses commands. Replicas and sessions that run
/// MONITOR are never paused.
fn pause(core: &mut Core, session: &Session, row: &Row, facts: &RequestFacts<'_>) -> Verdict {
    let waits = match core.pause_in_force() {
        Some(Paused::All) => true,
        Some(Paused::Keys) => {
            let of_keys = Flags::WRITE.union(Flags::MAY_REPLICATE).union(Flags::READONLY);
            facts.flags.intersects(of_keys) || row.has(Flags::RUNS_SCRIPT)
        }
        Some(Paused::Writes) => facts.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE)),
        None => false,
    };
    let exempt =
        session.record.has(flag::MONITOR | flag::REPLICA) || is_operator_request(session, row);
    if !waits || exempt {
        return Verdict::Pass;
    }
    // A primary that cannot learn the outcome of a planned switch is fenced in the end. Commands without keys, which
    // the check of slots does not reject, must not wait any longer either.
    let is_fenced = || core.shared.cluster.state().is_some_and(|state| state.is_fenced());
    if core.shared.conditions.is_held(Hold::Switch) && is_fenced() {
        return Verdict::Refuse(CommandError::NotServed(
            RouteError::ClusterDown.to_string().into(),
        ));
    }
    Verdict::Wait(Stall::Paused)
}

/// Frees memory, unless eviction is left to the primary. Memory may still be short afterwards.
fn memory_of_primary(core: &mut Core, _: &Session, _: &Row, _: &RequestFacts<'_>) -> Verdict {
    memory_limit::make_room(core);
    Verdict::Pass
}

/// Lets writes execute although they cannot be saved, or exits the process.
fn disk_of_primary(core: &mut Core, _: &Session, _: &Row, facts: &RequestFacts<'_>) -> Verdict {
    if core.shared.conditions.has(Condition::DiskError)
        && facts.flags.contains(Flags::WRITE)
        && bgsave::refusal(core).is_some()
    {
        repeated::note_unwritten(core);
    }
    Verdict::Pass
}

/// Makes all commands of the stream wait while a slow script runs, regardless of their keys, because they must be
/// executed in order.
fn busy_of_primary(core: &mut Core, _: &Session, _: &Row, _: &RequestFacts<'_>) -> Verdict {
    if core.shared.conditions.is_busy() { Verdict::Wait(Stall::NextRound) } else { Verdict::Pass }
}
