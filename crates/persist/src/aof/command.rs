//! Parses commands from bytes that arrive in pieces.

use super::fault::FaultKind;

/// Maximum number of arguments of a command, as in Redis.
const ARGS_MAX: u64 = i32::MAX as u64;
/// Maximum number of digits in a length. No string is so long that its length has more digits.
const DIGITS_MAX: usize = 18;

/// A command as it is encoded in the file.
#[derive(Debug, Clone, Copy)]
pub struct AofCommand<'a> {
    bytes: &'a [u8],
    args: &'a [ArgumentSpan],
}

impl<'a> AofCommand<'a> {
    /// Returns the number of arguments, including the name: at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a command has a name")]
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// Returns the argument at `index`; the name has index 0. O(1).
    #[must_use]
    pub fn arg(&self, index: usize) -> Option<&'a [u8]> {
        self.args.get(index).map(|arg| arg.of(self.bytes))
    }

    /// Returns all arguments, the name first.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        self.args.iter().map(move |arg| arg.of(bytes))
    }

    /// Returns the name. O(1).
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.arg(0).unwrap_or_default()
    }

    /// Returns the encoded command, so that it can be passed on without parsing it again.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// The position of an argument, relative to the command's first byte.
#[derive(Debug, Clone, Copy)]
struct ArgumentSpan {
    start: usize,
    len: usize,
}

impl ArgumentSpan {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.start + self.len).unwrap_or_default()
    }
}

/// A parser that continues where it stopped. Each call gets the command from its first byte.
#[derive(Debug, Default)]
pub(super) struct CommandParser {
    args: Vec<ArgumentSpan>,
    /// Offset of the next line or string, relative to the command's first byte.
    at: usize,
    /// Number of complete lines and strings.
    lines: u64,
    /// Number of arguments that are still missing, once the first line has been read.
    args_left: Option<u64>,
    /// Length of the next string; `None` if a line comes next.
    string: Option<usize>,
}

/// The progress of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseStep {
    /// The command is complete and has this many bytes.
    Whole(usize),
    /// The command has at least this many bytes, more than are available.
    Needs(usize),
}

impl CommandParser {
    /// Maximum capacity for arguments that is kept from command to command.
    const ARGS_KEPT_MAX: usize = 1 << 12;

    /// Starts a new command.
    pub(super) fn reset(&mut self) {
        if self.args.capacity() > Self::ARGS_KEPT_MAX {
            self.args = Vec::new();
        }
        self.args.clear();
        (self.at, self.lines, self.args_left, self.string) = (0, 0, None, None);
    }

    /// Continues with a command, at least a part of which is in `bytes`. O(new arguments).
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<ParseStep, FaultKind> {
        loop {
            if let Some(len) = self.string {
                let end = self.at.saturating_add(len);
                match bytes.get(end..).unwrap_or_default() {
                    [b'\r', b'\n', ..] => {}
                    [] | [_] => return Ok(ParseStep::Needs(end.saturating_add(2))),
                    [first, second, ..] => return Err(FaultKind::NoNewline([*first, *second])),
                }
                self.args.push(ArgumentSpan { start: self.at, len });
                (self.at, self.string) = (end + 2, None);
                self.lines += 1;
            }
            let prefix = if self.args_left.is_some() { b'$' } else { b'*' };
            if self.args_left == Some(0) {
                return Ok(ParseStep::Whole(self.at));
            }
            let Some((number, len)) =
                number_line(bytes.get(self.at..).unwrap_or_default(), prefix)?
            else {
                return Ok(ParseStep::Needs(bytes.len() + 1));
            };
            match self.args_left {
                None if number == 0 => return Err(FaultKind::NoArguments),
                None if number > ARGS_MAX => return Err(FaultKind::TooLarge),
                None => self.args_left = Some(number),
                Some(left) => {
                    self.string = Some(usize::try_from(number).map_err(|_| FaultKind::TooLarge)?);
                    self.args_left = Some(left - 1);
                }
            }
            self.at += len;
            self.lines += 1;
        }
    }

    /// Returns the offset of the first incomplete line or string, relative to the command's first
    /// byte, and the number of complete ones before it.
    pub(super) fn incomplete_at(&self) -> (usize, u64) {
        (self.at, self.lines)
    }

    /// Returns the fault of an incomplete command if nothing follows these bytes.
    pub(super) fn missing_part(&self, bytes: &[u8]) -> FaultKind {
        let got = bytes.len().saturating_sub(self.at) as u64;
        match self.string {
            Some(len) => FaultKind::ShortString { wanted: len as u64 + 2, got },
            None if got == 0 => FaultKind::NoLine,
            None => FaultKind::UnfinishedLine,
        }
    }

    /// Returns the offset of a complete command's name, relative to the command's first byte.
    pub(super) fn name_start(&self) -> usize {
        self.args.first().map_or(0, |name| name.start)
    }

    /// Returns the complete command.
    pub(super) fn command<'a>(&'a self, bytes: &'a [u8]) -> AofCommand<'a> {
        AofCommand { bytes, args: &self.args }
    }
}

/// Returns the number in a line and the line's length; `None` if the line is incomplete.
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

    fn cut(bytes: &[u8]) -> Result<ParseStep, FaultKind> {
        CommandParser::default().advance(bytes)
    }

    #[test]
    fn a_command_is_the_same_however_its_bytes_arrive() {
        let bytes = b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*1\r\n";
        let whole = bytes.len() - 4;
        let mut parser = CommandParser::default();
        for end in 0..whole {
            let step = parser.advance(&bytes[..end]).unwrap();
            assert!(
                matches!(step, ParseStep::Needs(needs) if needs > end && needs <= whole),
                "{end}"
            );
        }
        assert_eq!(parser.advance(bytes), Ok(ParseStep::Whole(whole)));
        assert_eq!(parser.incomplete_at(), (whole, 7));
        let command = parser.command(&bytes[..whole]);
        let args: Vec<&[u8]> = command.args().collect();
        assert_eq!(args, [&b"SET"[..], b"", b"a\r\nb"]);
        assert_eq!((command.len(), command.arg(1), command.arg(3)), (3, Some(&b""[..]), None));
        parser.reset();
        assert_eq!(parser.advance(b"*1\r\n$4\r\nPING\r\n"), Ok(ParseStep::Whole(14)));
    }

    #[test]
    fn broken_lines_are_reported() {
        use FaultKind::{NoArguments, NoNewline, Prefix, TooLarge};
        for (bytes, fault) in [
            (&b"*0\r\n"[..], NoArguments),
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
        let mut parser = CommandParser::default();
        let bytes = b"*2147483647\r\n$123456789012345678\r\nab";
        let needs = b"*2147483647\r\n$123456789012345678\r\n".len() + 123_456_789_012_345_680;
        assert_eq!(parser.advance(bytes), Ok(ParseStep::Needs(needs)));
        assert_eq!(parser.args.capacity(), 0);
        let missing_part = FaultKind::ShortString { wanted: 123_456_789_012_345_680, got: 2 };
        assert_eq!(parser.missing_part(bytes), missing_part);
    }
}
