//! Cutting commands out of bytes that arrive in pieces.

use super::fault::FaultKind;

/// More words than servers count in a command.
const WORDS_MAX: u64 = i32::MAX as u64;
/// Digits of a number; a string of so many bytes does not exist.
const DIGITS_MAX: usize = 18;

/// A command as it stands in the file.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    bytes: &'a [u8],
    words: &'a [Word],
}

impl<'a> Command<'a> {
    /// How many words there are, its name counted: at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a command has a name")]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The word at `index`, the name being the first. O(1).
    #[must_use]
    pub fn word(&self, index: usize) -> Option<&'a [u8]> {
        self.words.get(index).map(|word| word.of(self.bytes))
    }

    /// All words, the name first.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        self.words.iter().map(move |word| word.of(bytes))
    }

    /// The name. O(1).
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.word(0).unwrap_or_default()
    }

    /// The command as it is encoded, so that it can be passed on without being taken apart.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Where a word lies, from the command's first byte.
#[derive(Debug, Clone, Copy)]
struct Word {
    start: usize,
    len: usize,
}

impl Word {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.start + self.len).unwrap_or_default()
    }
}

/// Where in a command the cutter is. It is given the command from its first byte each time, and
/// goes on where it was.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    words: Vec<Word>,
    /// The line or string that comes next, from the command's first byte.
    at: usize,
    /// Lines and strings that are whole.
    lines: u64,
    /// Words that are still to come, if the first line has been read.
    words_left: Option<u64>,
    /// The length of the string that comes next; else a line comes next.
    string: Option<usize>,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It has this many bytes.
    Whole(usize),
    /// It has at least this many bytes, more than there are.
    Needs(usize),
}

impl Cutter {
    /// Memory for words that is kept from command to command.
    const WORDS_KEPT_MAX: usize = 1 << 12;

    /// Begins a command.
    pub(super) fn reset(&mut self) {
        if self.words.capacity() > Self::WORDS_KEPT_MAX {
            self.words = Vec::new();
        }
        self.words.clear();
        (self.at, self.lines, self.words_left, self.string) = (0, 0, None, None);
    }

    /// Goes on with a command of which `bytes` have come, or more than it. O(new words).
    pub(super) fn go_on(&mut self, bytes: &[u8]) -> Result<Step, FaultKind> {
        loop {
            if let Some(len) = self.string {
                let end = self.at.saturating_add(len);
                match bytes.get(end..).unwrap_or_default() {
                    [b'\r', b'\n', ..] => {}
                    [] | [_] => return Ok(Step::Needs(end.saturating_add(2))),
                    [first, second, ..] => return Err(FaultKind::NoNewline([*first, *second])),
                }
                self.words.push(Word { start: self.at, len });
                (self.at, self.string) = (end + 2, None);
                self.lines += 1;
            }
            let prefix = if self.words_left.is_some() { b'$' } else { b'*' };
            if self.words_left == Some(0) {
                return Ok(Step::Whole(self.at));
            }
            let Some((number, len)) =
                number_line(bytes.get(self.at..).unwrap_or_default(), prefix)?
            else {
                return Ok(Step::Needs(bytes.len() + 1));
            };
            match self.words_left {
                None if number == 0 => return Err(FaultKind::NoWords),
                None if number > WORDS_MAX => return Err(FaultKind::TooLarge),
                None => self.words_left = Some(number),
                Some(left) => {
                    self.string = Some(usize::try_from(number).map_err(|_| FaultKind::TooLarge)?);
                    self.words_left = Some(left - 1);
                }
            }
            self.at += len;
            self.lines += 1;
        }
    }

    /// Where the line or string begins that is not whole, from the command's first byte, and how
    /// many are whole before it.
    pub(super) fn place(&self) -> (usize, u64) {
        (self.at, self.lines)
    }

    /// What is wrong if nothing follows these bytes of a command that needs more.
    pub(super) fn shortage(&self, bytes: &[u8]) -> FaultKind {
        let got = bytes.len().saturating_sub(self.at) as u64;
        match self.string {
            Some(len) => FaultKind::ShortString { wanted: len as u64 + 2, got },
            None if got == 0 => FaultKind::NoLine,
            None => FaultKind::UnfinishedLine,
        }
    }

