//! A whole RDB file as a stream of events.

use super::input::{Input, StreamInput};
use super::primitive::Decoder;
use super::value::Value;
use super::{is_readable, opcode};
use crate::error::LoadError;
use std::io::Read;

/// Files of this version and later end with a checksum.
pub(super) const CHECKSUM_SINCE: u32 = 5;

/// What stands in a file.
#[derive(Debug)]
pub enum Event {
    /// A note about the file, as `redis-ver` or `repl-id`.
    Aux {
        name: Vec<u8>,
        value: Vec<u8>,
    },
    /// Which database the following entries are in.
    SelectDb(u64),
    /// How many keys, and how many of them with a deadline, the database has.
    ResizeDb {
        keys: u64,
        expires: u64,
    },
    /// The same of a slot.
    SlotInfo {
        slot: u64,
        keys: u64,
        expires: u64,
    },
    /// The source of a library of functions.
    Function(Vec<u8>),
    /// What a module stored; only from [`RdbReader::skip_modules`].
    ModuleAux {
        module: String,
    },
    /// A module's value; only from [`RdbReader::skip_modules`].
    ModuleValue {
        key: Vec<u8>,
        module: String,
    },
    Entry(Entry),
    /// A collection without elements. Servers pass it over when they load a file.
    EmptyValue {
        key: Vec<u8>,
    },
    /// Nothing follows.
    End(Checksum),
}

/// A key with its value and what was noted about it.
#[derive(Debug)]
pub struct Entry {
    pub key: Vec<u8>,
    pub value: Value,
    pub notes: Notes,
}

/// What may stand before a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notes {
    /// Unix time in ms.
    pub deadline_ms: Option<i64>,
    pub idle_seconds: Option<u64>,
    /// The access counter of LFU.
    pub frequency: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    Verified,
    /// Not compared, because the reader was told so.
    Ignored,
    /// The file has none: it is too old, or its writer was told so.
    None,
}

/// What a reader was at, for a report of what it could not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub part: Part,
    /// The type of the entry, if it is one that was read.
    pub kind: Option<u8>,
    /// The key of the value that could not be read.
    pub key: Option<&'a [u8]>,
}

/// The parts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A type or opcode.
    Kind,
    Deadline,
    /// A database's number or sizes.
    Database,
    Aux,
    ModuleAux,
    Function,
    Key,
    Value,
    Checksum,
}

/// Reads a file from any reader; it has a buffer of its own.
pub struct RdbReader<R> {
    decoder: Decoder<StreamInput<R>>,
    skips_modules: bool,
    ignores_checksum: bool,
    ended: bool,
    /// What [`RdbReader::place`] tells.
    part: Part,
    kind: Option<u8>,
    unread_key: Option<Vec<u8>>,
}

impl Part {
    /// What follows a type or an opcode.
    fn behind(code: u8) -> Part {
        match code {
            opcode::EXPIRE_TIME | opcode::EXPIRE_TIME_MS => Part::Deadline,
            opcode::AUX => Part::Aux,
            opcode::FUNCTION_2 | opcode::FUNCTION_PRE_GA => Part::Function,
            opcode::MODULE_AUX => Part::ModuleAux,
            opcode::EOF => Part::Checksum,
            opcode::SLOT_IMPORT | opcode::SLOT_INFO | opcode::RESIZE_DB | opcode::SELECT_DB => {
                Part::Database
            }
            _ => Part::Kind,
        }
    }
}

