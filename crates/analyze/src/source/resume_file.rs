//! The records of an unfinished scan of a server, in a file from which the scan can resume. The file contains the
//! records, and after each step the position where the step ended. It has the format of an append-only file, so the AOF
//! reader finds the complete part. Data after the last step is truncated.
//!
//! ```text
//!  ANALYZE 1 run-id                                            the first command
//!  KEY db key type encoding bytes deadline idle frequency dump `-` for what is not known
//!  STEP db cursor                                              everything before it belongs to complete steps
//! ```

use super::SourceError;
use crate::analysis::Analysis;
use crate::record::{Encoding, Kind, Record};
use brisk_persist::aof::{AofEventKind, AofReader};
use brisk_persist::rdb::dump;
use brisk_resp::request::encode;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Version of the format.
const FORM: &[u8] = b"1";
const UNKNOWN: &[u8] = b"-";
/// The mode of the file. Only the owner has access, because the file contains values.
const FILE_MODE: u32 = 0o600;

/// The findings about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub db: u64,
    pub key: Vec<u8>,
    pub kind: Kind,
    pub encoding: Encoding,
    pub reported_bytes: Option<u64>,
    pub deadline_ms: Option<i64>,
    pub idle_seconds: Option<u64>,
    pub frequency: Option<u8>,
    /// The value in the format of DUMP.
    pub dump: Option<Vec<u8>>,
}

/// The position of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub db: u64,
    pub cursor: Vec<u8>,
}

impl Place {
    /// Reports whether the scan of the database is complete.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.cursor == b"0"
    }
}

/// The file, if one is used.
#[derive(Debug)]
pub struct ResumeFile {
    file: Option<(File, PathBuf)>,
}

impl ResumeFile {
    /// Opens or creates the file. Adds the records in it to the analysis, and returns the position at which they end.
    ///
    /// # Errors
    /// If the file cannot be read or written, belongs to another server, or has a different format.
    pub fn open(
        path: Option<&Path>,
        run_id: &str,
        analysis: &mut Analysis,
    ) -> Result<(ResumeFile, Option<Place>), SourceError> {
        let Some(path) = path else { return Ok((ResumeFile { file: None }, None)) };
        let wrong = |reason: String| SourceError::file(path, reason);
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut file = how.open(path).map_err(|error| wrong(error.to_string()))?;
        let empty = file.metadata().map_err(|error| wrong(error.to_string()))?.len() == 0;
        let mut place = None;
        if empty {
            let mut head = Vec::new();
            encode(&mut head, &[b"ANALYZE", FORM, run_id.as_bytes()]);
            file.write_all(&head).map_err(|error| wrong(error.to_string()))?;
        } else {
            let (whole, found) = read(&file, run_id, analysis).map_err(&wrong)?;
            place = found;
            file.set_len(whole).map_err(|error| wrong(error.to_string()))?;
            file.seek(SeekFrom::End(0)).map_err(|error| wrong(error.to_string()))?;
        }
        Ok((ResumeFile { file: Some((file, path.to_owned())) }, place))
    }

    /// Writes a step.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&mut self, found: &[Found], place: &Place) -> Result<(), SourceError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let mut bytes = Vec::new();
        for found in found {
            found.encode(&mut bytes);
        }
        encode(&mut bytes, &[b"STEP", place.db.to_string().as_bytes(), &place.cursor]);
        file.write_all(&bytes).map_err(|error| SourceError::file(path, error))
    }
}

/// Reads a file up to its last complete step. Returns the number of bytes up to there, and the position.
fn read(
    file: &File,
    run_id: &str,
    analysis: &mut Analysis,
) -> Result<(u64, Option<Place>), String> {
    let mut reader = AofReader::new(file, 0).map_err(|error| error.to_string())?;
    let mut whole = 0;
    let mut place = None;
    let mut step: Vec<Found> = Vec::new();
    // An incomplete step is repeated, so errors after the last complete step do not matter.
    while let Ok(Some(event)) = reader.next_event() {
        let AofEventKind::Command(command) = event.kind else { continue };
        match command.name() {
            b"ANALYZE" if whole == 0 => {
                if command.arg(1) != Some(FORM) {
                    return Err("was written by another version of analyze".to_owned());
                }
                if command.arg(2) != Some(run_id.as_bytes()) {
                    let text = "belongs to another server, or to this one before it was restarted: \
                                the scan cannot be resumed";
                    return Err(text.to_owned());
                }
                whole = event.end;
            }
            _ if whole == 0 => break,
            b"KEY" => {
                let words: Vec<&[u8]> = command.args().collect();
                step.push(Found::decode(&words).ok_or("contains an invalid record")?);
            }
            b"STEP" => {
                step.drain(..).for_each(|found| found.add_to(analysis));
                let db = command.arg(1).and_then(number).ok_or("contains an invalid step")?;
                place = Some(Place { db, cursor: command.arg(2).unwrap_or(b"0").to_vec() });
                whole = event.end;
            }
            _ => return Err("contains an unknown record".to_owned()),
        }
    }
    if whole == 0 { Err("was not written by analyze".to_owned()) } else { Ok((whole, place)) }
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    str::from_utf8(word).ok()?.parse().ok()
}

