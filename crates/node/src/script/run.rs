//! Runs a script or function, from EVAL, EVALSHA or FCALL to the reply.

use super::machine::{Machine, error_with};
use super::runner::{Parked, Request, ScriptRunner, threshold_ms};
use super::slow::ScriptDescription;
use crate::core::Core;
use crate::core::call::Call;
use crate::core::conditions::Condition;
use crate::core::mailbox::DeliveredReply;
use crate::core::memory_limit;
use crate::core::session::Session;
use crate::monitor::lines;
use crate::run::count;
use crate::run::gate;
use crate::run::route;
use crate::run::waiting;
use crate::script::calls;
use crate::tracking::session;
use crate::transactions::execute;
use brisk_engine::command::Flags;
use brisk_engine::env::SuspendedUnit;
use brisk_engine::table::Row;
use brisk_engine::unit::Unit;
use brisk_engine::{Args, CommandError, Outcome, Reply, ReplyBuffer, Result};
use brisk_script::header::ScriptFlags;
use brisk_script::{Ended, Failure};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Index of the argument with the number of keys. The keys follow it.
const COUNT_AT: usize = 2;

/// The script or function to run.
pub struct Target<'t> {
    pub code: &'t brisk_script::Script,
    pub flags: ScriptFlags,
    /// Set if the script uses keys that it does not declare.
    pub uses_undeclared_keys: &'t AtomicBool,
    /// Set if the script has effects that other clients can see.
    pub acts: &'t AtomicBool,
    /// True if the code shows that the script uses only keys that it declares.
    pub confined: bool,
    /// The script's digest or the function's name.
    pub name: &'t [u8],
    pub is_eval: bool,
}

impl Target<'_> {
    /// Records the properties of the finished run for the next run.
    fn learn(&self, runner: &ScriptRunner, in_exec: bool) {
        if runner.used_undeclared_keys.get() {
            self.uses_undeclared_keys.store(true, Ordering::Relaxed);
        }
        if !in_exec && runner.acted.get() && !self.acts.load(Ordering::Relaxed) {
            self.acts.store(true, Ordering::Relaxed);
        }
    }
}

/// Number of arguments that are keys.
pub fn key_count(args: &Args<'_>, not_a_number: &'static str) -> Result<usize> {
    let count = brisk_engine::number::parse_i64(args.argument(COUNT_AT))
        .ok_or_else(|| CommandError::text(not_a_number))?;
    let most = args.argc() - COUNT_AT - 1;
    match usize::try_from(count) {
        Ok(count) if count <= most => Ok(count),
        Ok(_) => Err(CommandError::text("ERR Number of keys can't be greater than number of args")),
        Err(_) => Err(CommandError::text("ERR Number of keys can't be negative")),
    }
}

/// The flags of a command, given the flags of the script that it runs.
pub fn flags_of_command(flags: Flags, script: ScriptFlags) -> Flags {
    if script.contains(ScriptFlags::COMPATIBLE) {
        return flags;
    }
    let own = Flags::STALE | Flags::DENYOOM | Flags::WRITE | Flags::MAY_REPLICATE;
    let mut flags = flags.difference(own);
    if !script.intersects(ScriptFlags::ALLOW_OOM | ScriptFlags::NO_WRITES) {
        flags |= Flags::DENYOOM;
    }
    if !script.contains(ScriptFlags::NO_WRITES) {
        flags |= Flags::WRITE;
    }
    if script.contains(ScriptFlags::ALLOW_STALE) {
        flags |= Flags::STALE;
    }
    flags
}

