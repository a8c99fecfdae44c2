//! Reads a whole RDB file as a stream of events.

use super::input::{Input, StreamInput};
use super::primitive::Decoder;
use super::value::Value;
use super::{is_readable, opcode};
use crate::error::LoadError;
use std::io::Read;

/// Files of this version and later end with a checksum.
pub(super) const CHECKSUM_SINCE: u32 = 5;

/// The items of a file.
#[derive(Debug)]
pub enum RdbEvent {
    /// A metadata field of the file, for example `redis-ver` or `repl-id`.
    Aux {
        name: Vec<u8>,
        value: Vec<u8>,
    },
    /// The database of the following entries.
    SelectDb(u64),
    /// The number of keys in the database, and how many of them have an expiry time.
    ResizeDb {
        keys: u64,
        expires: u64,
    },
    /// The same numbers for a slot.
    SlotInfo {
        slot: u64,
        keys: u64,
        expires: u64,
    },
    /// The source of a function library.
    Function(Vec<u8>),
    /// Data that a module stored; only returned with [`RdbReader::skip_modules`].
    ModuleAux {
        module: String,
    },
    /// A module's value; only returned with [`RdbReader::skip_modules`].
    ModuleValue {
        key: Vec<u8>,
        module: String,
    },
    Entry(RdbEntry),
    /// A collection without elements. Servers skip it when they load a file.
    EmptyValue {
        key: Vec<u8>,
    },
    /// The end of the file.
    End(Checksum),
}

/// A key with its value and metadata.
#[derive(Debug)]
pub struct RdbEntry {
    pub key: Vec<u8>,
    pub value: Value,
    pub metadata: KeyMetadata,
}

/// The metadata that may precede a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyMetadata {
    /// Expiry time: Unix time in ms.
    pub expire_at_ms: Option<i64>,
    pub idle_seconds: Option<u64>,
    /// The access counter for LFU eviction.
    pub frequency: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    Verified,
    /// Not compared, at the caller's request.
    Ignored,
    /// The file has no checksum: its version is too old, or checksums were turned off.
    None,
}

/// The item that a reader was reading, to report an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadContext<'a> {
    pub part: FilePart,
    /// The type of the entry, if its type byte was read.
    pub kind: Option<u8>,
    /// The key of the value that could not be read.
    pub key: Option<&'a [u8]>,
}

/// The parts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePart {
    /// A type or opcode.
    Kind,
    ExpireTime,
    /// A database's number or sizes.
    Database,
    Aux,
    ModuleAux,
    Function,
    Key,
    Value,
    Checksum,
}

/// Reads a file from any reader. It has its own buffer.
pub struct RdbReader<R> {
    decoder: Decoder<StreamInput<R>>,
    skips_modules: bool,
    ignores_checksum: bool,
    ended: bool,
    /// The fields that [`RdbReader::context`] returns.
    part: FilePart,
    kind: Option<u8>,
    unread_key: Option<Vec<u8>>,
}

impl FilePart {
    /// Returns the part to which the bytes after an opcode belong; `Kind` for types and all other opcodes.
    fn after(code: u8) -> FilePart {
        match code {
            opcode::EXPIRE_TIME | opcode::EXPIRE_TIME_MS => FilePart::ExpireTime,
            opcode::AUX => FilePart::Aux,
            opcode::FUNCTION_2 | opcode::FUNCTION_PRE_GA => FilePart::Function,
            opcode::MODULE_AUX => FilePart::ModuleAux,
            opcode::EOF => FilePart::Checksum,
            opcode::SLOT_IMPORT | opcode::SLOT_INFO | opcode::RESIZE_DB | opcode::SELECT_DB => {
                FilePart::Database
            }
            _ => FilePart::Kind,
        }
    }
}

impl<R: Read> RdbReader<R> {
    /// Creates a reader and reads the header.
    ///
    /// # Errors
    /// Fails if this is not an RDB file, or if its version cannot be read.
    pub fn new(reader: R) -> Result<Self, LoadError> {
        let mut input = StreamInput::new(reader);
        let version = version_of_header(input.array()?)?;
        let decoder = Decoder::new(input, version);
        Ok(RdbReader {
            decoder,
            skips_modules: false,
            ignores_checksum: false,
            ended: false,
            part: FilePart::Kind,
            kind: None,
            unread_key: None,
        })
    }

    /// Skips the data of modules instead of failing with the module's name.
    #[must_use]
    pub fn skip_modules(mut self) -> Self {
        self.skips_modules = true;
        self
    }

    /// Does not compare the checksum at the end.
    #[must_use]
    pub fn ignore_checksum(mut self) -> Self {
        self.ignores_checksum = true;
        self
    }

