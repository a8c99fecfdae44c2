//! The manifest of an append-only file: which files there are, and in which order they are loaded.
//!
//! ```text
//!  file appendonly.aof.2.base.rdb seq 2 type b      at most one base, loaded first
//!  file appendonly.aof.4.incr.aof seq 4 type h      history: replaced, to be removed
//!  file appendonly.aof.5.incr.aof seq 5 type i      increments, by ascending number
//! ```
//! A line is words by twos, of which unknown ones are passed over, and names with odd bytes are
//! quoted as in configuration files. A line that begins with `#` is a comment.
//!
//! A [`Manifest`] is a value: whoever changes the files changes a copy, writes that to the disk, and
//! only then takes it for the truth.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of a line, its end included.
const LINE_BYTES_MAX: usize = 1024;
/// Numbers of files that are read: enough above it is left for those to come.
const SEQ_MAX: i64 = i64::MAX / 2;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// The dataset at some moment.
    Base,
    /// Replaced by a newer base; nobody reads it any more.
    History,
    /// Commands since the base, or since the increment before.
    Increment,
}

impl FileKind {
    const fn letter(self) -> u8 {
        match self {
            FileKind::Base => b'b',
            FileKind::History => b'h',
            FileKind::Increment => b'i',
        }
    }
}

/// How a base is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseFormat {
    /// As an RDB file: `aof-use-rdb-preamble yes`.
    Rdb,
    /// As commands.
    Commands,
}

/// A line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// A name, not a path.
    pub name: Vec<u8>,
    /// Counts the bases, or the increments.
    pub seq: i64,
    pub kind: FileKind,
}

impl ManifestFile {
    /// Where the file lies if the manifest lies in `directory`.
    #[must_use]
    pub fn path_in(&self, directory: &Path) -> PathBuf {
        directory.join(OsStr::from_bytes(&self.name))
    }
}

/// The files of one append-only file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    base: Option<ManifestFile>,
    history: Vec<ManifestFile>,
    increments: Vec<ManifestFile>,
    /// The numbers given last.
    base_seq: i64,
    increment_seq: i64,
}

/// Why a manifest cannot be read. The text is the one that servers log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ManifestError {
    /// The number of the line, from 1, and the line without blanks around it, if it is about one.
    pub line: Option<(usize, Vec<u8>)>,
    pub kind: ManifestErrorKind,
}

/// What can be wrong with a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManifestErrorKind {
    #[error("Found an empty AOF manifest")]
    Empty,
    #[error("The AOF manifest file contains too long line")]
    TooLongLine,
    #[error("Invalid AOF manifest file format")]
    Format,
    #[error("File can't be a path, just a filename")]
    Path,
    #[error("Found duplicate base file information")]
    DuplicateBase,
    #[error("Found a non-monotonic sequence number")]
    Sequence,
    #[error("Unknown AOF file type")]
    Kind,
}

/// The name of the manifest of an append-only file with the name `appendfilename`.
#[must_use]
pub fn manifest_name(appendfilename: &[u8]) -> Vec<u8> {
    [appendfilename, b".manifest"].concat()
}

/// The name under which a manifest is written before it replaces the old one.
#[must_use]
pub fn temporary_manifest_name(appendfilename: &[u8]) -> Vec<u8> {
    [b"temp-", appendfilename, b".manifest"].concat()
}

impl Manifest {
    /// No files yet.
    #[must_use]
    pub fn new() -> Manifest {
        Manifest::default()
    }

    /// The manifest after a single file of before version 7, `appendfilename`, has been moved into
    /// the directory as it is: it becomes the base.
    #[must_use]
    pub fn upgraded(appendfilename: &[u8]) -> Manifest {
        let base = ManifestFile { name: appendfilename.to_vec(), seq: 1, kind: FileKind::Base };
        Manifest { base: Some(base), base_seq: 1, ..Manifest::default() }
    }

