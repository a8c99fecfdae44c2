//! A scripted server for the tests of programs that use this library (cargo feature `mock`).
//!
//! [`Mock`] listens on a loopback port, so the program under test uses a real [`Client`](crate::Client) with real
//! connections. The test declares the commands that it expects, in order, each with its reply. If another command
//! arrives instead of the next expected one, it gets an error reply, and [`Mock::finish`] reports it. `finish` also
//! reports expected commands that did not arrive.
//!
//! ```
//! use brisk::mock::Mock;
//!
//! /// The function under test.
//! fn greeting(db: &brisk::Client) -> brisk::Result<String> {
//!     let name: Option<String> = db.get("user:1").wait()?;
//!     db.incr("greetings").wait()?;
//!     Ok(format!("Hello, {}!", name.unwrap_or_default()))
//! }
//!
//! let mock = Mock::start()?;
//! mock.expect(["GET", "user:1"]).reply("Ana");
//! mock.expect(["INCR", "greetings"]).reply(1);
//! let db = mock.builder().connect_blocking()?;
//! assert_eq!(greeting(&db)?, "Hello, Ana!");
//! mock.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Commands that open a connection (HELLO, AUTH, SELECT, CLIENT SETINFO and similar) and PING need no expectation.
//!
//! A transaction is sent as MULTI, its commands and EXEC, and each of them needs an expectation. The server replies
//! `QUEUED` to each command, and to EXEC with the list of their replies:
//!
//! ```
//! use brisk::commands;
//! use brisk::mock::{Mock, MockReply};
//!
//! let mock = Mock::start()?;
//! mock.expect(["MULTI"]).ok();
//! mock.expect(["SET", "k", "v"]).reply(MockReply::status("QUEUED"));
//! mock.expect(["INCR", "n"]).reply(MockReply::status("QUEUED"));
//! mock.expect(["EXEC"]).reply([MockReply::ok(), MockReply::from(7)]);
//! let db = mock.builder().connect_blocking()?;
//! let (is_set, n) = db.transaction((commands::set("k", "v"), commands::incr("n"))).wait()?;
//! assert_eq!((is_set, n), (true, 7));
//! mock.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A mock sends only replies. It cannot publish messages, so it cannot test a [`Subscriber`](crate::Subscriber).

use crate::arg::ToArgs;
use crate::client::{Builder, Client, Lanes};
use crate::poison::lock;
use crate::request::Request;
use brisk_resp::reply::encode;
use brisk_resp::{Double, Protocol, ReplyDecoder, ReplyLimits, ReplyStep, Value};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The maximum number of connections of a mock. Further connections are closed.
const CONNECTIONS_MAX: usize = 1024;
/// The maximum number of faults that are kept.
const FAULTS_MAX: usize = 100;
/// The maximum number of bytes of an argument that are shown in a fault.
const SHOWN_MAX: usize = 64;
const RECEIVE_BYTES: usize = 16 * 1024;

/// A scripted server on a loopback port. See the [module](self).
pub struct Mock {
    address: SocketAddr,
    script: Arc<Mutex<MockScript>>,
}

/// The expected commands, and the faults so far.
#[derive(Default)]
struct MockScript {
    expected: VecDeque<(Vec<Vec<u8>>, Action)>,
    faults: Vec<String>,
    connections: Vec<TcpStream>,
    is_over: bool,
}

enum Action {
    Reply(Value),
    Close,
    Silence,
}

/// Commands that arrived unexpectedly, and expected commands that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    faults: Vec<String>,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mock: {}", self.faults.join("\nmock: "))
    }
}

impl std::error::Error for Unmet {}

/// A reply of a [`Mock`], made of strings, integers, lists, `Option` and [`Value`]. A string becomes a bulk string, as
/// in the reply to GET; for a reply such as that to SET, use [`MockReply::ok`].
#[derive(Clone)]
pub struct MockReply(Value);

/// An expected command that has no reply yet.
#[must_use = "the command is expected only after `reply`, `ok`, `error`, `close` or `silence` is called"]
pub struct Expectation<'a> {
    mock: &'a Mock,
    command: Vec<Vec<u8>>,
}

impl fmt::Debug for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = lock(&self.script);
        f.debug_struct("Mock")
            .field("address", &self.address)
            .field("expected", &script.expected.len())
            .field("faults", &script.faults.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for MockReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockReply").finish_non_exhaustive()
    }
}

impl fmt::Debug for Expectation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expectation")
            .field("mock", &self.mock)
            .field("args", &self.command.len())
            .finish_non_exhaustive()
    }
}

