//! Replies: written by the server ([`encode`]), read by clients and tests ([`decode`]).

pub mod decode;
pub mod encode;
mod format_double;
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
