//! Scans all keys, for several modes.

use super::LinkResult;
use crate::link::{Link, LinkError};
use crate::quote::leading_number;
use crate::{pause, screen};
use brisk_resp::Value;
use std::time::Duration;

/// The number of scan steps between two pauses, if pauses are requested.
const STEPS_BETWEEN_PAUSES: u64 = 100;

/// Prints the introduction of a scan.
pub(super) fn print_header(what: &str) {
    screen::print(format!(
        "\n# Scanning the entire keyspace to find {what} keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n\n"
    ));
    screen::flush();
}

/// The number of keys.
///
/// # Errors
/// If the connection fails.
pub(super) fn size(link: &mut Link) -> LinkResult<Option<u64>> {
    let reply = link.request(&["DBSIZE"])?;
    match reply.as_integer() {
        Some(count) => Ok(u64::try_from(count).ok()),
        None => {
            let text = String::from_utf8_lossy(reply.as_error().unwrap_or_default()).into_owned();
            screen::flush();
            screen::warn(format!("Couldn't determine DBSIZE: {text}\n"));
            Ok(None)
        }
    }
}

/// A scan of the keys.
#[derive(Debug)]
pub(super) struct KeyScan<'a> {
    pattern: Option<&'a [u8]>,
    count: Option<i64>,
    cursor: Vec<u8>,
    steps: u64,
    is_over: bool,
}

/// The reason why a scan ended early.
#[derive(Debug)]
pub(super) enum KeyScanError {
    Link(LinkError),
    /// The error of the server.
    Rejected(String),
}

impl From<LinkError> for KeyScanError {
    fn from(error: LinkError) -> Self {
        KeyScanError::Link(error)
    }
}

impl<'a> KeyScan<'a> {
    /// Scans the matching keys, with `count` examined keys per step, or the server's default.
    pub(super) fn new(pattern: Option<&'a [u8]>, count: Option<i64>) -> Self {
        Self { pattern, count, cursor: b"0".to_vec(), steps: 0, is_over: false }
    }

    /// The keys of the next step, possibly empty; `None` at the end.
    pub(super) fn step(&mut self, link: &mut Link) -> Result<Option<Vec<Vec<u8>>>, KeyScanError> {
        if self.is_over {
            return Ok(None);
        }
        let mut request = vec![b"SCAN".to_vec(), self.cursor.clone()];
        if let Some(pattern) = self.pattern {
            request.extend([b"MATCH".to_vec(), pattern.to_vec()]);
        }
        if let Some(count) = self.count {
            request.extend([b"COUNT".to_vec(), count.to_string().into_bytes()]);
        }
        let reply = link.request(&request)?;
        if let Some(text) = reply.as_error() {
            return Err(KeyScanError::Rejected(String::from_utf8_lossy(text).into_owned()));
        }
        let Some([cursor, keys]) = reply.as_slice() else {
            return Err(KeyScanError::Rejected("Invalid element count from SCAN!".to_owned()));
        };
        self.cursor = cursor.as_bytes().unwrap_or(b"0").to_vec();
        self.is_over =
            leading_number(&self.cursor) == 0 && self.cursor.iter().all(|it| *it == b'0');
        self.steps += 1;
        let keys = keys.as_slice().unwrap_or_default();
        Ok(Some(keys.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec).collect()))
    }

    /// Pauses after every hundred steps, if requested.
    pub(super) fn pause_if_due(&self, interval_us: u64) {
        if interval_us > 0 && self.steps.is_multiple_of(STEPS_BETWEEN_PAUSES) {
            screen::flush();
            pause::pause(Duration::from_micros(interval_us));
        }
    }
}

/// Reports why a scan ended early. Returns the exit code.
pub(super) fn failed(error: KeyScanError) -> i32 {
    match error {
        KeyScanError::Link(error) => super::lost(&error),
        KeyScanError::Rejected(text) => {
            screen::flush();
            screen::warn(format!("SCAN error: {text}\n"));
            1
        }
    }
}
