//! Logical types over their encodings. The only place that knows how a value is stored.

pub mod string;

use crate::error::{CommandError, Result};
use crate::keyspace::{Entry, Stored};
use std::sync::Arc;

/// A value too large to live inside its entry.
#[derive(Debug)]
pub enum Value {
    /// A string of at least [`string::SHARED_MIN`] bytes; shared with replies that are being sent.
    Str(Arc<Vec<u8>>),
}

impl Value {
    /// Bytes of memory the value takes, its box and shared parts included.
    pub fn allocated_bytes(&self) -> usize {
        match self {
            // The box, the counters and the vector's own words, the bytes.
            Value::Str(data) => size_of::<Value>() + 5 * size_of::<usize>() + data.capacity(),
        }
    }
}

/// The type of a value, as TYPE names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    String = 0,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: &'static [Kind] = &[Kind::String];

    /// The name in TYPE and SCAN … TYPE.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
        }
    }
}

/// The encoding of a value, as OBJECT ENCODING names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    Int = 0,
    EmbStr = 1,
    Raw = 2,
}

impl Encoding {
    pub const ALL: &'static [Encoding] = &[Encoding::Int, Encoding::EmbStr, Encoding::Raw];

    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Int => "int",
            Encoding::EmbStr => "embstr",
            Encoding::Raw => "raw",
        }
    }
}

/// The byte an entry carries: kind in the low half, encoding in the high half.
#[inline]
pub(crate) const fn kind_byte(kind: Kind, encoding: Encoding) -> u8 {
    kind as u8 | (encoding as u8) << 4
}

/// The kind of an entry's value.
#[inline]
pub(crate) fn kind_of(entry: &Entry) -> Kind {
    Kind::ALL[(entry.kind() & 0x0f) as usize]
}

/// The encoding of an entry's value.
#[inline]
pub(crate) fn encoding_of(entry: &Entry) -> Encoding {
    Encoding::ALL[(entry.kind() >> 4) as usize]
}

/// A type that commands open entries as.
pub trait Type {
    const KIND: Kind;
    /// The value, to read.
    type Ref<'a>;
    fn view(entry: Stored<'_>) -> Self::Ref<'_>;

    /// The value if the entry holds this type.
    #[inline]
    fn of(entry: Stored<'_>) -> Result<Self::Ref<'_>> {
        if entry.kind() & 0x0f == Self::KIND as u8 {
            Ok(Self::view(entry))
        } else {
            Err(CommandError::WrongType)
        }
    }
}
