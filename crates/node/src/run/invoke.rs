//! Calls the function of a command that has passed the gate.

use crate::core::Core;
use crate::core::call::Call;
use crate::core::quiesce::Quiesced;
use crate::core::session::Session;
use crate::run::count;
use crate::run::gate;
use crate::run::route;
use brisk_engine::args::PreparedKey;
use brisk_engine::command::{Flags, Group, InMulti, Scope};
use brisk_engine::ctx::Blocking;
use brisk_engine::exec::{self, Invocation};
use brisk_engine::keyspace::ClientRef;
use brisk_engine::table::{Row, Run};
use brisk_engine::{Args, DbIndex, Outcome, Reply, ReplyBuffer, Result};

/// Runs a command that has passed all checks.
#[inline]
pub(crate) fn invoke(
    core: &mut Core,
    session: &mut Session,
    row: &'static Row,
    prepared: &[PreparedKey],
    args: &mut Args<'_>,
    replies: &mut ReplyBuffer,
) -> Result<Outcome> {
    let shared = core.shared;
    let reply = Reply::new(replies, session.protocol());
    let quiesced = match row.spec.scope {
        Scope::Quiescent if gate::is_operator_request(session, row) => {
            Some(core.quiesce_others_despite_scripts())
        }
        Scope::Quiescent => core.quiesce_others()?,
        _ if session.was_refused_slots() => quiesce_others_if_starved(core, session, row)?,
        _ => None,
    };
    if row.spec.scope == Scope::Quiescent {
        gate::check_again_when_quiesced(core, session, row)?;
    }
    let outcome = match row.run {
        Run::Data(run) => {
            let client = ClientRef {
                worker: core.id,
                token: session.token.to_u64(),
                id: session.id(),
                protocol: session.protocol(),
            };
            let call = Invocation {
                spec: row.spec,
                parent: row.parent,
                run,
                db: session.db(),
                blocking: if session.repeats() {
                    Blocking::Never
                } else {
                    Blocking::Client(client)
                },
            };
            let done = exec::run(&shared.keyspace, &core.env, &call, prepared, args, reply)?;
            core.stats().changes.add(done.dirty);
            done.outcome
        }
        Run::Server(at) => {
            let run = core.shared.handlers[usize::from(at)];
            core.accounting.forget_redacted();
            if row.has(Flags::RUNS_SCRIPT) {
                // While the script's commands run, this command is reported as the client's last command.
                count::note_last(core, session, row);
            }
            let outcome = run(&mut Call { core, session, reply, row, prepared }, args)?;
            propagate_server(core, row, session.db(), args);
            // The reply of a command that shows nothing of the dataset does not wait, even while nothing can be
            // written. Examples are INFO, MULTI, and the CONFIG SET that fixes the problem. The commands of scripts and
            // transactions note the position that they show. In addition, EXEC itself shows whether other clients have
            // changed watched keys.
            let shows_libraries =
                row.spec.group == Group::Scripting && !row.has(Flags::RUNS_SCRIPT);
            let executes = row.spec.in_multi == InMulti::Executes;
            if shows_libraries || executes || row.has(Flags::WRITE) {
                core.env.note_shown(shared.keyspace.journal().end());
            }
            outcome
        }
    };
    drop(quiesced);
    Ok(outcome)
}

/// Quiesces all other workers for a request that has been unable to lock its slots for a long time. EXEC, scripts and
/// functions quiesce the workers themselves, because they lock the slots of the commands that they run.
#[cold]
fn quiesce_others_if_starved(
    core: &mut Core,
    session: &Session,
    row: &Row,
) -> Result<Option<Quiesced<'static>>> {
    let begins_unit = row.has(Flags::RUNS_SCRIPT) || row.spec.in_multi == InMulti::Executes;
    if begins_unit || !session.is_starved() {
        return Ok(None);
    }
    let quiesced = core.quiesce_others_for_starved()?;
    route::check_again_when_quiesced(core)?;
    Ok(quiesced)
}

/// Propagates a command that changes something other than keys, for example FUNCTION LOAD. All other workers are
/// quiesced while the command runs, so the order of tickets is the order of the changes.
#[inline]
pub(crate) fn propagate_server(core: &Core, row: &Row, db: DbIndex, args: &Args<'_>) {
    if row.has(Flags::WRITE) {
        debug_assert_eq!(row.spec.scope, Scope::Quiescent);
        let words: Vec<&[u8]> = args.arguments().collect();
        core.shared.keyspace.propagate_without_keys(&core.env, db, &words);
    }
}
