//! INFO modules: always empty.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(_: &View<'_>, _: &mut Text) {}
