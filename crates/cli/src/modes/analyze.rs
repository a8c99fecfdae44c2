//! `analyze`: reports the memory of keys by pattern, and how much each change would save. `brisk-analyze` does the
//! work, over a connection of this program.

use crate::link::{Link, LinkError};
use crate::session::{Loudness, Session};
use crate::{pause, screen};
use brisk_analyze::source::live::{Server, Words};
use brisk_resp::Value;
use std::time::Duration;

/// Runs the command with the arguments after its name; returns the exit code.
pub(crate) fn run(session: &mut Session) -> i32 {
    let words = session.options.words.clone();
    let mut dial = || -> Result<Box<dyn Server>, String> {
        // The failure has been printed.
        session.connect(Loudness::Loud).map_err(|_| String::new())?;
        let link = session.take_link().ok_or_else(String::new)?;
        Ok(Box::new(LinkServer(link)))
    };
    let output = brisk_analyze::run(&words, &mut dial);
    screen::print(output.out);
    screen::flush();
    screen::warn(output.err);
    output.code
}

struct LinkServer(Link);

impl Server for LinkServer {
    fn request_all(&mut self, requests: &[Words]) -> Result<Vec<Value>, String> {
        self.0.request_all(requests).map_err(|error: LinkError| error.to_string())
    }

    fn pause(&mut self, time: Duration) {
        pause::pause(time);
    }
}
