//! Runs a command that a script calls.

use super::machine::texts;
use super::runner::{KeysInUse, ScriptRunner};
use crate::core::Core;
use crate::core::call::Call;
use crate::core::conditions::Condition;
use crate::core::session::Session;
use crate::monitor::lines;
use crate::persistence::bgsave;
use crate::pubsub::publish;
use crate::run::count;
use crate::run::gate;
use crate::run::permission;
use crate::run::route;
use brisk_acl::{Context, Denied, check};
use brisk_cluster::map::ScriptRouteError;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, Group, Scope};
use brisk_engine::ctx::Blocking;
use brisk_engine::exec::{self, Invocation};
use brisk_engine::table::{KeyPlan, Row, Run};
use brisk_engine::{Args, CommandError, DbIndex, Reply, keyspec};
use brisk_resp::Protocol;
use brisk_script::{Called, MEMORY_BYTES_MAX, Words};
use smallvec::SmallVec;

type Keys = SmallVec<[PreparedKey; 4]>;

/// Maximum number of unpublished keyspace events of one script. Without this limit, a script that keeps changing keys
/// could collect any number of events.
const EVENTS_MAX: usize = 4096;

/// The row of the command that a script calls.
pub(super) fn row_of_script(core: &Core, words: &Words) -> Option<&'static Row> {
    let list = words.spans.as_slice();
    let word = |at: usize| words.spans.bytes(&words.bytes, list[at]);
    let row = core.shared.table.find(word(0))?;
    if row.is_container() && list.len() > 1 {
        return row.subcommand(word(1));
    }
    Some(row)
}

/// Checks whether the user of the session for which a script runs may run this command. This is the only access control
/// for a script's commands.
pub(super) fn permit_script(session: &Session, row: &Row, words: &Words) -> Result<(), Denied> {
    let list = words.spans.as_slice();
    let word = |at: usize| words.spans.bytes(&words.bytes, list[at]);
    check(session.user(), row, list.len(), &word)
}

/// The error for a command that the script's user may not run. The rejection is logged.
#[cold]
fn refuse_script(
    core: &mut Core,
    session: &Session,
    row: &Row,
    words: &Words,
    denied: Denied,
) -> String {
    let text = denied.text(&session.account().name, row, None);
    let list = words.spans.as_slice();
    let args = Args::new(&words.bytes, &words.spans, list, &[]);
    permission::note_denied(core, session, row, &args, denied, Context::Script);
    format!("ACL failure in script: {}", String::from_utf8_lossy(&text))
}

/// Runs a command for a script and writes its reply to `out`.
pub(super) fn call_from_script(
    core: &mut Core,
    session: &mut Session,
    runner: &ScriptRunner,
    words: &Words,
    protocol: Protocol,
    out: &mut Vec<u8>,
) -> Called {
    let row = row_of_script(core, words);
    if let Err(text) = admit_from_script(core, session, runner, row, words) {
        return refuse_call(core, row, text);
    }
    let Some(row) = row else { return Called::Replied };
    let keys = keys_of_script(core, runner, row, words);
    if let Err(text) = route_from_script(core, session, runner, row, &keys) {
        return refuse_call(core, Some(row), text);
    }
    if !covers(core, session.db(), &keys, row.spec.scope) {
        runner.used_undeclared_keys.set(true);
        match lock_everything(core, runner, session.db(), &keys, row.spec.scope) {
            Widened::Yes => {
                // Another topology may be in force by now.
                if let Err(text) = route_from_script(core, session, runner, row, &keys) {
                    return refuse_call(core, Some(row), text);
                }
            }
            Widened::NotYet if runner.parkable.get() => return Called::Wait,
            Widened::NotYet | Widened::No => {
                runner.abandoned.set(true);
                return Called::Abandoned;
            }
        }
    }
    if (row.has(Flags::WRITE) || matches!(row.run, Run::Server(_))) && !may_act(core, runner) {
        if core.scripts.keys_in_use.is_some()
            && core.shared.scripting.running.others_refuse(core.id).is_none()
        {
            return Called::Wait;
        }
        runner.abandoned.set(true);
        return Called::Abandoned;
    }
    if row.has(Flags::WRITE) {
        if !core.shared.scripting.running.of(core.id).begin_writing() {
            runner.killed.set(true);
            return Called::Abandoned;
        }
        runner.wrote.set(true);
    }
    session.reply_to_script_in(protocol);
    run_from_script(core, session, runner, row, &keys, words, out);
    Called::Replied
}

