//! INFO cluster.

use super::{Text, View};

pub(super) fn write(_: &View<'_>, text: &mut Text) {
    text.number("cluster_enabled", 0);
}
