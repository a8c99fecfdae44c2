//! The context in which rules are parsed, and the reasons for rejecting one.

use brisk_config::choice::PubsubDefault;
use brisk_config::is_blank;
use brisk_engine::table::CommandTable;

/// The user of a connection that has not authenticated as another user.
pub const DEFAULT_USER: &str = "default";

/// The context for parsing rules.
#[derive(Clone, Copy)]
pub struct Vocabulary<'t> {
    pub table: &'t CommandTable,
    /// `acl-pubsub-default`: the channel permissions of a new user.
    pub channels: PubsubDefault,
}

/// Why a rule was rejected. `Display` is Redis's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("Unknown command or category name in ACL")]
    Unknown,
    #[error("Syntax error")]
    Syntax,
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
         have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    KeyAfterAll,
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
         not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    ChannelAfterAll,
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    BadHash,
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgOfSubcommand,
}

/// Returns true if a name or pattern contains blanks or NULs, which rules cannot contain.
pub fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| is_blank(*byte) || *byte == 0)
}
