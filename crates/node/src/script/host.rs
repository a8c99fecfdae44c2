//! The interpreter's callbacks into the server, through the current run.

use super::calls;
use super::runner::ScriptRunner;
use brisk_observe::log::Level;
use brisk_resp::Protocol;
use brisk_script::{Called, Host, Pace, Words};

/// How long the code of a library may run while the library is loaded. Compiling it does not count.
const LOAD_NS_MAX: u64 = 500_000_000;

impl Host for ScriptRunner {
    fn call(&self, words: &Words, protocol: Protocol, reply: &mut Vec<u8>) -> Called {
        let called = self.core.with(|core| {
            self.session.with(|session| {
                calls::call_from_script(core, session, self, words, protocol, reply)
            })
        });
        let outside = "redis.call/pcall can only be called inside a script invocation";
        called.flatten().unwrap_or_else(|| Called::Refused(outside.to_owned()))
    }

    fn may_call(&self, words: &Words) -> Option<bool> {
        let judged = self.core.with(|core| {
            self.session.with(|session| {
                let row = calls::row_of_script(core, words)?;
                Some(calls::permit_script(session, row, words).is_ok())
            })
        });
        judged.flatten().flatten()
    }

    fn logs(&self, level: u8) -> bool {
        self.shared.log.is_on(level_of(level))
    }

    fn log(&self, level: u8, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        self.shared.log.write(level_of(level), format_args!("{line}"));
    }

    fn library_begins(&self) {
        self.begin_loading();
    }

    fn pace(&self) -> Pace {
        if self.loading.get() {
            return if self.elapsed_ns() > LOAD_NS_MAX { Pace::Stop } else { Pace::GoOn };
        }
        if self.shared.scripting.running.of(self.worker).is_killed()
            || self.shared.process.shutdown.is_requested()
        {
            self.killed.set(true);
            return Pace::Stop;
        }
        self.core.with(|core| self.pace_of(core)).unwrap_or(Pace::GoOn)
    }
}

/// The levels of `redis.log`.
fn level_of(level: u8) -> Level {
    match level {
        0 => Level::Debug,
        1 => Level::Verbose,
        2 => Level::Notice,
        _ => Level::Warning,
    }
}
