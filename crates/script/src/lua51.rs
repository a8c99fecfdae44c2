//! Rewrites Lua 5.1 source for Luau: syntax that the two read differently is rewritten so that it
//! has its Lua 5.1 meaning in Luau. Line numbers stay the same.
//!
//! | Lua 5.1 | written for Luau |
//! |---|---|
//! | `'\x'`, `'\u'`, `'\z'` are plain letters | the letter |
//! | the local `arg` of each vararg function | its declaration, if the function names it |
//! | a NUL in a string or comment is a character | `\000`; a space |
//! | a NUL elsewhere is an error | another character that is an error |
//! | `\r`, `\n`, `\r\n` and `\n\r` end a line | `\n` |
//! | hexadecimal numbers beyond 64 bits or with an exponent | the same number, decimal |
//!
//! Source that only Luau accepts, with types or `` `x{1}` ``, is passed on unchanged where
//! possible: Luau reports its errors.

use crate::libraries::strtod;
use std::borrow::Cow;

/// The function that creates the table `arg`. No table contains it under this name: the `__index`
/// functions of the globals return it, see the prelude.
pub(crate) const ARG_TABLE: &str = "__lua51_arg";
/// Number of digits of the largest hexadecimal number that Luau reads.
const HEX_DIGITS_MAX: usize = 16;

/// Returns source for Luau with the meaning that `source` has in Lua 5.1. O(source)
pub(crate) fn to_luau(source: &[u8]) -> Cow<'_, [u8]> {
    if !may_differ(source) {
        return Cow::Borrowed(source);
    }
    let lines = with_unix_lines(source);
    match Translation::new(&lines).run() {
        Some(translated) => Cow::Owned(translated),
        None => lines,
    }
}

/// True if the source contains anything that may have to be rewritten.
fn may_differ(source: &[u8]) -> bool {
    source.iter().any(|byte| matches!(byte, b'\\' | b'\r' | 0))
        || source.windows(3).any(|three| three == b"arg")
        || source.windows(2).any(|two| matches!(two, b"0x" | b"0X"))
}

fn with_unix_lines(source: &[u8]) -> Cow<'_, [u8]> {
    if !source.contains(&b'\r') {
        return Cow::Borrowed(source);
    }
    let mut out = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some((&first, after)) = rest.split_first() {
        rest = match rest {
            [b'\r', b'\n', after @ ..] | [b'\n', b'\r', after @ ..] => after,
            _ => after,
        };
        out.push(if first == b'\r' { b'\n' } else { first });
    }
    Cow::Owned(out)
}

/// A block, which ends with `end` or `until`.
enum Block {
    Plain,
    Function(Function),
}

struct Function {
    /// Where `arg` is declared, in the output. Absent without a parameter `...`.
    arg_at: Option<usize>,
    names_arg: bool,
    /// True if its own code uses `...`, apart from nested functions. In Lua 5.1, `arg` is then nil.
    uses_dots: bool,
}

/// Between the word `function` and the end of its parameters.
#[derive(Default)]
struct Header {
    parentheses: usize,
    has_dots: bool,
}

/// The previous token, as far as it determines the kind of the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The next token may begin a statement.
    Statement,
    /// The next token begins or continues an expression.
    Operator,
    /// The next token is the name of a field.
    Field,
}

struct Translation<'s> {
    source: &'s [u8],
    at: usize,
    out: Vec<u8>,
    blocks: Vec<Block>,
    header: Option<Header>,
    before: Before,
    /// Where functions declare `arg`, and true if it is nil.
    declared: Vec<(usize, bool)>,
}

