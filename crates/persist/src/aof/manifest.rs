//! The manifest of an append-only file: the list of files, in the order in which they are loaded.
//!
//! ```text
//!  file appendonly.aof.2.base.rdb seq 2 type b      at most one base, loaded first
//!  file appendonly.aof.4.incr.aof seq 4 type h      history: replaced, to be removed
//!  file appendonly.aof.5.incr.aof seq 5 type i      increments, by ascending number
//! ```
//! A line consists of key-value pairs, in any order, and ends with a newline. Names with special
//! characters are quoted as in configuration files. A line that begins with `#` is a comment. Redis
//! 8 adds `startoffset` and `endoffset`, the position of an increment in the replication stream.
//! Both are parsed and ignored.
//!
//! Anything else is an error, even where Redis ignores it: a damaged line must not drop a file.
//!
//! A [`Manifest`] is a value. Code that changes the files changes a copy, writes the copy to the
//! disk, and only then replaces the original.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of a manifest in bytes. Servers write a few lines; readers read one byte more than this to detect a
/// longer file.
pub const MANIFEST_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a line in bytes, including its newline.
const LINE_BYTES_MAX: usize = 1024;
/// Suffix of the name of a base that is an RDB file.
const RDB_BASE_ENDING: &[u8] = b".base.rdb";
/// Highest file number that is accepted. Enough numbers remain above it for new files.
const SEQ_MAX: i64 = i64::MAX / 2;

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A snapshot of the dataset.
    Base,
    /// Replaced by a newer base and no longer read.
    History,
    /// The commands that follow the base or the previous increment.
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

/// The format of a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseFormat {
    /// An RDB file: `aof-use-rdb-preamble yes`.
    Rdb,
    /// Commands.
    Commands,
}

/// A line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// A name, not a path.
    pub name: Vec<u8>,
    /// The sequence number among the bases, or among the increments.
    pub seq: i64,
    pub kind: FileKind,
}

impl ManifestFile {
    /// Returns the path of the file if the manifest is in `directory`.
    #[must_use]
    pub fn path_in(&self, directory: &Path) -> PathBuf {
        directory.join(OsStr::from_bytes(&self.name))
    }

    /// Returns true if the file must begin with an RDB file, according to its name. No RDB file is
    /// empty, so an empty file with this name has lost its content. Other files may be empty: a
    /// base of commands if the dataset was empty, an increment until the first write.
    #[must_use]
    pub fn is_named_rdb(&self) -> bool {
        self.kind == FileKind::Base && self.name.ends_with(RDB_BASE_ENDING)
    }
}

/// The files of one append-only file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    base: Option<ManifestFile>,
    history: Vec<ManifestFile>,
    increments: Vec<ManifestFile>,
    /// The highest numbers that have been assigned so far.
    base_seq: i64,
    increment_seq: i64,
}

/// A base that is [named as an RDB file](ManifestFile::is_named_rdb) does not begin with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file is damaged: its name says that it is an RDB file, but {}", found(*.bytes))]
pub struct NotRdb {
    /// The length of the file.
    pub bytes: u64,
}

fn found(bytes: u64) -> String {
    match bytes {
        0 => "it is empty".to_owned(),
        _ => format!("its {bytes} bytes do not begin as one"),
    }
}

/// Why a manifest cannot be read. Where Redis rejects the manifest too, the text is the one that
/// Redis logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ManifestError {
    /// The line number, starting with 1, and the line without surrounding whitespace, if the error
    /// concerns one line.
    pub line: Option<(usize, Vec<u8>)>,
    pub kind: ManifestErrorKind,
}

/// The kinds of faults in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManifestErrorKind {
    #[error("Found an empty AOF manifest")]
    Empty,
    #[error("The AOF manifest has more than {MANIFEST_BYTES_MAX} bytes")]
    TooLong,
    #[error("The AOF manifest file contains too long line")]
    TooLongLine,
    #[error("The last line of the AOF manifest has no newline: its end may be missing")]
    NoNewline,
    #[error("The AOF manifest contains a zero byte")]
    ZeroByte,
    #[error("Invalid AOF manifest file format")]
    Format,
    #[error("Found an unknown key in the AOF manifest")]
    UnknownKey,
    #[error("Found the same key twice in a line of the AOF manifest")]
    RepeatedKey,
    #[error("File can't be a path, just a filename")]
    Path,
    #[error("Found the same file twice in the AOF manifest")]
    RepeatedFile,
    #[error("Found duplicate base file information")]
    DuplicateBase,
    #[error("Found a non-monotonic sequence number")]
    Sequence,
    #[error("Unknown AOF file type")]
    Kind,
    #[error("The AOF manifest lists no file to load")]
    NothingToLoad,
    #[error("The AOF manifest lists no base, and its increments do not begin with number 1")]
    NoBase,
}