impl Mock {
    /// Starts to listen on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The operating system cannot provide a port or a thread.
    pub fn start() -> io::Result<Mock> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let script = Arc::new(Mutex::new(MockScript::default()));
        let shared = Arc::clone(&script);
        thread::Builder::new().name("brisk-mock".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut script = lock(&shared);
                if script.is_over {
                    return;
                }
                let Ok(kept) = stream.try_clone() else {
                    continue;
                };
                if script.connections.len() == CONNECTIONS_MAX {
                    continue;
                }
                script.connections.push(kept);
                drop(script);
                let shared = Arc::clone(&shared);
                // An error only means that the client has closed the connection.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        })?;
        Ok(Mock { address, script })
    }

    /// The URL that clients connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// A client builder for this server, with one shared connection, so that commands arrive in the order in which
    /// they were sent.
    pub fn builder(&self) -> Builder {
        Client::builder(&self.url()).lanes(Lanes::Count(1))
    }

    /// Expects a command after those that are already expected. The case of its name does not matter.
    pub fn expect(&self, command: impl ToArgs) -> Expectation<'_> {
        let mut request = Request::named("MOCK");
        request.args(command);
        let command = request.arguments().skip(1).map(<[u8]>::to_vec).collect();
        Expectation { mock: self, command }
    }

    /// Closes all connections, and reports whether everything went as expected.
    ///
    /// # Errors
    /// Unexpected commands arrived, or expected commands did not arrive.
    pub fn finish(self) -> Result<(), Unmet> {
        let mut script = lock(&self.script);
        let mut faults = std::mem::take(&mut script.faults);
        let missing = script.expected.iter().map(|(command, _)| format!("no {}", shown(command)));
        faults.extend(missing.take(FAULTS_MAX));
        script.expected.clear();
        if faults.is_empty() { Ok(()) } else { Err(Unmet { faults }) }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let mut script = lock(&self.script);
        script.is_over = true;
        for stream in script.connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(script);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

impl MockReply {
    /// Returns the reply `OK`, as of SET and MULTI.
    #[must_use]
    pub fn ok() -> MockReply {
        MockReply::status("OK")
    }

    /// Returns a status (a simple string), for example `QUEUED`.
    #[must_use]
    pub fn status(text: &str) -> MockReply {
        MockReply(Value::Simple(text.as_bytes().to_vec()))
    }
}

impl Expectation<'_> {
    /// Replies to the command with this value.
    pub fn reply(self, reply: impl Into<MockReply>) {
        self.add(Action::Reply(reply.into().0));
    }

    /// Replies to the command with `OK`, as a server replies to SET.
    pub fn ok(self) {
        self.reply(MockReply::ok());
    }

    /// Replies to the command with this error, which begins with its code: `WRONGTYPE Operation against …`.
    pub fn error(self, text: &str) {
        self.add(Action::Reply(Value::Error(text.as_bytes().to_vec())));
    }

    /// Closes the connection without a reply. The client then cannot know whether the command was executed.
    pub fn close(self) {
        self.add(Action::Close);
    }

    /// Sends no reply, and keeps the connection open.
    pub fn silence(self) {
        self.add(Action::Silence);
    }

    fn add(self, action: Action) {
        lock(&self.mock.script).expected.push_back((self.command, action));
    }
}

impl MockScript {
    fn next_action(&mut self, command: &[Vec<u8>], protocol: &mut Protocol) -> Action {
        if self.expected.front().is_some_and(|(expected, _)| is_same(expected, command))
            && let Some((_, action)) = self.expected.pop_front()
        {
            return action;
        }
        if let Some(reply) = greeting(command, protocol) {
            return Action::Reply(reply);
        }
        let fault = match self.expected.front() {
            Some((expected, _)) => format!("{} in place of {}", shown(command), shown(expected)),
            None => format!("{} after the last expected command", shown(command)),
        };
        let reply = Value::Error(format!("ERR mock: unexpected {fault}").into_bytes());
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(format!("unexpected {fault}"));
        }
        Action::Reply(reply)
    }
}

fn is_same(expected: &[Vec<u8>], command: &[Vec<u8>]) -> bool {
    match (expected, command) {
        ([name, rest @ ..], [other, others @ ..]) => {
            name.eq_ignore_ascii_case(other) && rest == others
        }
        _ => false,
    }
}

