//! INFO replication: a primary and its replicas.

use super::View;
use brisk_node::replication::needs_good;
use brisk_node::replication::replica::Stage;
use brisk_observe::text::Text;
use brisk_reactor::unix_ms;

/// What is shown for a history that there is not.
const NO_ID: &str = "0000000000000000000000000000000000000000";

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    text.word("role", "master");
    let feed = &view.shared.replication.feed;
    let replicas = feed.members();
    text.number("connected_slaves", replicas.len() as u64);
    let settings = &view.config.replication;
    if needs_good(settings) {
        let good = view.shared.replication.count_good(settings, unix_ms());
        text.number("min_slaves_good_slaves", good);
    }
    for (number, replica) in replicas.iter().enumerate() {
        let ip = replica.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let stage = replica.attachment.stage();
        let lag = match stage {
            Stage::Online => replica.lag_s(unix_ms()),
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
    text.word("master_failover_state", "no-failover");
    history(view, text);
}

/// What the stream is called, how far it has come, and what is kept of it.
fn history(view: &View<'_>, text: &mut Text) {
    let replication = &view.shared.replication;
    let ids = replication.history.ids();
    let former = ids.former.as_ref();
    text.word("master_replid", &ids.id);
    text.word("master_replid2", former.map_or(NO_ID, |former| former.id.as_str()));
    let kept = replication.feed.kept();
    // Behind the look at what is kept: so it has come at least as far.
    let end = replication.offset(view.shared.keyspace.journal());
    text.number("master_repl_offset", end);
    match former {
        Some(former) => text.number("second_repl_offset", former.end + 1),
        None => text.signed("second_repl_offset", -1),
    }
    text.number("repl_backlog_active", u64::from(kept.is_some()));
    text.number("repl_backlog_size", view.config.replication.repl_backlog_size);
    // Offsets count bytes from 1 on.
    let before = kept.map(|kept| replication.history.offset(kept.first));
    text.number("repl_backlog_first_byte_offset", before.map_or(0, |before| before + 1));
    text.number("repl_backlog_histlen", before.map_or(0, |before| end.saturating_sub(before)));
}
