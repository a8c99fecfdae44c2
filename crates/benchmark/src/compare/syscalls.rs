//! Counting a process's system calls with `perf`, where it is installed and allowed.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

const EVENT: &str = "raw_syscalls:sys_enter";

/// Counts system calls from its creation to [`SyscallCount::finish`].
#[derive(Debug)]
pub(super) struct SyscallCount {
    perf: Child,
}

impl SyscallCount {
    /// Starts counting. `perf` counts while it runs a command. The command is `cat`: its first echo shows that counting
    /// has started, and it exits at the end of its input.
    pub(super) fn start(pid: u32) -> Result<SyscallCount, String> {
        let mut perf = Command::new("perf")
            .args(["stat", "-x", ",", "-e", EVENT, "-p", &pid.to_string(), "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf: {error}"))?;
        let mut echo = [0; 2];
        let echoed = match (&mut perf.stdin, &mut perf.stdout) {
            (Some(input), Some(output)) => {
                input.write_all(b"x\n").and_then(|()| output.read_exact(&mut echo)).is_ok()
            }
            _ => false,
        };
        let count = SyscallCount { perf };
        if echoed { Ok(count) } else { Err(count.finish().err().unwrap_or_default()) }
    }

    /// Stops counting, and returns the number of system calls.
    pub(super) fn finish(mut self) -> Result<u64, String> {
        drop(self.perf.stdin.take());
        let mut text = String::new();
        if let Some(errors) = &mut self.perf.stderr {
            errors.read_to_string(&mut text).map_err(|error| format!("perf: {error}"))?;
        }
        self.perf.wait().map_err(|error| format!("perf: {error}"))?;
        counted(&text).ok_or_else(|| {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no answer");
            format!("perf: {first}")
        })
    }
}

/// The count of the event in the output of `perf stat -x ,`.
fn counted(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(EVENT))?;
    line.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_first_field_of_the_events_line() {
        assert_eq!(counted("\n2048,,raw_syscalls:sys_enter,900,100.00,,\n"), Some(2048));
        assert_eq!(counted("<not counted>,,raw_syscalls:sys_enter,0,0.00,,\n"), None);
        assert_eq!(counted("event syntax error\n"), None);
    }
}
