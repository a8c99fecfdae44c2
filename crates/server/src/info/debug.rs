//! INFO debug: metrics of the event loops for debugging. Redis has this section since 7.2.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let us = |ns: u64| ns / 1000;
    text.number("eventloop_duration_aof_sum", 0);
    text.number("eventloop_duration_cron_sum", us(view.sum(|stats| &stats.background_ns)));
    text.number("eventloop_duration_max", us(view.max(|stats| &stats.round_ns_max)));
    text.number("eventloop_cmd_per_cycle_max", view.max(|stats| &stats.round_commands_max));
}
