//! DUMP payloads: the type and the content of one value, followed by a footer of version and
//! checksum. FUNCTION DUMP has the same footer after function libraries instead of a value.

use super::encode::{Encoder, kind_of, version_of};
use super::input::{Input, SliceInput};
use super::primitive::Decoder;
use super::strings::Strings;
use super::value::Value;
use super::{VERSION, is_readable, opcode};
use crate::crc64::crc64;
use crate::error::LoadError;

/// Checks a payload and returns the part before the footer, and the version. O(payload).
///
/// # Errors
/// [`LoadError::Footer`].
pub fn open(payload: &[u8]) -> Result<(&[u8], u32), LoadError> {
    let opened = open_unchecked(payload)?;
    let (summed, checksum) = payload.split_last_chunk::<8>().ok_or(LoadError::Footer)?;
    if crc64(0, summed) == u64::from_le_bytes(*checksum) {
        Ok(opened)
    } else {
        Err(LoadError::Footer)
    }
}

/// Like [`open`], without comparing the checksum. O(1).
///
/// # Errors
/// [`LoadError::Footer`] if the version is not supported.
pub fn open_unchecked(payload: &[u8]) -> Result<(&[u8], u32), LoadError> {
    let (summed, _) = payload.split_last_chunk::<8>().ok_or(LoadError::Footer)?;
    let (body, version) = summed.split_last_chunk::<2>().ok_or(LoadError::Footer)?;
    let version = u32::from(u16::from_le_bytes(*version));
    if is_readable(version) { Ok((body, version)) } else { Err(LoadError::Footer) }
}

/// Decodes the value of a DUMP payload. O(payload and content of its LZF blocks).
///
/// # Errors
/// [`LoadError::Footer`], or the fault of the value.
pub fn read(payload: &[u8]) -> Result<Value, LoadError> {
    let (body, version) = open(payload)?;
    read_body(body, version)
}

/// Decodes the value of a payload without its footer. O(payload and content of its LZF blocks).
///
/// # Errors
/// Returns the fault of the value.
pub fn read_body(body: &[u8], version: u32) -> Result<Value, LoadError> {
    let mut decoder = Decoder::new(SliceInput::new(body), version);
    let kind = decoder.input.byte()?;
    let value = decoder.value(kind)?;
    match decoder.input.rest().len() {
        0 => Ok(value),
        bytes => {
            Err(LoadError::TrailingBytes { offset: decoder.input.position(), bytes: bytes as u64 })
        }
    }
}

/// Decodes the sources of the libraries in a FUNCTION DUMP payload, in order. O(payload and content
/// of its LZF blocks).
///
/// # Errors
/// [`LoadError::Footer`], or the fault of a library.
pub fn read_functions(payload: &[u8]) -> Result<Strings, LoadError> {
    let (body, version) = open(payload)?;
    let mut decoder = Decoder::new(SliceInput::new(body), version);
    let mut libraries = Strings::new();
    while !decoder.input.rest().is_empty() {
        let offset = decoder.input.position();
        match decoder.input.byte()? {
            opcode::FUNCTION_2 => decoder.string_onto(&mut libraries)?,
            opcode::FUNCTION_PRE_GA => {
                return Err(LoadError::PreRelease { offset, what: "a library of functions" });
            }
            code => return Err(LoadError::UnknownType { offset, code }),
        }
    }
    Ok(libraries)
}

/// Appends the footer to a payload that holds a type and a value. O(payload).
pub fn finish(payload: &mut Vec<u8>, version: u32) {
    payload.extend_from_slice(&(version as u16).to_le_bytes());
    let checksum = crc64(0, payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
}

/// Encodes a value as a payload, in the lowest version that has its type. O(value).
#[must_use]
pub fn write(value: &Value) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    encoder.kind(kind_of(value));
    encoder.value(value);
    let mut payload = encoder.into_sink();
    finish(&mut payload, version_of(value));
    payload
}

/// Encodes the payload of FUNCTION DUMP: the libraries with these sources, in this order.
/// O(sources).
#[must_use]
pub fn write_functions<'a>(sources: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    for source in sources {
        encoder.kind(opcode::FUNCTION_2);
        encoder.string(source);
    }
    let mut payload = encoder.into_sink();
    finish(&mut payload, VERSION);
    payload
}
