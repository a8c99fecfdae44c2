//! Authentication and permissions. The settings and their directives.

use crate::choice::{Protection, PubsubDefault, SanitizeDump};
use crate::config::Config;
use crate::directive::{BAD_DIRECTIVE, Directive, LONG_MAX, LineJudge, choice, field};
use crate::special;
use crate::value::{Rename, SettingRejection, Text};

/// Authentication and permissions.
#[derive(Clone, Default, PartialEq)]
pub struct Security {
    /// `requirepass`.
    pub requirepass: Text,
    /// `aclfile`.
    pub aclfile: Text,
    /// `acllog-max-len`.
    pub acllog_max_len: i64,
    /// `acl-pubsub-default`.
    pub acl_pubsub_default: PubsubDefault,
    /// `enable-protected-configs`.
    pub enable_protected_configs: Protection,
    /// `enable-debug-command`.
    pub enable_debug_command: Protection,
    /// `enable-module-command`.
    pub enable_module_command: Protection,
    /// `sanitize-dump-payload`.
    pub sanitize_dump_payload: SanitizeDump,
    /// `rename-command` lines, in order.
    pub renames: Vec<Rename>,
    /// The arguments of each `user` line, without `user`.
    pub users: Vec<Vec<Text>>,
}

impl Security {
    /// Returns the names and new names of all `rename-command` lines.
    pub fn renamed_commands(&self) -> Vec<(String, String)> {
        let text = |text: &Text| text.to_string_lossy().into_owned();
        self.renames.iter().map(|rename| (text(&rename.command), text(&rename.to))).collect()
    }
}

pub(super) const DIRECTIVES: &[Directive] = &[
    Directive::text("requirepass", "", field!(security.requirepass))
        .about("Password of the default user; empty for none.")
        .sensitive()
        .binary(),
    Directive::text("aclfile", "", field!(security.aclfile))
        .about(
            "File with users, which ACL LOAD reads; empty for none. It cannot be combined \
             with user directives.",
        )
        .immutable(),
    Directive::integer("acllog-max-len", "128", (0, LONG_MAX), field!(security.acllog_max_len))
        .about("Maximum number of entries in ACL LOG."),
    Directive::choice("acl-pubsub-default", "resetchannels", choice!(security.acl_pubsub_default))
        .about("Channels that new users may use."),
    Directive::choice("enable-protected-configs", "no", choice!(security.enable_protected_configs))
        .about(
            "Clients that may change protected directives, for example dir: none (no), all \
             (yes), or those of this machine (local).",
        )
        .immutable(),
    Directive::choice("enable-debug-command", "no", choice!(security.enable_debug_command))
        .about(
            "Clients that may use DEBUG: none (no), all (yes), or those of this machine \
             (local).",
        )
        .immutable(),
    Directive::choice("enable-module-command", "no", choice!(security.enable_module_command))
        .about(
            "Clients that may use MODULE: none (no), all (yes), or those of this machine \
             (local).",
        )
        .immutable(),
    Directive::choice("sanitize-dump-payload", "no", choice!(security.sanitize_dump_payload))
        .about("Check values in depth when RESTORE or a file loads them.")
        .ignored("Values are always checked in depth."),
    Directive::file_only("rename-command", rename_command)
        .about("Renames a command; an empty name disables it. May be repeated.")
        .immutable(),
    Directive::file_only("user", user)
        .about("Name and rules of a user, as for ACL SETUSER. May be repeated.")
        .immutable(),
];

/// Maximum number of `rename-command` lines: more than there are commands. Each one is checked
/// together with all earlier ones.
const RENAMES_MAX: usize = 512;

fn rename_command(
    config: &mut Config,
    words: &[Vec<u8>],
    judge: &dyn LineJudge,
) -> Result<(), SettingRejection> {
    let [command, to] = words else { return Err(BAD_DIRECTIVE.into()) };
    if config.security.renames.len() >= RENAMES_MAX {
        return Err(format!("more than {RENAMES_MAX} commands are renamed").into());
    }
    let (command, to) = (Text::from(command.as_slice()), Text::from(to.as_slice()));
    config.security.renames.push(Rename { command, to });
    judge.renamed_commands(&config.security.renamed_commands())
}

/// Stores the line. The users are created when the whole configuration is known. Faults that can be
/// detected earlier are errors here, so that the message names the line.
fn user(
    config: &mut Config,
    words: &[Vec<u8>],
    judge: &dyn LineJudge,
) -> Result<(), SettingRejection> {
    let [name, rules @ ..] = words else { return Err(BAD_DIRECTIVE.into()) };
    let known = |user: &Vec<Text>| user.first().is_some_and(|known| known.as_bytes() == name);
    if config.security.users.iter().any(known) {
        return Err(format!(
            "Error in user declaration '{}': Duplicate user found. A user can only be defined once \
             in config files",
            String::from_utf8_lossy(name)
        )
        .into());
    }
    let rules: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
    judge.user(&rules, config.security.acl_pubsub_default)?;
    special::keep_line(&field!(security.users), config, words);
    Ok(())
}
