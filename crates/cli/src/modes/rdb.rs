//! `--rdb` and `--functions-rdb`: fetch a snapshot into a file, in the way that a replica gets it.

use crate::link::{Link, LinkError, plain};
use crate::options::Options;
use crate::progress::{Progress, Unit};
use crate::screen;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

const BUFFER_BYTES: usize = 64 * 1024;
/// Maximum length of a line before a snapshot.
const LINE_BYTES_MAX: usize = 4096;
/// Length of the EOF mark that ends a snapshot of unknown length.
const MARK_BYTES: usize = 40;

/// How the end of a snapshot is determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// The payload has this number of bytes.
    Bytes(u64),
    /// The payload is followed by this mark.
    UpTo(Vec<u8>),
}

/// A text that says why there is no snapshot.
pub(crate) type Refused = String;

pub(super) fn run(link: &mut Link, options: &Options) -> i32 {
    let path = options.rdb_file.clone();
    match introduce(link, options.functions_only).and_then(|()| fetch(link, &path)) {
        Ok(()) => 0,
        Err(text) => {
            screen::flush();
            screen::warn(format!("{text}\n"));
            1
        }
    }
}

/// Announces to the server that only a snapshot is wanted, and of what.
fn introduce(link: &mut Link, functions_only: bool) -> Result<(), Refused> {
    configure(link, "capa", "eof")?;
    configure(link, "rdb-only", "1")?;
    if functions_only && !configure(link, "rdb-filter-only", "functions")? {
        return Err("Failed requesting functions only RDB from server, aborting".to_owned());
    }
    Ok(())
}

/// Fetches a snapshot into a file. `-` means standard output.
///
/// # Errors
/// A text that describes the failure.
pub(crate) fn fetch(link: &mut Link, path: &[u8]) -> Result<(), Refused> {
    use std::os::unix::ffi::OsStrExt;
    let shown = String::from_utf8_lossy(path).into_owned();
    let payload = begin(link)?;
    screen::warn(match &payload {
        Payload::Bytes(count) => {
            format!("SYNC sent to master, writing {count} bytes to '{shown}'\n")
        }
        Payload::UpTo(_) => format!(
            "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '{shown}'\n"
        ),
    });
    let failed = |error: &io::Error| format!("Error writing data to file: {}", plain(error));
    let count = if path == b"-" {
        let mut out = File::from(
            rustix::stdio::stdout().try_clone_to_owned().map_err(|error| failed(&error))?,
        );
        receive(link, &payload, &mut |bytes| out.write_all(bytes))?
    } else {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let mut file = File::create(path)
            .map_err(|error| format!("Error opening '{shown}': {}", plain(&error)))?;
        let count = receive(link, &payload, &mut |bytes| file.write_all(bytes))?;
        file.sync_all().map_err(|error| format!("Fail to fsync '{shown}': {}", plain(&error)))?;
        count
    };
    screen::warn(match payload {
        Payload::UpTo(_) => format!("Transfer finished with success after {count} bytes\n"),
        Payload::Bytes(_) => "Transfer finished with success.\n".to_owned(),
    });
    Ok(())
}

/// Sends a REPLCONF option. Returns whether the server supports it.
///
/// # Errors
/// If the connection fails.
pub(crate) fn configure(link: &mut Link, name: &str, value: &str) -> Result<bool, Refused> {
    screen::warn(format!("sending REPLCONF {name} {value}\n"));
    let reply = link.request(&["REPLCONF", name, value]).map_err(|error| said(&error))?;
    if let Some(text) = reply.as_error() {
        let text = String::from_utf8_lossy(text);
        screen::warn(format!("REPLCONF {name} error: {text}\n"));
        return Ok(false);
    }
    Ok(true)
}

/// Requests a snapshot, and waits until it begins.
///
/// # Errors
/// If the server replies with an error.
pub(crate) fn begin(link: &mut Link) -> Result<Payload, Refused> {
    link.send_bytes(b"SYNC\r\n").map_err(|error| said(&error))?;
    payload(link)
}

/// Waits until a requested snapshot begins.
///
/// # Errors
/// If the server replies with an error.
pub(crate) fn payload(link: &mut Link) -> Result<Payload, Refused> {
    let line = loop {
        let line = line(link)?;
        // A primary that is not ready yet sends empty lines as a keepalive.
        if !line.is_empty() {
            break line;
        }
    };
    let text = String::from_utf8_lossy(&line).into_owned();
    match line.as_slice() {
        [b'$', b'E', b'O', b'F', b':', mark @ ..] if mark.len() == MARK_BYTES => {
            Ok(Payload::UpTo(mark.to_vec()))
        }
        [b'$', digits @ ..] => {
            let count = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            count.map(Payload::Bytes).ok_or_else(|| format!("SYNC with master failed: {text}"))
        }
        _ => Err(format!("SYNC with master failed: {text}")),
    }
}

fn line(link: &mut Link) -> Result<Vec<u8>, Refused> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        let count = link.read_bytes(&mut byte).map_err(|error| said(&error))?;
        if count == 0 || line.len() > LINE_BYTES_MAX {
            return Err("Error reading bulk length while SYNCing".to_owned());
        }
        match byte[0] {
            b'\n' => return Ok(line),
            b'\r' => {}
            byte => line.push(byte),
        }
    }
}

/// Passes the snapshot on piece by piece. Returns its length.
///
/// # Errors
/// If the connection or the receiver of the pieces fails.
pub(crate) fn receive(
    link: &mut Link,
    payload: &Payload,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, Refused> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut take = |bytes: &[u8]| {
        take(bytes).map_err(|error| format!("Error writing data to file: {}", plain(&error)))
    };
    let whole = if let Payload::Bytes(all) = payload { Some(*all) } else { None };
    let mut progress = Progress::new("Fetching", Unit::Bytes, whole);
    // The latest bytes, which may be part of the mark.
    let mut held: Vec<u8> = Vec::new();
    let mut count = 0u64;
    loop {
        let room = match payload {
            Payload::Bytes(all) => {
                usize::try_from(all - count).unwrap_or(usize::MAX).min(BUFFER_BYTES)
            }
            Payload::UpTo(_) => BUFFER_BYTES,
        };
        if room == 0 {
            return Ok(count);
        }
        let got = link.read_bytes(&mut buffer[..room]);
        let got = got.map_err(|_| "I/O Error reading RDB payload from socket".to_owned())?;
        if got == 0 {
            return Err("I/O Error reading RDB payload from socket".to_owned());
        }
        progress.at(count);
        match payload {
            Payload::Bytes(_) => {
                take(&buffer[..got])?;
                count += got as u64;
            }
            Payload::UpTo(mark) => {
                held.extend_from_slice(&buffer[..got]);
                let ready = held.len().saturating_sub(MARK_BYTES);
                take(&held[..ready])?;
                held.drain(..ready);
                count += ready as u64;
                if held == *mark {
                    return Ok(count);
                }
            }
        }
    }
}

fn said(error: &LinkError) -> Refused {
    format!("Error: {error}")
}