impl ManifestError {
    /// Returns the error text, including the line that it concerns.
    #[must_use]
    pub fn with_line(&self) -> String {
        match &self.line {
            Some((number, line)) => format!("{self}, at line {number}: '{}'", line.escape_ascii()),
            None => self.to_string(),
        }
    }
}

/// Returns the name of the manifest of an append-only file that is named `appendfilename`.
#[must_use]
pub fn manifest_name(appendfilename: &[u8]) -> Vec<u8> {
    [appendfilename, b".manifest"].concat()
}

/// Returns the name under which a manifest is written before it replaces the old one.
#[must_use]
pub fn temporary_manifest_name(appendfilename: &[u8]) -> Vec<u8> {
    [b"temp-", appendfilename, b".manifest"].concat()
}

impl Manifest {
    /// Creates a manifest without files.
    #[must_use]
    pub fn new() -> Manifest {
        Manifest::default()
    }

    /// Returns the manifest after an upgrade from a version before Redis 7: the single file
    /// `appendfilename` was moved into the directory unchanged and becomes the base.
    #[must_use]
    pub fn upgraded(appendfilename: &[u8]) -> Manifest {
        let base = ManifestFile { name: appendfilename.to_vec(), seq: 1, kind: FileKind::Base };
        Manifest { base: Some(base), base_seq: 1, ..Manifest::default() }
    }

    /// Parses a manifest. O(text · increments).
    ///
    /// # Errors
    /// Fails if the manifest is faulty. Where Redis rejects the manifest too, the error has Redis's
    /// text. This parser is stricter than Redis, which ignores unknown keys and uses the last of
    /// two equal keys. It requires that:
    ///
    /// - a line has each key at most once, and no other keys;
    /// - numbers and types have nothing after them;
    /// - all lines end with a newline, and no byte is zero;
    /// - no loaded file is listed twice, and the files form a dataset.
    ///
    /// The names `.` and `..` count as paths. The highest numbers are rejected because no number
    /// would be left for new files.
    pub fn parse(text: &[u8]) -> Result<Manifest, ManifestError> {
        let whole = |kind| ManifestError { line: None, kind };
        let mut manifest = Manifest::new();
        if text.is_empty() {
            return Err(whole(ManifestErrorKind::Empty));
        }
        if text.len() > MANIFEST_BYTES_MAX {
            return Err(whole(ManifestErrorKind::TooLong));
        }
        for (number, line) in lines(text).enumerate() {
            let of_line =
                |kind| ManifestError { line: Some((number + 1, trim(line).to_vec())), kind };
            if line.contains(&0) {
                return Err(of_line(ManifestErrorKind::ZeroByte));
            }
            let is_comment = line.starts_with(b"#");
            if !line.ends_with(b"\n") {
                let is_long = line.len() >= LINE_BYTES_MAX;
                return Err(whole(match is_long {
                    true => ManifestErrorKind::TooLongLine,
                    false => ManifestErrorKind::NoNewline,
                }));
            }
            if !is_comment {
                manifest.add(trim(line)).map_err(of_line)?;
            }
        }
        match (&manifest.base, manifest.increments.first()) {
            (None, None) => Err(whole(ManifestErrorKind::NothingToLoad)),
            // A rewrite that assigns higher numbers to increments also creates a base.
            (None, Some(first)) if first.seq != 1 => Err(whole(ManifestErrorKind::NoBase)),
            _ => Ok(manifest),
        }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), ManifestErrorKind> {
        let file = file_of(line)?;
        let is_loaded = file.kind != FileKind::History;
        match file.kind {
            FileKind::Base if self.base.is_some() => return Err(ManifestErrorKind::DuplicateBase),
            FileKind::Increment if file.seq <= self.increment_seq => {
                return Err(ManifestErrorKind::Sequence);
            }
            _ if is_loaded && self.is_loaded(&file.name) => {
                return Err(ManifestErrorKind::RepeatedFile);
            }
            FileKind::Base => {
                self.base_seq = file.seq;
                self.base = Some(file);
            }
            FileKind::History => self.history.push(file),
            FileKind::Increment => {
                self.increment_seq = file.seq;
                self.increments.push(file);
            }
        }
        Ok(())
    }

