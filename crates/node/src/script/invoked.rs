//! Determines the script or function that EVAL, EVALSHA, FCALL and their read-only forms run, from their arguments.

use super::cache::Scripts;
use crate::core::Core;
use brisk_engine::Args;
use brisk_engine::command::{Flags, Spec};
use brisk_engine::table::Row;

/// Index of the argument that contains the script, its digest or the function's name.
pub const WHAT_AT: usize = 1;

/// The script or function that a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Source,
    Digest,
    Name,
}

impl By {
    pub fn of(spec: &Spec) -> By {
        match spec.args.first().map(|arg| arg.name) {
            Some("sha1") => By::Digest,
            Some("function") => By::Name,
            _ => By::Source,
        }
    }
}

/// The flags of a command that runs a script, if the script declares flags.
pub(crate) fn flags_of_script(core: &Core, flags: Flags, row: &Row, args: &Args<'_>) -> Flags {
    let word = args.argument(WHAT_AT);
    let own = match By::of(row.spec) {
        By::Name => core.shared.scripting.flags_of_function(word),
        By::Digest => core.shared.scripting.flags_of_script(word),
        By::Source => Scripts::flags_in(word),
    };
    own.map_or(flags, |own| super::run::flags_of_command(flags, own))
}
