//! A session with a server as the user sees it: the connection, the user, the database, and the mode that the last
//! commands have set. Sending commands is in `send.rs`; the subscribed mode is in `subscribed.rs`.

mod send;
mod subscribed;

use crate::format::{self, Output};
use crate::link::{Interrupts, Link, LinkError, OpenError, Place};
use crate::options::{Options, Protocol};
use crate::screen;
use brisk_dial::TlsClient;
use brisk_resp::Value;
use std::rc::Rc;

/// The failure has already been reported to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told;

/// Whether a new connection says why it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loudness {
    Quiet,
    Loud,
}

/// The state of the script debugger in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Debug {
    /// Nothing.
    #[default]
    Off,
    /// The next EVAL begins it.
    Armed,
    /// Commands go to it.
    Running,
    /// It has just ended; the reply of the script follows.
    Ended,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The options of the command line; host, port, database and password change with the user's commands.
    pub(crate) options: Options,
    tls: Option<TlsClient>,
    link: Option<Link>,
    /// The database of the connection, which that of the options becomes when it is selected.
    database: i64,
    in_multi: bool,
    database_before_multi: i64,
    /// A person types at a terminal, or lines come from a pipe.
    pub(crate) is_interactive: bool,
    /// The server has redirected us to another node, which must get the command again.
    is_redirected: bool,
    /// This node replies for the slot only after ASKING.
    is_asking: bool,
    awaits_shutdown: bool,
    is_monitoring: bool,
    /// Messages may come at any time, until Ctrl-C or RESET.
    is_subscribed: bool,
    /// The replies to the current command are messages.
    awaits_messages: bool,
    speaks_resp3: bool,
    /// A command has been sent, so the time limit of `-t` applies to its reply. Messages may take any
    /// time.
    awaits_reply: bool,
    /// The last reply.
    pub(crate) last: Option<Value>,
    pub(crate) debug: Debug,
    interrupts: Option<Rc<Interrupts>>,
}

impl Session {
    /// A session that is not connected yet.
    ///
    /// # Errors
    /// TLS is enabled, and its files cannot be used.
    pub(crate) fn new(options: Options) -> Result<Session, String> {
        let tls = options.tls.then(|| TlsClient::new(&options.tls_files)).transpose()?;
        Ok(Session {
            tls,
            link: None,
            database: 0,
            in_multi: false,
            database_before_multi: 0,
            is_interactive: false,
            is_redirected: false,
            is_asking: false,
            awaits_shutdown: false,
            is_monitoring: false,
            is_subscribed: false,
            awaits_messages: false,
            speaks_resp3: false,
            awaits_reply: false,
            last: None,
            debug: Debug::Off,
            interrupts: None,
            options,
        })
    }

    /// Where the server is. The socket counts until a node of a cluster sends us elsewhere.
    pub(crate) fn place(&self) -> Place {
        match &self.options.socket {
            Some(path) if !(self.options.cluster_mode && self.is_redirected) => {
                Place::Unix(path.clone())
            }
            _ => Place::Tcp(self.options.host.clone(), self.options.port),
        }
    }