    /// Formats the manifest as text: the base, the history, the increments. O(names).
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

    /// Returns the increments by ascending number. The server writes to the last one.
    #[must_use]
    pub fn increments(&self) -> &[ManifestFile] {
        &self.increments
    }

    /// Returns the files that have been replaced but not yet removed.
    #[must_use]
    pub fn history(&self) -> &[ManifestFile] {
        &self.history
    }

    /// Returns the files of the dataset, in the order in which they are loaded. Only the last one
    /// may be truncated.
    pub fn files_to_load(&self) -> impl Iterator<Item = &ManifestFile> {
        self.base.iter().chain(&self.increments)
    }

    /// Adds the next increment to write to, and returns it.
    pub fn new_increment(&mut self, appendfilename: &[u8]) -> &ManifestFile {
        let name_of = |seq: i64| [appendfilename, format!(".{seq}.incr.aof").as_bytes()].concat();
        let name;
        (self.increment_seq, name) = self.unused(self.increment_seq, name_of);
        let file = ManifestFile { name, seq: self.increment_seq, kind: FileKind::Increment };
        let at = self.increments.len();
        self.increments.push(file);
        &self.increments[at]
    }

    /// Replaces the base, moves the old one to the history, and returns the new one. The caller
    /// then [retires](Manifest::retire_increments) the increments that the new base contains.
    pub fn replace_base(&mut self, appendfilename: &[u8], format: BaseFormat) -> &ManifestFile {
        if let Some(old) = self.base.take() {
            self.history.insert(0, ManifestFile { kind: FileKind::History, ..old });
        }
        let end = match format {
            BaseFormat::Rdb => "rdb",
            BaseFormat::Commands => "aof",
        };
        let name_of = |seq: i64| [appendfilename, format!(".{seq}.base.{end}").as_bytes()].concat();
        let name;
        (self.base_seq, name) = self.unused(self.base_seq, name_of);
        self.base.insert(ManifestFile { name, seq: self.base_seq, kind: FileKind::Base })
    }

    /// Returns the next number after `last` whose name no loaded file has, and that name.
    /// O(files²).
    fn unused(&self, last: i64, name_of: impl Fn(i64) -> Vec<u8>) -> (i64, Vec<u8>) {
        let mut seq = last.saturating_add(1);
        loop {
            let name = name_of(seq);
            if seq == i64::MAX || !self.is_loaded(&name) {
                return (seq, name);
            }
            seq += 1;
        }
    }

    fn is_loaded(&self, name: &[u8]) -> bool {
        self.files_to_load().any(|file| file.name == name)
    }

    /// Moves all increments except the last `kept` to the history: a new base contains them.
    pub fn retire_increments(&mut self, kept: usize) {
        let retired = self.increments.len().saturating_sub(kept);
        let retired = self.increments.drain(..retired);
        let retired = retired.map(|file| ManifestFile { kind: FileKind::History, ..file });
        self.history.splice(..0, retired);
    }

    /// Clears the history and returns the files to remove. A file whose name is still in use is not
    /// among them. O(files²), for a handful of files.
    pub fn take_history(&mut self) -> Vec<ManifestFile> {
        let mut history = std::mem::take(&mut self.history);
        history.retain(|old| !self.is_loaded(&old.name));
        history
    }
}

/// Splits the text after each newline, or after the maximum length of a line.
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

