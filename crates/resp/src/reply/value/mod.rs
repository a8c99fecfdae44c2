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
    /// `*-1`: RESP2's second null. Displayed like `Null`, but a separate variant because the wire
    /// form differs.
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
    /// `>n`: not the reply to a request.
    Push(Vec<Value>),
    /// `|n`, followed by the value that it describes.
    Attributed {
        /// The attributes in order of arrival.
        attributes: Vec<(Value, Value)>,
        /// The described value.
        value: Box<Value>,
    },
}

/// A double with the digits that the server sent, to preserve its formatting.
#[derive(Clone, Debug)]
pub struct Double {
    /// The nearest double.
    pub value: f64,
    /// The text on the wire; ASCII.
    pub text: Vec<u8>,
}

impl PartialEq for Double {
    /// Compares the text, so that `nan` equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Value {
    /// Returns true for both nulls.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullArray)
    }

    /// Returns the value without its attributes.
    #[must_use]
    pub fn without_attributes(&self) -> &Self {
        match self {
            Self::Attributed { value, .. } => value.without_attributes(),
            other => other,
        }
    }

    /// Returns the bytes of a string of any type; `None` for other types and errors.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.without_attributes() {
            Self::Simple(text) | Self::Bulk(text) | Self::Verbatim { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the text of an error.
    #[must_use]
    pub fn as_error(&self) -> Option<&[u8]> {
        match self.without_attributes() {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of an integer reply.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.without_attributes() {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the elements of an array, set or push.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self.without_attributes() {
            Self::Array(list) | Self::Set(list) | Self::Push(list) => Some(list),
            _ => None,
        }
    }
}
