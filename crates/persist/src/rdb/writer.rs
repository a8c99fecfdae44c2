//! Writes a whole RDB file to any writer.

use super::encode::{Encoder, Sink, kind_of};
use super::entries::EncodedEntries;
use super::opcode;
use super::reader::KeyMetadata;
use super::value::Value;
use crate::crc64::crc64;
use std::io::{self, Write};

/// Number of bytes that are buffered before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Writes a file item by item. The first error of the underlying writer is kept, and later output
/// is dropped. [`RdbWriter::check`] and [`RdbWriter::finish`] return the error.
#[derive(Debug)]
pub struct RdbWriter<W: Write> {
    encoder: Encoder<FileSink<W>>,
    checksum: bool,
}

/// Buffers, checksums and counts the output. Dropping an unfinished sink drops its buffer on
/// purpose: an incomplete file must not look complete.
#[derive(Debug)]
pub struct FileSink<W: Write> {
    writer: W,
    buffer: Vec<u8>,
    crc: u64,
    bytes: u64,
    error: Option<io::Error>,
}

impl<W: Write> FileSink<W> {
    fn flush(&mut self) {
        self.crc = crc64(self.crc, &self.buffer);
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }
}

impl<W: Write> Sink for FileSink<W> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for part in bytes.chunks(BUFFER_BYTES) {
            if self.buffer.len() + part.len() > BUFFER_BYTES {
                self.flush();
            }
            self.buffer.extend_from_slice(part);
        }
    }
}

impl<W: Write> RdbWriter<W> {
    /// Creates a writer and writes the header of a file of `version`: [`VERSION`](super::VERSION),
    /// or [`VERSION_FIELD_TTL`](super::VERSION_FIELD_TTL) if hashes with expiry times will follow.
    pub fn new(writer: W, version: u32) -> Self {
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        let sink = FileSink { writer, buffer, crc: 0, bytes: 0, error: None };
        let mut encoder = Encoder::new(sink);
        encoder.sink().put(format!("REDIS{version:04}").as_bytes());
        RdbWriter { encoder, checksum: true }
    }

    /// Ends the file without a checksum: `rdbchecksum no`.
    #[must_use]
    pub fn without_checksum(mut self) -> Self {
        self.checksum = false;
        self
    }

    /// Leaves strings uncompressed: `rdbcompression no`.
    #[must_use]
    pub fn without_compression(mut self) -> Self {
        self.set_compression(false);
        self
    }

    /// Turns the compression of the following strings on or off. It is on by default.
    pub fn set_compression(&mut self, on: bool) {
        self.encoder.set_compression(on);
    }

    /// Writes a metadata field of the file.
    pub fn aux(&mut self, name: &str, value: &[u8]) {
        self.encoder.kind(opcode::AUX);
        self.encoder.string(name.as_bytes());
        self.encoder.string(value);
    }

    /// Writes the source of a function library.
    pub fn function(&mut self, source: &[u8]) {
        self.encoder.kind(opcode::FUNCTION_2);
        self.encoder.string(source);
    }

    /// Writes the database of the following entries.
    pub fn select_db(&mut self, db: u64) {
        self.encoder.kind(opcode::SELECT_DB);
        self.encoder.length(db);
    }

    /// Writes the number of keys in the database, and how many of them have an expiry time.
    pub fn resize_db(&mut self, keys: u64, expires: u64) {
        self.encoder.kind(opcode::RESIZE_DB);
        self.encoder.length(keys);
        self.encoder.length(expires);
    }

    /// Writes a key with its value. O(value).
    pub fn entry(&mut self, key: &[u8], metadata: KeyMetadata, value: &Value) {
        self.begin_entry(kind_of(value), key, metadata).value(value);
    }

    /// Begins a key whose value, of type `kind`, the caller then writes to the encoder.
    pub fn begin_entry(
        &mut self,
        kind: u8,
        key: &[u8],
        metadata: KeyMetadata,
    ) -> &mut Encoder<FileSink<W>> {
        self.encoder.begin_entry(kind, key, metadata);
        &mut self.encoder
    }

    /// Writes entries that were encoded elsewhere, each begun by [`Encoder::begin_entry`], and
    /// compresses their strings unless compression is off.
    pub fn encoded(&mut self, entries: &EncodedEntries) {
        entries.write(&mut self.encoder);
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn bytes(&mut self) -> u64 {
        self.encoder.sink().bytes
    }

    /// Checks whether an error has occurred so far, so that the caller can abandon a snapshot
    /// early.
    ///
    /// # Errors
    /// Returns the first error of the writer, once.
    pub fn check(&mut self) -> io::Result<()> {
        self.encoder.sink().error.take().map_or(Ok(()), |error| {
            // Later output must not make the file look complete.
            self.encoder.sink().error = Some(error.kind().into());
            Err(error)
        })
    }

    /// Ends the file, and returns the writer after flushing it.
    ///
    /// # Errors
    /// Returns the first error of the writer; the file is then incomplete.
    pub fn finish(mut self) -> io::Result<W> {
        self.encoder.kind(opcode::EOF);
        let sink = self.encoder.sink();
        sink.flush();
        let checksum = if self.checksum { sink.crc } else { 0 };
        sink.put(&checksum.to_le_bytes());
        sink.flush();
        self.check()?;
        let mut writer = self.encoder.into_sink().writer;
        writer.flush()?;
        Ok(writer)
    }
}