impl<'s> Translation<'s> {
    fn new(source: &'s [u8]) -> Translation<'s> {
        Translation {
            source,
            at: 0,
            out: Vec::with_capacity(source.len() + 16),
            blocks: Vec::new(),
            header: None,
            before: Before::Statement,
            declared: Vec::new(),
        }
    }

    /// The translation; `None` for source with syntax that only Luau has.
    fn run(mut self) -> Option<Vec<u8>> {
        while let Some(&first) = self.rest().first() {
            match first {
                b'\'' | b'"' => self.quoted(first),
                b'[' if self.rest().starts_with(b"[[") || self.rest().starts_with(b"[=") => {
                    self.long_string();
                }
                b'-' if self.rest().starts_with(b"--") => self.comment(),
                b'0'..=b'9' => self.number(),
                b'.' => self.dots(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
                b'`' => return None,
                0 => {
                    self.out.push(1);
                    self.at += 1;
                }
                _ if first.is_ascii_whitespace() || first == b'\x0b' => self.copy(1),
                _ => self.mark(first),
            }
        }
        Some(self.with_declarations())
    }

    fn rest(&self) -> &'s [u8] {
        &self.source[self.at..]
    }

    fn copy(&mut self, len: usize) {
        self.out.extend_from_slice(&self.rest()[..len]);
        self.at += len;
    }

    /// Copies a comment; a NUL becomes a space.
    fn copy_comment(&mut self, len: usize) {
        let text = self.rest()[..len].iter();
        self.out.extend(text.map(|&byte| if byte == 0 { b' ' } else { byte }));
        self.at += len;
    }

    fn quoted(&mut self, quote: u8) {
        self.before = Before::Statement;
        self.copy(1);
        while let Some(&byte) = self.rest().first() {
            match (byte, self.rest().get(1)) {
                // The end of the string, or an error that Luau detects as well.
                (b'\n', _) => return,
                (_, _) if byte == quote => return self.copy(1),
                (b'\\', Some(b'x' | b'u' | b'z')) => {
                    self.at += 1;
                    self.copy(1);
                }
                (b'\\', Some(0)) => {
                    self.out.extend_from_slice(b"\\000");
                    self.at += 2;
                }
                (b'\\', Some(_)) => self.copy(2),
                (0, _) => {
                    self.out.extend_from_slice(b"\\000");
                    self.at += 1;
                }
                _ => self.copy(1),
            }
        }
    }

    /// A long string with a NUL becomes a quoted one.
    fn long_string(&mut self) {
        let rest = self.rest();
        let (begin, end) = match long_bracket(rest) {
            LongBracket::None => return self.mark(b'['),
            LongBracket::Unclosed => return self.copy(rest.len()),
            LongBracket::Closed { begin, end } => (begin, end),
        };
        self.before = Before::Statement;
        let (mut text, len) = (&rest[begin..end], end + begin);
        if !text.contains(&0) {
            return self.copy(len);
        }
        if let Some(after) = text.strip_prefix(b"\n") {
            // The newline after the bracket does not belong to the text.
            self.out.push(b'\n');
            text = after;
        }
        self.out.push(b'"');
        for &byte in text {
            match byte {
                0 => self.out.extend_from_slice(b"\\000"),
                b'\\' | b'"' | b'\n' => self.out.extend_from_slice(&[b'\\', byte]),
                _ => self.out.push(byte),
            }
        }
        self.out.push(b'"');
        self.at += len;
    }

    fn comment(&mut self) {
        let rest = self.rest();
        let len = match long_bracket(&rest[2..]) {
            LongBracket::Closed { begin, end } => 2 + end + begin,
            LongBracket::Unclosed => rest.len(),
            LongBracket::None => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
        };
        self.copy_comment(len);
    }

    /// Copies a number, up to where Lua 5.1 ends it.
    fn number(&mut self) {
        self.before = Before::Statement;
        let rest = self.rest();
        let part = |from: usize, belongs: fn(&u8) -> bool| {
            rest[from..].iter().take_while(|byte| belongs(byte)).count()
        };
        let mut len = part(0, |byte| byte.is_ascii_digit() || *byte == b'.');
        if let Some(b'e' | b'E') = rest.get(len) {
            len += 1 + usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
        }
        len += part(len, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let text = &rest[..len];
        let [b'0', b'x' | b'X', digits @ ..] = text else { return self.copy(len) };
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let is_other = digits.len() - zeros > HEX_DIGITS_MAX
            || digits.contains(&b'p')
            || digits.contains(&b'P');
        match strtod(text).filter(|(_, read)| is_other && *read == len) {
            Some((value, _)) if value.is_finite() => {
                self.out.extend_from_slice(format!("{value:e}").as_bytes());
                self.at += len;
            }
            Some(_) => {
                self.out.extend_from_slice(b"1e999");
                self.at += len;
            }
            None => self.copy(len),
        }
    }

    /// Copies `.`, `..`, `...` or a number that begins with a point.
    fn dots(&mut self) {
        match self.rest() {
            [b'.', b'.', b'.', ..] => {
                self.copy(3);
                self.before = Before::Statement;
                match &mut self.header {
                    Some(header) => header.has_dots = true,
                    None => {
                        let innermost = self.blocks.iter_mut().rev().find_map(as_function);
                        if let Some(function) = innermost {
                            function.uses_dots = true;
                        }
                    }
                }
            }
            [b'.', b'.', ..] => {
                self.copy(2);
                self.before = Before::Operator;
            }
            [b'.', b'0'..=b'9', ..] => self.number(),
            _ => {
                self.copy(1);
                self.before = Before::Field;
            }
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        let belongs = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let len = rest.iter().take_while(belongs).count();
        let before = std::mem::replace(&mut self.before, Before::Statement);
        self.copy(len);
        match &rest[..len] {
            b"function" => self.header = Some(Header::default()),
            b"do" | b"repeat" => self.blocks.push(Block::Plain),
            // Luau has `if` expressions, which have no `end`.
            b"if" => {
                if before != Before::Operator {
                    self.blocks.push(Block::Plain);
                }
                self.before = Before::Operator;
            }
            b"and" | b"or" | b"not" | b"return" | b"in" | b"elseif" | b"while" => {
                self.before = Before::Operator;
            }
            b"until" => {
                self.end_block();
                self.before = Before::Operator;
            }
            b"end" => self.end_block(),
            b"arg" if before != Before::Field && self.header.is_none() => {
                let functions = self.blocks.iter_mut().rev().filter_map(as_function);
                let mut with_arg = functions.filter(|function| function.arg_at.is_some());
                if let Some(function) = with_arg.next() {
                    function.names_arg = true;
                }
            }
            _ => {}
        }
    }

    fn mark(&mut self, mark: u8) {
        self.copy(1);
        self.before = match mark {
            b')' | b']' | b'}' | b';' => Before::Statement,
            b':' => Before::Field,
            _ => Before::Operator,
        };
        let Some(header) = &mut self.header else { return };
        match mark {
            b'(' => header.parentheses += 1,
            b')' if header.parentheses <= 1 => {
                // A return type, which only Luau has, would end up in the wrong place.
                let next = self.source[self.at..].iter().find(|byte| !byte.is_ascii_whitespace());
                let has_arg = header.has_dots && next != Some(&b':');
                self.blocks.push(Block::Function(Function {
                    arg_at: has_arg.then_some(self.out.len()),
                    names_arg: false,
                    uses_dots: false,
                }));
                self.header = None;
            }
            b')' => header.parentheses -= 1,
            _ => {}
        }
    }

    fn end_block(&mut self) {
        if let Some(Block::Function(function)) = self.blocks.pop()
            && let (Some(at), true) = (function.arg_at, function.names_arg)
        {
            self.declared.push((at, function.uses_dots));
        }
    }

    /// The output with the declarations of `arg` inserted.
    fn with_declarations(mut self) -> Vec<u8> {
        if self.declared.is_empty() {
            return self.out;
        }
        self.declared.sort_unstable();
        let mut out = Vec::with_capacity(self.out.len() + 40 * self.declared.len());
        let mut copied = 0;
        for (at, is_nil) in self.declared {
            out.extend_from_slice(&self.out[copied..at]);
            out.extend_from_slice(b" local arg");
            if !is_nil {
                out.extend_from_slice(format!("={ARG_TABLE}(...)").as_bytes());
            }
            out.push(b' ');
            copied = at;
        }
        out.extend_from_slice(&self.out[copied..]);
        out
    }
}

fn as_function(block: &mut Block) -> Option<&mut Function> {
    match block {
        Block::Function(function) => Some(function),
        Block::Plain => None,
    }
}

/// The result of looking for a long bracket, `[[…]]` or `[==[…]==]`.
enum LongBracket {
    None,
    /// The bracket is not closed, which is an error.
    Unclosed,
    /// Where the text between the brackets begins and ends. The closing bracket has the length of the
    /// opening one.
    Closed {
        begin: usize,
        end: usize,
    },
}

fn long_bracket(text: &[u8]) -> LongBracket {
    let Some(after) = text.strip_prefix(b"[") else { return LongBracket::None };
    let level = after.iter().take_while(|byte| **byte == b'=').count();
    if after.get(level) != Some(&b'[') {
        return LongBracket::None;
    }
    let close = [b"]".as_slice(), &after[..level], b"]"].concat();
    let begin = close.len();
    let len = text[begin..].windows(close.len()).position(|bytes| bytes == close);
    len.map_or(LongBracket::Unclosed, |len| LongBracket::Closed { begin, end: begin + len })
}

#[cfg(test)]
mod tests {
    use super::to_luau;

    fn translated(source: &str) -> String {
        String::from_utf8(to_luau(source.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn letters_after_a_backslash_are_escapes_only_where_lua_5_1_has_them() {
        for (source, expected) in [
            (r"return '\x41\u{41}\u0041\z  a'", r"return 'x41u{41}u0041z  a'"),
            (r#"return "\\x\n\065\"\q""#, r#"return "\\x\n\065\"\q""#),
            ("return 'a\\\nb'", "return 'a\\\nb'"),
            (r"return [[\x]] --\x", r"return [[\x]] --\x"),
            (r"--[[ '\x]] return '\x'", r"--[[ '\x]] return 'x'"),
            (r"--[==[ ]] '\x ]==] return '\x'", r"--[==[ ]] '\x ]==] return 'x'"),
            (r"return [==[ ]] '\x ]==] .. '\x'", r"return [==[ ]] '\x ]==] .. 'x'"),
            (r"return a[[[\x]]] .. b['\x']", r"return a[[[\x]]] .. b['x']"),
            (r"return 'it\'s \x'", r"return 'it\'s x'"),
        ] {
            assert_eq!(translated(source), expected, "{source}");
        }
    }

    #[test]
    fn nul_is_a_character_of_strings_and_comments_only() {
        for (source, expected) in [
            ("return 'a\x001'", "return 'a\\0001'"),
            ("return 'a\\\0'", "return 'a\\000'"),
            ("return [[\n\"\\\n\0]]", "return \n\"\\\"\\\\\\\n\\000\""),
            ("--\0\nreturn 1 --[[\0]]", "-- \nreturn 1 --[[ ]]"),
            ("return 1 \0", "return 1 \x01"),
        ] {
            assert_eq!(translated(source), expected, "{source:?}");
        }
    }

    #[test]
    fn each_form_of_line_end_ends_one_line() {
        assert_eq!(translated("a\rb\r\nc\n\rd\n\ne\r\rf"), "a\nb\nc\nd\n\ne\n\nf");
        assert_eq!(translated("return 'a\\\n\rb'"), "return 'a\\\nb'");
    }

    #[test]
    fn hexadecimal_numbers_may_be_large_or_have_an_exponent() {
        for (source, expected) in [
            ("return 0xff, 0xffffffffffffffff", "return 0xff, 0xffffffffffffffff"),
            ("return 0x00000000000000000ff", "return 0x00000000000000000ff"),
            ("return 0x10000000000000000", "return 1.8446744073709552e19"),
            ("return 0x1p4-0X1P4", "return 1.6e1-1.6e1"),
            ("return 0x1p, 0x1e+2, a0x1p4", "return 0x1p, 0x1e+2, a0x1p4"),
        ] {
            assert_eq!(translated(source), expected, "{source}");
        }
        assert_eq!(translated(&format!("return 0x{}", "f".repeat(300))), "return 1e999");
    }

    #[test]
    fn vararg_functions_that_name_arg_declare_it() {
        const TABLE: &str = " local arg=__lua51_arg(...) ";
        const NIL: &str = " local arg ";
        for (source, declared) in [
            ("local function f(a, ...)$ return unpack(arg) end", TABLE),
            ("local f = function(...)$ return arg.n end", TABLE),
            ("function t.a:f(...)$ return arg end", TABLE),
            ("local function f(...)$ return arg, ... end", NIL),
            ("local function f(...)$ if x then return {...} end return arg end", NIL),
            ("f(function(...)$ return function() return arg end end)", TABLE),
            ("f(function(...)$ return function(...) return ... end, arg end)", TABLE),
            ("f(function(...) return function(...)$ return arg end, ... end)", TABLE),
            ("f(function(...) local x = function(...)$ return arg end end) arg = 1", TABLE),
            ("f(function(...) return t.arg, t:arg() end)", ""),
            ("f(function(arg, b) return arg end)", ""),
            ("f(function(arg, ...) return 1 end) return arg", ""),
            ("f(function(...) while a do b() end for c in d do e() end end) return arg", ""),
            ("f(function(...) repeat if a then b() else c() end until d end) return arg", ""),
            ("f(function(...) local a = if b then c else d end) return arg", ""),
            ("f(function(...)$ local a = x .. arg[1] end)", TABLE),
            ("f(function(...) --[[arg]] return 'arg' end)", ""),
            ("return arg", ""),
        ] {
            let expected = source.replace('$', declared);
            assert_eq!(translated(&source.replace('$', "")), expected, "{source}");
        }
    }

    #[test]
    fn source_without_differences_and_broken_source_stay_as_they_are() {
        for source in [
            "return 1",
            "return `{'\\x'}` .. '\\x'",
            "return 'a\\",
            "return 'a\n\\",
            "return [[a\\",
            "--[[a\\",
            "return [=a\\",
            "end end until arg ) ... \\",
            "function function ( arg ...",
        ] {
            assert_eq!(translated(source), source);
        }
    }
}
