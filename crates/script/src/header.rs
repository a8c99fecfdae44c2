//! The `#!lua` line at the head of scripts and libraries: engine, name, flags.

use bitflags::bitflags;

bitflags! {
    /// The flags that a script declares.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ScriptFlags: u32 {
        const NO_WRITES = 1;
        const ALLOW_OOM = 1 << 1;
        const ALLOW_STALE = 1 << 2;
        const NO_CLUSTER = 1 << 3;
        const ALLOW_CROSS_SLOT_KEYS = 1 << 4;
        /// The script has no header: the needs of its commands are checked as they run.
        const COMPATIBLE = 1 << 5;
    }
}

/// The flags with their names, in the order in which they are listed.
pub const FLAGS: &[(ScriptFlags, &str)] = &[
    (ScriptFlags::NO_WRITES, "no-writes"),
    (ScriptFlags::ALLOW_OOM, "allow-oom"),
    (ScriptFlags::ALLOW_STALE, "allow-stale"),
    (ScriptFlags::NO_CLUSTER, "no-cluster"),
    (ScriptFlags::ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
];

/// Returns a script's flags, and the length of its first line if that is a header, which is not
/// Lua.
///
/// # Errors
/// The text for the client, without an error code.
pub fn of_script(source: &[u8]) -> Result<(ScriptFlags, usize), Vec<u8>> {
    if !source.starts_with(b"#!") {
        return Ok((ScriptFlags::COMPATIBLE, 0));
    }
    let Some(end) = source.iter().position(|byte| *byte == b'\n') else {
        return Err(b"Invalid script shebang".to_vec());
    };
    let parts =
        words(&source[..end]).ok_or_else(|| b"Invalid engine in script shebang".to_vec())?;
    let (engine, parts) = (&parts[0], &parts[1..]);
    if engine != b"#!lua" {
        return Err([b"Unexpected engine in script shebang: ", &engine[..]].concat());
    }
    let mut flags = ScriptFlags::empty();
    for part in parts {
        let Some(list) = part.strip_prefix(b"flags=") else {
            return Err([b"Unknown lua shebang option: ", &part[..]].concat());
        };
        for word in list.split(|byte| *byte == b',').filter(|_| !list.is_empty()) {
            let Some((flag, _)) = FLAGS.iter().find(|(_, name)| name.as_bytes() == word) else {
                return Err([b"Unexpected flag in script shebang: ", word].concat());
            };
            flags |= *flag;
        }
    }
    Ok((flags, end))
}

/// The header of a library.
#[derive(Debug, PartialEq, Eq)]
pub struct LibraryHeader {
    pub engine: Vec<u8>,
    pub name: Vec<u8>,
    /// The length of the first line, which is not Lua.
    pub len: usize,
}

/// Parses the header of a library.
///
/// # Errors
/// The text for the client, without an error code.
pub fn of_library(code: &[u8]) -> Result<LibraryHeader, Vec<u8>> {
    let Some(after) = code.strip_prefix(b"#!") else {
        return Err(b"Missing library metadata".to_vec());
    };
    let Some(end) = after.iter().position(|byte| *byte == b'\n') else {
        return Err(b"Invalid library metadata".to_vec());
    };
    let parts = words(&code[..end + 2]).ok_or_else(|| b"Invalid library metadata".to_vec())?;
    let engine = parts[0].get(2..).unwrap_or_default().to_vec();
    let mut name = None;
    for part in &parts[1..] {
        let prefix = part.get(..5).filter(|prefix| prefix.eq_ignore_ascii_case(b"name="));
        if prefix.is_none() {
            return Err([b"Invalid metadata value given: ", &part[..]].concat());
        }
        if name.replace(part[5..].to_vec()).is_some() {
            let text = b"Invalid metadata value, name argument was given multiple times";
            return Err(text.to_vec());
        }
    }
    let name = name.ok_or_else(|| b"Library name was not given".to_vec())?;
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        let text =
            b"Library names can only contain letters, numbers, or underscores(_) and must be \
                     at least one character long";
        return Err(text.to_vec());
    }
    Ok(LibraryHeader { engine, name, len: end + 2 })
}

/// Splits a line into words. Quotes are removed; white space within quotes belongs to the word.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    for &byte in line {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => word.get_or_insert_default().push(byte),
            None if matches!(byte, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            None if byte.is_ascii_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    (quote.is_none() && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(source: &str) -> Result<(ScriptFlags, usize), String> {
        of_script(source.as_bytes()).map_err(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn scripts_declare_their_flags_in_the_first_line() {
        assert_eq!(script("return 1"), Ok((ScriptFlags::COMPATIBLE, 0)));
        assert_eq!(script("#!lua\nreturn 1"), Ok((ScriptFlags::empty(), 5)));
        let flags = ScriptFlags::NO_WRITES | ScriptFlags::ALLOW_STALE;
        assert_eq!(script("#!lua flags=no-writes,allow-stale\n"), Ok((flags, 33)));
    }

    #[test]
    fn wrong_headers_are_rejected_with_the_texts_of_redis() {
        for (source, text) in [
            ("#!lua", "Invalid script shebang"),
            ("#!foo\n", "Unexpected engine in script shebang: #!foo"),
            ("#!lua flags=bar\n", "Unexpected flag in script shebang: bar"),
            ("#!lua bar=1\n", "Unknown lua shebang option: bar=1"),
        ] {
            assert_eq!(script(source), Err(text.to_owned()), "{source}");
        }
    }

    #[test]
    fn libraries_have_an_engine_and_a_name() {
        let header = of_library(b"#!lua name=lib\ncode").unwrap();
        assert_eq!(
            header,
            LibraryHeader { engine: b"lua".to_vec(), name: b"lib".to_vec(), len: 14 }
        );
        for (code, text) in [
            ("x", "Missing library metadata"),
            ("#!lua name=a", "Invalid library metadata"),
            ("#!lua\n", "Library name was not given"),
            ("#!lua foo=a\n", "Invalid metadata value given: foo=a"),
        ] {
            assert_eq!(of_library(code.as_bytes()).unwrap_err(), text.as_bytes(), "{code}");
        }
    }
}
