//! A simulated disk in memory, for tests. It can fail, fill up, and lose power.
//!
//! | file | purpose |
//! |---|---|
//! | `volume` | names and files: in memory, and after a power failure |
//! | `content` | the bytes of one file: in memory, and after a power failure |
//!
//! Every call has a number. A test can make one call fail, make each call fail with some probability, or cut the power
//! during a call. The effect of a call during which the power is cut may or may not happen, and all later calls fail.

mod content;
mod volume;

use super::disk::Disk;
use brisk_testkit::random::Random;
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;
use volume::{Change, Volume};

/// A clone refers to the same disk.
#[derive(Clone)]
pub(crate) struct Simulated(Rc<RefCell<State>>);

struct State {
    volume: Volume,
    random: Random,
    calls: Vec<&'static str>,
    /// The call that fails, counted from 0.
    fails_at: Option<usize>,
    /// How many calls in a thousand fail: of all calls, or of the calls with one name.
    fails_per_mille: usize,
    fails_only: Option<&'static str>,
    /// The call during which the power fails.
    cut_at: Option<usize>,
    is_off: bool,
    /// True if a call has failed.
    has_failed: bool,
    /// Free space in bytes.
    room: usize,
}

/// An open file.
pub(crate) struct SimulatedFile {
    disk: Simulated,
    file: usize,
    at: usize,
}

/// The outcome of a call.
enum Fate {
    Works,
    /// The call returns an error. Its effect may happen in part.
    Fails,
    /// The power fails, after the effect happened.
    Last,
}

impl Simulated {
    pub(crate) fn new(seed: u64) -> Simulated {
        Simulated(Rc::new(RefCell::new(State {
            volume: Volume::default(),
            random: Random::new(seed),
            calls: Vec::new(),
            fails_at: None,
            fails_per_mille: 0,
            fails_only: None,
            cut_at: None,
            is_off: false,
            has_failed: false,
            room: usize::MAX,
        })))
    }

    /// From now on all calls succeed, except for faults that are set later.
    pub(crate) fn repair(&self) {
        let mut state = self.0.borrow_mut();
        (state.fails_at, state.fails_per_mille, state.room) = (None, 0, usize::MAX);
        (state.cut_at, state.fails_only, state.has_failed) = (None, None, false);
        state.calls.clear();
    }

    /// Makes the call with this number fail, counted from now.
    pub(crate) fn fail_at(&self, call: usize) {
        self.0.borrow_mut().fails_at = Some(call);
    }

    pub(crate) fn fail_per_mille(&self, calls: usize, only: Option<&'static str>) {
        let mut state = self.0.borrow_mut();
        (state.fails_per_mille, state.fails_only) = (calls, only);
    }

    /// Cuts the power during the call with this number.
    pub(crate) fn cut_at(&self, call: usize) {
        self.0.borrow_mut().cut_at = Some(call);
    }

    /// Sets the free space to this many bytes.
    pub(crate) fn leave_room(&self, bytes: usize) {
        self.0.borrow_mut().room = bytes;
    }

    /// The calls since the last repair.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.0.borrow().calls.clone()
    }

    /// Reports whether a call has failed since the last repair, or the power is off.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.borrow().has_failed
    }

    /// Reports whether the power is off.
    pub(crate) fn is_off(&self) -> bool {
        self.0.borrow().is_off
    }

    /// Cuts the power, if it was on, and restores it. Files then have the contents that were on the disk. Open files
    /// become unusable.
    pub(crate) fn restart(&self) {
        let mut state = self.0.borrow_mut();
        let State { volume, random, .. } = &mut *state;
        volume.lose_power(random);
        state.is_off = false;
        drop(state);
        self.repair();
    }

    /// Adds a file that is completely on the disk.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        self.0.borrow_mut().volume.put(path, bytes);
    }

    pub(crate) fn put_dir(&self, path: &Path) {
        self.0.borrow_mut().volume.put_dir(path);
    }

    /// The contents of a file, as processes see them.
    pub(crate) fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let mut state = self.0.borrow_mut();
        let file = state.volume.file(path)?;
        Some(state.volume.content(file).bytes().to_vec())
    }

    fn call<T>(
        &self,
        name: &'static str,
        work: impl FnOnce(&mut Volume) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.0.borrow_mut();
        let fate = state.fate(name)?;
        match fate {
            Fate::Works => work(&mut state.volume),
            Fate::Fails => Err(ErrorKind::Other.into()),
            Fate::Last => {
                let _ = work(&mut state.volume);
                Err(ErrorKind::Other.into())
            }
        }
    }

    fn write(&self, file: usize, at: Option<usize>, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        let fate = state.fate("write")?;
        let may_be_short = state.fails_at.is_none();
        let State { volume, random, room, has_failed, .. } = &mut *state;
        let mut some = bytes.len().min(*room);
        if some == 0 && !bytes.is_empty() {
            *has_failed = true;
            return Err(ErrorKind::StorageFull.into());
        }
        if !matches!(fate, Fate::Works) {
            some = random.below(some + 1);
        }
        *room -= some;
        volume.write(file, at, &bytes[..some]);
        match fate {
            // A short write. The next write returns the error.
            Fate::Fails if may_be_short && some > 0 && random.percent(50) => Ok(some),
            Fate::Works => Ok(some),
            Fate::Fails | Fate::Last => Err(ErrorKind::Other.into()),
        }
    }

    fn sync_file(&self, name: &'static str, file: usize) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let fate = state.fate(name)?;
        let State { volume, random, .. } = &mut *state;
        match fate {
            Fate::Works => {
                volume.content(file).sync();
                Ok(())
            }
            Fate::Last => {
                volume.content(file).sync();
                Err(ErrorKind::Other.into())
            }
            Fate::Fails => {
                // Unwritten data is dropped, so the next sync has nothing to do.
                volume.content(file).forget_unsynced(random);
                Err(ErrorKind::Other.into())
            }
        }
    }
}

