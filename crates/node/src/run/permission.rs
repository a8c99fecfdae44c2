//! Checks whether the user of a session may run a command. Handlers rely on these checks.
//!
//! The gate calls [`permit`] for commands of clients. EXEC calls it again for each queued command, and scripts call it
//! for each command they run (`script::calls`). [`permit`] logs rejected commands. A session whose user has all
//! permissions is not checked: see [`Session::is_restricted`].

use crate::clients::accounts::{Account, Affected};
use crate::clients::{ClientRecord, flag};
use crate::core::Core;
use crate::core::client_lines::describe as describe_client;
use crate::core::mailbox::{Message, Unblocked};
use crate::core::session::Session;
use brisk_acl::{Context, Denied, Entry, Reason, check, reads_every_key};
use brisk_engine::table::Row;
use brisk_engine::{Args, CommandError};
use std::sync::atomic::Ordering;

impl ClientRecord {
    /// Reports whether a user may keep all subscriptions of this client.
    pub fn may_keep_listening(&self, user: &brisk_acl::User) -> bool {
        self.listens_only_to(|space, name| {
            user.may_keep_listening(name, space == crate::pubsub::Space::Pattern)
        })
    }
}

/// Checks whether a session may run a command now. A rejection is noted for ACL LOG and INFO.
///
/// `words` are the arguments of the command. O(keys x patterns of the session's user); O(1) if the user has all
/// permissions. The note shows the client's last command. Therefore a caller such as EXEC, which runs commands on
/// behalf of a client's command, first stores the client's command as its last command.
///
/// # Errors
/// The permission that is missing. [`Denied::text`] and [`Denied::text_in_exec`] are Redis's messages for it.
pub fn permit(
    core: &mut Core,
    session: &Session,
    row: &Row,
    words: &Args<'_>,
    context: Context,
) -> Result<(), Denied> {
    let word = |at: usize| words.argument(at);
    let checked = check(session.user(), row, words.argc(), &word);
    if let Err(denied) = checked {
        note_denied(core, session, row, words, denied, context);
    }
    checked
}

/// Logs that a command was rejected.
#[cold]
pub fn note_denied(
    core: &mut Core,
    session: &Session,
    row: &Row,
    words: &Args<'_>,
    denied: Denied,
    context: Context,
) {
    let object = match denied.reason {
        Reason::Command | Reason::Auth => row.full_name().as_bytes(),
        Reason::Key | Reason::Channel => words.argument(denied.arg_index),
    };
    let user = &session.account().name;
    note_denial(core, session, row, words, denied.reason, context, object, user);
}

/// Checks the permissions of a client's command. The error is the reply.
pub(crate) fn permit_client(
    core: &mut Core,
    session: &Session,
    row: &Row,
    words: &Args<'_>,
) -> Result<(), CommandError> {
    let context = if session.in_transaction() { Context::Multi } else { Context::TopLevel };
    permit(core, session, row, words, context).map_err(|denied| {
        let text = denied.text(&session.account().name, row, None);
        CommandError::text_with("NOPERM ", &text)
    })
}

/// Checks the permissions of a command that EXEC runs.
pub(crate) fn permit_queued(
    core: &mut Core,
    session: &Session,
    row: &Row,
    words: &Args<'_>,
) -> Result<(), CommandError> {
    permit(core, session, row, words, Context::Multi).map_err(|denied| {
        CommandError::text(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and \
             the EXEC call. This command is no longer allowed for the following reason: {}",
            denied.text_in_exec()
        ))
    })
}

/// If a command that is about to run looks up keys whose names come from values, limits these lookups according to the
/// permissions of its user. The caller calls [`forget_limits`] afterwards.
pub fn limit_lookups(core: &mut Core, session: &Session, row: &Row, words: &Args<'_>) {
    if row.looks_up_keys && session.is_restricted() {
        let may = reads_every_key(session.user(), row, words.argc(), &|at| words.argument(at));
        core.env.lookups_denied.set(!may);
    }
}

/// Removes the limits for the next command.
pub fn forget_limits(core: &mut Core) {
    core.env.lookups_denied.set(false);
}

/// Logs that an access was rejected.
#[cold]
#[expect(clippy::too_many_arguments, reason = "each is a field of the entry")]
pub fn note_denial(
    core: &mut Core,
    session: &Session,
    row: &Row,
    words: &Args<'_>,
    reason: Reason,
    context: Context,
    object: &[u8],
    user: &[u8],
) {
    let metrics = &core.shared.observe.metrics;
    let counter = match reason {
        Reason::Command => &metrics.denied_by_command,
        Reason::Key => &metrics.denied_by_key,
        Reason::Auth => &metrics.denied_by_auth,
        Reason::Channel => &metrics.denied_by_channel,
    };
    counter.fetch_add(1, Ordering::Relaxed);
    let len_max = usize::try_from(core.config.security.acllog_max_len).unwrap_or(0);
    // A command that EXEC or a script runs is not the one that the client sent.
    let sent = match context {
        Context::TopLevel => Some(row),
        Context::Multi => (!core.unit.is_running()).then_some(row),
        Context::Script => None,
    };
    let client =
        if len_max == 0 { String::new() } else { describe_client(core, session, words, sent) };
    let entry = Entry::new(reason, context, object, user, client, core.env.now().0);
    core.shared.accounts.journal().add(entry, len_max);
}

/// Called after a command of this session has changed users. Connections that have lost their permissions are closed.
/// If the session's own connection is one of them, it is closed after the reply. Waiting commands that are no longer
/// permitted get an error.
pub fn settle_users(core: &mut Core, session: &mut Session, affected: Affected) {
    for (account, record) in affected.clients {
        end_forbidden_wait(core, &account, &record);
    }
    for record in affected.to_close {
        if record.id == session.id() {
            session.close_as_killed();
        } else {
            close_client(core, &record);
        }
    }
}

fn end_forbidden_wait(core: &Core, account: &Account, record: &ClientRecord) {
    let Some(waiter) = record.waiter().clone() else { return };
    let Some(row) = core.shared.table.find_spec(waiter.command()) else { return };
    let checked = waiter.with_args(&core.shared.keyspace, |words| {
        check(&account.user(), row, words.argc(), &|at| words.argument(at))
    });
    if let Err(denied) = checked
        && waiter.end()
    {
        let (token, id, how) = (record.token, record.id, Unblocked::Forbidden(denied));
        core.shared.mailboxes.send(record.worker, Message::Unblock { token, id, how });
    }
}

/// Closes another client's connection, on any worker. From now on, no more commands are executed for it. Returns false
/// if another thread has already closed it.
pub fn close_client(core: &mut Core, record: &ClientRecord) -> bool {
    if record.killed.swap(true, Ordering::Relaxed) {
        return false;
    }
    if record.has(flag::PRIMARY) {
        // A thread owns this connection and will reconnect.
        let primary = &core.shared.replication.upstream;
        primary.disconnect(primary.generation());
        return true;
    }
    if record.worker == core.id {
        record.set(flag::CLOSE_ASAP, true);
        core.pending.close(record.token);
    } else {
        core.shared.mailboxes.close(record);
    }
    true
}