    /// Reads a manifest. O(text).
    ///
    /// # Errors
    /// What is wrong with it, in the words of servers. Stricter than those are: names `.` and `..`
    /// count as paths, and numbers end where there would be none left for new files.
    pub fn parse(text: &[u8]) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::new();
        if text.is_empty() {
            return Err(ManifestError { line: None, kind: ManifestErrorKind::Empty });
        }
        for (number, line) in lines(text).enumerate() {
            if line.starts_with(b"#") {
                continue;
            }
            // Servers read text that ends at a zero.
            let line = until_zero(line);
            if !line.ends_with(b"\n") {
                return Err(ManifestError { line: None, kind: ManifestErrorKind::TooLongLine });
            }
            let line = trim(line);
            manifest
                .add(line)
                .map_err(|kind| ManifestError { line: Some((number + 1, line.to_vec())), kind })?;
        }
        Ok(manifest)
    }

    fn add(&mut self, line: &[u8]) -> Result<(), ManifestErrorKind> {
        let file = file_of(line)?;
        match file.kind {
            FileKind::Base if self.base.is_some() => return Err(ManifestErrorKind::DuplicateBase),
            FileKind::Base => {
                self.base_seq = file.seq;
                self.base = Some(file);
            }
            FileKind::History => self.history.push(file),
            FileKind::Increment if file.seq <= self.increment_seq => {
                return Err(ManifestErrorKind::Sequence);
            }
            FileKind::Increment => {
                self.increment_seq = file.seq;
                self.increments.push(file);
            }
        }
        Ok(())
    }

    /// The manifest as text: the base, history, increments. O(names).
    #[must_use]
    pub fn format(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for file in self.base.iter().chain(&self.history).chain(&self.increments) {
            text.extend_from_slice(b"file ");
            put_name(&mut text, &file.name);
            text.extend_from_slice(b" seq ");
            text.extend_from_slice(itoa::Buffer::new().format(file.seq).as_bytes());
            text.extend_from_slice(b" type ");
            text.extend_from_slice(&[file.kind.letter(), b'\n']);
        }
        text
    }

    #[must_use]
    pub fn base(&self) -> Option<&ManifestFile> {
        self.base.as_ref()
    }

    /// By ascending number; the last one is being written.
    #[must_use]
    pub fn increments(&self) -> &[ManifestFile] {
        &self.increments
    }

    /// What was replaced and not removed yet.
    #[must_use]
    pub fn history(&self) -> &[ManifestFile] {
        &self.history
    }

    /// The files that make the dataset, in the order in which they are loaded. Only the last one
    /// may lack its end.
    pub fn files_to_load(&self) -> impl Iterator<Item = &ManifestFile> {
        self.base.iter().chain(&self.increments)
    }

    /// Adds the increment that is written next, and gives it.
    pub fn new_increment(&mut self, appendfilename: &[u8]) -> &ManifestFile {
        self.increment_seq = self.increment_seq.saturating_add(1);
        let suffix = format!(".{}.incr.aof", self.increment_seq);
        let name = [appendfilename, suffix.as_bytes()].concat();
        let file = ManifestFile { name, seq: self.increment_seq, kind: FileKind::Increment };
        let at = self.increments.len();
        self.increments.push(file);
        &self.increments[at]
    }

    /// Puts a new base in the place of the old one, which becomes history, and gives it. The
    /// increments that it contains are then [retired](Manifest::retire_increments).
    pub fn replace_base(&mut self, appendfilename: &[u8], format: BaseFormat) -> &ManifestFile {
        if let Some(old) = self.base.take() {
            self.history.insert(0, ManifestFile { kind: FileKind::History, ..old });
        }
        self.base_seq = self.base_seq.saturating_add(1);
        let end = match format {
            BaseFormat::Rdb => "rdb",
            BaseFormat::Commands => "aof",
        };
        let name = [appendfilename, format!(".{}.base.{end}", self.base_seq).as_bytes()].concat();
        self.base.insert(ManifestFile { name, seq: self.base_seq, kind: FileKind::Base })
    }

    /// Makes history of all increments but the last `kept`: a new base contains them.
    pub fn retire_increments(&mut self, kept: usize) {
        let retired = self.increments.len().saturating_sub(kept);
        let retired = self.increments.drain(..retired);
        let retired = retired.map(|file| ManifestFile { kind: FileKind::History, ..file });
        self.history.splice(..0, retired);
    }

    /// Forgets the history, and gives the files to be removed. One that is still in use by its name
    /// is not among them. O(files²), of which there are few.
    pub fn take_history(&mut self) -> Vec<ManifestFile> {
        let mut history = std::mem::take(&mut self.history);
        history.retain(|old| self.files_to_load().all(|used| used.name != old.name));
        history
    }
}