impl State {
    fn fate(&mut self, name: &'static str) -> io::Result<Fate> {
        if self.is_off {
            return Err(ErrorKind::Other.into());
        }
        let number = self.calls.len();
        self.calls.push(name);
        if self.cut_at == Some(number) {
            (self.is_off, self.has_failed) = (true, true);
            return if self.random.percent(50) {
                Ok(Fate::Last)
            } else {
                Err(ErrorKind::Other.into())
            };
        }
        let fails = self.fails_at == Some(number)
            || (self.fails_per_mille > 0
                && self.fails_only.is_none_or(|only| only == name)
                && self.random.below(1000) < self.fails_per_mille);
        self.has_failed |= fails;
        Ok(if fails { Fate::Fails } else { Fate::Works })
    }
}

impl Disk for Simulated {
    type File = SimulatedFile;

    fn create(&self, path: &Path) -> io::Result<SimulatedFile> {
        let file = self.call("create", |volume| {
            let file = volume.open_or_create(path)?;
            volume.content(file).set_len(0);
            Ok(file)
        })?;
        Ok(SimulatedFile { disk: self.clone(), file, at: 0 })
    }

    fn open(&self, path: &Path) -> io::Result<SimulatedFile> {
        let file = self
            .call("open", |volume| volume.file(path).ok_or_else(|| ErrorKind::NotFound.into()))?;
        Ok(SimulatedFile { disk: self.clone(), file, at: 0 })
    }

    fn open_to_append(&self, path: &Path) -> io::Result<SimulatedFile> {
        let file = self.call("open_to_append", |volume| volume.open_or_create(path))?;
        Ok(SimulatedFile { disk: self.clone(), file, at: 0 })
    }

    fn append(&self, file: &SimulatedFile, head: &[u8], body: &[u8]) -> io::Result<usize> {
        self.write(file.file, None, &[head, body].concat())
    }

    fn len(&self, file: &SimulatedFile) -> io::Result<u64> {
        self.call("len", |volume| Ok(volume.content(file.file).bytes().len() as u64))
    }

    fn set_len(&self, file: &SimulatedFile, bytes: u64) -> io::Result<()> {
        self.call("set_len", |volume| {
            volume.content(file.file).set_len(bytes as usize);
            Ok(())
        })
    }

    fn sync(&self, file: &SimulatedFile) -> io::Result<()> {
        self.sync_file("sync", file.file)
    }

    fn sync_data(&self, file: &SimulatedFile) -> io::Result<()> {
        self.sync_file("sync_data", file.file)
    }

    fn len_of(&self, path: &Path) -> io::Result<Option<u64>> {
        self.call("len_of", |volume| {
            let file = volume.file(path);
            Ok(file.map(|file| volume.content(file).bytes().len() as u64))
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename", |volume| {
            let file = volume.file(from).ok_or(ErrorKind::NotFound)?;
            volume.change(Change::Rename(from.to_path_buf(), to.to_path_buf(), file));
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.call("sync_dir", |volume| {
            volume.sync_dir(dir);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call("remove", |volume| {
            let file = volume.file(path).ok_or(ErrorKind::NotFound)?;
            volume.change(Change::Remove(path.to_path_buf(), file));
            Ok(())
        })
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.call("create_dir", |volume| volume.create_dir(path))
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.disk.write(self.file, Some(self.at), bytes)?;
        self.at += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for SimulatedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (file, at) = (self.file, self.at);
        let read = self.disk.call("read", |volume| {
            let rest = volume.content(file).bytes().get(at..).unwrap_or_default();
            let some = rest.len().min(into.len());
            into[..some].copy_from_slice(&rest[..some]);
            Ok(some)
        })?;
        self.at += read;
        Ok(read)
    }
}

impl Seek for SimulatedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let len = self.disk.0.borrow_mut().volume.content(self.file).bytes().len() as i64;
        let at = match to {
            SeekFrom::Start(at) => at as i64,
            SeekFrom::End(by) => len + by,
            SeekFrom::Current(by) => self.at as i64 + by,
        };
        self.at = usize::try_from(at).map_err(|_| ErrorKind::InvalidInput)?;
        Ok(self.at as u64)
    }
}
