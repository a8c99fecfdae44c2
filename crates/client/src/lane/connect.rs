//! Opening a connection and making it what it has to be: protocol, login, database, name. All of it goes out
//! with one write, so that a new connection costs one round trip.

use super::io::{self, ReadSide, Writer};
use crate::address::{Address, Secret};
use crate::error::{Code, Error, Kind, Result};
use crate::observe::Watched;
use crate::reply::Reply;
use crate::request::{Request, Traits};
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use bytes::BytesMut;
use socket2::{SockRef, TcpKeepalive};
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// A peer that is gone is noticed by the system: so long without a sign of it, then probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(2);
const KEEPALIVE_EACH: Duration = Duration::from_secs(1);
const KEEPALIVE_PROBES: u32 = 2;

/// What a connection has to be.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) address: Address,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) db: u32,
    pub(crate) name: Option<String>,
    /// 2 or 3; else 3, and 2 if the server does not know it.
    pub(crate) protocol: Option<u8>,
    pub(crate) connect_timeout: Duration,
    /// Unacknowledged bytes for so long, and the system gives the connection up.
    pub(crate) silence_max: Duration,
    /// Who wants to know of its connections.
    pub(crate) watched: Option<Arc<Watched>>,
}

pub(crate) struct Connection {
    pub(crate) reader: ReadSide,
    pub(crate) writer: Writer,
    /// What came behind the replies to the first requests.
    pub(crate) buffer: BytesMut,
    /// The protocol's version.
    pub(crate) protocol: u8,
    /// What the server says of itself.
    pub(crate) server: HashMap<String, String>,
}

/// Connects, within the time for that.
pub(crate) async fn open(setup: &Setup) -> Result<Connection> {
    let opened = tokio::time::timeout(setup.connect_timeout, introduce(setup)).await;
    opened.unwrap_or_else(|_| {
        let (address, limit) = (&setup.address, setup.connect_timeout);
        let text = format!("no connection to {address} within {limit:?}");
        Err(Error::new(Kind::Disconnected, text))
    })
}

async fn introduce(setup: &Setup) -> Result<Connection> {
    let (reader, writer) = socket(setup).await?;
    let mut connection =
        Connection { reader, writer, buffer: BytesMut::new(), protocol: 3, server: HashMap::new() };
    if setup.protocol != Some(2) && connection.begin(setup, 3).await? {
        return Ok(connection);
    }
    connection.protocol = 2;
    connection.begin(setup, 2).await?;
    Ok(connection)
}

async fn socket(setup: &Setup) -> Result<(ReadSide, Writer)> {
    let failed = |error: std::io::Error| {
        let text = format!("no connection to {}: {error}", setup.address);
        Error::new(Kind::Disconnected, text)
    };
    match &setup.address {
        Address::Tcp { host, port, tls } => {
            if *tls {
                let text = "TLS is not spoken yet";
                return Err(Error::new(Kind::Invalid, text));
            }
            let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            let socket = SockRef::from(&stream);
            let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
            #[cfg(any(
                target_os = "linux",
                target_os = "macos",
                target_os = "windows",
                target_os = "freebsd"
            ))]
            let keepalive = keepalive.with_interval(KEEPALIVE_EACH).with_retries(KEEPALIVE_PROBES);
            socket.set_tcp_keepalive(&keepalive).map_err(failed)?;
            #[cfg(target_os = "linux")]
            socket.set_tcp_user_timeout(Some(setup.silence_max)).map_err(failed)?;
            Ok(io::of_tcp(stream))
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await.map_err(failed)?;
            Ok(io::of_unix(stream))
        }
        #[cfg(not(unix))]
        Address::Unix(_) => Err(Error::new(Kind::Invalid, "no Unix sockets on this system")),
    }
}

/// Whether it is an error that only says that the server is older.
fn is_unknown(error: &Error) -> bool {
    match error.code() {
        Some(Code::NoProto) => true,
        Some(Code::Err) => {
            let text = error.message().to_ascii_lowercase();
            text.contains("unknown command") || text.contains("unknown subcommand")
        }
        _ => false,
    }
}

impl Connection {
    /// Sends the first requests of this version; false if the server does not know it.
    async fn begin(&mut self, setup: &Setup, version: u8) -> Result<bool> {
        let request = |name: &str| Request::new(name, Traits::default());
        let user = setup.user.as_deref();
        let mut first = Vec::new();
        if version == 3 {
            let mut hello = request("HELLO");
            hello.arg(3);
            if let Some(password) = &setup.password {
                hello.args(["AUTH", user.unwrap_or("default"), &password.0]);
            }
            first.push(hello);
        } else if let Some(password) = &setup.password {
            let mut auth = request("AUTH");
            user.iter().for_each(|user| auth.arg(user));
            auth.arg(&password.0);
            first.push(auth);
        }
        let needed = first.len();
        if let Some(name) = &setup.name {
            let mut named = request("CLIENT SETNAME");
            named.arg(name);
            first.push(named);
        }
        for (what, value) in [("LIB-NAME", "brisk"), ("LIB-VER", env!("CARGO_PKG_VERSION"))] {
            let mut told = request("CLIENT SETINFO");
            told.args([what, value]);
            first.push(told);
        }
        if setup.db != 0 {
            let mut select = request("SELECT");
            select.arg(setup.db);
            first.push(select);
        }
        let replies = self.ask(&first).await?;
        for (at, reply) in replies.iter().enumerate() {
            let answer = reply.read::<Reply>();
            let is_select = setup.db != 0 && at + 1 == replies.len();
            match answer {
                Ok(reply) if at == 0 && version == 3 => {
                    self.server = reply
                        .read::<HashMap<String, brisk_resp::reply::value::Value>>()?
                        .into_iter()
                        .map(|(name, value)| (name, value.to_string()))
                        .collect();
                }
                Ok(_) => {}
                Err(error) if at == 0 && version == 3 && is_unknown(&error) => return Ok(false),
                // A server without users takes the password alone.
                Err(error) if at < needed || is_select => return Err(error),
                // Who we are is good to know, and no more.
                Err(_) => {}
            }
        }
        Ok(true)
    }

    pub(crate) async fn write_all(&self, bytes: &[u8]) -> Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let written = poll_fn(|cx| self.writer.poll_write(cx, &bytes[sent..])).await;
            sent += written.map_err(|error| Error::new(Kind::Disconnected, error.to_string()))?;
        }
        Ok(())
    }

    /// Sends requests and waits for all replies.
    pub(crate) async fn ask(&mut self, requests: &[Request]) -> Result<Vec<Reply>> {
        let mut out = Vec::new();
        requests.iter().for_each(|request| request.encode(&mut out));
        let lost = |error: std::io::Error| Error::new(Kind::Disconnected, error.to_string());
        self.write_all(&out).await?;
        let mut scanner = FrameScanner::new(ReplyLimits::default());
        let mut replies = Vec::new();
        while replies.len() < requests.len() {
            if let Scan::Whole(len) = scanner.scan(&self.buffer)? {
                replies.push(Reply::cut(&mut self.buffer, len));
                continue;
            }
            self.buffer.reserve(1024);
            let read = poll_fn(|cx| self.reader.poll_read(cx, &mut self.buffer)).await;
            if read.map_err(lost)? == 0 {
                // A server that refuses says why, and closes.
                for reply in &replies {
                    reply.read::<()>()?;
                }
                let text = "the server closed the connection before it answered";
                return Err(Error::new(Kind::Disconnected, text));
            }
        }
        Ok(replies)
    }
}
