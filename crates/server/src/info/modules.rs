//! INFO modules: there are none.

use super::{Text, View};

pub(super) fn write(_: &View<'_>, _: &mut Text) {}
