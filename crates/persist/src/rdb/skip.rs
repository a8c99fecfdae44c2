//! Finds the ends of entries: values are skipped by their lengths, without building them and with
//! few checks.

use super::input::{Input, SliceInput};
use super::kind;
use super::primitive::Decoder;
use super::reader::KeyMetadata;
use super::{VERSION_VALKEY, opcode};
use crate::error::LoadError;

/// Scores in text form that have no text: not-a-number and the infinities.
const TEXTLESS_SCORES_MIN: u8 = 253;

/// Why [`Decoder::skip_entries`] stopped.
pub(super) enum SkipEnd {
    /// The entries have enough bytes.
    Enough,
    /// An item other than an entry follows.
    Section,
    /// The next entry cannot be skipped, or too few bytes are available for it.
    Failed(LoadError),
}

impl Decoder<SliceInput<'_>> {
    /// Skips whole entries until they have `enough` bytes, and returns how many bytes they have.
    /// O(1) for each string.
    pub(super) fn skip_entries(&mut self, enough: usize) -> (usize, SkipEnd) {
        loop {
            let whole = self.input.taken();
            if whole >= enough {
                return (whole, SkipEnd::Enough);
            }
            match self.skip_entry() {
                Ok(true) => {}
                Ok(false) => return (whole, SkipEnd::Section),
                Err(error) => return (whole, SkipEnd::Failed(error)),
            }
        }
    }

    /// Skips an entry and its metadata. Returns false if the next item is not an entry.
    fn skip_entry(&mut self) -> Result<bool, LoadError> {
        let mut metadata = KeyMetadata::default();
        loop {
            let code = self.input.byte()?;
            if self.read_metadata(code, &mut metadata)? {
                continue;
            }
            if code >= opcode::SLOT_IMPORT {
                return Ok(false);
            }
            self.require_known(code)?;
            self.skip_string()?;
            self.skip_value(code)?;
            return Ok(true);
        }
    }

    fn skip_value(&mut self, kind: u8) -> Result<(), LoadError> {
        match kind {
            kind::STRING
            | kind::LIST_ZIPLIST
            | kind::SET_INTSET
            | kind::SET_LISTPACK
            | kind::HASH_ZIPMAP
            | kind::HASH_ZIPLIST
            | kind::HASH_LISTPACK
            | kind::HASH_LISTPACK_EX_PRE_GA
            | kind::ZSET_ZIPLIST
            | kind::ZSET_LISTPACK => self.skip_string(),
            kind::LIST | kind::SET | kind::LIST_QUICKLIST => self.skip_each(Self::skip_string),
            kind::HASH => self.skip_each(|own| {
                own.skip_string()?;
                own.skip_string()
            }),
            kind::LIST_QUICKLIST_2 => self.skip_each(|own| {
                own.length()?;
                own.skip_string()
            }),
            kind::ZSET => self.skip_each(|own| {
                own.skip_string()?;
                match own.input.byte()? {
                    TEXTLESS_SCORES_MIN.. => Ok(()),
                    len => own.input.skip(u64::from(len)),
                }
            }),
            kind::ZSET_2 => self.skip_each(|own| {
                own.skip_string()?;
                own.input.skip(8)
            }),
            kind::HASH_LISTPACK_EX => {
                self.input.skip(8)?;
                self.skip_string()
            }
            kind::HASH_2 if self.version == VERSION_VALKEY => self.skip_each(|own| {
                own.skip_string()?;
                own.skip_string()?;
                own.input.skip(8)
            }),
            kind::HASH_2 | kind::HASH_METADATA => {
                if kind == kind::HASH_METADATA {
                    self.input.skip(8)?;
                }
                self.skip_each(|own| {
                    own.length()?;
                    own.skip_string()?;
                    own.skip_string()
                })
            }
            kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
                self.skip_stream(kind)
            }
            // The remaining types cannot be loaded; decoding returns the reason.
            _ => self.value(kind).map(drop),
        }
    }

    fn skip_each(
        &mut self,
        mut skip: impl FnMut(&mut Self) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        for _ in 0..self.length()? {
            skip(self)?;
        }
        Ok(())
    }

    fn skip_stream(&mut self, kind: u8) -> Result<(), LoadError> {
        self.skip_each(|own| {
            own.skip_string()?;
            own.skip_string()
        })?;
        // The length and the last id. Later types also have the first id, the highest deleted id,
        // and the number of entries ever added.
        self.skip_lengths(if kind == kind::STREAM_LISTPACKS { 3 } else { 8 })?;
        self.skip_each(|own| {
            own.skip_string()?;
            own.skip_lengths(if kind == kind::STREAM_LISTPACKS { 2 } else { 3 })?;
            own.skip_each(|own| {
                // The id and the delivery time, then the delivery count.
                own.input.skip(16 + 8)?;
                own.skip_lengths(1)
            })?;
            own.skip_each(|own| {
                own.skip_string()?;
                own.input.skip(if kind == kind::STREAM_LISTPACKS_3 { 16 } else { 8 })?;
                own.skip_each(|own| own.input.skip(16))
            })
        })
    }

    fn skip_lengths(&mut self, count: usize) -> Result<(), LoadError> {
        for _ in 0..count {
            self.length()?;
        }
        Ok(())
    }
}
