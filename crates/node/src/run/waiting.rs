//! Commands that wait for keys run again when their keys are ready.

use crate::core::Core;
use crate::core::mailbox::{DeliveredReply, Message};
use crate::run::count;
use brisk_engine::keyspace::Waiter;
use brisk_engine::serve::{self, ServedWaiter};
use brisk_reactor::Token;
use std::sync::atomic::Ordering;

/// Serves clients that wait for keys that became ready through this worker's last command.
#[cold]
pub fn serve_waiters(core: &mut Core) {
    if core.data_must_not_change() {
        return;
    }
    let shared = core.shared;
    let mut over = Vec::new();
    let mut last = core.clock.ticks();
    serve::serve(&shared.keyspace, &core.env, |served| {
        let ticks = core.clock.ticks();
        over.push((served, core.clock.ns(ticks.wrapping_sub(last))));
        last = ticks;
    });
    // The next command is not charged for this time.
    core.accounting.charge_from(last);
    for (ServedWaiter { waiter, replies, dirty, error }, ns) in over {
        core.stats().changes.add(dirty);
        if let Some(error) = &error {
            count::count_error(core, error);
        }
        // Count the command before its client can observe the reply.
        book_wait(core, &waiter, error.is_some(), ns);
        let client = waiter.client;
        let token = Token::from_u64(client.token);
        let delivery = DeliveredReply { token, client: client.id, replies };
        if client.worker == core.id {
            core.pending.deliver(delivery);
        } else {
            shared.mailboxes.send(client.worker, Message::Served(delivery));
        }
    }
}

/// Counts a command whose wait is over. Its completion took `ns`. Since Redis 7.2, a command is counted at this time,
/// not when it begins to wait.
pub fn book_wait(core: &mut Core, waiter: &Waiter, failed: bool, ns: u64) {
    let shared = core.shared;
    let Some(row) = shared.table.find_spec(waiter.command()) else { return };
    let Some(record) = shared.clients.find(waiter.client.id) else { return };
    let ns = ns + waiter.spent_ns.load(Ordering::Relaxed);
    waiter.with_args(&shared.keyspace, |words| {
        count::count_late_command(core, &record, row, failed, ns, words)
    });
}
