//! A script from EVAL, EVALSHA or FCALL to its reply.

use super::desk::{Parked, Request};
use super::machine::{Machine, error_with};
use super::slow::busy;
use crate::call::Call;
use crate::mailbox::Delivery;
use crate::session::Session;
use crate::shared::armed;
use crate::worker::Core;
use brisk_engine::command::Flags;
use brisk_engine::env::Aside;
use brisk_engine::keyspace::Place;
use brisk_engine::unit::Unit;
use brisk_engine::{Args, CommandError, Outcome, Reply, ReplyBuffer, Result};
use brisk_script::header::ScriptFlags;
use brisk_script::{Ended, Failure};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of keys stands here, and the keys behind it.
const COUNT_AT: usize = 2;

/// What is to be run.
pub struct Target<'t> {
    pub code: &'t brisk_script::Script,
    pub flags: ScriptFlags,
    /// Where it is remembered that it uses keys that it does not declare.
    pub roams: &'t AtomicBool,
    /// The digest, or the function's name.
    pub name: &'t [u8],
    pub is_eval: bool,
}

/// How many of the words are keys.
pub fn key_count(args: &Args<'_>, not_a_number: &'static str) -> Result<usize> {
    let count = brisk_engine::number::parse_i64(args.word(COUNT_AT))
        .ok_or_else(|| CommandError::text(not_a_number))?;
    let most = args.argc() - COUNT_AT - 1;
    match usize::try_from(count) {
        Ok(count) if count <= most => Ok(count),
        Ok(_) => Err(CommandError::text("ERR Number of keys can't be greater than number of args")),
        Err(_) => Err(CommandError::text("ERR Number of keys can't be negative")),
    }
}

/// The flags of the command that runs a script with flags of its own.
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

/// Runs a script for a client, `keys` of whose words are keys.
pub fn evaluate(
    call: &mut Call<'_>,
    machine: &Rc<Machine>,
    target: &Target<'_>,
    args: &Args<'_>,
    keys: usize,
    read_only: bool,
) -> Result<Outcome> {
    let core = &mut *call.core;
    if core.parked.is_some() {
        // The interpreter is in use.
        return Err(CommandError::text(busy(core.is_parked_eval())));
    }
    let compatible = target.flags.contains(ScriptFlags::COMPATIBLE);
    let no_writes = !compatible && target.flags.contains(ScriptFlags::NO_WRITES);
    if read_only && !compatible && !no_writes {
        let text = "ERR Can not execute a script with write flag using *_ro command.";
        return Err(CommandError::text(text));
    }
    let allows_oom =
        !compatible && target.flags.intersects(ScriptFlags::ALLOW_OOM | ScriptFlags::NO_WRITES);
    let in_exec = core.unit.is_some();
    let max = core.config.memory.maxmemory;
    // Within a transaction nothing is evicted: it holds slots.
    let is_short = |core: &mut Core| match in_exec {
        true => crate::memory::used() > max,
        false => !core.make_room(),
    };
    let lacks_memory = !allows_oom && max != 0 && is_short(core);
    if lacks_memory && !compatible {
        let text = "OOM allow-oom flag is not set on the script, can not run it when used memory > \
                    'maxmemory'";
        return Err(CommandError::text(text));
    }
    if core.shared.armed.load(Ordering::Relaxed) & armed::MONITOR != 0 {
        core.tell_monitors(call.session, call.row, args);
    }
    if !in_exec {
        core.begin_script_unit(call.session, call.prepared, target)?;
    }
    let desk = &machine.desk;
    desk.is_eval.set(target.is_eval);
    desk.read_only.set(read_only || no_writes);
    desk.lacks_memory.set(lacks_memory);
    desk.parkable.set(!in_exec);
    desk.acted.set(in_exec);
    desk.begin();
    let (began, db, protocol) = (core.last_ticks, call.session.db, call.session.protocol);
    let out = call.reply.buffer().bytes_mut();
    let words = || args.words().skip(COUNT_AT + 1);
    let session = &mut *call.session;
    let ended = desk.core.lend(core, || {
        desk.session.lend(session, || {
            let words = (Words(words(), keys), Words(words().skip(keys), usize::MAX));
            let mut interpreter = machine.interpreter.borrow_mut();
            interpreter.run(target.code, target.is_eval, words.0, words.1, protocol, out)
        })
    });
    if ended == Ended::Suspended {
        let parked = core.park(call.session, call.row, target, args);
        restore(call.session, db, protocol);
        core.parked = Some(parked);
        return Ok(Outcome::Elsewhere);
    }
    restore(call.session, db, protocol);
    // The command has taken all this time.
    core.last_ticks = began;
    desk.end();
    machine.publish_memory();
    if desk.roamed.get() {
        target.roams.store(true, Ordering::Relaxed);
    }
    if !in_exec {
        core.end_unit();
    }
    core.verdict(machine, ended, target.name).map(|()| Outcome::Replied)
}

/// Takes `.1` of the words.
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

/// A session is again as its client knows it.
fn restore(session: &mut Session, db: brisk_engine::DbIndex, protocol: brisk_resp::Protocol) {
    session.protocol = protocol;
    if session.db != db {
        session.select(db);
    }
}

impl Core {
    /// The worker's interpreter.
    pub fn machine(&mut self) -> Result<Rc<Machine>> {
        if let Some(machine) = &self.machine {
            machine.refresh();
            return Ok(Rc::clone(machine));
        }
        let machine = Rc::new(Machine::new(self.shared, self.id)?);
        self.machine = Some(Rc::clone(&machine));
        machine.refresh();
        Ok(machine)
    }