/// The reply to a command that opens a connection.
fn greeting(command: &[Vec<u8>], protocol: &mut Protocol) -> Option<Value> {
    let name = command.first()?.to_ascii_uppercase();
    let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
    match name.as_slice() {
        b"PING" => Some(Value::Simple(b"PONG".to_vec())),
        b"AUTH" | b"CLIENT" | b"READONLY" | b"SELECT" => Some(Value::Simple(b"OK".to_vec())),
        b"HELLO" => {
            let is_3 = command.get(1).is_some_and(|version| version == b"3");
            *protocol = if is_3 { Protocol::Resp3 } else { Protocol::Resp2 };
            Some(Value::Map(vec![
                (bulk("server"), bulk("redis")),
                (bulk("version"), bulk("7.0.15")),
                (bulk("proto"), Value::Integer(if is_3 { 3 } else { 2 })),
                (bulk("mode"), bulk("standalone")),
                (bulk("role"), bulk("master")),
            ]))
        }
        _ => None,
    }
}

/// Formats a command for a fault.
fn shown(command: &[Vec<u8>]) -> String {
    let arg = |arg: &Vec<u8>| {
        let more = if arg.len() > SHOWN_MAX { "..." } else { "" };
        format!("{}{more}", arg[..arg.len().min(SHOWN_MAX)].escape_ascii())
    };
    command.iter().map(arg).collect::<Vec<_>>().join(" ")
}

/// Replies to the commands of one connection until it is closed.
fn serve(mut stream: TcpStream, script: &Mutex<MockScript>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A request is an array of bulk strings, so it can be decoded like a reply.
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let (mut unread, mut buffer) = (Vec::new(), vec![0; RECEIVE_BYTES]);
    let mut protocol = Protocol::Resp2;
    loop {
        match decoder.decode(&unread).map_err(io::Error::other)? {
            ReplyStep::Incomplete { consumed, .. } => {
                unread.drain(..consumed);
                let count = stream.read(&mut buffer)?;
                if count == 0 {
                    return Ok(());
                }
                unread.extend_from_slice(&buffer[..count]);
            }
            ReplyStep::Value { consumed, value } => {
                unread.drain(..consumed);
                let command: Vec<Vec<u8>> = match value {
                    Value::Array(args) => {
                        args.iter().map(|arg| arg.as_bytes().unwrap_or_default().to_vec()).collect()
                    }
                    other => return Err(io::Error::other(format!("not a request: {other}"))),
                };
                let action = lock(script).next_action(&command, &mut protocol);
                match action {
                    Action::Reply(reply) => {
                        let mut out = Vec::new();
                        write_value(&mut out, protocol, &reply);
                        stream.write_all(&out)?;
                    }
                    Action::Close => return stream.shutdown(Shutdown::Both),
                    Action::Silence => {}
                }
            }
        }
    }
}

/// Encodes a reply. Attributes are left out.
fn write_value(out: &mut Vec<u8>, protocol: Protocol, value: &Value) {
    let each = |out: &mut Vec<u8>, values: &[Value]| {
        values.iter().for_each(|value| write_value(out, protocol, value));
    };
    match value {
        Value::Simple(text) => encode::simple(out, text),
        Value::Error(text) => encode::error(out, text),
        Value::Integer(number) => encode::integer(out, *number),
        Value::Bulk(bytes) => encode::bulk(out, bytes),
        Value::Null => encode::null(out, protocol),
        Value::NullArray => encode::null_array(out, protocol),
        Value::Double(Double { value, .. }) => encode::double(out, protocol, *value),
        Value::Boolean(is) => encode::boolean(out, protocol, *is),
        Value::BigNumber(digits) => encode::big_number(out, protocol, digits),
        Value::Verbatim { format, text } => encode::verbatim(out, protocol, *format, text),
        Value::Array(values) => {
            encode::array(out, values.len());
            each(out, values);
        }
        Value::Set(values) => {
            encode::set(out, protocol, values.len());
            each(out, values);
        }
        Value::Push(values) => {
            encode::push(out, protocol, values.len());
            each(out, values);
        }
        Value::Map(pairs) => {
            encode::map(out, protocol, pairs.len());
            for (key, value) in pairs {
                write_value(out, protocol, key);
                write_value(out, protocol, value);
            }
        }
        Value::Attributed { value, .. } => write_value(out, protocol, value),
    }
}

impl From<Value> for MockReply {
    fn from(value: Value) -> MockReply {
        MockReply(value)
    }
}

impl From<&str> for MockReply {
    fn from(text: &str) -> MockReply {
        MockReply(Value::Bulk(text.as_bytes().to_vec()))
    }
}

