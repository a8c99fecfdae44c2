//! Decodes a value, given its type byte.

mod collection;
mod module;
mod stream;

use super::input::Input;
use super::kind;
use super::primitive::Decoder;
use super::value::{HashValue, SetValue, SortedSetValue, Value};
use crate::error::LoadError;

impl<I: Input> Decoder<I> {
    /// Decodes a value of type `kind`. O(its bytes).
    ///
    /// # Errors
    /// After [`LoadError::Empty`] the decoder is positioned after the value. After any other error
    /// it must not be used.
    pub(super) fn value(&mut self, kind: u8) -> Result<Value, LoadError> {
        self.value_of_kind(kind).map_err(|error| match error {
            LoadError::Malformed { offset, what } => {
                LoadError::Value { part: stored_as(kind), offset, what }
            }
            other => other,
        })
    }

    fn value_of_kind(&mut self, kind: u8) -> Result<Value, LoadError> {
        Ok(match kind {
            kind::STRING => Value::String(self.string_value()?),
            kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
                Value::List(self.list(kind)?)
            }
            kind::SET => Value::Set(self.members()?),
            kind::SET_INTSET => Value::Set(SetValue::Ints(self.intset()?)),
            kind::SET_LISTPACK => Value::Set(SetValue::Packed(self.set_listpack()?)),
            kind::HASH => Value::Hash(self.fields()?),
            kind::HASH_ZIPMAP | kind::HASH_ZIPLIST => Value::Hash(self.compact_fields(kind)?),
            kind::HASH_LISTPACK => Value::Hash(HashValue::Packed(self.hash_listpack()?)),
            kind::HASH_LISTPACK_EX | kind::HASH_LISTPACK_EX_PRE_GA => {
                Value::Hash(self.hash_listpack_with_expiry(kind)?)
            }
            kind::HASH_2 | kind::HASH_METADATA => Value::Hash(self.fields_with_expiry(kind)?),
            kind::ZSET | kind::ZSET_2 => Value::SortedSet(self.scored_members(kind)?),
            kind::ZSET_ZIPLIST => Value::SortedSet(self.scored_ziplist()?),
            kind::ZSET_LISTPACK => {
                Value::SortedSet(SortedSetValue::Packed(self.scored_listpack()?))
            }
            kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
                Value::Stream(Box::new(self.stream(kind)?))
            }
            kind::MODULE_2 => return Err(self.module_value()?),
            kind::MODULE_PRE_GA => {
                let offset = self.input.position();
                return Err(LoadError::PreRelease { offset, what: "a module's value" });
            }
            code => {
                let offset = self.input.position().saturating_sub(1);
                return Err(LoadError::UnknownType { offset, code });
            }
        })
    }
}

/// Returns the name of the encoding of type `kind`, as used in error texts.
const fn stored_as(kind: u8) -> &'static str {
    match kind {
        kind::STRING => "String",
        kind::LIST => "List",
        kind::LIST_ZIPLIST => "List ziplist",
        kind::LIST_QUICKLIST => "Quicklist ziplist",
        kind::LIST_QUICKLIST_2 => "Quicklist listpack",
        kind::SET => "Set",
        kind::SET_INTSET => "Set intset",
        kind::SET_LISTPACK => "Set listpack",
        kind::ZSET | kind::ZSET_2 => "Zset",
        kind::ZSET_ZIPLIST => "Zset ziplist",
        kind::ZSET_LISTPACK => "Zset listpack",
        kind::HASH_ZIPMAP => "Zipmap",
        kind::HASH_ZIPLIST => "Hash ziplist",
        kind::HASH_LISTPACK | kind::HASH_LISTPACK_EX | kind::HASH_LISTPACK_EX_PRE_GA => {
            "Hash listpack"
        }
        kind::HASH | kind::HASH_2 | kind::HASH_METADATA => "Hash",
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
            "Stream listpack"
        }
        _ => "Module",
    }
}
