//! Commands that other threads compute: passes the work to the threads, and finishes the commands.

use crate::clients::flag;
use crate::core::Core;
use crate::core::long::{Caller, ComputedJob, Job};
use crate::core::mailbox::{DeliveredReply, Message};
use crate::core::session::Session;
use crate::run::count;
use crate::run::gate;
use crate::run::waiting;
use brisk_engine::CommandError;
use brisk_engine::finish::{FinishResult, finish, refuse};
use brisk_engine::table::Row;
use std::sync::Arc;

/// Passes the work of the command that the session just ran to another thread.
pub(crate) fn leave_long(core: &mut Core, session: &Session, row: &'static Row) {
    let Some(long) = core.env.take_long() else { return };
    let ns = core.accounting.charge(core.clock);
    count::note_last(core, session, row);
    let caller = Caller { record: Arc::clone(&session.record), row, ns };
    send_long(core, Box::new(Job { caller, long }));
    // FLUSHALL has changed keys that other clients wait for.
    if core.env.has_ready() {
        waiting::serve_waiters(core);
    }
}

fn send_long(core: &Core, job: Box<Job>) {
    let shared = core.shared;
    if let Err(job) = shared.threads.computing.send(job) {
        let computed = job.run(&shared.keyspace, core.clock);
        shared.mailboxes.send(core.id, Message::Computed(Box::new(computed)));
    }
}

/// Finishes a command whose work is done. Returns its reply, unless the work has to be done again. If the data must not
/// change at the moment, returns the job as an error, for a later attempt.
pub fn finish_long(
    core: &mut Core,
    job: ComputedJob,
) -> Result<Option<DeliveredReply>, Box<ComputedJob>> {
    let ComputedJob { mut caller, computed } = job;
    let shared = core.shared;
    core.read_clocks();
    // A primary that has become a replica in the meantime must not store the result.
    let is_refused =
        computed.writes() && gate::is_read_only(core) && !caller.record.has(flag::PRIMARY);
    let finished = if is_refused {
        let error = CommandError::text(gate::READ_ONLY);
        FinishResult::Over(refuse(&shared.keyspace, &core.env, computed, error))
    } else {
        finish(&shared.keyspace, &core.env, computed)
    };
    caller.ns += core.accounting.charge(core.clock);
    let over = match finished {
        FinishResult::Again(long) => {
            send_long(core, Box::new(Job { caller, long }));
            return Ok(None);
        }
        FinishResult::Later(computed) => return Err(Box::new(ComputedJob { caller, computed })),
        FinishResult::Over(over) => over,
    };
    core.stats().changes.add(over.dirty);
    if let Some(error) = &over.error {
        count::count_error(core, error);
    }
    over.with_args(&shared.keyspace, |args| {
        count::count_late_command(
            core,
            &caller.record,
            caller.row,
            over.error.is_some(),
            caller.ns,
            args,
        );
    });
    if over.thawed {
        shared.mailboxes.send_to_all(|| Message::Thawed);
    }
    if core.env.has_ready() {
        waiting::serve_waiters(core);
    }
    let Caller { record, .. } = caller;
    Ok(Some(DeliveredReply { token: record.token, client: record.id, replies: over.replies }))
}