/// Counts a command of a script that is rejected.
#[cold]
fn refuse_call(core: &Core, row: Option<&'static Row>, text: String) -> Called {
    if let Some(row) = row {
        core.stats().commands[row.id].rejected.add(1);
    }
    let code = text.strip_prefix('-').unwrap_or("ERR");
    core.stats().error_replies.add(1);
    core.shared.observe.errors.count(code);
    Called::Refused(text)
}

/// In cluster mode, checks that this node serves the keys of a command that a script calls. Scripts that begin with
/// `#!` may use keys of only one slot, unless a flag allows more.
#[inline]
fn route_from_script(
    core: &mut Core,
    session: &Session,
    runner: &ScriptRunner,
    row: &Row,
    keys: &[PreparedKey],
) -> Result<(), String> {
    let Some(first) = keys.first() else { return Ok(()) };
    if !core.cluster.is_on() || session.repeats() {
        return Ok(());
    }
    let mut error = route::script_error(core, session, row, keys);
    if error.is_none() && !runner.crosses_slots.get() {
        let used = *core.scripts.used_slot.get_or_insert(first.slot);
        error = (used != first.slot).then_some(ScriptRouteError::CrossSlot);
    }
    let Some(error) = error else { return Ok(()) };
    let text = error.to_string();
    Err(text.strip_prefix("ERR ").unwrap_or(&text).to_owned())
}

/// The checks that a command of a script must pass, in an order that clients can observe.
fn admit_from_script(
    core: &mut Core,
    session: &Session,
    runner: &ScriptRunner,
    row: Option<&'static Row>,
    words: &Words,
) -> Result<(), String> {
    let texts = || texts(core.config.process.dialect);
    let Some(row) = row else { return Err(texts().unknown.into()) };
    if !row.spec.arity_admits(words.len()) || row.is_container() {
        return Err(texts().arity.into());
    }
    // Blocking commands do not block within a script.
    let refused = row.has(Flags::NOSCRIPT)
        && !row.has(Flags::BLOCKING)
        && !(core.is_valkey() && row.has(Flags::SCRIPTS_OF_VALKEY));
    // Commands that run units (transactions or scripts) or subscribe cannot run within a unit.
    let never = matches!(row.spec.group, Group::Scripting | Group::Transactions | Group::PubSub);
    let all = core.shared.scripting.running.allows_all_commands();
    if refused && (never || !all) {
        return Err("This Redis command is not allowed from script".into());
    }
    let clients = !session.repeats();
    if clients && !row.has(Flags::STALE) && gate::is_stale(core) {
        return Err("Can not execute the command on a stale replica".into());
    }
    if session.is_restricted()
        && let Err(denied) = permit_script(session, row, words)
    {
        return Err(refuse_script(core, session, row, words, denied));
    }
    if runner.read_only.get() && row.spec.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE))
    {
        return Err("Write commands are not allowed from read-only scripts.".into());
    }
    if row.has(Flags::WRITE)
        && clients
        && let Some(refusal) = refusal_to_write(core)
    {
        return Err(format!("-{refusal}"));
    }
    if runner.lacks_memory.get() && !runner.wrote.get() && row.has(Flags::DENYOOM) {
        return Err(format!("-{}", CommandError::OutOfMemory));
    }
    Ok(())
}

