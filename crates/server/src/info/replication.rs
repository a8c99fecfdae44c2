//! INFO replication: a primary without replicas.

use super::{Text, View};

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    text.word("role", "master");
    text.number("connected_slaves", 0);
    text.word("master_failover_state", "no-failover");
    text.word("master_replid", &view.shared.replication_id);
    text.word("master_replid2", "0000000000000000000000000000000000000000");
    text.number("master_repl_offset", 0);
    text.signed("second_repl_offset", -1);
    text.number("repl_backlog_active", 0);
    text.number("repl_backlog_size", view.config.replication.repl_backlog_size);
    text.number("repl_backlog_first_byte_offset", 0);
    text.number("repl_backlog_histlen", 0);
}
