//! The user's session with a server: the connection, the user, the database, and the mode that the last commands have
//! set. Sending commands is in `send.rs`; the subscribed mode is in `subscribed.rs`; `sink.rs` prints replies.

mod send;
mod sink;
mod subscribed;

pub(crate) use sink::ReplySink;

use crate::format::{self, Output};
use crate::link::{Interrupts, Link, LinkError, OpenError, Place};
use crate::options::{Options, Protocol};
use crate::screen;
use brisk_dial::TlsClient;
use brisk_resp::Value;
use std::rc::Rc;

/// A failure that has already been reported to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlreadyReported;

/// Whether the failure of a new connection is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loudness {
    Quiet,
    Loud,
}

/// The reason why a new connection cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectFailure {
    /// No server accepts the connection.
    Unreachable(String),
    /// The TLS handshake has failed.
    Tls(String),
    /// The server has rejected the password, the database or the protocol.
    Rejected(String),
    /// The server has not replied, or has closed the connection.
    Lost,
}

/// The state of the script debugger in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Debug {
    /// The debugger is not used.
    #[default]
    Off,
    /// The next EVAL starts the debugger.
    Armed,
    /// Commands are sent to the debugger.
    Running,
    /// The debugger has just ended. The script's reply follows.
    Ended,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The options of the command line. The user's commands change host, port, database and password.
    pub(crate) options: Options,
    tls: Option<TlsClient>,
    link: Option<Link>,
    /// The database that is selected on the connection. `options` contains the database that the user wants.
    database: i64,
    in_multi: bool,
    database_before_multi: i64,
    /// True if commands are read as lines, from a terminal or a pipe.
    pub(crate) is_interactive: bool,
    /// The server has redirected us to another node, so the command must be sent again.
    is_redirected: bool,
    /// ASKING must be sent before the command, because this node is importing the slot.
    is_asking: bool,
    awaits_shutdown: bool,
    is_monitoring: bool,
    /// Messages may arrive at any time, until Ctrl-C or RESET.
    is_subscribed: bool,
    /// The replies to the current command are messages.
    awaits_messages: bool,
    speaks_resp3: bool,
    /// A command has been sent, so the time limit of `-t` applies to its reply. It does not apply to messages.
    awaits_reply: bool,
    /// The last reply.
    pub(crate) last: Option<Value>,
    pub(crate) debug: Debug,
    interrupts: Option<Rc<Interrupts>>,
    pub(crate) sink: ReplySink,
}

