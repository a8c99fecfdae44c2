//! The bytes of one file: as processes see them, and as stored on the disk.

use brisk_testkit::random::Random;

/// Sizes of the units that a disk writes atomically.
const SECTORS: [usize; 2] = [512, 4096];

#[derive(Default)]
pub(super) struct Content {
    /// The contents, as processes see them.
    bytes: Vec<u8>,
    /// The contents, as stored on the disk.
    synced: Vec<u8>,
    /// Changes since the last sync, in order.
    unsynced: Vec<Change>,
}

enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

/// The selection of unsynced changes that reached the disk.
#[derive(Clone, Copy)]
enum Kept {
    All,
    Nothing,
    /// The earliest changes.
    Prefix,
    /// Any subset.
    Any,
}

impl Kept {
    fn some(random: &mut Random) -> Kept {
        *random.pick(&[Kept::All, Kept::Nothing, Kept::Prefix, Kept::Any, Kept::Any])
    }
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Content {
        Content { bytes: bytes.to_vec(), synced: bytes.to_vec(), unsynced: Vec::new() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes at this offset, or at the end of the file if it is `None`.
    pub(super) fn write(&mut self, at: Option<usize>, bytes: &[u8]) {
        let at = at.unwrap_or(self.bytes.len());
        put(&mut self.bytes, at, bytes);
        self.unsynced.push(Change::Write(at, bytes.to_vec()));
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.bytes.resize(len, 0);
        self.unsynced.push(Change::SetLen(len));
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            match change {
                Change::Write(at, bytes) => put(&mut self.synced, at, &bytes),
                Change::SetLen(len) => self.synced.resize(len, 0),
            }
        }
    }

    /// Drops some of the unsynced bytes, as if the disk could not write them. Processes do not notice. (Lengths are
    /// kept by the file system's journal. If that failed, the whole file system would be lost.)
    pub(super) fn forget_unsynced(&mut self, random: &mut Random) {
        self.keep_some(random, true);
        self.synced.resize(self.bytes.len(), 0);
    }

    /// After a power failure processes see the contents of the disk.
    pub(super) fn lose_power(&mut self, random: &mut Random) {
        self.keep_some(random, false);
        self.bytes.clone_from(&self.synced);
    }

    fn keep_some(&mut self, random: &mut Random, keeps_lengths: bool) {
        let (kept, sector) = (Kept::some(random), *random.pick(&SECTORS));
        let (mut garbage, mut len) = (random.percent(30), self.synced.len());
        let mut goes_on = true;
        // Where the file grew without data being written, it contains zeros or arbitrary bytes.
        let mut holes = Vec::new();
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::SetLen(new) => {
                    if keeps_lengths || keeps(kept, &mut goes_on, random) {
                        self.synced.resize(new, 0);
                        len = new;
                    }
                }
                Change::Write(at, bytes) => {
                    let mut from = at;
                    while from < at + bytes.len() {
                        let to = (from / sector * sector + sector).min(at + bytes.len());
                        let piece = &bytes[from - at..to - at];
                        if keeps(kept, &mut goes_on, random) {
                            // The change that was being written may be present in part.
                            let is_torn = random.percent(10);
                            let some =
                                if is_torn { random.below(piece.len()) } else { piece.len() };
                            put(&mut self.synced, from, &piece[..some]);
                        } else {
                            holes.push(from..to);
                        }
                        // The length is written independently of the contents.
                        if random.percent(25) {
                            len = len.max(to);
                        }
                        from = to;
                    }
                }
            }
        }
        let written = self.synced.len();
        self.synced.resize(written.max(len), 0);
        garbage &= !holes.is_empty();
        for hole in holes.into_iter().filter(|hole| garbage && hole.start >= written) {
            for byte in self.synced.iter_mut().take(hole.end).skip(hole.start) {
                // Bytes that look like a command would be parsed as one, so they must not occur by chance.
                *byte = Some(random.bits() as u8).filter(|byte| *byte != b'*').unwrap_or(0);
            }
        }
    }
}

fn keeps(kept: Kept, goes_on: &mut bool, random: &mut Random) -> bool {
    match kept {
        Kept::All => true,
        Kept::Nothing => false,
        Kept::Prefix => {
            *goes_on &= random.percent(80);
            *goes_on
        }
        Kept::Any => random.percent(50),
    }
}

fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(bytes);
}
