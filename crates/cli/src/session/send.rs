//! Sends the user's commands once or several times, to the node that serves their keys. Handles the modes that some
//! commands start.

use super::subscribed::{Subscription, kind_of};
use super::{AlreadyReported, Debug, Loudness, Session};
use crate::format::Output;
use crate::link::LinkError;
use crate::{modes, screen};
use brisk_resp::Value;
use std::io;
use std::time::Duration;

/// Maximum number of redirections of one request of the program itself.
const REDIRECTIONS_MAX: usize = 8;

/// The action of the session after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Other,
    Monitor,
    Sync,
}

impl Session {
    /// Sends a command `repeat` times (forever if negative) and prints the replies. Connects first if there is no
    /// connection.
    ///
    /// # Errors
    /// If there is no connection, or it has failed.
    pub(crate) fn issue(&mut self, words: &[Vec<u8>], repeat: i64) -> Result<(), AlreadyReported> {
        loop {
            if self.is_redirected || self.link.is_none() {
                let connected = self.connect(Loudness::Loud);
                self.is_redirected = false;
                if connected.is_err() && self.link.is_none() {
                    return Err(AlreadyReported);
                }
            }
            if self.is_asking {
                self.is_asking = false;
                if let Err(error) = self.request(&["ASKING"]) {
                    return Err(self.dropped(&error));
                }
            }
            match self.send(words, repeat) {
                Ok(()) => {}
                Err(LinkError::Interrupted) => {
                    self.leave_subscription();
                    return Err(AlreadyReported);
                }
                Err(error) => return Err(self.dropped(&error)),
            }
            if !self.is_redirected {
                return Ok(());
            }
        }
    }

