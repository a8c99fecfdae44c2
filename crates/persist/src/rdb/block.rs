//! A part of a file that has nothing but whole entries, decoded away from the file.

use super::input::{Input, SliceInput};
use super::primitive::{Decoder, Form};
use super::reader::Notes;
use super::value::{StringValue, Value};
use super::{kind, opcode};
use crate::error::LoadError;
use std::borrow::Cow;

/// Whole entries as they stand in a file.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    /// Where in `bytes` they begin.
    start: usize,
    position: u64,
    version: u32,
}

impl Block {
    pub(super) fn new(bytes: Vec<u8>, start: usize, position: u64, version: u32) -> Block {
        Block { bytes, start, position, version }
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Where in the file it begins.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Its entries, from the front.
    #[must_use]
    pub fn entries(&self) -> Entries<'_> {
        let input = SliceInput::part(&self.bytes[self.start..], self.position);
        Entries { decoder: Decoder::new(input, self.version) }
    }
}

/// Decodes the entries of a block.
pub struct Entries<'b> {
    decoder: Decoder<SliceInput<'b>>,
}

/// A key with its value and what was noted about it. Bytes that stand in the block as they are are
/// not copied.
#[derive(Debug)]
pub struct BlockEntry<'b> {
    pub key: Cow<'b, [u8]>,
    pub content: Content<'b>,
    pub notes: Notes,
}

/// What an entry of a block holds.
#[derive(Debug)]
pub enum Content<'b> {
    /// A string that is not stored as an integer.
    Bytes(Cow<'b, [u8]>),
    /// Anything else.
    Value(Value),
    /// A collection without elements. Servers pass it over when they load a file.
    Empty,
}

impl<'b> Entries<'b> {
    /// Up to which byte the file was decoded.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.decoder.input.position()
    }

    /// The next entry; `None` behind the last. O(its bytes).
    ///
    /// # Errors
    /// As [`LoadError`] says. The rest cannot be decoded then.
    pub fn next_entry(&mut self) -> Result<Option<BlockEntry<'b>>, LoadError> {
        let decoder = &mut self.decoder;
        if decoder.input.rest().is_empty() {
            return Ok(None);
        }
        let mut notes = Notes::default();
        let kind = loop {
            let code = decoder.input.byte()?;
            if !decoder.note(code, &mut notes)? {
                break code;
            }
        };
        debug_assert!(kind < opcode::SLOT_IMPORT, "a block has whole entries only");
        let form = decoder.form()?;
        let key = decoder.text(form)?;
        let content = match kind {
            kind::STRING => match decoder.form()? {
                Form::Int(number) => Content::Value(Value::String(StringValue::Int(number))),
                form => Content::Bytes(decoder.text(form)?),
            },
            kind => match decoder.value(kind) {
                Ok(value) => Content::Value(value),
                Err(LoadError::Empty) => Content::Empty,
                Err(error) => return Err(error),
            },
        };
        Ok(Some(BlockEntry { key, content, notes }))
    }
}

impl<'b> Decoder<SliceInput<'b>> {
    /// A string of this form: where it stands if it can be.
    #[inline]
    fn text(&mut self, form: Form) -> Result<Cow<'b, [u8]>, LoadError> {
        if let Form::Raw { len } = form {
            return self.input.take(len).map(Cow::Borrowed);
        }
        let mut out = Vec::new();
        self.append(form, &mut out)?;
        Ok(Cow::Owned(out))
    }
}
