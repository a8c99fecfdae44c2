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
//! | `rule` | the context in which rules are parsed; why a rule is rejected |
//! | `selector` | one set of permissions: commands, keys, channels |
//! | `check` | checks whether a user may run a command |
//! | `file` | converts the text of an ACL file to users and back |
//! | `journal` | the content of ACL LOG |
//!
//! Nothing in this crate knows about sessions. The server keeps the accounts and the sessions that
//! use each. **All code that runs a command for a session calls the server's function `permit`**,
//! which also logs a rejection.
#![forbid(unsafe_code)]

mod check;
pub mod file;
mod journal;
mod rule;
mod selector;
mod user;

pub use self::check::{Denied, Reason, check, keys_of, reads_every_key};
pub use self::journal::{Context, Entry, Journal};
pub use self::rule::{DEFAULT_USER, RuleError, Vocabulary, has_spaces};
pub use self::selector::Selector;
pub use self::user::hex;
pub use self::user::{Hash, SetError, User, hash_of, merge_selectors};
