//! MONITOR: a line for each command, to those who asked.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many sessions monitor, by worker.
#[derive(Debug, Default)]
pub struct Monitors {
    total: AtomicUsize,
}

impl Monitors {
    /// One more; true if it is the first.
    pub fn add(&self) -> bool {
        self.total.fetch_add(1, Ordering::SeqCst) == 0
    }

    /// One less; true if it was the last.
    pub fn remove(&self) -> bool {
        self.total.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

/// The line for one command: `+1700000000.123456 [0 127.0.0.1:5000] "set" "k" "v"`.
pub fn line<'w>(
    unix_us: u64,
    db: u32,
    client: &str,
    words: impl Iterator<Item = &'w [u8]>,
) -> Vec<u8> {
    let (seconds, micros) = (unix_us / 1_000_000, unix_us % 1_000_000);
    let mut line = format!("+{seconds}.{micros:06} [{db} {client}]").into_bytes();
    for word in words {
        line.extend_from_slice(b" ");
        quote(&mut line, word);
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// Appends `bytes` in double quotes, with escapes for what is not printable.
pub fn quote(line: &mut Vec<u8>, bytes: &[u8]) {
    line.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x07 => line.extend_from_slice(b"\\a"),
            0x08 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}
