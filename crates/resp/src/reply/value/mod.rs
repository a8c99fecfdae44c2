//! A reply in memory, and its text form.

mod display;

/// A decoded reply of either protocol version.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+text`
    Simple(Vec<u8>),
    /// `-text` or `!length`: the whole text, code first.
    Error(Vec<u8>),
    /// `:n`
    Integer(i64),
    /// `$length`
    Bulk(Vec<u8>),
    /// `$-1` or `_`
    Null,
    /// `*-1`: RESP2's second null. Shown like `Null`, kept apart because it is on the wire.
    NullArray,
    /// `*n`
    Array(Vec<Value>),
    /// `,text`
    Double(Double),
    /// `#t`, `#f`
    Boolean(bool),
    /// `(digits`
    BigNumber(Vec<u8>),
    /// `=length`
    Verbatim {
        /// Three bytes, `txt` or `mkd`.
        format: [u8; 3],
        /// The text without the format.
        text: Vec<u8>,
    },
    /// `%n`, in order of arrival.
    Map(Vec<(Value, Value)>),
    /// `~n`, in order of arrival.
    Set(Vec<Value>),
    /// `>n`: not the answer to a request.
    Push(Vec<Value>),
    /// `|n`, then the value it describes.
    Attributed {
        /// The attributes in order of arrival.
        attributes: Vec<(Value, Value)>,
        /// The value proper.
        value: Box<Value>,
    },
}

/// A double with the digits the server sent, which tell its formatting.
#[derive(Clone, Debug)]
pub struct Double {
    /// The nearest double.
    pub value: f64,
    /// The text on the wire; ASCII.
    pub text: Vec<u8>,
}

impl PartialEq for Double {
    /// By text, so that `nan` equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Value {
    /// True for both nulls.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullArray)
    }

    /// The value without its attributes.
    #[must_use]
    pub fn without_attributes(&self) -> &Self {
        match self {
            Self::Attributed { value, .. } => value.without_attributes(),
            other => other,
        }
    }

    /// The bytes of a string of any kind, or `None` for other types and errors.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.without_attributes() {
            Self::Simple(text) | Self::Bulk(text) | Self::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of an error.
    #[must_use]
    pub fn as_error(&self) -> Option<&[u8]> {
        match self.without_attributes() {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an integer reply.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.without_attributes() {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements of an array, set or push.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self.without_attributes() {
            Self::Array(list) | Self::Set(list) | Self::Push(list) => Some(list),
            _ => None,
        }
    }
}
