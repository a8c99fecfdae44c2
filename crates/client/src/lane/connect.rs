//! Opening a connection and making it what it has to be: protocol, login, database, name. All of it goes out
//! with one write, so that a new connection costs one round trip.

use super::attend::auth;
use super::io::{self, ReadSide, Writer};
use crate::address::Address;
use crate::client::sentinel::Place;
use crate::credentials::{Login, Source};
use crate::error::{Code, Error, Kind, Result};
use crate::observe::Watched;
use crate::reply::Reply;
use crate::request::{Request, Traits};
use crate::wait::Home;
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
    /// Where the server is, if its place is a fixed one.
    pub(crate) address: Address,
    pub(crate) place: Place,
    /// How TLS is spoken, where it is.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::tls::TlsClient>,
    pub(crate) credentials: Source,
    pub(crate) db: u32,
    pub(crate) name: Option<String>,
    /// 2 or 3; else 3, and 2 if the server does not know it.
    pub(crate) protocol: Option<u8>,
    pub(crate) connect_timeout: Duration,
    /// Its server is a replica of a cluster, and is to answer reads.
    pub(crate) readonly: bool,
    /// Unacknowledged bytes for so long, and the system gives the connection up.
    pub(crate) silence_max: Duration,
    /// Who wants to know of its connections.
    pub(crate) watched: Option<Arc<Watched>>,
    /// Sent when all that is done, in RESP3; it has to succeed.
    pub(crate) tracking: Option<Request>,
    /// The thread that runs it, if all connections of the client have the same.
    pub(crate) home: Home,
}

/// How a connection was made.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) address: Address,
    /// As of which switch of sentinels.
    pub(crate) switches: u64,
    pub(crate) login: Login,
}

pub(crate) struct Connection {
    pub(crate) origin: Origin,
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
        let limit = setup.connect_timeout;
        let text = match &setup.place {
            Place::Fixed => format!("no connection to {} within {limit:?}", setup.address),
            _ => format!("no connection to who sentinels name within {limit:?}"),
        };
        Err(Error::new(Kind::Disconnected, text))
    })
}

async fn introduce(setup: &Setup) -> Result<Connection> {
    let mut connection = greet(setup).await?;
    if let Some(tracking) = &setup.tracking {
        connection.track(tracking).await?;
    }
    Ok(connection)
}

async fn greet(setup: &Setup) -> Result<Connection> {
    let login = setup.credentials.credentials.current().await?;
    let (address, switches) = setup.place.find(&setup.address).await?;
    let (reader, writer) = socket(setup, &address).await?;
    let origin = Origin { address, switches, login };
    let (buffer, server) = (BytesMut::new(), HashMap::new());
    let mut connection = Connection { origin, reader, writer, buffer, protocol: 3, server };
    if setup.protocol != Some(2) && connection.begin(setup, 3).await? {
        return Ok(connection);
    }
    connection.protocol = 2;
    connection.begin(setup, 2).await?;
    Ok(connection)
}

async fn socket(setup: &Setup, address: &Address) -> Result<(ReadSide, Writer)> {
    let failed =
        |error: std::io::Error| Error::socket(&format!("no connection to {address}"), error);
    match address {
        Address::Tcp { host, port, tls } => {
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
            if *tls {
                return secure(setup, host, stream).await.map_err(failed)?;
            }
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

/// TLS over a socket.
#[cfg(feature = "tls")]
async fn secure(
    setup: &Setup,
    host: &str,
    stream: TcpStream,
) -> std::io::Result<Result<(ReadSide, Writer)>> {
    let Some(tls) = &setup.tls else { return Ok(Err(without_tls())) };
    match tls.session(host) {
        Ok(session) => io::of_tls(stream, session).await.map(Ok),
        Err(error) => Ok(Err(error)),
    }
}

#[cfg(not(feature = "tls"))]
async fn secure(_: &Setup, _: &str, _: TcpStream) -> std::io::Result<Result<(ReadSide, Writer)>> {
    Ok(Err(without_tls()))
}

/// TLS is asked for, and not there.
pub(crate) fn without_tls() -> Error {
    let text =
        "this is an address with TLS, for which the crate `brisk` needs its cargo feature `tls`";
    Error::new(Kind::Invalid, text)
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
        let login = self.origin.login.clone();
        let mut first = Vec::new();
        if version == 3 {
            let mut hello = request("HELLO");
            hello.arg(3);
            if let Some(password) = &login.password {
                let user = login.user.as_deref().unwrap_or("default");
                hello.args(["AUTH", user, &password.0]);
            }
            first.push(hello);
        } else if login.password.is_some() {
            first.push(auth(&login));
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
        if setup.readonly {
            // Outside of clusters replicas answer without it.
            first.push(request("READONLY"));
        }
        let role_at = setup.place.wants_primary().then_some(first.len());
        if role_at.is_some() {
            first.push(request("ROLE"));
        }
        if setup.db != 0 {
            let mut select = request("SELECT");
            select.arg(setup.db);
            first.push(select);
        }
        let replies = self.ask(&first).await?;
        for (at, reply) in replies.iter().enumerate() {
            if role_at == Some(at) {
                self.check_role(reply)?;
            }
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

    /// Who was the primary may not know yet that it is one no more; and the other way round.
    fn check_role(&self, role: &Reply) -> Result<()> {
        let mut reader = role.reader();
        let told = reader.part().and_then(|_| Ok(reader.part()?.as_bytes() == Some(b"master")));
        match told {
            Ok(true) => Ok(()),
            // A user who may not ask finds out when he writes.
            Err(error) if error.code() == Some(Code::NoPerm) => Ok(()),
            Err(error) => Err(error),
            Ok(false) => {
                let text = format!("{} is not the primary yet, or no more", self.origin.address);
                Err(Error::new(Kind::Disconnected, text))
            }
        }
    }

    pub(crate) async fn write_all(&self, bytes: &[u8]) -> Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let written = poll_fn(|cx| self.writer.poll_write(cx, &bytes[sent..])).await;
            sent += written.map_err(|error| Error::socket("", error))?;
        }
        Ok(())
    }

    /// Sends requests and waits for all replies.
    pub(crate) async fn ask(&mut self, requests: &[Request]) -> Result<Vec<Reply>> {
        let mut out = Vec::new();
        requests.iter().for_each(|request| request.encode(&mut out));
        let lost = |error: std::io::Error| Error::socket("", error);
        // A server that refuses has said why already, perhaps: then there is something to be read all the same.
        let written = self.write_all(&out).await;
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
                let mut errors = replies.iter().filter_map(|reply| reply.read::<()>().err());
                if let Some(error) = errors.find(|error| !is_unknown(error)) {
                    return Err(error);
                }
                written?;
                let text = "the server closed the connection before it answered";
                return Err(Error::new(Kind::Disconnected, text));
            }
        }
        Ok(replies)
    }
}
