//! INFO modules: there are none.

use super::View;
use brisk_observe::text::Text;

pub(super) fn write(_: &View<'_>, _: &mut Text) {}