/// Runs a script for a client. `keys` is the number of arguments that are keys.
pub fn evaluate(
    call: &mut Call<'_>,
    machine: &Rc<Machine>,
    target: &Target<'_>,
    args: &Args<'_>,
    keys: usize,
) -> Result<Outcome> {
    let admitted = admit(call, target);
    let Admitted { no_writes, lacks_memory } = call.shown_if_refused(args, admitted)?;
    let core = &mut *call.core;
    let in_exec = core.unit.is_running();
    if in_exec {
        let first = calls::allow_undeclared_keys(core);
        debug_assert!(first, "a transaction with scripts runs alone");
    } else {
        core.scripts.used_slot = call.prepared.first().map(|key| key.slot);
        begin_script_unit(core, call.session, call.prepared, target)?;
    }
    // Monitors are shown the script before the commands that it runs.
    show_script(core, call.session, call.row, args);
    let runner = &machine.runner;
    runner.is_eval.set(target.is_eval);
    runner.read_only.set(no_writes);
    runner.lacks_memory.set(lacks_memory);
    runner.parkable.set(true);
    runner.acted.set(in_exec);
    runner.confined.set(target.confined);
    let across = ScriptFlags::COMPATIBLE.union(ScriptFlags::ALLOW_CROSS_SLOT_KEYS);
    runner.crosses_slots.set(target.flags.intersects(across));
    if let Some(first) = call.prepared.first() {
        runner.last_key.borrow_mut().note(args.argument(first.index as usize), first);
    }
    runner.begin();
    let shown = || ScriptDescription {
        name: target.name.to_vec(),
        command: args.arguments().map(<[u8]>::to_vec).collect(),
    };
    if core.scripts.keys_in_use.is_some() {
        // An earlier script of the transaction has become slow, and the command gate still blocks other commands.
        runner.begin_slice();
        core.shared.scripting.running.show_next(core.id, target.is_eval, shown());
    }
    let (began, db, protocol) =
        (core.accounting.last_ticks(), call.session.db(), call.session.protocol());
    let out = call.reply.buffer().bytes_mut();
    let words = || args.arguments().skip(COUNT_AT + 1);
    let session = &mut *call.session;
    let run = || {
        let words = (Words(words(), keys), Words(words().skip(keys), usize::MAX));
        let mut interpreter = machine.interpreter.borrow_mut();
        interpreter.run(target.code, target.is_eval, words.0, words.1, protocol, out)
    };
    let ended =
        runner.shown.lend(&shown, || runner.core.lend(core, || runner.session.lend(session, run)));
    if ended == Ended::Suspended {
        let parked = park(core, machine, call.session, call.row, target, args, in_exec);
        restore(call.session, db, protocol);
        core.scripts.parked = Some(parked);
        return Ok(Outcome::Elsewhere);
    }
    restore(call.session, db, protocol);
    // The whole time is charged to the command.
    core.accounting.charge_from(began);
    runner.end();
    machine.publish_memory();
    target.learn(runner, in_exec);
    if !in_exec {
        end_unit(core);
    }
    verdict(core, machine, ended, target.name).map(|()| Outcome::Replied)
}

/// The restrictions that apply to a script.
struct Admitted {
    /// The script must not write.
    no_writes: bool,
    /// Memory is short, so commands that need more memory are rejected.
    lacks_memory: bool,
}

/// Checks whether a script may run, based on its flags.
fn admit(call: &mut Call<'_>, target: &Target<'_>) -> Result<Admitted> {
    let read_only = call.row.has(Flags::READONLY);
    let core = &mut *call.core;
    let compatible = target.flags.contains(ScriptFlags::COMPATIBLE);
    let no_writes = !compatible && target.flags.contains(ScriptFlags::NO_WRITES);
    let clients = !call.session.repeats();
    if core.cluster.is_on() && !compatible && target.flags.contains(ScriptFlags::NO_CLUSTER) {
        let text = "ERR Can not run script on cluster, 'no-cluster' flag is set.";
        return Err(CommandError::text(text));
    }
    if clients && gate::is_stale(core) {
        if compatible {
            return Err(CommandError::text(gate::STALE));
        }
        if !target.flags.contains(ScriptFlags::ALLOW_STALE) {
            let text = "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and \
                        'allow-stale' flag is not set.";
            return Err(CommandError::text(text));
        }
    }
    if clients && !compatible && !no_writes && gate::is_read_only(core) {
        let text = "READONLY Can not run script with write flag on readonly replica.";
        return Err(CommandError::text(text));
    }
    if read_only && !compatible && !no_writes {
        let text = "ERR Can not execute a script with write flag using *_ro command.";
        return Err(CommandError::text(text));
    }
    let allows_oom =
        !compatible && target.flags.intersects(ScriptFlags::ALLOW_OOM | ScriptFlags::NO_WRITES);
    let max = memory_limit::in_force(core);
    // Within a transaction, nothing is evicted because the transaction holds slots.
    let is_short = |core: &mut Core| match core.unit.is_running() {
        true => !memory_limit::fits(core, max),
        false => !memory_limit::make_room(core),
    };
    let lacks_memory = !allows_oom && max != 0 && is_short(core);
    if lacks_memory && !compatible {
        let text = "OOM allow-oom flag is not set on the script, can not run it when used memory > \
                    'maxmemory'";
        return Err(CommandError::text(text));
    }
    Ok(Admitted { no_writes: read_only || no_writes, lacks_memory })
}

