//! Entries that are encoded by one thread, and compressed and written by another.

use super::encode::{Encoder, Sink, length_code};
use std::ops::Range;

/// Encoded entries, and the places of the strings in them that may be compressed.
#[derive(Debug, Default)]
pub struct EncodedEntries {
    bytes: Vec<u8>,
    compressible: Vec<Place>,
}

/// The place of a string in the encoded bytes.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Where the encoded length of the string begins. The string follows it.
    begin: usize,
    /// The length of the string.
    len: usize,
}

impl Place {
    fn string(self) -> Range<usize> {
        let begin = self.begin + length_code(self.len as u64).1;
        begin..begin + self.len
    }
}

impl Sink for EncodedEntries {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_compressible(&mut self, length: &[u8], string: &[u8]) {
        self.compressible.push(Place { begin: self.bytes.len(), len: string.len() });
        self.put(length);
        self.put(string);
    }
}

impl EncodedEntries {
    /// Creates an empty sequence with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> EncodedEntries {
        EncodedEntries { bytes: Vec::with_capacity(bytes), compressible: Vec::new() }
    }

    /// Returns the number of encoded bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity() + self.compressible.capacity() * size_of::<Place>()
    }

    /// Removes and returns the entries, in memory of just the right size. The memory of `self`
    /// remains allocated. O(bytes).
    #[must_use]
    pub fn take_compact(&mut self) -> EncodedEntries {
        let taken = EncodedEntries {
            bytes: self.bytes.as_slice().into(),
            compressible: self.compressible.as_slice().into(),
        };
        self.clear();
        taken
    }

    /// Removes all entries. Their memory remains allocated.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.compressible.clear();
    }

    /// Writes the entries, and encodes their compressible strings again.
    pub(super) fn write<S: Sink>(&self, encoder: &mut Encoder<S>) {
        let mut written = 0;
        for place in &self.compressible {
            let string = place.string();
            encoder.sink().put(&self.bytes[written..place.begin]);
            written = string.end;
            encoder.string(&self.bytes[string]);
        }
        encoder.sink().put(&self.bytes[written..]);
    }
}

#[cfg(test)]
mod tests {
    use super::EncodedEntries;
    use crate::rdb::KeyMetadata;
    use crate::rdb::encode::Encoder;

    fn encode<S: super::Sink>(encoder: &mut Encoder<S>) {
        let strings =
            [&b"short"[..], b"12", &[b'a'; 40], b"0123456789abcdefghijklmnop", &[7; 70_000]];
        for string in strings {
            encoder.begin_entry(0, &[b'k'; 30], KeyMetadata::default());
            encoder.string(string);
        }
        encoder.length(5);
    }

    #[test]
    fn entries_that_are_compressed_later_have_the_same_bytes() {
        for compresses in [true, false] {
            let mut direct = Encoder::new(Vec::new());
            direct.set_compression(compresses);
            encode(&mut direct);

            let mut deferred = Encoder::new(EncodedEntries::default());
            deferred.defer_compression();
            encode(&mut deferred);
            assert!(deferred.sink().len() > 70_000);
            let entries = deferred.sink().take_compact();
            assert!(deferred.sink().is_empty());
            let mut out = Encoder::new(Vec::new());
            out.set_compression(compresses);
            entries.write(&mut out);
            assert_eq!(out.into_sink(), direct.into_sink());
        }
    }
}
