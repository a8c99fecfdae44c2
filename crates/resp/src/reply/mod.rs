//! Replies: written by the server ([`encode`]), read by clients and tests.
//!
//! | part | what it is |
//! |---|---|
//! | [`encode`] | writing them |
//! | [`decode`] | reading them into values, as they come |
//! | [`frame`] | finding where one ends, as they come; nothing is made of it |
//! | [`head`] | what one begins with, for who takes a large one piece by piece |
//! | [`read`] | reading a whole one where it lies, part by part |
//! | [`value`] | a reply in memory |

pub mod decode;
pub mod encode;
mod format_double;
pub mod frame;
pub mod head;
pub mod read;
mod token;
pub mod value;

/// The protocol version a connection speaks (`HELLO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Version 2: what a connection starts with.
    #[default]
    Resp2,
    /// Version 3: typed maps, sets, doubles, booleans, pushes.
    Resp3,
}