    /// Where the name of a whole command begins, from the command's first byte.
    pub(super) fn name_start(&self) -> usize {
        self.words.first().map_or(0, |name| name.start)
    }

    /// The command that is whole.
    pub(super) fn command<'a>(&'a self, bytes: &'a [u8]) -> Command<'a> {
        Command { bytes, words: &self.words }
    }
}

/// The number of a line, and the line's length; `None` if the line is not all there.
fn number_line(line: &[u8], prefix: u8) -> Result<Option<(u64, usize)>, FaultKind> {
    match line.first() {
        None => return Ok(None),
        Some(first) if *first == prefix => {}
        Some(first) => return Err(FaultKind::Prefix { expected: prefix, got: *first }),
    }
    let mut number = 0;
    for (at, byte) in line.iter().enumerate().skip(1) {
        match (byte, line.get(at + 1)) {
            (b'0'..=b'9', _) if at <= DIGITS_MAX => number = number * 10 + u64::from(byte - b'0'),
            (b'0'..=b'9', _) => return Err(FaultKind::TooLarge),
            (b'\r', Some(b'\n')) if at > 1 => return Ok(Some((number, at + 2))),
            (b'\r', None) => return Ok(None),
            (_, next) => {
                return Err(FaultKind::NoNewline([*byte, next.copied().unwrap_or_default()]));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Result<Step, FaultKind> {
        Cutter::default().go_on(bytes)
    }

    #[test]
    fn a_command_is_the_same_however_its_bytes_arrive() {
        let bytes = b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*1\r\n";
        let whole = bytes.len() - 4;
        let mut cutter = Cutter::default();
        for end in 0..whole {
            let step = cutter.go_on(&bytes[..end]).unwrap();
            assert!(matches!(step, Step::Needs(needs) if needs > end && needs <= whole), "{end}");
        }
        assert_eq!(cutter.go_on(bytes), Ok(Step::Whole(whole)));
        assert_eq!(cutter.place(), (whole, 7));
        let command = cutter.command(&bytes[..whole]);
        let words: Vec<&[u8]> = command.words().collect();
        assert_eq!(words, [&b"SET"[..], b"", b"a\r\nb"]);
        assert_eq!((command.len(), command.word(1), command.word(3)), (3, Some(&b""[..]), None));
        cutter.reset();
        assert_eq!(cutter.go_on(b"*1\r\n$4\r\nPING\r\n"), Ok(Step::Whole(14)));
    }

    #[test]
    fn broken_lines_are_told() {
        use FaultKind::{NoNewline, NoWords, Prefix, TooLarge};
        for (bytes, fault) in [
            (&b"*0\r\n"[..], NoWords),
            (b"*x\r\n", NoNewline(*b"x\r")),
            (b"*\r\n", NoNewline(*b"\r\n")),
            (b"*-1\r\n", NoNewline(*b"-1")),
            (b"*1\n", NoNewline(*b"\n\0")),
            (b"*2147483648\r\n", TooLarge),
            (b"*1\r\n$1234567890123456789\r\n", TooLarge),
            (b"*1\r\n*1\r\n", Prefix { expected: b'$', got: b'*' }),
            (b"*1\r\n$1\r\nabc", NoNewline(*b"bc")),
        ] {
            assert_eq!(cut(bytes), Err(fault), "{:?}", bytes.escape_ascii().to_string());
        }
    }

    #[test]
    fn lengths_take_no_memory_before_the_bytes_have_come() {
        let mut cutter = Cutter::default();
        let bytes = b"*2147483647\r\n$123456789012345678\r\nab";
        let needs = b"*2147483647\r\n$123456789012345678\r\n".len() + 123_456_789_012_345_680;
        assert_eq!(cutter.go_on(bytes), Ok(Step::Needs(needs)));
        assert_eq!(cutter.words.capacity(), 0);
        let shortage = FaultKind::ShortString { wanted: 123_456_789_012_345_680, got: 2 };
        assert_eq!(cutter.shortage(bytes), shortage);
    }
}
