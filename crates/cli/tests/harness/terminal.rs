//! A program in a pseudoterminal: types keys, and checks the output.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a text may take to appear.
const TIMEOUT: Duration = Duration::from_secs(20);
const COLUMNS: u16 = 200;

/// A session.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    shown: Receiver<Vec<u8>>,
    /// All output so far, and the length of the part that has already been matched.
    screen: String,
    seen: usize,
}

impl Terminal {
    /// Starts a program with its own terminal, so that Ctrl-C works.
    pub(crate) fn start(program: &Path, args: &[&str], vars: &[(&str, &str)]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let open = || {
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            let side = rustix::fs::open(&name, flags, rustix::fs::Mode::empty());
            File::from(side.expect("it can be opened"))
        };
        let size = Winsize { ws_row: 40, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("it has a size");
        // `setsid` starts a session with a controlling terminal, which Ctrl-C needs.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(program)
            .args(args)
            .env_remove("REDISCLI_AUTH")
            .env("HOME", "/nonexistent")
            .env("TERM", "xterm")
            .envs(vars.iter().copied())
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .expect("the program starts");
        let master = File::from(master);
        let mut reader = master.try_clone().expect("it can be shared");
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, master, shown, screen: String::new(), seen: 0 }
    }

    /// Waits for a text after everything that was expected before. Returns the output in between.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Some(at) = self.screen[self.seen..].find(text) {
                let between = self.screen[self.seen..self.seen + at].to_owned();
                self.seen += at + text.len();
                return between;
            }
            match self.shown.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("not shown: {text:?}\nbut: {:?}", &self.screen[self.seen..])
                }
            }
        }
    }

    /// Types keys unchanged.
    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal is open");
    }

    /// Types a line after the prompt has appeared.
    #[track_caller]
    pub(crate) fn type_at(&mut self, prompt: &str, line: &str) {
        self.expect(prompt);
        self.press(line);
        self.press("\r");
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).expect("it has a size");
    }

    /// Sends the program a signal, named without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        brisk_testkit::server::signal(self.child.id(), name);
    }

    /// Reports whether the terminal shows what is typed, as it does before and after a program with raw mode.
    pub(crate) fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.master).expect("it is a terminal").local_modes;
        modes.contains(rustix::termios::LocalModes::ECHO)
    }

    /// Waits until the program exits. Returns its exit code, or `None` if a signal has ended it.
    #[track_caller]
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let mut code = None;
        brisk_testkit::wait_until("the program ends", || {
            code = self.child.try_wait().expect("it is ours");
            code.is_some()
        });
        code.and_then(|code| code.code())
    }

    /// All output so far.
    pub(crate) fn screen(&self) -> &str {
        &self.screen
    }

    /// Waits until the program exits. Returns its exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> Option<i32> {
        self.exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
