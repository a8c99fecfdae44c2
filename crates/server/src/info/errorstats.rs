//! INFO errorstats: number of error replies by error code.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(view: &View<'_>, text: &mut Text) {
    let errors = view.shared.observe.errors.lock();
    let mut sorted: Vec<(&String, &u64)> = errors.iter().collect();
    sorted.sort_unstable();
    for (word, count) in sorted {
        text.begin_line("errorstat_", word.trim_start_matches('-'));
        text.push("count=");
        text.push_number(*count);
        text.end();
    }
}
