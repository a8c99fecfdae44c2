//! One process of the runner: its output with the time of each line, and its end.

use crate::cpu;
use anyhow::{Context, Result};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the runner checks whether a process has ended.
const TICK: Duration = Duration::from_millis(100);
/// How long the output of an ended process may stay open, because of a process that it has left running.
const LEFT_OPEN: Duration = Duration::from_secs(2);

/// How a process ended.
#[derive(Debug)]
pub(super) enum End {
    Exited(ExitStatus),
    /// The process printed nothing for too long and was killed.
    Silent,
}

/// A process that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    /// The lines of its standard output, each with the time since the start. The last line may be incomplete.
    pub(super) lines: Vec<(Duration, String)>,
    pub(super) errors: String,
    pub(super) elapsed: Duration,
    /// CPU seconds of the process and of the children that it has waited for.
    pub(super) cpu: f64,
}

enum Event {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Closed,
}

/// Runs a process in its own process group. Kills the group if the process prints nothing for `silence`.
pub(super) fn run(command: &mut Command, silence: Duration) -> Result<Ended> {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let (sender, events) = channel();
    if let Some(output) = child.stdout.take() {
        forward(output, sender.clone(), Event::Output);
    }
    if let Some(errors) = child.stderr.take() {
        forward(errors, sender, Event::Errors);
    }
    let mut text = Text { started, lines: Vec::new(), line: Vec::new(), errors: Vec::new() };
    let mut cpu = 0.0;
    let end = loop {
        let closed = text.take(&events, silence);
        cpu = cpu::seconds_of(&child.id().to_string()).unwrap_or(cpu);
        match closed {
            Taken::Closed => break End::Exited(child.wait()?),
            Taken::Silent => {
                kill_group(child.id());
                child.wait()?;
                text.drain(&events);
                break End::Silent;
            }
            Taken::Tick => {
                if let Some(status) = child.try_wait()? {
                    if !text.drain(&events) {
                        kill_group(child.id());
                    }
                    break End::Exited(status);
                }
            }
        }
    };
    if !text.line.is_empty() {
        text.end_line();
    }
    let errors = String::from_utf8_lossy(&text.errors).into_owned();
    Ok(Ended { end, lines: text.lines, errors, elapsed: started.elapsed(), cpu })
}

/// Sends what a process writes to one of its outputs.
fn forward(mut from: impl Read + Send + 'static, to: Sender<Event>, event: fn(Vec<u8>) -> Event) {
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        loop {
            match from.read(&mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(n) => {
                    if to.send(event(bytes[..n].to_vec())).is_err() {
                        return;
                    }
                }
            }
        }
        let _ = to.send(Event::Closed);
    });
}

enum Taken {
    /// Both outputs are closed.
    Closed,
    /// Nothing was printed for the allowed time.
    Silent,
    /// It is time to check the process.
    Tick,
}

/// The output so far.
struct Text {
    started: Instant,
    lines: Vec<(Duration, String)>,
    line: Vec<u8>,
    errors: Vec<u8>,
}

impl Text {
    /// Receives output until both outputs are closed, nothing was printed for `silence`, or it is time to check the
    /// process.
    fn take(&mut self, events: &Receiver<Event>, silence: Duration) -> Taken {
        let last = self.lines.last().map_or(Duration::ZERO, |(at, _)| *at);
        loop {
            match events.recv_timeout(TICK) {
                Ok(event) => self.add(event),
                Err(RecvTimeoutError::Disconnected) => return Taken::Closed,
                Err(RecvTimeoutError::Timeout) if self.started.elapsed() > last + silence => {
                    return Taken::Silent;
                }
                Err(RecvTimeoutError::Timeout) => return Taken::Tick,
            }
        }
    }

    /// Receives the rest of the output of a process that has ended. Returns whether the output was closed in time.
    fn drain(&mut self, events: &Receiver<Event>) -> bool {
        let until = Instant::now() + LEFT_OPEN;
        loop {
            match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) => self.add(event),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Closed => {}
            Event::Errors(bytes) => self.errors.extend(bytes),
            Event::Output(bytes) => {
                for byte in bytes {
                    if byte == b'\n' { self.end_line() } else { self.line.push(byte) }
                }
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.lines.push((self.started.elapsed(), String::from_utf8_lossy(&line).into_owned()));
    }
}

/// Kills the processes of a group that the runner has started.
fn kill_group(leader: u32) {
    // Use the shell's built-in `kill`, because the standard library can only kill individual child processes.
    let line = format!("kill -KILL -{leader}");
    let _ = Command::new("sh").args(["-c", &line]).stderr(Stdio::null()).status();
}

/// A command that the kernel kills when the thread that starts it ends, so that an interrupted gate leaves no process.
pub(super) fn bound_to_us(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(line: &str, silence: Duration) -> Ended {
        let mut command = bound_to_us(Path::new("sh"));
        run(command.args(["-c", line]), silence).unwrap()
    }

    fn text(ended: &Ended) -> Vec<&str> {
        ended.lines.iter().map(|(_, line)| line.as_str()).collect()
    }

    #[test]
    fn the_complete_output_of_a_process_is_returned_with_its_status() {
        let ended = shell("echo a; echo b >&2; printf c; exit 3", LONG);
        assert_eq!(text(&ended), ["a", "c"]);
        assert_eq!(ended.errors, "b\n");
        assert!(matches!(ended.end, End::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn a_silent_process_is_killed_with_its_children() {
        let ended = shell("echo a; sleep 1000 & sleep 1000", Duration::from_millis(200));
        assert_eq!(text(&ended), ["a"]);
        assert!(matches!(ended.end, End::Silent));
        assert!(ended.elapsed < LONG);
    }

    #[test]
    fn a_leftover_process_does_not_block_the_runner() {
        let ended = shell("sleep 1000 & echo $!", LONG);
        assert!(matches!(ended.end, End::Exited(status) if status.success()));
        assert!(ended.elapsed < LONG);
    }

    #[test]
    fn cpu_seconds_of_children_count() {
        let ended =
            shell("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done", LONG);
        assert!(ended.cpu > 0.0, "{ended:?}");
    }
}
