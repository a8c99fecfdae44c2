//! A part of a file that holds only whole entries, and is decoded independently of the file.

use super::input::{Input, SliceInput};
use super::primitive::{Decoder, StringEncoding};
use super::reader::KeyMetadata;
use super::value::{StringValue, Value};
use super::{kind, opcode};
use crate::error::LoadError;
use std::borrow::Cow;

/// Whole entries, encoded as in the file.
#[derive(Debug)]
pub struct RdbBlock {
    bytes: Vec<u8>,
    /// Offset of the first entry in `bytes`.
    start: usize,
    position: u64,
    version: u32,
}

impl RdbBlock {
    pub(super) fn new(bytes: Vec<u8>, start: usize, position: u64, version: u32) -> RdbBlock {
        RdbBlock { bytes, start, position, version }
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the offset of the block in the file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the entries, starting with the first.
    #[must_use]
    pub fn entries(&self) -> BlockEntries<'_> {
        let input = SliceInput::part(&self.bytes[self.start..], self.position);
        BlockEntries { decoder: Decoder::new(input, self.version) }
    }
}

/// Decodes the entries of a block.
pub struct BlockEntries<'b> {
    decoder: Decoder<SliceInput<'b>>,
}

/// A key with its value and metadata. Bytes that are stored unchanged in the block are not copied.
#[derive(Debug)]
pub struct BlockEntry<'b> {
    pub key: Cow<'b, [u8]>,
    pub content: EntryContent<'b>,
    pub metadata: KeyMetadata,
}

/// The content of an entry.
#[derive(Debug)]
pub enum EntryContent<'b> {
    /// A string that is not stored as an integer.
    Bytes(Cow<'b, [u8]>),
    /// Any other value.
    Value(Value),
    /// A collection without elements. Servers skip it when they load a file.
    Empty,
}

impl<'b> BlockEntries<'b> {
    /// Returns the file offset up to which entries were decoded.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.decoder.input.position()
    }

    /// Returns the next entry; `None` after the last one. O(its bytes).
    ///
    /// # Errors
    /// See [`LoadError`]. The rest cannot be decoded after an error.
    pub fn next_entry(&mut self) -> Result<Option<BlockEntry<'b>>, LoadError> {
        let decoder = &mut self.decoder;
        if decoder.input.rest().is_empty() {
            return Ok(None);
        }
        let mut metadata = KeyMetadata::default();
        let kind = loop {
            let code = decoder.input.byte()?;
            if !decoder.read_metadata(code, &mut metadata)? {
                break code;
            }
        };
        debug_assert!(kind < opcode::SLOT_IMPORT, "a block has whole entries only");
        let encoding = decoder.string_encoding()?;
        let key = decoder.text(encoding)?;
        let content = match kind {
            kind::STRING => match decoder.string_encoding()? {
                StringEncoding::Int(number) => {
                    EntryContent::Value(Value::String(StringValue::Int(number)))
                }
                encoding => EntryContent::Bytes(decoder.text(encoding)?),
            },
            kind => match decoder.value(kind) {
                Ok(value) => EntryContent::Value(value),
                Err(LoadError::Empty) => EntryContent::Empty,
                Err(error) => return Err(error),
            },
        };
        Ok(Some(BlockEntry { key, content, metadata }))
    }
}

impl<'b> Decoder<SliceInput<'b>> {
    /// Reads a string with this encoding. Raw strings are borrowed from the block.
    #[inline]
    fn text(&mut self, encoding: StringEncoding) -> Result<Cow<'b, [u8]>, LoadError> {
        if let StringEncoding::Raw { len } = encoding {
            return self.input.take(len).map(Cow::Borrowed);
        }
        let mut out = Vec::new();
        self.append(encoding, &mut out)?;
        Ok(Cow::Owned(out))
    }
}
