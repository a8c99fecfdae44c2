//! Files that are replaced as a whole, and the format of the topology file.
//!
//! ```text
//! brisk-topology 1 <revision> <bytes> <CRC-32C in hexadecimal>\n
//! <document>
//! ```

use crate::error::CoordinatorError;
use crate::values::{DOCUMENT_BYTES_MAX, Revision};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first two fields of a topology file: its kind and the version of its format.
const MAGIC: &str = "brisk-topology 1";
/// Maximum bytes of the first line of a topology file.
const HEADER_BYTES_MAX: usize = 128;
/// Advice for a damaged topology file.
const ADVICE: &str = "The directory history next to it holds earlier documents in the same form: \
                      stop all nodes and copy the one with the highest number over it";

/// States whether a file must survive a power failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    Synced,
    Unsynced,
}

/// Replaces a file; a reader sees the old or the new content. The error says which one is in place.
pub(super) fn replace(
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), ReplaceError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.{number}", std::process::id()));
    let failed = |action| {
        let path = temporary.clone();
        move |error: io::Error| {
            // The error of the write is the one to report.
            _ = fs::remove_file(&path);
            ReplaceError::Before(CoordinatorError::file(action, &path, error))
        }
    };
    let mut file = File::create_new(&temporary).map_err(failed("create"))?;
    file.write_all(bytes).map_err(failed("write"))?;
    if durability == Durability::Synced {
        file.sync_all().map_err(failed("sync"))?;
    }
    fs::rename(&temporary, path).map_err(failed("rename"))?;
    if durability == Durability::Synced {
        sync_directory_of(path).map_err(ReplaceError::After)?;
    }
    Ok(())
}

/// An error of [`replace`].
pub(super) enum ReplaceError {
    /// The old content is in place.
    Before(CoordinatorError),
    /// The new content is in place, but it may not survive a power failure.
    After(CoordinatorError),
}

impl From<ReplaceError> for CoordinatorError {
    fn from(error: ReplaceError) -> CoordinatorError {
        match error {
            ReplaceError::Before(error) | ReplaceError::After(error) => error,
        }
    }
}

/// Writes the entries of a file's directory to the disk.
pub(super) fn sync_directory_of(path: &Path) -> Result<(), CoordinatorError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| CoordinatorError::file("sync", directory, error))
}

/// The content of a file, at most `bytes_max`; `None` if it does not exist.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, CoordinatorError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CoordinatorError::file("open", path, error)),
    };
    let mut bytes = Vec::new();
    file.take(bytes_max as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| CoordinatorError::file("read", path, error))?;
    Ok(Some(bytes))
}

/// Removes a file. It is not an error if the file does not exist.
pub(super) fn remove(path: &Path) -> Result<(), CoordinatorError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CoordinatorError::file("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// The content of a topology file.
pub(super) fn encode_topology(revision: Revision, document: &[u8]) -> Vec<u8> {
    let checksum = checksum(revision, document);
    let header = format!("{MAGIC} {revision} {} {checksum:08x}\n", document.len());
    [header.as_bytes(), document].concat()
}

/// The checksum covers the revision, so that a damaged digit of the revision is detected.
fn checksum(revision: Revision, document: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&revision.0.to_le_bytes()), document)
}

/// The revision and the document of a topology file; `None` if it does not exist.
pub(super) fn read_topology(path: &Path) -> Result<Option<(Revision, Vec<u8>)>, CoordinatorError> {
    // Read one byte more than allowed, so that a longer file is detected as damaged.
    let Some(mut bytes) = read(path, HEADER_BYTES_MAX + DOCUMENT_BYTES_MAX + 1)? else {
        return Ok(None);
    };
    match decode_topology(&bytes) {
        Ok((revision, header_bytes)) => Ok(Some((revision, bytes.split_off(header_bytes)))),
        Err(why) => Err(CoordinatorError::Damaged {
            path: path.to_owned(),
            why: why.to_owned(),
            advice: ADVICE.to_owned(),
        }),
    }
}

/// The revision, and the length of the header.
fn decode_topology(bytes: &[u8]) -> Result<(Revision, usize), &'static str> {
    let end = bytes.iter().take(HEADER_BYTES_MAX).position(|byte| *byte == b'\n');
    let end = end.ok_or("its first line is missing")?;
    let (header, document) = (&bytes[..end], &bytes[end + 1..]);
    let header = std::str::from_utf8(header).map_err(|_| "its first line is not text")?;
    let fields = header.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(' '));
    let fields = fields.ok_or("its first line does not begin with `brisk-topology 1`")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let [revision, length, sum] = fields[..] else {
        return Err("its first line does not have five fields");
    };
    let revision = revision.parse().ok().filter(|revision| *revision > 0);
    let revision = Revision(revision.ok_or("its revision is not a number")?);
    if length.parse() != Ok(document.len()) {
        return Err("its length differs from the one in its first line");
    }
    if u32::from_str_radix(sum, 16) != Ok(checksum(revision, document)) {
        return Err("its checksum differs");
    }
    Ok((revision, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_testkit::TempDir;

    #[test]
    fn each_damaged_byte_and_each_missing_end_of_a_topology_is_found() {
        let whole = encode_topology(Revision(41), b"{\"format\":1}");
        assert_eq!(decode_topology(&whole).map(|(revision, _)| revision), Ok(Revision(41)));
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let found = decode_topology(&damaged);
                // An uppercase letter in the checksum is the same hexadecimal digit.
                let is_same_number = whole[at].is_ascii_alphabetic() && bit == 5 && at < 40;
                assert!(found.is_err() || is_same_number, "byte {at}, bit {bit}: {found:?}");
            }
            assert!(decode_topology(&whole[..at]).is_err(), "cut at {at}");
        }
        assert!(decode_topology(&[&whole[..], b"x"].concat()).is_err());
    }

    #[test]
    fn the_error_names_the_file_and_where_earlier_documents_are() {
        let dir = TempDir::new();
        let path = dir.path("topology");
        fs::write(&path, "brisk-topology 1 3 100 00000000\nshort").unwrap();
        let text = read_topology(&path).unwrap_err().to_string();
        assert!(
            text.contains("topology is damaged: its length") && text.contains("history"),
            "{text}"
        );
    }
}
