//! INFO cluster.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(_: &View<'_>, text: &mut Text) {
    text.number("cluster_enabled", 0);
}