/// Parses a number or `-`. Returns `None` for anything else.
fn known<T: std::str::FromStr>(word: &[u8]) -> Option<Option<T>> {
    if word == UNKNOWN { Some(None) } else { number(word).map(Some) }
}

fn word<T: ToString>(number: Option<T>) -> Vec<u8> {
    number.map_or(UNKNOWN.to_vec(), |number| number.to_string().into_bytes())
}

impl Found {
    /// Adds the key to the analysis.
    pub fn add_to(&self, analysis: &mut Analysis) {
        let value = self.dump.as_deref().and_then(|dump| dump::read(dump).ok());
        analysis.add(&Record {
            db: self.db,
            key: &self.key,
            kind: self.kind,
            encoding: self.encoding,
            value: value.as_ref(),
            elements: None,
            deadline_ms: self.deadline_ms,
            idle_seconds: self.idle_seconds,
            frequency: self.frequency,
            reported_bytes: self.reported_bytes,
        });
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let words = [
            b"KEY".to_vec(),
            self.db.to_string().into_bytes(),
            self.key.clone(),
            self.kind.name().as_bytes().to_vec(),
            self.encoding.name().as_bytes().to_vec(),
            word(self.reported_bytes),
            word(self.deadline_ms),
            word(self.idle_seconds),
            word(self.frequency),
            self.dump.clone().unwrap_or(UNKNOWN.to_vec()),
        ];
        encode(out, &words);
    }

    fn decode(words: &[&[u8]]) -> Option<Found> {
        let [_, db, key, kind, encoding, reported, deadline, idle, frequency, dump] = words else {
            return None;
        };
        Some(Found {
            db: number(db)?,
            key: key.to_vec(),
            kind: Kind::of_name(kind),
            encoding: Encoding::of_name(encoding),
            reported_bytes: known(reported)?,
            deadline_ms: known(deadline)?,
            idle_seconds: known(idle)?,
            frequency: known(frequency)?,
            dump: (*dump != UNKNOWN).then(|| dump.to_vec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Limits;
    use crate::model::Classes;
    use brisk_testkit::TempDir;
    use std::os::unix::fs::PermissionsExt;

    fn analysis() -> Analysis {
        Analysis::new(Classes::BUNDLED, Limits::default(), 0)
    }

    fn found(number: u64) -> Found {
        Found {
            db: 0,
            key: format!("key:{number}").into_bytes(),
            kind: Kind::String,
            encoding: Encoding::Raw,
            reported_bytes: Some(100),
            deadline_ms: number.is_multiple_of(2).then_some(5),
            idle_seconds: None,
            frequency: Some(3),
            dump: None,
        }
    }

    #[test]
    fn a_file_resumes_after_its_last_complete_step() {
        let home = TempDir::new();
        let path = home.path("scan");
        let (mut resume_file, place) =
            ResumeFile::open(Some(&path), "id", &mut analysis()).unwrap();
        assert_eq!(place, None);
        // The file contains values of the server.
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, FILE_MODE);
        let first = Place { db: 0, cursor: b"12".to_vec() };
        resume_file.keep(&[found(1), found(2)], &first).unwrap();
        resume_file.keep(&[found(3)], &Place { db: 0, cursor: b"99".to_vec() }).unwrap();
        drop(resume_file);
        let whole = std::fs::read(&path).unwrap();
        let step = whole.len() - 12;
        // If the file is truncated anywhere in the last step, the scan continues after the first.
        for cut in [step, whole.len() - 1, whole.len() - 60] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut again = analysis();
            let (_, place) = ResumeFile::open(Some(&path), "id", &mut again).unwrap();
            assert_eq!((place, again.keys()), (Some(first.clone()), 2), "{cut}");
        }
        std::fs::write(&path, &whole).unwrap();
        let mut again = analysis();
        let (_, place) = ResumeFile::open(Some(&path), "id", &mut again).unwrap();
        assert_eq!((place.unwrap().cursor, again.keys()), (b"99".to_vec(), 3));
    }

    #[test]
    fn unrelated_files_are_rejected_and_left_alone() {
        let home = TempDir::new();
        let path = home.path("scan");
        drop(ResumeFile::open(Some(&path), "one", &mut analysis()).unwrap());
        let error = ResumeFile::open(Some(&path), "two", &mut analysis()).unwrap_err();
        assert!(error.to_string().contains("belongs to another server"), "{error}");
        std::fs::write(&path, "notes of mine").unwrap();
        let error = ResumeFile::open(Some(&path), "one", &mut analysis()).unwrap_err();
        assert!(error.to_string().contains("was not written by analyze"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"notes of mine");
    }
}
