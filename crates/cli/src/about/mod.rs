//! What the program tells about itself, made of the table of options.
//!
//! | file | prints |
//! |---|---|
//! | `help.rs` | `--help` |
//! | `manual.rs` | `--man` |
//! | `completions.rs` | `--completions` |

pub(crate) mod completions;
pub(crate) mod help;
pub(crate) mod manual;
