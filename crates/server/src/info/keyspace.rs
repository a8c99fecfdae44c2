//! INFO keyspace: one line for each database that contains keys.

use super::View;
use brisk_engine::UnixMs;
use brisk_observe::text::Text;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    for (db, totals) in view.totals.databases.iter().enumerate() {
        if totals.keys == 0 && totals.with_deadline == 0 {
            continue;
        }
        text.push("db");
        text.push_number(db as u64);
        text.push(":keys=");
        text.push_number(totals.keys);
        text.push(",expires=");
        text.push_number(totals.with_deadline);
        text.push(",avg_ttl=");
        text.push_number(totals.average_ttl_ms(UnixMs(view.now_ms)));
        text.end();
    }
}
