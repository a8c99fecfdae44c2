//! Decodes lengths, strings and numbers.

use super::compact::DistinctTable;
use super::input::Input;
use super::strings::Strings;
use super::unique::UniquenessCheck;
use super::value::StringValue;
use crate::error::LoadError;
use brisk_structures::decimal::decimal_len;
use brisk_structures::lzf;

/// Maximum size in bytes of a buffer that is kept from value to value. A larger buffer is freed.
pub(super) const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// Decodes values from `input`. Errors report the position of the input.
pub(super) struct Decoder<I> {
    pub(super) input: I,
    /// The version of the file or payload. One value type depends on it.
    pub(super) version: u32,
    /// Compressed bytes before they are decompressed.
    pub(super) block: Vec<u8>,
    /// Decompressed bytes that are only validated or copied.
    pub(super) content: Vec<u8>,
    pub(super) table: DistinctTable,
    /// Texts of elements whose uniqueness is being checked.
    texts: Strings,
    pub(super) unique: UniquenessCheck,
}

/// The encoding of a string.
#[derive(Clone, Copy)]
pub(super) enum StringEncoding {
    Raw { len: u64 },
    Int(i64),
    Lzf { block_len: u64, len: u64 },
}

impl<I: Input> Decoder<I> {
    pub(super) fn new(input: I, version: u32) -> Self {
        Decoder {
            input,
            version,
            block: Vec::new(),
            content: Vec::new(),
            table: DistinctTable::default(),
            texts: Strings::new(),
            unique: UniquenessCheck::new(),
        }
    }

    pub(super) fn malformed(&self, what: &'static str) -> LoadError {
        LoadError::Malformed { offset: self.input.position(), what }
    }

    /// Reads a length, or returns `Err` with the encoding if a special string encoding was found.
    fn length_or_encoding(&mut self) -> Result<Result<u64, u8>, LoadError> {
        let first = self.input.byte()?;
        Ok(match first >> 6 {
            0 => Ok(u64::from(first)),
            1 => Ok(u64::from(u16::from_be_bytes([first & 0x3f, self.input.byte()?]))),
            3 => Err(first & 0x3f),
            _ => match first {
                0x80 => Ok(u64::from(u32::from_be_bytes(self.input.array()?))),
                0x81 => Ok(u64::from_be_bytes(self.input.array()?)),
                _ => return Err(self.malformed("unknown length encoding")),
            },
        })
    }

    /// Reads a length or another unsigned number.
    pub(super) fn length(&mut self) -> Result<u64, LoadError> {
        match self.length_or_encoding()? {
            Ok(length) => Ok(length),
            Err(_) => Err(self.malformed("found a string encoding instead of a length")),
        }
    }

    pub(super) fn string_encoding(&mut self) -> Result<StringEncoding, LoadError> {
        Ok(match self.length_or_encoding()? {
            Ok(len) => StringEncoding::Raw { len },
            Err(0) => StringEncoding::Int(i64::from(i8::from_le_bytes(self.input.array()?))),
            Err(1) => StringEncoding::Int(i64::from(i16::from_le_bytes(self.input.array()?))),
            Err(2) => StringEncoding::Int(i64::from(i32::from_le_bytes(self.input.array()?))),
            Err(3) => StringEncoding::Lzf { block_len: self.length()?, len: self.length()? },
            Err(_) => return Err(self.malformed("unknown string encoding")),
        })
    }

    /// Appends a string with this encoding to `out`.
    pub(super) fn append(
        &mut self,
        encoding: StringEncoding,
        out: &mut Vec<u8>,
    ) -> Result<(), LoadError> {
        match encoding {
            StringEncoding::Raw { len } => self.input.append(len, out),
            StringEncoding::Int(number) => {
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                Ok(())
            }
            StringEncoding::Lzf { block_len, len } => {
                self.block.shrink_to(SCRATCH_BYTES_MAX);
                let block = self.input.bytes(block_len, &mut self.block)?;
                // Memory is used only if the block really has that much content.
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let done = lzf::decompress(block, len, out);
                done.map_err(|error| self.malformed(error.what))
            }
        }
    }

    pub(super) fn string(&mut self) -> Result<Vec<u8>, LoadError> {
        let encoding = self.string_encoding()?;
        let mut out = Vec::new();
        self.append(encoding, &mut out)?;
        Ok(out)
    }

    /// Reads a string value. Integers stay integers.
    pub(super) fn string_value(&mut self) -> Result<StringValue, LoadError> {
        match self.string_encoding()? {
            StringEncoding::Int(number) => Ok(StringValue::Int(number)),
            encoding => {
                let mut out = Vec::new();
                self.append(encoding, &mut out)?;
                Ok(StringValue::Bytes(out))
            }
        }
    }

    pub(super) fn string_onto(&mut self, strings: &mut Strings) -> Result<(), LoadError> {
        let encoding = self.string_encoding()?;
        let len = match encoding {
            StringEncoding::Raw { len } | StringEncoding::Lzf { len, .. } => len,
            StringEncoding::Int(number) => decimal_len(number) as u64,
        };
        self.append(encoding, strings.push_with(len))
    }