    pub(crate) fn is_parked_eval(&self) -> bool {
        self.machine.as_ref().is_none_or(|machine| machine.desk.is_eval.get())
    }

    /// Locks the keys that a script declares, or makes everybody stand still if it is known to use
    /// others.
    fn begin_script_unit(
        &mut self,
        session: &Session,
        keys: &[brisk_engine::args::PreparedKey],
        target: &Target<'_>,
    ) -> Result<()> {
        let keyspace = &self.shared.keyspace;
        if target.roams.load(Ordering::Relaxed) {
            self.still = self.stop_others()?;
            self.unit = Some(Unit::alone(keyspace, &self.env));
        } else {
            let places: Vec<Place> = keys.iter().map(|key| (session.db, key.slot)).collect();
            self.unit = Some(Unit::holding(keyspace, &self.env, places)?);
        }
        Ok(())
    }

    /// Ends the unit that a script or EXEC was.
    pub(crate) fn end_unit(&mut self) {
        if let Some(unit) = self.unit.take() {
            unit.finish(&self.env);
        }
        self.unit_began_us = None;
        if self.slow.take().is_some() {
            self.shared.end_slow(self.id);
        }
        self.still = None;
    }

    /// What the client hears besides the reply.
    fn verdict(&self, machine: &Machine, ended: Ended, name: &[u8]) -> Result<()> {
        let desk = &machine.desk;
        match ended {
            Ended::Replied | Ended::Suspended => Ok(()),
            Ended::Failed(failure) => {
                let counted = failure.counted;
                let text = whole_text(failure, name);
                Err(if counted {
                    CommandError::Reported(text.into())
                } else {
                    error_with(b"", &text)
                })
            }
            Ended::Stopped if desk.abandoned.get() => Err(CommandError::SlotBusy),
            Ended::Stopped => {
                let before = b"ERR Script killed by user with SCRIPT KILL... script: ";
                Err(error_with(before, name))
            }
        }
    }

    /// Puts a script aside that was suspended for the first time.
    fn park(
        &mut self,
        session: &Session,
        row: &'static crate::table::Row,
        target: &Target<'_>,
        args: &Args<'_>,
    ) -> Box<Parked> {
        let own = Box::new(Session::standing_for(session));
        let what = if target.is_eval { "SCRIPT KILL" } else { "FUNCTION KILL" };
        let name = String::from_utf8_lossy(target.name).into_owned();
        let words = args.words().map(<[u8]>::to_vec).collect();
        let ms = self.shared.scripting.describe(self.id, target.name, words);
        self.shared.log.warning(format_args!(
            "Slow script detected: still in execution after {ms} milliseconds. You can try killing \
             the script using the {what} command. Script name is: {name}."
        ));
        let ticks = self.clock.ticks();
        let ns = self.clock.ns(ticks.wrapping_sub(self.last_ticks));
        self.last_ticks = ticks;
        let mut aside = Aside::default();
        aside.set_now(self.env.now());
        self.env.exchange(&mut aside);
        Box::new(Parked {
            unit: self.unit.take().expect("a script runs within a unit"),
            slow: self.slow.take(),
            began_us: self.unit_began_us.take(),
            aside,
            session: own,
            row,
            name: target.name.to_vec(),
            protocol: session.protocol,
            request: Request::of(args),
            ns,
        })
    }

    /// Lets the script that is put aside go on for a slice. Its answer, when it has ended.
    pub(crate) fn go_on_with_script(&mut self) -> Option<Delivery> {
        let mut parked = self.parked.take()?;
        let machine = Rc::clone(self.machine.as_ref()?);
        self.read_clocks();
        self.env.exchange(&mut parked.aside);
        let Parked { unit, slow, began_us, aside, mut session, row, name, protocol, request, ns } =
            *parked;
        self.unit = Some(unit);
        (self.slow, self.unit_began_us) = (slow, began_us);
        self.act_for(&session);
        let desk = &machine.desk;
        desk.begin_slice();
        let begin = self.last_ticks;
        let mut replies = ReplyBuffer::new();
        let ended = desk.core.lend(self, || {
            desk.session.lend(&mut session, || {
                let out = replies.bytes_mut();
                machine.interpreter.borrow_mut().go_on(protocol, out)
            })
        });
        let ticks = self.clock.ticks();
        let ns = ns + self.clock.ns(ticks.wrapping_sub(begin));
        self.last_ticks = ticks;
        self.act_for_nobody();
        if ended == Ended::Suspended {
            let mut aside = aside;
            self.env.exchange(&mut aside);
            let unit = self.unit.take()?;
            let (slow, began_us) = (self.slow.take(), self.unit_began_us.take());
            let parked =
                Parked { unit, slow, began_us, aside, session, row, name, protocol, request, ns };
            self.parked = Some(Box::new(parked));
            return None;
        }
        desk.end();
        self.end_unit();
        self.env.join(aside);
        let verdict = self.verdict(&machine, ended, &name);
        let failed = verdict.is_err();
        session.protocol = protocol;
        if let Err(error) = verdict {
            if !matches!(error, CommandError::Reported(_)) {
                self.count_error(&error);
            }
            Reply::new(&mut replies, protocol).error(&error);
        }
        let record = std::sync::Arc::clone(&session.record);
        request.with_args(self, |core, args| core.book(&record, row, failed, ns, args));
        if self.env.has_ready() {
            self.serve_waiters();
        }
        Some(Delivery { token: record.token, client: record.id, replies })
    }
}

/// An error with where it happened.
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
