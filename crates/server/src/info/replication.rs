//! INFO replication: a primary and its replicas.

use super::View;
use brisk_node::replication::replica::Stage;
use brisk_observe::text::Text;
use brisk_reactor::unix_ms;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    text.word("role", "master");
    let feed = &view.shared.replication.feed;
    let replicas = feed.members();
    text.number("connected_slaves", replicas.len() as u64);
    for (number, replica) in replicas.iter().enumerate() {
        let ip = replica.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let stage = replica.attachment.stage();
        let lag = match stage {
            Stage::Online => unix_ms().saturating_sub(replica.acked_ms) / 1000,
            Stage::Waits | Stage::GetsSnapshot => 0,
        };
        let state = match stage {
            Stage::Waits => "wait_bgsave",
            Stage::GetsSnapshot => "send_bulk",
            Stage::Online => "online",
        };
        text.word(
            &format!("slave{number}"),
            &format!(
                "ip={ip},port={},state={state},offset={},lag={lag}",
                replica.port, replica.acked
            ),
        );
    }
    text.word("master_failover_state", view.shared.replication.failover.word());
    text.word("master_replid", &view.shared.replication.history.ids().id);
    text.word("master_replid2", "0000000000000000000000000000000000000000");
    text.number("master_repl_offset", feed.offset(view.shared.keyspace.journal()));
    text.signed("second_repl_offset", -1);
    text.number("repl_backlog_active", 0);
    text.number("repl_backlog_size", view.config.replication.repl_backlog_size);
    text.number("repl_backlog_first_byte_offset", 0);
    text.number("repl_backlog_histlen", 0);
}