    pub(super) fn skip_string(&mut self) -> Result<(), LoadError> {
        match self.string_encoding()? {
            StringEncoding::Raw { len } | StringEncoding::Lzf { block_len: len, .. } => {
                self.input.skip(len)
            }
            StringEncoding::Int(_) => Ok(()),
        }
    }

    /// Reads a binary double.
    pub(super) fn double(&mut self) -> Result<f64, LoadError> {
        Ok(f64::from_le_bytes(self.input.array()?))
    }

    /// Reads a double in text form: a length byte and the text, or a byte that stands for one of
    /// three values without text.
    pub(super) fn text_double(&mut self) -> Result<f64, LoadError> {
        let mut text = [0; 255];
        match self.input.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => {
                let text = &mut text[..usize::from(len)];
                self.input.fill_exactly(text)?;
                parse_double(text).ok_or_else(|| self.malformed("a score is not a number"))
            }
        }
    }

    /// Reads a time or a duration in milliseconds.
    pub(super) fn milliseconds(&mut self) -> Result<i64, LoadError> {
        Ok(i64::from_le_bytes(self.input.array()?))
    }

    /// Fails unless every `step`th string differs from the others.
    pub(super) fn require_unique(
        &mut self,
        strings: &Strings,
        step: usize,
        what: &'static str,
    ) -> Result<(), LoadError> {
        if self.unique.all(strings, step) { Ok(()) } else { Err(self.malformed(what)) }
    }

    /// Fails unless all texts differ.
    pub(super) fn require_unique_texts<'a>(
        &mut self,
        texts: impl Iterator<Item = brisk_structures::listpack::Item<'a>>,
        what: &'static str,
    ) -> Result<(), LoadError> {
        let mut digits = itoa::Buffer::new();
        let mut all = std::mem::take(&mut self.texts);
        all.clear();
        for text in texts {
            all.push(text.text(&mut digits));
        }
        let unique = self.unique.all(&all, 1);
        if all.allocated_bytes() <= SCRATCH_BYTES_MAX {
            self.texts = all;
        }
        if unique { Ok(()) } else { Err(self.malformed(what)) }
    }
}

/// Parses a decimal number as servers write scores, including "inf" and "nan".
pub(super) fn parse_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim_ascii().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::input::SliceInput;
    use super::*;

    fn decoder(bytes: &[u8]) -> Decoder<SliceInput<'_>> {
        Decoder::new(SliceInput::new(bytes), 10)
    }

    #[test]
    fn lengths_of_all_widths_are_read() {
        for (bytes, length) in [
            (&b"\x00"[..], 0),
            (b"\x3f", 63),
            (b"\x40\x40", 64),
            (b"\x7f\xff", 16383),
            (b"\x80\x00\x00\x40\x00", 16384),
            (b"\x81\x00\x00\x00\x01\x00\x00\x00\x00", 1 << 32),
        ] {
            assert_eq!(decoder(bytes).length().unwrap(), length);
        }
        for bytes in [&b"\x82\x00\x00"[..], b"\xc0\x01", b"\x81\x00", b""] {
            assert!(decoder(bytes).length().is_err());
        }
    }

    #[test]
    fn strings_of_all_forms_are_read() {
        for (bytes, text) in [
            (&b"\x03abc"[..], &b"abc"[..]),
            (b"\xc0\x80", b"-128"),
            (b"\xc1\x10\x27", b"10000"),
            (b"\xc2\xff\xff\xff\x7f", b"2147483647"),
            (b"\xc3\x09\x40\x28\x01aa\xe0\x1b\x00\x01aa", &[b'a'; 40]),
        ] {
            assert_eq!(decoder(bytes).string().unwrap(), text);
            let mut strings = Strings::new();
            decoder(bytes).string_onto(&mut strings).unwrap();
            assert_eq!(strings.iter().next(), Some(text));
            let mut skipped = decoder(bytes);
            skipped.skip_string().unwrap();
            assert!(skipped.input.rest().is_empty());
        }
        for bytes in [&b"\x03ab"[..], b"\xc4", b"\xc3\x02\x05\x00a", b"\xc1\x00"] {
            assert!(decoder(bytes).string().is_err());
        }
    }

    #[test]
    fn doubles_as_text_are_read() {
        for (bytes, number) in [
            (&b"\x031.5"[..], 1.5),
            (b"\x06-1e300", -1e300),
            (b"\xfe", f64::INFINITY),
            (b"\xff", f64::NEG_INFINITY),
        ] {
            assert!(decoder(bytes).text_double().unwrap() == number);
        }
        assert!(decoder(b"\xfd").text_double().unwrap().is_nan());
        assert!(decoder(b"\x02ab").text_double().is_err());
        assert!(decoder(b"\x00").text_double().is_err());
    }
}