    /// Replaces the connection with a new one and sends the password, the database and the protocol. Rejections are
    /// printed, and the session continues.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn connect(&mut self, loudness: Loudness) -> Result<(), Told> {
        if self.link.take().is_some() {
            self.database = 0;
            self.in_multi = false;
        }
        (self.is_subscribed, self.speaks_resp3) = (false, false);
        let place = self.place();
        match Link::open(&place, self.tls.as_ref(), self.options.patience) {
            Ok(mut link) => {
                link.heed(self.interrupts.clone());
                self.link = Some(link);
                self.database = 0;
            }
            Err(OpenError::Connect(text)) => {
                if loudness == Loudness::Loud {
                    screen::warn(format!("Could not connect to Redis at {place}: {text}\n"));
                }
                return Err(Told);
            }
            Err(OpenError::Tls(text)) => {
                screen::warn(format!("Could not negotiate a TLS connection: {text}\n"));
                return Err(Told);
            }
        }
        self.authenticate()?;
        self.select()?;
        self.switch_protocol()
    }

    fn authenticate(&mut self) -> Result<(), Told> {
        let Some(password) = self.options.password.clone() else { return Ok(()) };
        let words = match self.options.user.clone() {
            Some(user) => vec![b"AUTH".to_vec(), user, password],
            None => vec![b"AUTH".to_vec(), password],
        };
        self.demand(&words, "AUTH failed")
    }

    /// Selects the database that the user wants.
    pub(super) fn select(&mut self) -> Result<(), Told> {
        let wanted = self.options.database;
        if wanted == self.database {
            return Ok(());
        }
        let words = [b"SELECT".to_vec(), wanted.to_string().into_bytes()];
        self.demand(&words, &format!("SELECT {wanted} failed"))?;
        self.database = wanted;
        Ok(())
    }

    fn switch_protocol(&mut self) -> Result<(), Told> {
        let words = [b"HELLO".to_vec(), b"3".to_vec()];
        match self.options.protocol {
            Protocol::Unsaid | Protocol::Resp2 => Ok(()),
            Protocol::Resp3 => {
                self.demand(&words, "HELLO 3 failed")?;
                self.speaks_resp3 = true;
                Ok(())
            }
            Protocol::Resp3IfKnown => match self.ask(&words) {
                Ok(reply) => {
                    self.speaks_resp3 = reply.as_error().is_none();
                    Ok(())
                }
                Err(_) => self.lost(),
            },
        }
    }

    /// Sends what has to succeed.
    fn demand(&mut self, words: &[Vec<u8>], failure: &str) -> Result<(), Told> {
        match self.ask(words) {
            Ok(reply) => match reply.as_error() {
                Some(text) => {
                    let text = String::from_utf8_lossy(text);
                    screen::warn(format!("{failure}: {text}\n"));
                    Err(Told)
                }
                None => Ok(()),
            },
            Err(_) => self.lost(),
        }
    }

    fn lost(&mut self) -> Result<(), Told> {
        screen::warn("\nI/O error\n");
        Err(Told)
    }

    /// Sends a request of ours, and waits for its answer.
    ///
    /// # Errors
    /// The connection fails.
    pub(crate) fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, LinkError> {
        self.link.as_mut().ok_or(LinkError::Closed)?.ask(words)
    }

    /// Sends all requests at once, and waits for all answers.
    ///
    /// # Errors
    /// The connection fails.
    pub(crate) fn ask_all<W: AsRef<[u8]>>(
        &mut self,
        requests: &[Vec<W>],
    ) -> Result<Vec<Value>, LinkError> {
        self.link.as_mut().ok_or(LinkError::Closed)?.ask_all(requests)
    }

    /// Ctrl-C ends waits of this and all later connections.
    pub(crate) fn heed(&mut self, interrupts: Option<Rc<Interrupts>>) {
        self.interrupts = interrupts;
        if let Some(link) = &mut self.link {
            link.heed(self.interrupts.clone());
        }
    }

    /// Reports whether there is a connection that is not known to be lost.
    pub(crate) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// The connection, for modes that use it in their own way.
    pub(crate) fn take_link(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// Goes to another server when the next command is sent, or at once.
    pub(crate) fn move_to(&mut self, host: String, port: i64) {
        self.options.host = host;
        self.options.port = port;
        // A failure has been reported, and the prompt shows it.
        let _ = self.connect(Loudness::Loud);
    }

    /// The prompt.
    pub(crate) fn prompt(&self) -> String {
        if self.debug == Debug::Running {
            return "lua debugger> ".to_owned();
        }
        if self.link.is_none() {
            return "not connected> ".to_owned();
        }
        let place = match self.place() {
            Place::Unix(path) => format!("redis {}", path.display()),
            Place::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            place @ Place::Tcp(..) => place.to_string(),
        };
        let database = match self.database {
            0 => String::new(),
            number => format!("[{number}]"),
        };
        let transaction = if self.in_multi { "(TX)" } else { "" };
        let subscribed = if self.is_subscribed { "(subscribed mode)" } else { "" };
        format!("{place}{database}{transaction}{subscribed}> ")
    }

    /// Prints a reply as the options say.
    pub(crate) fn show(&self, value: &Value) {
        screen::print(format::reply(value, self.options.output, &self.options.delimiters));
    }

    /// Prints a push: what others have changed is one line for people.
    fn show_push(&self, push: &Value) {
        if !self.options.shows_pushes {
            return;
        }
        let line = match self.options.output {
            Output::Standard => format::invalidation(push),
            _ => None,
        };
        match line {
            Some(line) => screen::print(line),
            None => self.show(push),
        }
        screen::flush();
    }
}
