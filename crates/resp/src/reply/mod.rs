//! Replies: encoded by the server ([`encode`]), decoded by clients and tests.
//!
//! | part | what it does |
//! |---|---|
//! | [`encode`] | encodes replies |
//! | [`decode`] | decodes replies into values, incrementally |
//! | [`frame`] | finds the end of a reply incrementally, without decoding it |
//! | [`head`] | parses the first line, to consume large replies piece by piece |
//! | [`read`] | reads a complete reply in place, part by part |
//! | [`value`] | a reply in memory |

pub mod decode;
pub mod encode;
mod format_double;
pub mod frame;
pub mod head;
pub mod read;
mod token;
pub mod value;

/// The protocol version of a connection (`HELLO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Version 2, with which every connection starts.
    #[default]
    Resp2,
    /// Version 3: typed maps, sets, doubles, booleans, pushes.
    Resp3,
}