    /// Sends a request of the program itself, in cluster mode to the node that serves its key. Later requests go to the
    /// same node.
    ///
    /// # Errors
    /// If a connection fails, or too many nodes redirect the request.
    pub(crate) fn request_following_redirects<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
    ) -> Result<Value, LinkError> {
        for _ in 0..REDIRECTIONS_MAX {
            let value = self.request(words)?;
            if !self.options.cluster_mode || !self.redirect(&value) {
                return Ok(value);
            }
            let connected = self.connect(Loudness::Loud);
            self.is_redirected = false;
            connected.map_err(|_| LinkError::Closed)?;
            if std::mem::take(&mut self.is_asking) {
                self.request(&["ASKING"])?;
            }
        }
        Err(LinkError::Protocol("Too many redirections".to_owned()))
    }

    /// Prints the error and drops the connection.
    pub(super) fn dropped(&mut self, error: &LinkError) -> AlreadyReported {
        screen::warn(format!("Error: {error}\n"));
        self.link = None;
        self.in_multi = false;
        self.is_subscribed = false;
        self.database = 0;
        AlreadyReported
    }

    fn send(&mut self, words: &[Vec<u8>], mut repeat: i64) -> Result<(), LinkError> {
        let Some(command) = words.first().map(|word| word.to_ascii_lowercase()) else {
            return Ok(());
        };
        let kind = match command.as_slice() {
            b"monitor" => Kind::Monitor,
            b"sync" | b"psync" => Kind::Sync,
            _ => Kind::Other,
        };
        self.awaits_shutdown |= command == b"shutdown";
        self.prepare_debugging(&command, words);
        let verbatim = is_text_for_people(&command, words);
        while repeat != 0 {
            repeat = if repeat < 0 { repeat } else { repeat - 1 };
            let link = self.link.as_mut().ok_or(LinkError::Closed)?;
            link.send(words)?;
            self.awaits_reply = true;
            match kind {
                Kind::Monitor => return self.monitor(),
                Kind::Sync => {
                    let link = self.link.take().ok_or(LinkError::Closed)?;
                    modes::replica::command(link, self);
                    return Err(LinkError::Closed);
                }
                Kind::Other => {}
            }
            self.read_replies(&command, words, verbatim)?;
            self.follow_state(&command, words);
            if self.is_redirected {
                break;
            }
            if self.options.interval_us > 0 {
                screen::flush();
                rest(Duration::from_micros(self.options.interval_us));
            }
            screen::flush();
        }
        Ok(())
    }

    /// Reads and prints the reply to a command, and the messages before it. The reply to a subscription command is one
    /// message for each channel.
    fn read_replies(
        &mut self,
        command: &[u8],
        words: &[Vec<u8>],
        verbatim: bool,
    ) -> Result<(), LinkError> {
        let subscription = Subscription::of(command);
        let mut awaited = if subscription.is_some() { (words.len() - 1).max(1) } else { 0 };
        loop {
            self.awaits_messages = awaited > 0;
            let read = self.read_reply(verbatim);
            self.awaits_messages = false;
            read?;
            if !self.is_subscribed && awaited == 0 {
                return Ok(());
            }
            let Some(last) = &self.last else { return Ok(()) };
            match kind_of(last, self.speaks_resp3) {
                Some(kind) if awaited > 0 && kind.eq_ignore_ascii_case(command) => {
                    self.is_subscribed |= subscription == Some(Subscription::Begins);
                    awaited -= 1;
                    if awaited == 0 {
                        return Ok(());
                    }
                }
                Some(_) => {}
                None if matches!(last, Value::Push(_)) => {}
                None => return Ok(()),
            }
        }
    }

    /// Reads and prints the next reply.
    pub(super) fn read_reply(&mut self, verbatim: bool) -> Result<(), LinkError> {
        let value = match self.next_reply() {
            Ok(value) => value,
            Err(LinkError::Closed | LinkError::Io(_)) if self.awaits_shutdown => {
                self.link = None;
                self.awaits_shutdown = false;
                return Ok(());
            }
            Err(LinkError::Interrupted) if !self.may_be_left() => screen::exit(1),
            Err(error) if self.may_go_on(&error) => return Err(error),
            Err(error) => {
                screen::warn(format!("Error: {error}\n"));
                screen::exit(1);
            }
        };
        self.awaits_shutdown = false;
        if self.options.cluster_mode && self.redirect(&value) {
            return Ok(());
        }
        if let (Some(text), true, false) =
            (value.as_error(), self.options.fails_on_error, self.is_interactive)
        {
            screen::flush();
            screen::warn([text, b"\n"].concat());
            screen::exit(1);
        }
        self.print_reply(&value, verbatim);
        self.last = Some(value);
        Ok(())
    }

    /// Reads and prints a message that is not the reply to a command.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn show_next(&mut self) -> Result<(), LinkError> {
        self.read_reply(false)
    }

    fn print_reply(&mut self, value: &Value, verbatim: bool) {
        if self.debug == Debug::Running {
            self.debug = crate::debugger::show(value);
        } else {
            self.emit(value, verbatim);
        }
        screen::flush();
    }

    /// Reports whether Ctrl-C ends the current wait instead of the session.
    fn may_be_left(&self) -> bool {
        self.is_monitoring || self.is_subscribed
    }

    /// Reports whether the session can continue with a new connection. A single command ends with the error.
    fn may_go_on(&self, error: &LinkError) -> bool {
        let broken = match error {
            LinkError::Closed | LinkError::Interrupted | LinkError::TimedOut => true,
            LinkError::Io(error) => {
                matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
            }
            LinkError::Protocol(_) => false,
        };
        self.is_interactive && broken
    }

    /// The next reply. Push messages before it are printed. In subscribed mode, push messages are returned like
    /// replies.
    fn next_reply(&mut self) -> Result<Value, LinkError> {
        loop {
            let link = self.link.as_mut().ok_or(LinkError::Closed)?;
            let value = if self.awaits_reply { link.reply()? } else { link.message()? };
            match &value {
                Value::Push(_) if !self.is_subscribed && !self.awaits_messages => {
                    self.show_push(&value);
                }
                _ => return Ok(value),
            }
        }
    }

    /// Prints the server's MONITOR lines until the user interrupts or the server rejects the command.
    fn monitor(&mut self) -> Result<(), LinkError> {
        self.is_monitoring = true;
        let mut read = Ok(());
        while read.is_ok() {
            read = self.read_reply(false);
            self.awaits_reply = false;
            if self.last_is_error() {
                break;
            }
        }
        self.is_monitoring = false;
        read
    }

    /// Reports whether the last reply was an error.
    pub(crate) fn last_is_error(&self) -> bool {
        self.last.as_ref().is_some_and(|value| value.as_error().is_some())
    }

    /// If the error is a redirection, connects to the node that it names.
    fn redirect(&mut self, value: &Value) -> bool {
        let Some(text) = value.as_error() else { return false };
        let asking = text.starts_with(b"ASK ");
        if !asking && !text.starts_with(b"MOVED ") {
            return false;
        }
        let text = String::from_utf8_lossy(text).into_owned();
        let mut words = text.split(' ').skip(1);
        let (Some(slot), Some(place)) = (words.next(), words.next()) else { return false };
        let Some((host, port)) = place.rsplit_once(':') else { return false };
        // A node may not know its own host. In this case the current host is kept.
        if !host.is_empty() {
            host.clone_into(&mut self.options.host);
        }
        self.options.port = crate::quote::leading_number(port.as_bytes());
        if self.is_interactive {
            let Session { options, .. } = self;
            let (host, port) = (&options.host, options.port);
            screen::print(format!("-> Redirected to slot [{slot}] located at {host}:{port}\n"));
        }
        self.is_redirected = true;
        self.is_asking = asking;
        true
    }

    /// Applies the effects of a successful command to the session.
    fn follow_state(&mut self, command: &[u8], words: &[Vec<u8>]) {
        let failed = self.last_is_error();
        match (command, words.len()) {
            (b"select", 2) if !failed => {
                self.database = crate::quote::leading_number(&words[1]);
                self.options.database = self.database;
            }
            (b"auth", 2 | 3) => {
                // A rejection has been printed.
                let _ = self.select();
            }
            (b"multi", 1) if !failed => {
                self.in_multi = true;
                self.database_before_multi = self.database;
            }
            (b"exec", 1) if self.in_multi => {
                self.in_multi = false;
                if failed || self.last.as_ref().is_some_and(Value::is_null) {
                    self.database = self.database_before_multi;
                    self.options.database = self.database;
                }
            }
            (b"discard", 1) if !failed => {
                self.in_multi = false;
                self.database = self.database_before_multi;
                self.options.database = self.database;
            }
            (b"reset", 1) if !failed => {
                self.in_multi = false;
                self.database = 0;
                self.options.database = 0;
                self.options.protocol = crate::options::Protocol::Unsaid;
                (self.is_subscribed, self.speaks_resp3) = (false, false);
            }
            (b"hello", _) => match &self.last {
                Some(Value::Map(_)) => self.speaks_resp3 = true,
                Some(Value::Array(_)) => self.speaks_resp3 = false,
                _ => {}
            },
            _ => {}
        }
    }

    /// Handles SCRIPT DEBUG, which makes the next EVAL a debugging session.
    fn prepare_debugging(&mut self, command: &[u8], words: &[Vec<u8>]) {
        match (command, words) {
            (b"script", [_, sub, mode]) if sub.eq_ignore_ascii_case(b"debug") => {
                let on = mode.eq_ignore_ascii_case(b"yes") || mode.eq_ignore_ascii_case(b"sync");
                self.debug = if on { Debug::Armed } else { Debug::Off };
            }
            (b"eval", _) if self.debug == Debug::Armed => {
                self.debug = Debug::Running;
                self.options.output = Output::Raw;
            }
            _ => {}
        }
    }
}

/// Pauses between two commands.
fn rest(time: Duration) {
    crate::pause::pause(time);
}

/// Reports whether the reply is text that is already formatted.
fn is_text_for_people(command: &[u8], words: &[Vec<u8>]) -> bool {
    let sub = words.get(1).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    matches!(
        (command, sub.as_slice(), words.len()),
        (b"info" | b"lolwut", _, _)
            | (b"debug", b"htstats" | b"htstats-key" | b"client-eviction", _)
            | (b"memory", b"malloc-stats" | b"doctor", _)
            | (b"cluster", b"nodes" | b"info", 2)
            | (b"client", b"list" | b"info", _)
            | (b"latency", b"graph", 3)
            | (b"latency", b"doctor", 2)
            | (b"proxy", b"info", _)
    )
}