impl Call<'_> {
    /// If `found` is an error, shows monitors the script although it is not run.
    pub fn shown_if_refused<T>(&mut self, args: &Args<'_>, found: Result<T>) -> Result<T> {
        if found.is_err() {
            show_script(self.core, self.session, self.row, args);
        }
        found
    }
}

/// An iterator over the arguments that knows its length: `.1` arguments are left.
struct Words<I>(I, usize);

impl<'a, I: ExactSizeIterator<Item = &'a [u8]>> Iterator for Words<I> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.1 = self.1.checked_sub(1)?;
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.0.len().min(self.1);
        (len, Some(len))
    }
}

impl<'a, I: ExactSizeIterator<Item = &'a [u8]>> ExactSizeIterator for Words<I> {}

/// Restores the session's state from before the script.
fn restore(session: &mut Session, db: brisk_engine::DbIndex, protocol: brisk_resp::Protocol) {
    session.reply_to_script_in(protocol);
    if session.db() != db {
        session.select(db);
    }
}

/// Shows a script to monitors, but only once if the script is blocked and retried.
fn show_script(core: &mut Core, session: &mut Session, row: &'static Row, args: &Args<'_>) {
    let watched = core.shared.conditions.has(Condition::Monitor);
    if watched && session.note_script_shown() {
        lines::show_to_monitors(core, session, row, args);
    }
}

pub(crate) fn is_parked_eval(core: &Core) -> bool {
    core.scripts.interpreters.runs_eval()
}

/// Locks the keys that a script declares. If the script is known to use other keys, quiesces all other workers instead.
fn begin_script_unit(
    core: &mut Core,
    session: &Session,
    keys: &[brisk_engine::args::PreparedKey],
    target: &Target<'_>,
) -> Result<()> {
    let keyspace = &core.shared.keyspace;
    if target.uses_undeclared_keys.load(Ordering::Relaxed) || session.is_starved() {
        let quiesced = core.quiesce_others_for(session);
        let quiesced = quiesced.map_err(|error| in_the_way(core, error))?;
        route::check_again_when_quiesced(core)?;
        let first = calls::allow_undeclared_keys(core);
        debug_assert!(first, "no other script uses undeclared keys");
        core.unit.begin(Unit::alone(keyspace, &core.env), quiesced);
        return Ok(());
    }
    // Otherwise the script would run up to its first effect and then have to be restarted.
    let acts = !target.confined && target.acts.load(Ordering::Relaxed);
    if acts && !calls::allow_undeclared_keys(core) {
        return Err(in_the_way(core, CommandError::SlotBusy));
    }
    let places = keys.iter().map(|key| (session.db(), key.slot));
    match Unit::holding(keyspace, &core.env, places) {
        Ok(unit) => core.unit.begin(unit, None),
        Err(error) => {
            forbid_undeclared_keys(core);
            return Err(error);
        }
    }
    Ok(())
}

/// The error for a script that cannot continue and has had no effect yet. If a slow script blocks it, this is the BUSY
/// error; otherwise it is `error`, which describes a short-term obstacle.
#[cold]
fn in_the_way(core: &Core, error: CommandError) -> CommandError {
    core.shared.scripting.running.others_refuse(core.id).map_or(error, CommandError::text)
}

fn forbid_undeclared_keys(core: &mut Core) {
    if std::mem::take(&mut core.scripts.undeclared_keys_allowed) {
        core.shared.scripting.running.forbid_undeclared_keys();
    }
}

/// Ends the unit of a script or of EXEC.
pub(crate) fn end_unit(core: &mut Core) {
    core.unit.end(&core.env);
    if core.scripts.keys_in_use.take().is_some() {
        core.shared.end_slow(core.id);
    }
    forbid_undeclared_keys(core);
    core.unit.let_others_continue();
}