/// The reason why no script may write. The checks are in Redis's order, which differs from the order of the command
/// gate.
fn refusal_to_write(core: &Core) -> Option<CommandError> {
    if gate::is_read_only(core) {
        return Some(CommandError::text(gate::READ_ONLY));
    }
    bgsave::refusal(core).or_else(|| gate::refusal_for_replicas(core))
}

fn keys_of_script(core: &Core, runner: &ScriptRunner, row: &Row, words: &Words) -> Keys {
    let list = words.spans.as_slice();
    let word = |at: usize| words.spans.bytes(&words.bytes, list[at]);
    let hasher = core.shared.keyspace.hasher();
    let mut keys = Keys::new();
    match row.keys {
        KeyPlan::None => {}
        KeyPlan::First => keys.push(runner.last_key.borrow_mut().prepare(hasher, word(1))),
        KeyPlan::Specs => {
            keyspec::each_key(row.spec, list.len(), &word, |at| {
                keys.push(exec::prepare(at, &hasher.key(word(at))));
            });
        }
    }
    keys
}

/// Reports whether the running unit may run a command on these keys.
fn covers(core: &mut Core, db: DbIndex, keys: &[PreparedKey], scope: Scope) -> bool {
    match (&core.scripts.keys_in_use, core.unit.current()) {
        (Some(KeysInUse::Everything), _) => !is_held_by_others(core, db, keys, scope),
        (Some(KeysInUse::Places(places)), _) => {
            let held = |key: &PreparedKey| places.binary_search(&(db, key.slot)).is_ok();
            scope == Scope::Keys && keys.iter().all(held)
        }
        (None, Some(unit)) if unit.is_alone() => true,
        (None, Some(unit)) => scope == Scope::Keys && unit.holds(db, keys),
        (None, None) => false,
    }
}

/// Reports whether slow scripts of other workers block these keys.
#[cold]
fn is_held_by_others(core: &Core, db: DbIndex, keys: &[PreparedKey], scope: Scope) -> bool {
    let places = keys.iter().map(|key| (db, key.slot));
    core.shared.scripting.running.others_hold(core.id, (scope == Scope::Keys).then_some(places))
}

/// Reports whether the script may have effects that other clients can see. After its first effect, it cannot be
/// restarted. Effects are not allowed if the script could block another script later; see docs/design/scripts.md.
#[inline]
fn may_act(core: &mut Core, runner: &ScriptRunner) -> bool {
    if !runner.acted.get() {
        if !runner.confined.get() && !allow_undeclared_keys(core) {
            return false;
        }
        runner.acted.set(true);
    }
    true
}

/// Makes this the only script that may use undeclared keys.
pub(super) fn allow_undeclared_keys(core: &mut Core) -> bool {
    core.scripts.undeclared_keys_allowed = core.scripts.undeclared_keys_allowed
        || core.shared.scripting.running.allow_undeclared_keys(core.id);
    core.scripts.undeclared_keys_allowed
}

