//! Support code for the derive macros: writes fields as arguments, and reads them one by one. Not a public interface.

use crate::arg::{Args, ToArg};
use crate::error::{Error, Kind, Result};
use crate::reply::{FromReply, Reader};
use brisk_resp::reply::read::Part;

/// The value of a field: one argument, or none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a single argument, so it cannot be the value of a field",
    note = "implement or derive `ToArg` for it, or use `#[hash(json)]`"
)]
pub trait ToField {
    fn is_present(&self) -> bool {
        true
    }

    fn write_value(&self, args: &mut Args<'_>);
}

impl<T: ToArg> ToField for T {
    fn write_value(&self, args: &mut Args<'_>) {
        self.write(args);
    }
}

impl ToField for u8 {
    fn write_value(&self, args: &mut Args<'_>) {
        u16::from(*self).write(args);
    }
}

impl<T: ToField> ToField for Option<T> {
    fn is_present(&self) -> bool {
        self.as_ref().is_some_and(T::is_present)
    }

    fn write_value(&self, args: &mut Args<'_>) {
        if let Some(value) = self {
            value.write_value(args);
        }
    }
}

pub fn is_present(value: &impl ToField) -> bool {
    value.is_present()
}

pub fn write_field(args: &mut Args<'_>, name: &str, value: &impl ToField) {
    if value.is_present() {
        args.push(name.as_bytes());
        value.write_value(args);
    }
}

/// A type that can be read from the value of a field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from the value of a field",
    note = "implement or derive `FromReply` for it, or use `#[hash(json)]`"
)]
pub trait FromField: Sized {
    fn from_field(reader: &mut Reader<'_>) -> Result<Self>;

    /// The value if the field is missing.
    fn absent() -> Option<Self>;
}

impl<T: FromReply> FromField for T {
    fn from_field(reader: &mut Reader<'_>) -> Result<T> {
        T::from_reply(reader)
    }

    fn absent() -> Option<T> {
        T::absent()
    }
}

/// `u8` does not implement `FromReply`, because a list of bytes would be a string. A field has no such ambiguity.
impl FromField for u8 {
    fn from_field(reader: &mut Reader<'_>) -> Result<u8> {
        let part = reader.peek()?;
        u8::try_from(u16::from_reply(reader)?).map_err(|_| Error::unexpected("u8", &part))
    }

    fn absent() -> Option<u8> {
        None
    }
}

impl FromField for Option<u8> {
    fn from_field(reader: &mut Reader<'_>) -> Result<Option<u8>> {
        match reader.peek()? {
            Part::Null => reader.skip().map(|()| None),
            _ => u8::from_field(reader).map(Some),
        }
    }

    fn absent() -> Option<Option<u8>> {
        Some(None)
    }
}

/// A missing key is a hash without fields.
#[must_use]
pub fn is_nothing(part: &Part<'_>) -> bool {
    matches!(part, Part::Null | Part::Map(0) | Part::Array(0))
}

/// Fields and their values, in any of the forms in which servers send pairs.
pub struct Fields<'r, 'a> {
    reader: &'r mut Reader<'a>,
    left: u64,
    /// Each pair is a separate list.
    is_nested: bool,
    /// The name of the type that is read.
    of: &'static str,
}

impl<'r, 'a> Fields<'r, 'a> {
    pub fn begin(reader: &'r mut Reader<'a>, of: &'static str) -> Result<Fields<'r, 'a>> {
        let part = reader.part()?;
        let (left, is_nested) = match part {
            Part::Null => (0, false),
            Part::Map(pairs) => (pairs, false),
            Part::Array(count) if count > 0 && matches!(reader.peek()?, Part::Array(2)) => {
                (count, true)
            }
            Part::Array(count) if count % 2 == 0 => (count / 2, false),
            part => return Err(Error::unexpected("a hash", &part).at(of)),
        };
        Ok(Fields { reader, left, is_nested, of })
    }

    /// The name of the next field, whose value must then be read or skipped.
    pub fn field(&mut self) -> Result<Option<&'a [u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if self.is_nested {
            let part = self.reader.part()?;
            if part != Part::Array(2) {
                return Err(Error::unexpected("a field and its value", &part).at(self.of));
            }
        }
        string(self.reader, self.of).map(Some)
    }

    pub fn pass(&mut self) -> Result<()> {
        self.reader.skip()
    }

    pub fn read<T: FromField>(&mut self, name: &'static str) -> Result<T> {
        T::from_field(self.reader).map_err(|error| self.locate(error, name))
    }

    pub fn required<T: FromField>(&self, name: &'static str, slot: Option<T>) -> Result<T> {
        slot.or_else(T::absent).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> Error {
        self.locate(Error::new(Kind::Missing, "the field is missing"), name)
    }

    fn locate(&self, error: Error, name: &str) -> Error {
        error.at(&format!("field '{name}' of {}", self.of))
    }
}

/// A string of the reply, unchanged.
pub fn string<'a>(reader: &mut Reader<'a>, of: &str) -> Result<&'a [u8]> {
    let part = reader.part()?;
    part.as_bytes().ok_or_else(|| Error::unexpected("a string", &part).at(of))
}

#[must_use]
pub fn no_such(of: &str, string: &[u8]) -> Error {
    let text = format!("{of} has no variant for a string of {} bytes", string.len());
    Error::new(Kind::UnexpectedReply, text)
}

#[cfg(feature = "json")]
pub use json::{FromJson, ToJson, is_json_present, write_json};

#[cfg(feature = "json")]
mod json {
    use super::Fields;
    use crate::arg::Args;
    use crate::error::Result;
    use crate::json::{from_slice, to_vec};
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    /// A field with this value is not written, and a missing field reads as this value.
    const NULL: &[u8] = b"null";

    pub trait ToJson: Serialize {}

    impl<T: Serialize> ToJson for T {}

    pub trait FromJson: DeserializeOwned {}

    impl<T: DeserializeOwned> FromJson for T {}

    pub fn is_json_present(value: &impl ToJson) -> bool {
        to_vec(value).is_ok_and(|json| json != NULL)
    }

    pub fn write_json(args: &mut Args<'_>, name: &str, value: &impl ToJson) {
        match to_vec(value) {
            Ok(json) if json == NULL => {}
            Ok(json) => {
                args.push(name.as_bytes());
                args.push(&json);
            }
            Err(error) => args.fail(error.at(&format!("field '{name}'"))),
        }
    }

    impl Fields<'_, '_> {
        pub fn read_json<T: FromJson>(&mut self, name: &'static str) -> Result<T> {
            let json = crate::derived::string(self.reader, self.of);
            json.and_then(from_slice).map_err(|error| self.locate(error, name))
        }

        pub fn required_json<T: FromJson>(&self, name: &str, slot: Option<T>) -> Result<T> {
            slot.or_else(|| from_slice(NULL).ok()).ok_or_else(|| self.missing(name))
        }
    }
}
