//! The client side of the script debugger: colors the debugger's output line by line, and detects the end of the
//! session.

use crate::screen;
use crate::session::Debug;
use brisk_resp::Value;

/// Maximum nesting of replies. Deeper parts are not shown.
const DEPTH_MAX: usize = 8;

/// Prints the output of the debugger. Returns whether the session continues.
pub(crate) fn show(value: &Value) -> Debug {
    let mut out = Vec::new();
    let mut ended = false;
    lines(value, &mut out, &mut ended, DEPTH_MAX);
    out.push(b'\n');
    screen::print(out);
    if ended { Debug::Ended } else { Debug::Running }
}

fn lines(value: &Value, out: &mut Vec<u8>, ended: &mut bool, depth: usize) {
    match value {
        Value::Simple(line) if line.starts_with(b"<endsession>") => *ended = true,
        Value::Simple(line) => colored(line, out),
        Value::Array(list) if depth > 0 => {
            for (at, line) in list.iter().enumerate() {
                if at > 0 {
                    out.push(b'\n');
                }
                lines(line, out, ended, depth - 1);
            }
        }
        Value::Error(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Value::Bulk(text) => out.extend_from_slice(text),
        _ => {}
    }
}

fn colored(line: &[u8], out: &mut Vec<u8>) {
    match (screen::is_colorful(), color(line)) {
        (true, Some((bold, color))) => {
            out.extend_from_slice(format!("\x1b[{bold};{color};49m").as_bytes());
            out.extend_from_slice(line);
            out.extend_from_slice(b"\x1b[0m");
        }
        _ => out.extend_from_slice(line),
    }
}

/// The style of a line: bold or not, and the color.
fn color(line: &[u8]) -> Option<(u8, u8)> {
    let has = |mark: &[u8]| line.windows(mark.len()).any(|part| part == mark);
    Some(if has(b"<debug>") {
        (1, 37)
    } else if has(b"<redis>") {
        (0, 32)
    } else if has(b"<reply>") {
        (0, 36)
    } else if has(b"<error>") {
        (0, 31)
    } else if has(b"<hint>") {
        (1, 37)
    } else if has(b"<value>") || has(b"<retval>") {
        (0, 35)
    } else if line.len() > 4 && line[3].is_ascii_digit() {
        match (line[1], line[2]) {
            // The line that is about to run, and a line with a breakpoint.
            (b'>', _) => (0, 33),
            (_, b'#') => (1, 37),
            _ => return None,
        }
    } else {
        return None;
    })
}
