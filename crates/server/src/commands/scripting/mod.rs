//! The scripting group: EVAL and its variants, SCRIPT, FUNCTION, FCALL. `brisk_node::script` runs the scripts.

mod eval;
mod function;
mod libraries;
mod script;

use brisk_engine::command::{Categories, Flags, Group, Spec};
use brisk_engine::{CommandError, Outcome, Result};
use brisk_node::core::call::{Call, Command};
use brisk_node::script::slow::Kill;

pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[eval::COMMANDS, function::COMMANDS, libraries::COMMANDS, script::COMMANDS];

/// The row on which other rows are based.
const ROW: Spec = Spec {
    group: Group::Scripting,
    flags: Flags::NOSCRIPT,
    categories: Categories::SCRIPTING,
    ..Spec::EMPTY
};

/// SCRIPT KILL, FUNCTION KILL.
fn kill(call: &mut Call<'_>, wants_eval: bool) -> Result<Outcome> {
    let scripting = &call.core.shared.scripting.running;
    match scripting.kill(wants_eval) {
        Kill::Killed => Ok(call.reply.ok()),
        Kill::Nothing => Err(CommandError::text("NOTBUSY No scripts in execution right now.")),
        Kill::OtherKind => Err(CommandError::text(scripting.busy(!wants_eval))),
        Kill::Unkillable => Err(CommandError::text(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You \
             can either wait the script termination or kill the server in a hard way using the \
             SHUTDOWN NOSAVE command.",
        )),
    }
}