/// Pieces that end with a line's end, or after as many bytes as a line may have.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let within = &rest[..rest.len().min(LINE_BYTES_MAX)];
        let len = within.iter().position(|byte| *byte == b'\n').map_or(within.len(), |at| at + 1);
        let line;
        (line, rest) = rest.split_at(len);
        (!line.is_empty()).then_some(line)
    })
}

fn until_zero(text: &[u8]) -> &[u8] {
    let len = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    &text[..len]
}

fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

fn file_of(line: &[u8]) -> Result<ManifestFile, ManifestErrorKind> {
    const FORMAT: ManifestErrorKind = ManifestErrorKind::Format;
    let words = brisk_resp::request::split_words(line).ok_or(FORMAT)?;
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.len() < 3 || !rest.is_empty() {
        return Err(FORMAT);
    }
    let (mut name, mut seq, mut kind) = (None, 0, None);
    for [key, value] in pairs {
        let (key, value) = (until_zero(key), until_zero(value));
        if key.eq_ignore_ascii_case(b"file") {
            if value.iter().any(|byte| matches!(byte, b'/' | b'\\'))
                || matches!(value, b"." | b"..")
            {
                return Err(ManifestErrorKind::Path);
            }
            name = Some(value.to_vec());
        } else if key.eq_ignore_ascii_case(b"seq") {
            seq = leading_number(value);
        } else if key.eq_ignore_ascii_case(b"type") {
            kind = value.first().copied();
        }
    }
    let (Some(name), Some(kind)) = (name, kind) else {
        return Err(FORMAT);
    };
    if seq == 0 || seq > SEQ_MAX {
        return Err(FORMAT);
    }
    let kind = match kind {
        b'b' => FileKind::Base,
        b'h' => FileKind::History,
        b'i' => FileKind::Increment,
        _ => return Err(ManifestErrorKind::Kind),
    };
    Ok(ManifestFile { name, seq, kind })
}

/// The number that a text begins with, as C's `atoll` finds it; 0 if it begins with none.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let number = number.saturating_mul(10);
        if negative { number.saturating_sub(digit) } else { number.saturating_add(digit) }
    })
}

