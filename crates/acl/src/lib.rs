//! Access control: users, their permissions, and the log of rejected commands.
//!
//! ```text
//!  SETUSER, ACL file, `user` lines ── rules ──> User (plain data, never changed once it is shared)
//!                                                │ put into its Account under quiescence
//!  AUTH, HELLO ── Account ── Session.user ───────┘ each session keeps the version it works with
//!  every command of a restricted session ── check ──> may run, or Denied ──> error, ACL LOG
//! ```
//!
//! | file | about |
//! |---|---|
//! | `user` | a user: state, passwords, selectors; the rules that change it |
//! | `selector` | one set of permissions: commands, keys, channels |
//! | `check` | checks if a user may run a command |
//! | `file` | converts the text of an ACL file to users and back |
//! | `journal` | the content of ACL LOG |
//!
//! Nothing here knows sessions. The server keeps the accounts and the sessions that use each. **All
//! code that runs a command for a session calls the server's function `permit`**, which also logs a
//! rejection.
#![forbid(unsafe_code)]

mod check;
pub mod file;
mod journal;
mod selector;
mod user;

pub use self::check::{Denied, Reason, check, keys_of, reads_every_key};
pub use self::journal::{Context, Entry, Journal};
pub use self::selector::Selector;
pub use self::user::hex;
pub use self::user::{Hash, SetError, User, has_spaces, hash_of, merge_selectors};

use brisk_config::choice::PubsubDefault;
use brisk_engine::table::CommandTable;

/// The user of a connection that has not authenticated as another one.
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