impl From<String> for MockReply {
    fn from(text: String) -> MockReply {
        MockReply(Value::Bulk(text.into_bytes()))
    }
}

impl From<i64> for MockReply {
    fn from(number: i64) -> MockReply {
        MockReply(Value::Integer(number))
    }
}

impl From<i32> for MockReply {
    fn from(number: i32) -> MockReply {
        MockReply(Value::Integer(number.into()))
    }
}

/// `None` is nil.
impl<T: Into<MockReply>> From<Option<T>> for MockReply {
    fn from(value: Option<T>) -> MockReply {
        value.map_or(MockReply(Value::Null), T::into)
    }
}

impl<T: Into<MockReply>> From<Vec<T>> for MockReply {
    fn from(values: Vec<T>) -> MockReply {
        MockReply(Value::Array(values.into_iter().map(|value| value.into().0).collect()))
    }
}

impl<T: Into<MockReply>, const N: usize> From<[T; N]> for MockReply {
    fn from(values: [T; N]) -> MockReply {
        MockReply::from(Vec::from(values))
    }
}

/// A list of two.
impl<A: Into<MockReply>, B: Into<MockReply>> From<(A, B)> for MockReply {
    fn from((a, b): (A, B)) -> MockReply {
        MockReply(Value::Array(vec![a.into().0, b.into().0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use brisk_testkit::wait_until;

    #[test]
    fn a_command_gets_the_reply_that_was_declared_for_it() {
        for protocol in [2, 3] {
            let mock = Mock::start().unwrap();
            mock.expect(["set", "k", "v"]).ok();
            mock.expect(("GET", "k")).reply("v");
            mock.expect(["GET", "none"]).reply(None::<&str>);
            mock.expect(["LRANGE", "l", "0", "-1"]).reply(["a", "b"]);
            mock.expect(["ZPOPMIN", "z"]).reply(("a", "1.5"));
            mock.expect(["INCR", "s"]).error("WRONGTYPE no number");
            let db = mock.builder().protocol(protocol).connect_blocking().unwrap();
            assert!(db.set("k", "v").wait().unwrap());
            assert_eq!(db.get::<String>("k").wait().unwrap().as_deref(), Some("v"));
            assert_eq!(db.get::<String>("none").wait().unwrap(), None);
            assert_eq!(db.lrange::<String>("l", 0, -1).wait().unwrap(), ["a", "b"]);
            assert_eq!(db.zpopmin("z").wait().unwrap(), [("a".to_owned(), 1.5)]);
            let error = db.incr("s").wait().unwrap_err();
            assert_eq!(error.code(), Some(crate::Code::WrongType));
            assert_eq!(mock.finish(), Ok(()));
        }
    }

    #[test]
    fn commands_that_are_unexpected_or_missing_are_reported() {
        let mock = Mock::start().unwrap();
        mock.expect(["GET", "a"]).reply("1");
        let db = mock.builder().connect_blocking().unwrap();
        let error = db.get::<String>("b").wait().unwrap_err();
        assert!(error.message().contains("mock: unexpected GET b in place of GET a"), "{error}");
        let unmet = mock.finish().unwrap_err().to_string();
        assert_eq!(unmet, "mock: unexpected GET b in place of GET a\nmock: no GET a");

        let mock = Mock::start().unwrap();
        let db = mock.builder().connect_blocking().unwrap();
        let _ = db.del("c").wait().unwrap_err();
        let unmet = mock.finish().unwrap_err().to_string();
        assert_eq!(unmet, "mock: unexpected DEL c after the last expected command");
    }

    #[test]
    fn a_connection_that_ends_or_says_nothing_is_what_the_client_sees() {
        let mock = Mock::start().unwrap();
        mock.expect(["INCR", "n"]).close();
        mock.expect(["INCR", "n"]).silence();
        let db = mock.builder().connect_blocking().unwrap();
        let is_lost =
            |error: &crate::Error| error.kind() == Kind::Disconnected && error.maybe_applied();
        let error = db.incr("n").wait().unwrap_err();
        assert!(is_lost(&error), "{error}");
        let waiting = thread::spawn(move || db.incr("n").wait());
        wait_until("the command has arrived", || lock(&mock.script).expected.is_empty());
        assert!(!waiting.is_finished());
        assert_eq!(mock.finish(), Ok(()));
        let error = waiting.join().unwrap().unwrap_err();
        assert!(is_lost(&error), "{error}");
    }
}