/// Appends a name, quoted if it would not be read as one word otherwise.
fn put_name(out: &mut Vec<u8>, name: &[u8]) {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'\'');
    if name.iter().all(plain) && !name.is_empty() {
        out.extend_from_slice(name);
        return;
    }
    out.push(b'"');
    for byte in name {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &[u8] = b"appendonly.aof";

    fn error(text: &[u8]) -> String {
        Manifest::parse(text).unwrap_err().to_string()
    }

    fn names<'a>(files: impl IntoIterator<Item = &'a ManifestFile>) -> Vec<String> {
        files.into_iter().map(|file| String::from_utf8(file.name.clone()).unwrap()).collect()
    }

    #[test]
    fn a_manifest_is_read_and_written_as_servers_write_it() {
        let text = b"file appendonly.aof.2.base.rdb seq 2 type b\n\
                     file appendonly.aof.1.incr.aof seq 1 type h\n\
                     file appendonly.aof.4.incr.aof seq 4 type i\n\
                     file \" file seq \\n\\n.aof .5.incr.aof\" seq 5 type i\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.base().map(|base| base.seq), Some(2));
        assert_eq!(names(manifest.history()), ["appendonly.aof.1.incr.aof"]);
        assert_eq!(manifest.increments()[1].name, b" file seq \n\n.aof .5.incr.aof");
        assert_eq!(manifest.format(), text);
    }

    #[test]
    fn words_in_any_order_comments_and_unknown_words_are_read() {
        let text = b"# a comment\n  SEQ 3x type increment later yes File a\r\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.format(), b"file a seq 3 type i\n");
        assert_eq!(Manifest::parse(b"# nothing\n"), Ok(Manifest::new()));
        assert_eq!(Manifest::parse(b"# nothing"), Ok(Manifest::new()));
    }

    /// The texts, and which text belongs to what, are those of a server of 7.0.
    #[test]
    fn faults_are_told_in_the_words_of_servers() {
        let format = "Invalid AOF manifest file format";
        let long = [&b"file a seq 1 type b x "[..], &[b'y'; 1002], b"\n"].concat();
        for (text, expected) in [
            (&b""[..], "Found an empty AOF manifest"),
            (b"file a seq 1 type b", "The AOF manifest file contains too long line"),
            (b"file a seq 1 \0type b\n", "The AOF manifest file contains too long line"),
            (&long, "The AOF manifest file contains too long line"),
            (b"\n", format),
            (b"!!!\n", format),
            (b"file a seq 1\n", format),
            (b"file a seq 1 type b more\n", format),
            (b"file a seq 1 type 'b\n", format),
            (b"filx a seq 1 type b\n", format),
            (b"file a seq 0 type b\n", format),
            (b"file a seq one type b\n", format),
            (b"file a seq 1 type \"\"\n", format),
            (b"file a/b seq 1 type b\n", "File can't be a path, just a filename"),
            (b"file a\\b seq 1 type b\n", "File can't be a path, just a filename"),
            (b"file .. seq 1 type h\n", "File can't be a path, just a filename"),
            (
                b"file a seq 1 type b\nfile b seq 2 type b\n",
                "Found duplicate base file information",
            ),
            (
                b"file a seq 2 type i\nfile b seq 2 type i\n",
                "Found a non-monotonic sequence number",
            ),
            (b"file a seq -1 type i\n", "Found a non-monotonic sequence number"),
            (b"file a seq 1 type x\n", "Unknown AOF file type"),
        ] {
            assert_eq!(error(text), expected, "{}", text.escape_ascii());
        }
        let fault = Manifest::parse(b"# x\nfile a seq 1 type b\n !!! \n").unwrap_err();
        assert_eq!(fault.line, Some((3, b"!!!".to_vec())));
    }

    #[test]
    fn a_line_of_the_longest_length_is_read() {
        let mut text = b"file a seq 1 type b x ".to_vec();
        text.resize(LINE_BYTES_MAX - 1, b'y');
        text.push(b'\n');
        assert!(Manifest::parse(&text).is_ok());
    }

    /// The names and their order are those that a server of 7.0 leaves behind.
    #[test]
    fn a_rewrite_replaces_the_base_and_what_it_contains() {
        let mut manifest = Manifest::new();
        manifest.replace_base(NAME, BaseFormat::Rdb);
        manifest.new_increment(NAME);
        let first = "file appendonly.aof.1.base.rdb seq 1 type b\n\
                     file appendonly.aof.1.incr.aof seq 1 type i\n";
        assert_eq!(manifest.format(), first.as_bytes());
        manifest.new_increment(NAME);
        manifest.new_increment(NAME);
        manifest.replace_base(NAME, BaseFormat::Commands);
        manifest.retire_increments(1);
        let second = "file appendonly.aof.2.base.aof seq 2 type b\n\
                      file appendonly.aof.1.incr.aof seq 1 type h\n\
                      file appendonly.aof.2.incr.aof seq 2 type h\n\
                      file appendonly.aof.1.base.rdb seq 1 type h\n\
                      file appendonly.aof.3.incr.aof seq 3 type i\n";
        assert_eq!(manifest.format(), second.as_bytes());
        let removed = manifest.take_history();
        assert_eq!(removed.len(), 3);
        assert_eq!(
            names(manifest.files_to_load()),
            ["appendonly.aof.2.base.aof", "appendonly.aof.3.incr.aof"]
        );
        assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest.clone()));
        assert_eq!(manifest.new_increment(NAME).name, b"appendonly.aof.4.incr.aof");
    }

    #[test]
    fn a_file_in_use_is_never_given_to_be_removed() {
        let text = b"file a seq 1 type b\nfile a seq 1 type h\nfile b seq 1 type h\n";
        let mut manifest = Manifest::parse(text).unwrap();
        assert_eq!(names(&manifest.take_history()), ["b"]);
        assert_eq!(manifest.format(), b"file a seq 1 type b\n");
    }

    #[test]
    fn a_single_old_file_becomes_the_base() {
        let mut manifest = Manifest::upgraded(NAME);
        assert_eq!(manifest.format(), b"file appendonly.aof seq 1 type b\n");
        manifest.replace_base(NAME, BaseFormat::Rdb);
        assert_eq!(manifest.base().unwrap().name, b"appendonly.aof.2.base.rdb");
    }

    #[test]
    fn odd_names_are_read_as_they_were_written() {
        let odd: [&[u8]; 6] = [b"", b"it's", b"'a'", b"a b", b"\xff\x07\"\n", b"#a"];
        for name in odd {
            let manifest = Manifest::upgraded(name);
            assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest), "{name:?}");
        }
    }
}