/// The error that is sent to the client instead of the reply, if any.
fn verdict(core: &Core, machine: &Machine, ended: Ended, name: &[u8]) -> Result<()> {
    let runner = &machine.runner;
    match ended {
        Ended::Replied | Ended::Suspended => Ok(()),
        Ended::Failed(failure) => {
            let counted = failure.counted;
            let text = whole_text(failure, name);
            Err(if counted { CommandError::Reported(text.into()) } else { error_with(b"", &text) })
        }
        Ended::Stopped(_) if runner.abandoned.get() => {
            Err(in_the_way(core, CommandError::SlotBusy))
        }
        Ended::Stopped(at) => {
            let mut text = b"ERR Script killed by user with SCRIPT KILL...".to_vec();
            if at.is_none() {
                // This happens, for example, while the reply is being built.
                text.extend_from_slice(&[b" script: ", name].concat());
            }
            Err(error_with(b"", &whole_text(Failure { text, at, counted: false }, name)))
        }
    }
}

/// Suspends a script for the first time.
fn park(
    core: &mut Core,
    machine: &Rc<Machine>,
    session: &Session,
    row: &'static Row,
    target: &Target<'_>,
    args: &Args<'_>,
    in_exec: bool,
) -> Box<Parked> {
    let own = Box::new(Session::standing_for(session));
    let ns = core.accounting.charge(core.clock);
    let mut aside = SuspendedUnit::default();
    aside.take_moment(&core.env);
    core.env.exchange(&mut aside);
    let mut parked = Box::new(Parked {
        machine: Rc::clone(machine),
        unit: core.unit.park(),
        slow: core.scripts.keys_in_use.take(),
        undeclared_keys_allowed: std::mem::take(&mut core.scripts.undeclared_keys_allowed),
        aside,
        session: own,
        remembers: session::remembers(core),
        row,
        name: target.name.to_vec(),
        protocol: session.protocol(),
        request: Request::of(args),
        ns,
        logged: false,
        in_exec,
        execution: None,
    });
    log_if_slow(core, &mut parked);
    parked
}

/// Logs once that a script is slow. In a transaction with an earlier slow script, a script may be suspended before it
/// is slow itself.
fn log_if_slow(core: &Core, parked: &mut Parked) {
    // Avoid taking the list's lock, which all workers share, because this runs after each slice.
    if parked.logged {
        return;
    }
    let ms = core.shared.scripting.running.slow_ms(core.id);
    if ms < threshold_ms(core) {
        return;
    }
    parked.logged = true;
    let what = if is_parked_eval(core) { "SCRIPT KILL" } else { "FUNCTION KILL" };
    let name = String::from_utf8_lossy(&parked.name);
    core.shared.log.warning(format_args!(
        "Slow script detected: still in execution after {ms} milliseconds. You can try killing \
         the script using the {what} command. Script name is: {name}."
    ));
}

/// Runs the suspended script for a slice. Returns its reply if it has ended. `client` is the session that
/// `WorkerScripts::parked_client` named, if that client is still connected.
pub fn run_script_slice(core: &mut Core, client: Option<&mut Session>) -> Option<DeliveredReply> {
    let mut parked = core.scripts.parked.take()?;
    let machine = Rc::clone(&parked.machine);
    core.read_clocks();
    core.env.exchange(&mut parked.aside);
    if !core.unit.resume(std::mem::take(&mut parked.unit)) {
        return None;
    }
    core.scripts.keys_in_use = parked.slow.take();
    core.scripts.undeclared_keys_allowed = parked.undeclared_keys_allowed;
    session::act_again_for(core, &parked.session, parked.remembers);
    let runner = &machine.runner;
    runner.begin_slice();
    let begin = core.accounting.last_ticks();
    let mut replies = ReplyBuffer::new();
    let ended = runner.core.lend(core, || {
        runner.session.lend(&mut parked.session, || {
            let out = replies.bytes_mut();
            machine.interpreter.borrow_mut().go_on(parked.protocol, out)
        })
    });
    let ticks = core.clock.ticks();
    parked.ns += core.clock.ns(ticks.wrapping_sub(begin));
    core.accounting.charge_from(ticks);
    session::clear_acting_session(core);
    if ended == Ended::Suspended {
        core.env.exchange(&mut parked.aside);
        put_aside(core, &mut parked);
        core.scripts.parked = Some(parked);
        return None;
    }
    runner.end();
    if !parked.in_exec {
        end_unit(core);
        core.env.join(std::mem::take(&mut parked.aside));
    }
    conclude(core, &mut parked, &machine, ended, &mut replies);
    if parked.in_exec {
        replies = resume_after_script(core, &mut parked, client, replies)?;
    }
    if core.env.has_ready() {
        waiting::serve_waiters(core);
    }
    let record = &parked.session.record;
    Some(DeliveredReply { token: record.token, client: record.id, replies })
}

