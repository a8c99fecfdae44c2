//! Skips the data of modules, whose structure is known, and returns the module's name.

use crate::error::LoadError;
use crate::rdb::input::Input;
use crate::rdb::primitive::Decoder;

/// Parts of module data. Each part begins with its number.
mod part {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const STRING: u64 = 5;
}

/// A module type's name has nine of these characters, six bits each. The ten lowest bits of its id
/// are the version.
const NAME_CHARACTERS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VERSION_BITS: u32 = 10;
const NAME_LEN: u32 = 9;

impl<I: Input> Decoder<I> {
    /// Skips a module's value, and returns an error that names the module.
    pub(super) fn module_value(&mut self) -> Result<LoadError, LoadError> {
        let offset = self.input.position();
        let module = module_name(self.length()?);
        self.skip_parts()?;
        Ok(LoadError::UnsupportedModule { offset, module })
    }

    /// Skips the data that a module stores outside of the keyspace.
    pub(in crate::rdb) fn module_aux(&mut self) -> Result<LoadError, LoadError> {
        let offset = self.input.position();
        let module = module_name(self.length()?);
        // The first part says when to load the data.
        if self.length()? != part::UNSIGNED {
            return Err(self.malformed("a module's data does not say when to load it"));
        }
        self.length()?;
        self.skip_parts()?;
        Ok(LoadError::UnsupportedModule { offset, module })
    }

    fn skip_parts(&mut self) -> Result<(), LoadError> {
        loop {
            match self.length()? {
                part::END => return Ok(()),
                part::SIGNED | part::UNSIGNED => {
                    self.length()?;
                }
                part::FLOAT => self.input.skip(4)?,
                part::DOUBLE => self.input.skip(8)?,
                part::STRING => self.skip_string()?,
                _ => return Err(self.malformed("a module's data has a part of unknown type")),
            }
        }
    }
}

fn module_name(id: u64) -> String {
    let character = |index: u32| {
        let bits = id >> (VERSION_BITS + 6 * (NAME_LEN - 1 - index)) & 63;
        char::from(NAME_CHARACTERS[bits as usize])
    };
    (0..NAME_LEN).map(character).collect()
}