impl Session {
    /// A session that is not connected yet.
    ///
    /// # Errors
    /// If TLS is enabled, and its files cannot be used.
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
            sink: ReplySink::default(),
            options,
        })
    }

    /// The address of the server. A Unix socket is used until a cluster node redirects us.
    pub(crate) fn place(&self) -> Place {
        match &self.options.socket {
            Some(path) if !(self.options.cluster_mode && self.is_redirected) => {
                Place::Unix(path.clone())
            }
            _ => Place::Tcp(self.options.host.clone(), self.options.port),
        }
    }

    /// Like [`Session::open`], but prints a failure.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn connect(&mut self, loudness: Loudness) -> Result<(), AlreadyReported> {
        self.open().map_err(|failure| {
            if loudness == Loudness::Loud || !matches!(failure, ConnectFailure::Unreachable(_)) {
                self.print(&failure);
            }
            AlreadyReported
        })
    }

    fn print(&self, failure: &ConnectFailure) {
        screen::warn(match failure {
            ConnectFailure::Unreachable(text) => {
                format!("Could not connect to Redis at {}: {text}\n", self.place())
            }
            ConnectFailure::Tls(text) => format!("Could not negotiate a TLS connection: {text}\n"),
            ConnectFailure::Rejected(text) => format!("{text}\n"),
            ConnectFailure::Lost => "\nI/O error\n".to_owned(),
        });
    }

    /// Replaces the connection with a new one, and sends the commands for the password, the database and the protocol.
    /// If the server rejects one of them, the session can continue.
    ///
    /// # Errors
    /// If the connection fails, or a command is rejected.
    pub(crate) fn open(&mut self) -> Result<(), ConnectFailure> {
        if self.link.take().is_some() {
            self.database = 0;
            self.in_multi = false;
        }
        (self.is_subscribed, self.speaks_resp3) = (false, false);
        match Link::open(&self.place(), self.tls.as_ref(), self.options.timeout) {
            Ok(mut link) => {
                link.heed(self.interrupts.clone());
                self.link = Some(link);
                self.database = 0;
            }
            Err(OpenError::Connect(text)) => return Err(ConnectFailure::Unreachable(text)),
            Err(OpenError::Tls(text)) => return Err(ConnectFailure::Tls(text)),
        }
        self.authenticate()?;
        self.select_database()?;
        self.switch_protocol()
    }

    fn authenticate(&mut self) -> Result<(), ConnectFailure> {
        let Some(password) = self.options.password.clone() else { return Ok(()) };
        let words = match self.options.user.clone() {
            Some(user) => vec![b"AUTH".to_vec(), user, password],
            None => vec![b"AUTH".to_vec(), password],
        };
        self.demand(&words, "AUTH failed")
    }

    /// Selects the database that the user wants. A failure is printed.
    pub(super) fn select(&mut self) -> Result<(), AlreadyReported> {
        self.select_database().map_err(|failure| {
            self.print(&failure);
            AlreadyReported
        })
    }

    fn select_database(&mut self) -> Result<(), ConnectFailure> {
        let wanted = self.options.database;
        if wanted == self.database {
            return Ok(());
        }
        let words = [b"SELECT".to_vec(), wanted.to_string().into_bytes()];
        self.demand(&words, &format!("SELECT {wanted} failed"))?;
        self.database = wanted;
        Ok(())
    }

    fn switch_protocol(&mut self) -> Result<(), ConnectFailure> {
        let words = [b"HELLO".to_vec(), b"3".to_vec()];
        match self.options.protocol {
            Protocol::Unsaid | Protocol::Resp2 => Ok(()),
            Protocol::Resp3 => {
                self.demand(&words, "HELLO 3 failed")?;
                self.speaks_resp3 = true;
                Ok(())
            }
            Protocol::Resp3IfKnown => match self.request(&words) {
                Ok(reply) => {
                    self.speaks_resp3 = reply.as_error().is_none();
                    Ok(())
                }
                Err(_) => Err(ConnectFailure::Lost),
            },
        }
    }

    /// Sends a command that must succeed.
    fn demand(&mut self, words: &[Vec<u8>], failure: &str) -> Result<(), ConnectFailure> {
        let reply = self.request(words).map_err(|_| ConnectFailure::Lost)?;
        match reply.as_error() {
            Some(text) => {
                let text = String::from_utf8_lossy(text);
                Err(ConnectFailure::Rejected(format!("{failure}: {text}")))
            }
            None => Ok(()),
        }
    }

    /// Sends a request of the program itself, and waits for its reply.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn request<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Value, LinkError> {
        self.link.as_mut().ok_or(LinkError::Closed)?.request(words)
    }

    /// Sends all requests together, and waits for all replies.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) fn request_all<W: AsRef<[u8]>>(
        &mut self,
        requests: &[Vec<W>],
    ) -> Result<Vec<Value>, LinkError> {
        self.link.as_mut().ok_or(LinkError::Closed)?.request_all(requests)
    }

    /// From now on, Ctrl-C ends waits of this and all later connections.
    pub(crate) fn heed(&mut self, interrupts: Option<Rc<Interrupts>>) {
        self.interrupts = interrupts;
        if let Some(link) = &mut self.link {
            link.heed(self.interrupts.clone());
        }
    }

    /// Reports whether commands are queued until EXEC.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.in_multi
    }

    /// Reports whether there is a connection that is not known to be lost.
    pub(crate) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// The connection, for modes that use it in their own way.
    pub(crate) fn take_link(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// Connects to another server.
    pub(crate) fn move_to(&mut self, host: String, port: i64) {
        self.options.host = host;
        self.options.port = port;
        // A failure has been printed, and the prompt shows it.
        let _ = self.connect(Loudness::Loud);
    }

    /// The text of the prompt.
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

    /// Prints a reply in the format that the options select.
    pub(crate) fn show(&self, value: &Value) {
        screen::print(format::reply(value, self.options.output, &self.options.delimiters));
    }

    /// Prints a push message. An invalidation is printed as one line for people.
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
