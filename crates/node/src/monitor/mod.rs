//! MONITOR: a line for each command, sent to the clients that run MONITOR.

pub mod lines;

use brisk_structures::poison::EvenPoisoned;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of sessions that run MONITOR.
#[derive(Debug)]
pub struct Monitors {
    by_worker: Box<[AtomicUsize]>,
    /// Locked while the total changes and the check is armed or disarmed.
    total: Mutex<usize>,
}

impl Monitors {
    /// Creates the counters for `workers` workers.
    pub fn new(workers: usize) -> Monitors {
        Monitors {
            by_worker: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            total: Mutex::new(0),
        }
    }

    /// Counts a session of this worker. `arm` is called if it is the first one.
    pub fn add(&self, worker: usize, arm: impl FnOnce()) {
        let mut total = self.total.lock().even_poisoned();
        self.by_worker[worker].fetch_add(1, Ordering::SeqCst);
        *total += 1;
        if *total == 1 {
            arm();
        }
    }

    /// Removes a session of this worker from the count. `disarm` is called if it was the last one.
    pub fn remove(&self, worker: usize, disarm: impl FnOnce()) {
        let mut total = self.total.lock().even_poisoned();
        self.by_worker[worker].fetch_sub(1, Ordering::SeqCst);
        *total -= 1;
        if *total == 0 {
            disarm();
        }
    }

    /// Reports whether sessions of this worker run MONITOR.
    pub fn at(&self, worker: usize) -> bool {
        self.by_worker[worker].load(Ordering::Relaxed) > 0
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

/// Appends `bytes` in double quotes, with escapes for unprintable bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_escapes_unprintable_bytes() {
        let words: [&[u8]; 3] = [b"SET", b"a \"b\\\r\n\t\x07\x08", b"\x00\x7f\xe9"];
        let line = line(1_700_000_000_000_042, 3, "127.0.0.1:5000", words.into_iter());
        let expected = concat!(
            "+1700000000.000042 [3 127.0.0.1:5000] \"SET\" ",
            "\"a \\\"b\\\\\\r\\n\\t\\a\\b\" \"\\x00\\x7f\\xe9\"\r\n"
        );
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }

    #[test]
    fn the_first_monitor_arms_and_the_last_disarms() {
        let monitors = Monitors::new(2);
        let mut armed = 0;
        monitors.add(1, || armed += 1);
        monitors.add(0, || armed += 1);
        assert_eq!(armed, 1);
        assert!(monitors.at(0) && monitors.at(1));
        monitors.remove(1, || armed -= 1);
        assert_eq!(armed, 1);
        assert!(!monitors.at(1));
        monitors.remove(0, || armed -= 1);
        assert_eq!(armed, 0);
    }
}
