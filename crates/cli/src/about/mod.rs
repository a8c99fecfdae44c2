//! Texts about the program itself, generated from the table of options.
//!
//! | file | prints |
//! |---|---|
//! | `help.rs` | `--help` |
//! | `manual.rs` | `--man` |
//! | `completions.rs` | `--completions` |

pub(crate) mod completions;
pub(crate) mod help;
pub(crate) mod manual;