impl<R: Read> RdbReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If this is no RDB file, or of a version that cannot be read.
    pub fn new(reader: R) -> Result<Self, LoadError> {
        let mut input = StreamInput::new(reader);
        let version = version_of_header(input.array()?)?;
        let decoder = Decoder::new(input, version);
        Ok(RdbReader {
            decoder,
            skips_modules: false,
            ignores_checksum: false,
            ended: false,
            part: Part::Kind,
            kind: None,
            unread_key: None,
        })
    }

    /// Passes over what modules left instead of failing with its name.
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

    /// The file's version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.decoder.version
    }

    /// Bytes of the file read so far, for a report of progress.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.decoder.input.position()
    }

    /// What was being read when an error came.
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        Place { part: self.part, kind: self.kind, key: self.unread_key.as_deref() }
    }

    /// What was read beyond the end of the file, and the reader, which goes on behind that.
    #[must_use]
    pub fn into_rest(self) -> (Vec<u8>, R) {
        self.decoder.input.into_rest()
    }

    /// What comes next; `None` behind the end. O(its bytes).
    ///
    /// # Errors
    /// As [`LoadError`] says. The reader is of no more use then.
    pub fn next_event(&mut self) -> Result<Option<Event>, LoadError> {
        if self.ended {
            return Ok(None);
        }
        let mut notes = Notes::default();
        self.kind = None;
        loop {
            self.part = Part::Kind;
            let code = self.decoder.input.byte()?;
            self.part = Part::behind(code);
            let decoder = &mut self.decoder;
            let event = match code {
                code if decoder.note(code, &mut notes)? => continue,
                opcode::EOF => Event::End(self.end()?),
                code @ opcode::SLOT_IMPORT.. => match decoder.section(code, self.skips_modules)? {
                    Some(event) => event,
                    None => continue,
                },
                kind => self.entry(kind, notes)?,
            };
            return Ok(Some(event));
        }
    }

    fn entry(&mut self, kind: u8, notes: Notes) -> Result<Event, LoadError> {
        self.decoder.demand_known(kind)?;
        (self.part, self.kind) = (Part::Key, Some(kind));
        let key = self.decoder.string()?;
        self.part = Part::Value;
        match self.decoder.value(kind) {
            Ok(value) => Ok(Event::Entry(Entry { key, value, notes })),
            Err(LoadError::Empty) => Ok(Event::EmptyValue { key }),
            Err(LoadError::UnsupportedModule { module, .. }) if self.skips_modules => {
                Ok(Event::ModuleValue { key, module })
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

/// Bytes that a file begins with.
pub(super) const HEADER_BYTES: usize = 9;

/// The version that a file says it has.
pub(super) fn version_of_header(header: [u8; HEADER_BYTES]) -> Result<u32, LoadError> {
    let digits = header
        .strip_prefix(b"REDIS")
        .or_else(|| header.strip_prefix(b"VALKEY"))
        .filter(|digits| digits.iter().all(u8::is_ascii_digit))
        .ok_or(LoadError::NotRdb)?;
    let version = digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    if is_readable(version) { Ok(version) } else { Err(LoadError::UnsupportedVersion(version)) }
}

/// Whether the checksum at a file's end is that of its bytes.
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
    /// Reads what `code` notes about the next key; false if it is no note.
    #[inline]
    pub(super) fn note(&mut self, code: u8, notes: &mut Notes) -> Result<bool, LoadError> {
        match code {
            opcode::EXPIRE_TIME => {
                let seconds = i32::from_le_bytes(self.input.array()?);
                notes.deadline_ms = Some(i64::from(seconds) * 1000);
            }
            opcode::EXPIRE_TIME_MS => notes.deadline_ms = Some(self.milliseconds()?),
            opcode::IDLE => notes.idle_seconds = Some(self.length()?),
            opcode::FREQ => notes.frequency = Some(self.input.byte()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fails unless the byte that was just taken is a type of values.
    #[inline]
    pub(super) fn demand_known(&self, kind: u8) -> Result<(), LoadError> {
        if kind > super::kind::HASH_LISTPACK_EX {
            let offset = self.input.position() - 1;
            return Err(LoadError::UnknownType { offset, code: kind });
        }
        Ok(())
    }

    /// What an opcode that belongs to no key stands for, but for the end of the file; `None` if for
    /// nothing that anybody is told of.
    pub(super) fn section(
        &mut self,
        code: u8,
        skips_modules: bool,
    ) -> Result<Option<Event>, LoadError> {
        Ok(Some(match code {
            opcode::AUX => Event::Aux { name: self.string()?, value: self.string()? },
            opcode::SELECT_DB => Event::SelectDb(self.length()?),
            opcode::RESIZE_DB => Event::ResizeDb { keys: self.length()?, expires: self.length()? },
            opcode::SLOT_INFO => Event::SlotInfo {
                slot: self.length()?,
                keys: self.length()?,
                expires: self.length()?,
            },
            opcode::SLOT_IMPORT => {
                // An import of slots under way elsewhere: its name and its ranges.
                self.skip_string()?;
                for _ in 0..self.length()? {
                    self.length()?;
                    self.length()?;
                }
                return Ok(None);
            }
            opcode::FUNCTION_2 => Event::Function(self.string()?),
            opcode::FUNCTION_PRE_GA => {
                let offset = self.input.position();
                return Err(LoadError::PreRelease { offset, what: "a library of functions" });
            }
            opcode::MODULE_AUX => match self.module_aux()? {
                LoadError::UnsupportedModule { module, .. } if skips_modules => {
                    Event::ModuleAux { module }
                }
                error => return Err(error),
            },
            _ => return Err(self.malformed("the file's end stands where a section should")),
        }))
    }
}