    /// Returns the file's version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.decoder.version
    }

    /// Returns the number of bytes read so far, for progress reports.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.decoder.input.position()
    }

    /// Returns what the reader was reading when an error occurred.
    #[must_use]
    pub fn context(&self) -> ReadContext<'_> {
        ReadContext { part: self.part, kind: self.kind, key: self.unread_key.as_deref() }
    }

    /// Returns the bytes that were read after the end of the file, and the reader, which continues
    /// after them.
    #[must_use]
    pub fn into_rest(self) -> (Vec<u8>, R) {
        self.decoder.input.into_rest()
    }

    /// Returns the next event; `None` after the end. O(its bytes).
    ///
    /// # Errors
    /// See [`LoadError`]. The reader must not be used after an error.
    pub fn next_event(&mut self) -> Result<Option<RdbEvent>, LoadError> {
        if self.ended {
            return Ok(None);
        }
        let mut metadata = KeyMetadata::default();
        self.kind = None;
        loop {
            self.part = FilePart::Kind;
            let code = self.decoder.input.byte()?;
            self.part = FilePart::after(code);
            let decoder = &mut self.decoder;
            let event = match code {
                code if decoder.read_metadata(code, &mut metadata)? => continue,
                opcode::EOF => RdbEvent::End(self.end()?),
                code @ opcode::SLOT_IMPORT.. => match decoder.section(code, self.skips_modules)? {
                    Some(event) => event,
                    None => continue,
                },
                kind => self.entry(kind, metadata)?,
            };
            return Ok(Some(event));
        }
    }

    fn entry(&mut self, kind: u8, metadata: KeyMetadata) -> Result<RdbEvent, LoadError> {
        self.decoder.require_known(kind)?;
        (self.part, self.kind) = (FilePart::Key, Some(kind));
        let key = self.decoder.string()?;
        self.part = FilePart::Value;
        match self.decoder.value(kind) {
            Ok(value) => Ok(RdbEvent::Entry(RdbEntry { key, value, metadata })),
            Err(LoadError::Empty) => Ok(RdbEvent::EmptyValue { key }),
            Err(LoadError::UnsupportedModule { module, .. }) if self.skips_modules => {
                Ok(RdbEvent::ModuleValue { key, module })
            }
            Err(error) => {
                self.unread_key = Some(key);
                Err(error)
            }
        }
    }

    fn end(&mut self) -> Result<Checksum, LoadError> {
        self.ended = true;
        if self.version() < CHECKSUM_SINCE {
            return Ok(Checksum::None);
        }
        let computed = self.decoder.input.checksum();
        let stored = u64::from_le_bytes(self.decoder.input.array()?);
        compared(stored, computed, self.ignores_checksum)
    }
}

/// Length of the header in bytes.
pub(super) const HEADER_BYTES: usize = 9;

/// Returns the version in a file's header.
pub(super) fn version_of_header(header: [u8; HEADER_BYTES]) -> Result<u32, LoadError> {
    let digits = header
        .strip_prefix(b"REDIS")
        .or_else(|| header.strip_prefix(b"VALKEY"))
        .filter(|digits| digits.iter().all(u8::is_ascii_digit))
        .ok_or(LoadError::NotRdb)?;
    let version = digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    if is_readable(version) { Ok(version) } else { Err(LoadError::UnsupportedVersion(version)) }
}

/// Compares the checksum at the end of a file with the computed one.
pub(super) fn compared(
    stored: u64,
    computed: u64,
    is_ignored: bool,
) -> Result<Checksum, LoadError> {
    match stored {
        0 => Ok(Checksum::None),
        _ if is_ignored => Ok(Checksum::Ignored),
        _ if stored == computed => Ok(Checksum::Verified),
        _ => Err(LoadError::Checksum { stored, computed }),
    }
}

impl<I: Input> Decoder<I> {
    /// Reads the metadata that follows `code`. Returns false if `code` does not introduce metadata.
    #[inline]
    pub(super) fn read_metadata(
        &mut self,
        code: u8,
        metadata: &mut KeyMetadata,
    ) -> Result<bool, LoadError> {
        match code {
            opcode::EXPIRE_TIME => {
                let seconds = i32::from_le_bytes(self.input.array()?);
                metadata.expire_at_ms = Some(i64::from(seconds) * 1000);
            }
            opcode::EXPIRE_TIME_MS => metadata.expire_at_ms = Some(self.milliseconds()?),
            opcode::IDLE => metadata.idle_seconds = Some(self.length()?),
            opcode::FREQ => metadata.frequency = Some(self.input.byte()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fails unless the byte that was just read is a value type.
    #[inline]
    pub(super) fn require_known(&self, kind: u8) -> Result<(), LoadError> {
        if kind > super::kind::HASH_LISTPACK_EX {
            let offset = self.input.position() - 1;
            return Err(LoadError::UnknownType { offset, code: kind });
        }
        Ok(())
    }

    /// Reads the item after an opcode that belongs to no key, except the end of the file. Returns
    /// `None` for items that are not reported.
    pub(super) fn section(
        &mut self,
        code: u8,
        skips_modules: bool,
    ) -> Result<Option<RdbEvent>, LoadError> {
        Ok(Some(match code {
            opcode::AUX => RdbEvent::Aux { name: self.string()?, value: self.string()? },
            opcode::SELECT_DB => RdbEvent::SelectDb(self.length()?),
            opcode::RESIZE_DB => {
                RdbEvent::ResizeDb { keys: self.length()?, expires: self.length()? }
            }
            opcode::SLOT_INFO => RdbEvent::SlotInfo {
                slot: self.length()?,
                keys: self.length()?,
                expires: self.length()?,
            },
            opcode::SLOT_IMPORT => {
                // A slot import that was in progress: its name and its ranges.
                self.skip_string()?;
                for _ in 0..self.length()? {
                    self.length()?;
                    self.length()?;
                }
                return Ok(None);
            }
            opcode::FUNCTION_2 => RdbEvent::Function(self.string()?),
            opcode::FUNCTION_PRE_GA => {
                let offset = self.input.position();
                return Err(LoadError::PreRelease { offset, what: "a library of functions" });
            }
            opcode::MODULE_AUX => match self.module_aux()? {
                LoadError::UnsupportedModule { module, .. } if skips_modules => {
                    RdbEvent::ModuleAux { module }
                }
                error => return Err(error),
            },
            _ => return Err(self.malformed("found the end of the file instead of a section")),
        }))
    }
}
