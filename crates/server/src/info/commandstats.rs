//! INFO commandstats: number of calls and execution time of each command.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    for row in view.shared.table.all() {
        let (mut calls, mut ns, mut rejected, mut failed) = (0, 0, 0, 0);
        for stats in &view.shared.observe.stats {
            let own = &stats.commands[row.id];
            calls += own.calls.get();
            ns += own.time_ns.get();
            rejected += own.rejected.get();
            failed += own.failed.get();
        }
        if calls == 0 && rejected == 0 && failed == 0 {
            continue;
        }
        let us = ns / 1000;
        text.begin_line("cmdstat_", row.full_name());
        text.push("calls=");
        text.push_number(calls);
        text.push(",usec=");
        text.push_number(us);
        text.push(",usec_per_call=");
        text.push_fixed(if calls == 0 { 0.0 } else { us as f64 / calls as f64 }, 2);
        text.push(",rejected_calls=");
        text.push_number(rejected);
        text.push(",failed_calls=");
        text.push_number(failed);
        text.end();
    }
}