fn trim(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// The keys of a line, in the order of `values`.
const KEYS: [&[u8]; 5] = [b"file", b"seq", b"type", b"startoffset", b"endoffset"];

fn file_of(line: &[u8]) -> Result<ManifestFile, ManifestErrorKind> {
    const FORMAT: ManifestErrorKind = ManifestErrorKind::Format;
    let words = brisk_resp::request::split_words(line).ok_or(FORMAT)?;
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.len() < 3 || !rest.is_empty() {
        return Err(FORMAT);
    }
    let mut values: [Option<&[u8]>; KEYS.len()] = [None; KEYS.len()];
    let (mut is_unknown, mut is_repeated) = (false, false);
    for [key, value] in pairs {
        match KEYS.iter().position(|known| key.eq_ignore_ascii_case(known)) {
            Some(at) => is_repeated |= values[at].replace(value).is_some(),
            None => is_unknown = true,
        }
    }
    let [name, seq, kind, start, end] = values;
    // Errors that Redis detects come first, with its text.
    let (Some(name), Some(seq), Some(kind)) = (name, seq, kind) else { return Err(FORMAT) };
    if name.iter().any(|byte| matches!(byte, b'/' | b'\\')) || matches!(name, b"" | b"." | b"..") {
        return Err(ManifestErrorKind::Path);
    }
    let seq = decimal(seq).filter(|seq| (1..=SEQ_MAX).contains(seq)).ok_or(FORMAT)?;
    if kind.is_empty() || name.contains(&0) {
        return Err(FORMAT);
    }
    let kind = match kind {
        b"b" => FileKind::Base,
        b"h" => FileKind::History,
        b"i" => FileKind::Increment,
        _ => return Err(ManifestErrorKind::Kind),
    };
    if is_unknown {
        return Err(ManifestErrorKind::UnknownKey);
    }
    if is_repeated {
        return Err(ManifestErrorKind::RepeatedKey);
    }
    if [start, end].into_iter().flatten().any(|offset| decimal(offset).is_none()) {
        return Err(FORMAT);
    }
    Ok(ManifestFile { name: name.to_vec(), seq, kind })
}

/// Parses a text that consists only of decimal digits.
fn decimal(text: &[u8]) -> Option<i64> {
    let is_number = text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

/// Appends a name. The name is quoted if it would not be read as one argument otherwise.
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
    fn keys_in_any_order_and_comments_are_read() {
        let text = b"# a comment\n\tSEQ 03  type i File \"a\" \r\nseq 3 type b file b\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.format(), b"file b seq 3 type b\nfile a seq 3 type i\n");
    }

    /// Redis 8 writes these keys if it has recorded the offsets.
    #[test]
    fn offsets_in_the_replication_stream_are_accepted() {
        let text = b"file b seq 1 type b\nfile a seq 1 type i startoffset 0 endoffset 4711\n\
                     file c seq 2 type i startoffset 4711\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(names(manifest.files_to_load()), ["b", "a", "c"]);
        assert_eq!(
            error(b"file a seq 1 type i startoffset x\n"),
            "Invalid AOF manifest file format"
        );
    }

    /// If these were ignored, as in Redis 7.0, each of them would drop a file or load a file twice.
    #[test]
    fn a_line_with_anything_unexpected_is_an_error() {
        use ManifestErrorKind::*;
        for (text, expected) in [
            (&b"file a seq 1 type b\tfile i seq 1 type i\n"[..], RepeatedKey),
            (b"file a seq 1 type b file i seq 1 type i\n", RepeatedKey),
            (b"file a seq 1 type b type i\n", RepeatedKey),
            (b"file a seq 1 type b seq 1\n", RepeatedKey),
            (b"file a seq 1 type b FILE a\n", RepeatedKey),
            (b"file a seq 1 type b later yes\n", UnknownKey),
            (b"file a seq 1 type b \"\" x\n", UnknownKey),
            (b"file a seq 1x type b\n", Format),
            (b"file a seq +1 type b\n", Format),
            (b"file a seq -1 type b\n", Format),
            (b"file a seq 0x1 type b\n", Format),
            (b"file a seq 9223372036854775807 type b\n", Format),
            (b"file a seq 18446744073709551617 type b\n", Format),
            (b"file a seq \"\" type b\n", Format),
            (b"file \"a\\x00b\" seq 1 type b\n", Format),
            (b"file \"\" seq 1 type b\n", Path),
            (b"file a seq 1 type base\n", Kind),
            (b"file a seq 1 type bi\n", Kind),
            (b"file a seq 1 type \"b\\x00\"\n", Kind),
            (b"file a seq 1 type b\0\n", ZeroByte),
            (b"# \0\nfile a seq 1 type b\n", ZeroByte),
            (b"file a seq 1 type b\n\0", ZeroByte),
            (b"file a seq 1 type b\n# end", NoNewline),
            (b"file a seq 1 type b\nfile i seq 1 type ", NoNewline),
            (b"# nothing\n", NothingToLoad),
            (b"file a seq 1 type h\n", NothingToLoad),
            (b"# file a seq 1 type b\nfile i seq 2 type i\n", NoBase),
            (b"file a seq 1 type b\nfile a seq 1 type i\n", RepeatedFile),
            (b"file i seq 1 type i\nfile i seq 2 type i\n", RepeatedFile),
            (b"file i seq 1 type i\nfile i seq 1 type b\n", RepeatedFile),
        ] {
            let found = Manifest::parse(text).unwrap_err().kind;
            assert_eq!(found, expected, "{}", text.escape_ascii());
        }
        let text = [b"#".repeat(1000), b"\n".to_vec()].concat().repeat(MANIFEST_BYTES_MAX / 1000);
        assert_eq!(Manifest::parse(&text).unwrap_err().kind, TooLong);
    }

    /// Changes each byte in turn. Either the files stay the same, or there is an error. Some
    /// changes cannot be detected: a comment sign hides a line, and a digit, a type, or a letter of
    /// a name may become a different valid one. In these cases the numbers or the files differ.
    #[test]
    fn every_replaced_space_or_newline_is_detected() {
        let text = b"file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n";
        let whole = Manifest::parse(text).unwrap();
        for at in (0..text.len()).filter(|at| text[*at].is_ascii_whitespace()) {
            for byte in (0..=255).filter(|byte| *byte != text[at]) {
                let mut changed = text.to_vec();
                changed[at] = byte;
                if let Ok(manifest) = Manifest::parse(&changed) {
                    assert_eq!(manifest, whole, "{}", changed.escape_ascii());
                }
            }
        }
        for len in 0..text.len() {
            let kept = Manifest::parse(&text[..len]);
            assert!(kept.is_err() || text[..len].ends_with(b"\n"), "{len}");
        }
    }

    /// The texts, and the assignment of texts to faults, are those of Redis 7.0.
    #[test]
    fn faults_have_the_error_texts_of_redis() {
        let format = "Invalid AOF manifest file format";
        let long = [&b"file a seq 1 type b x "[..], &[b'y'; 1002], b"\n"].concat();
        for (text, expected) in [
            (&b""[..], "Found an empty AOF manifest"),
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
            (b"file a seq 1 type x\n", "Unknown AOF file type"),
        ] {
            assert_eq!(error(text), expected, "{}", text.escape_ascii());
        }
        let fault = Manifest::parse(b"# x\nfile a seq 1 type b\n !!! \n").unwrap_err();
        assert_eq!(fault.line, Some((3, b"!!!".to_vec())));
    }

    #[test]
    fn a_line_of_the_longest_length_is_read() {
        let mut text = b"seq 1 type b file ".to_vec();
        text.resize(LINE_BYTES_MAX - 1, b'y');
        text.push(b'\n');
        assert!(Manifest::parse(&text).is_ok());
    }

    /// The names and their order are those that Redis 7.0 leaves behind.
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
    fn a_file_in_use_is_never_removed() {
        let text = b"file a seq 1 type b\nfile a seq 1 type h\nfile b seq 1 type h\n";
        let mut manifest = Manifest::parse(text).unwrap();
        assert_eq!(names(&manifest.take_history()), ["b"]);
        assert_eq!(manifest.format(), b"file a seq 1 type b\n");
    }

    #[test]
    fn a_new_file_never_has_the_name_of_one_that_is_loaded() {
        let text = b"file x.2.base.rdb seq 1 type b\nfile x.2.incr.aof seq 1 type i\n";
        let mut manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.new_increment(b"x").name, b"x.3.incr.aof");
        let text = b"file x.2.base.rdb seq 1 type i\n";
        let mut manifest = Manifest::parse(text).unwrap();
        manifest.replace_base(b"x", BaseFormat::Rdb);
        assert_eq!(manifest.replace_base(b"x", BaseFormat::Rdb).name, b"x.3.base.rdb");
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
        let odd: [&[u8]; 5] = [b"it's", b"'a'", b"a b", b"\xff\x07\"\n", b"#a"];
        for name in odd {
            let manifest = Manifest::upgraded(name);
            assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest), "{name:?}");
        }
    }
}