/// Lets the running unit touch anything that no slow script uses, by quiescing all other workers.
#[cold]
fn lock_everything(
    core: &mut Core,
    runner: &ScriptRunner,
    db: DbIndex,
    keys: &[PreparedKey],
    scope: Scope,
) -> Widened {
    let shared = core.shared;
    if matches!(core.scripts.keys_in_use, Some(KeysInUse::Everything)) {
        return Widened::NotYet;
    }
    if !allow_undeclared_keys(core) {
        let waits = core.scripts.keys_in_use.is_some()
            && shared.scripting.running.others_refuse(core.id).is_none();
        return if waits { Widened::NotYet } else { Widened::No };
    }
    // Check early whether a copy of the script's arguments is needed, so that they are usually not copied while all
    // workers are quiesced.
    let refused = || shared.scripting.running.others_refuse(core.id).is_some();
    let shown = (core.scripts.keys_in_use.is_none() && refused()).then(|| runner.shown());
    let quiesced = shared.quiesce.quiesce_others_mid_unit(core.id);
    let Some(unit) = core.unit.current() else { return Widened::No };
    unit.release();
    if core.scripts.keys_in_use.is_some() {
        shared.scripting.running.claim_all_keys(core.id);
    } else if refused() {
        // Slow scripts cannot be quiesced. Instead, the command gate keeps this script and the slow scripts away from
        // each other's keys, and all other commands away from the keys of this script.
        runner.show_slow(shown.unwrap_or_else(|| runner.shown()), None);
    } else {
        core.unit.keep_quiesced(quiesced);
        return Widened::Yes;
    }
    core.scripts.keys_in_use = Some(KeysInUse::Everything);
    drop(quiesced);
    if is_held_by_others(core, db, keys, scope) { Widened::NotYet } else { Widened::Yes }
}

fn run_from_script(
    core: &mut Core,
    session: &mut Session,
    runner: &ScriptRunner,
    row: &'static Row,
    keys: &[PreparedKey],
    words: &Words,
    out: &mut Vec<u8>,
) {
    let shared = core.shared;
    let list = words.spans.as_slice();
    let mut args = Args::new(&words.bytes, &words.spans, list, keys);
    if row.parent.is_some() {
        args.skip_subcommand();
    }
    let mut replies = runner.replies.borrow_mut();
    let replies = &mut *replies;
    let reply = Reply::new(replies, session.protocol());
    core.env.in_script.set(true);
    permission::limit_lookups(core, session, row, &args);
    let result = match row.run {
        Run::Data(run) => {
            let (spec, parent, db) = (row.spec, row.parent, session.db());
            let call = Invocation { spec, parent, run, db, blocking: Blocking::Never };
            let unit = core.unit.current().expect("a script runs within a unit");
            let done = unit.run(&core.env, &call, keys, &mut args, reply);
            done.map(|done| core.stats().changes.add(done.dirty))
        }
        Run::Server(at) => {
            let run = core.shared.handlers[usize::from(at)];
            core.accounting.forget_redacted();
            let mut call = Call { core, session, reply, row, prepared: keys };
            run(&mut call, &mut args).map(|_| ())
        }
    };
    core.env.in_script.set(false);
    permission::forget_limits(core);
    if core.env.aftermath.borrow().events.len() >= EVENTS_MAX {
        publish::publish_events(core);
    }
    match &result {
        Ok(()) if !replies.finish_within(MEMORY_BYTES_MAX) => {
            // The command has run. Its reply may contain the same large value many times, although the value is in
            // memory only once.
            let text = format!("ERR the reply is longer than {MEMORY_BYTES_MAX} bytes");
            brisk_resp::reply::encode::error(out, text.as_bytes());
        }
        Ok(()) => {
            if replies.has_shared() {
                let gathered = std::cell::RefCell::new(out);
                replies.drain(
                    |bytes| gathered.borrow_mut().extend_from_slice(bytes),
                    |data, range| gathered.borrow_mut().extend_from_slice(&data[range]),
                );
            } else {
                std::mem::swap(out, replies.bytes_mut());
            }
        }
        Err(error) => {
            count::count_error(core, error);
            brisk_resp::reply::encode::error(out, &error.wire());
        }
    }
    replies.clear();
    count::count_command(core, session, row, result.is_err(), &args);
    if shared.conditions.has(Condition::Monitor) && row.is_monitored() {
        lines::show_script_to_monitors(core, session, row, &args);
    }
    // The hidden arguments belong to this command, not to the command that runs the script.
    core.accounting.forget_redacted();
}

/// The result of a request to touch undeclared keys.
enum Widened {
    Yes,
    /// Slow scripts block the request until they end.
    NotYet,
    /// The script would block other scripts, and has had no effect yet.
    No,
}