/// Moves the state of the unit out of the worker.
fn put_aside(core: &mut Core, parked: &mut Parked) {
    parked.unit = core.unit.park();
    parked.slow = core.scripts.keys_in_use.take();
    parked.undeclared_keys_allowed = std::mem::take(&mut core.scripts.undeclared_keys_allowed);
    log_if_slow(core, parked);
}

/// Builds the reply of a script that has ended, and counts it.
fn conclude(
    core: &mut Core,
    parked: &mut Parked,
    machine: &Machine,
    ended: Ended,
    replies: &mut ReplyBuffer,
) {
    let busy = |is_eval| core.shared.scripting.running.busy(is_eval);
    let verdict = verdict(core, machine, ended, &parked.name).map_err(|error| match error {
        // The script has run for too long to be restarted silently.
        CommandError::SlotBusy => CommandError::text(busy(machine.runner.is_eval.get())),
        error => error,
    });
    let failed = verdict.is_err();
    parked.session.reply_to_script_in(parked.protocol);
    if let Err(error) = verdict {
        if !matches!(error, CommandError::Reported(_)) {
            count::count_error(core, &error);
        }
        Reply::new(replies, parked.protocol).error(&error);
    }
    let (record, row, ns) = (Arc::clone(&parked.session.record), parked.row, parked.ns);
    parked.request.with_args(core, |core, args| {
        count::count_late_command(core, &record, row, failed, ns, args)
    });
}

/// Runs the commands of the transaction that come after a slow script. Returns the reply of EXEC, unless another script
/// becomes slow.
fn resume_after_script(
    core: &mut Core,
    parked: &mut Parked,
    client: Option<&mut Session>,
    replies: ReplyBuffer,
) -> Option<ReplyBuffer> {
    let mut execution = parked.execution.take()?;
    execution.replies.bytes_mut().extend_from_slice(replies.bytes());
    execution.ns += parked.ns;
    let begin = core.accounting.last_ticks();
    let session = client.unwrap_or(&mut parked.session);
    // CLIENT CACHING applies to the whole transaction, but it was dropped when the script was suspended.
    session::act_again_for(core, session, parked.remembers);
    let done = execute::resume_execution(core, session, execution);
    session::clear_acting_session(core);
    let aside = std::mem::take(&mut parked.aside);
    let Some(mut execution) = done else {
        core.env.join(aside);
        return None;
    };
    end_unit(core);
    core.env.join(aside);
    let ns = execution.ns + core.clock.ns(core.clock.ticks().wrapping_sub(begin));
    let record = Arc::clone(&parked.session.record);
    let exec = Request::of_words(&[b"EXEC"]);
    exec.with_args(core, |core, args| {
        count::count_late_command(core, &record, execution.row, false, ns, args)
    });
    core.accounting.charge_from_now(core.clock);
    Some(std::mem::take(&mut execution.replies))
}

/// Returns the text of an error with its location.
fn whole_text(failure: Failure, name: &[u8]) -> Vec<u8> {
    let Failure { mut text, at, .. } = failure;
    if let Some((source, line)) = at {
        for part in [b" script: ".as_slice(), name, b", on ", &source, b":"] {
            text.extend_from_slice(part);
        }
        text.extend_from_slice(line.to_string().as_bytes());
        text.push(b'.');
    }
    text
}

/// The error for a request to run another script while a slow script is suspended.
pub fn parked_error(core: &Core) -> CommandError {
    CommandError::text(core.shared.scripting.running.busy(is_parked_eval(core)))
}

/// Makes the interpreters drop flushed scripts.
pub fn forget_flushed(core: &mut Core) {
    core.scripts.interpreters.forget_flushed();
}
