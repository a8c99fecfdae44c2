//! Opens a connection and sets its protocol, login, database and name. All of these are sent in one write, so the setup
//! takes one round trip.

use super::external::auth;
use super::io::{self, ReadSide, Writer};
use crate::address::Address;
use crate::client::sentinel::Destination;
use crate::credentials::{Login, Source};
use crate::error::{Code, Error, Kind, Result};
use crate::observe::ObservedServer;
use crate::poison::lock;
use crate::reply::Reply;
use crate::request::{Request, Traits};
use crate::wait::Home;
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use bytes::BytesMut;
use socket2::{SockRef, TcpKeepalive};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// TCP keep-alive: the idle time before the operating system probes the peer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(2);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_PROBES: u32 = 2;
/// If a host has several addresses and the earlier ones have not replied for this long, the next one is tried as well.
const STAGGER: Duration = Duration::from_millis(250);
/// The maximum number of addresses that are tried per host.
const ADDRESSES_MAX: usize = 16;
/// Any live peer acknowledges bytes within this time, even if a packet was lost.
const UNACKED_MIN: Duration = Duration::from_secs(1);
/// The same limit while the requests without a reply could fill the peer's receive window. It is longer, because the
/// kernel also counts the time in which a live peer reads nothing.
const UNACKED_FULL_MAX: Duration = Duration::from_secs(60);
/// A receive window has room for at least this number of bytes that the peer has not read. Linux begins with 64 KiB.
pub(crate) const WINDOW_BYTES_MIN: usize = 16 << 10;

/// The first bytes of a TLS alert, which a TLS server may send in reply to a request without TLS.
const TLS_ALERT: &[u8] = &[21, 3];

/// How connections are opened and monitored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// The operating system probes the connection after the peer has been silent for this long. `None` turns the probes
    /// off.
    pub(crate) keep_alive: Option<Duration>,
    /// How long a shared connection is idle before it sends PING.
    pub(crate) idle_ping: Option<Duration>,
    /// First and longest pause between two attempts to connect.
    pub(crate) retry: (Duration, Duration),
    /// True if the name and version of this library are sent to the server.
    pub(crate) announces: bool,
    /// The operating system closes a connection whose bytes the peer has not acknowledged for this long. This limit
    /// applies while the requests without a reply fit into the peer's receive window.
    pub(crate) unacked_max: Duration,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            keep_alive: Some(KEEPALIVE_IDLE),
            idle_ping: Some(Duration::from_secs(15)),
            retry: (Duration::from_millis(10), Duration::from_secs(2)),
            announces: true,
            unacked_max: Duration::from_secs(2),
        }
    }
}

impl Tuning {
    /// Sets the limit for unacknowledged bytes such that the operating system notices a dead link before a command
    /// times out, so that a read can be sent again.
    pub(crate) fn limit_unacked(&mut self, silence_max: Duration, timeout: Option<Duration>) {
        let within = timeout.map_or(silence_max, |timeout| timeout * 2 / 3);
        self.unacked_max = within.max(UNACKED_MIN).min(silence_max);
    }

    /// The limit for unacknowledged bytes. `may_fill_window` is true if the requests without a reply have more than
    /// [`WINDOW_BYTES_MIN`] bytes.
    pub(crate) fn unacked_limit(&self, may_fill_window: bool) -> Duration {
        if may_fill_window { self.unacked_max.max(UNACKED_FULL_MAX) } else { self.unacked_max }
    }
}

/// The setup of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The address of the server, if it is fixed.
    pub(crate) address: Address,
    pub(crate) destination: Destination,
    /// The TLS client, if TLS is used.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::tls::TlsClient>,
    pub(crate) credentials: Source,
    pub(crate) db: u32,
    pub(crate) name: Option<String>,
    /// 2 or 3; `None` tries 3 first, and 2 if the server does not support it.
    pub(crate) protocol: Option<u8>,
    pub(crate) connect_timeout: Duration,
    /// The server is a cluster replica that serves reads.
    pub(crate) readonly: bool,
    /// A peer that owes a reply and is silent for this long is disconnected.
    pub(crate) silence_max: Duration,
    pub(crate) tuning: Tuning,
    /// The observers of connections with this setup.
    pub(crate) observed: Option<Arc<ObservedServer>>,
    /// The request that turns on tracking. It is sent after the rest of the setup, requires RESP3, and must succeed.
    pub(crate) tracking: Option<Request>,
    /// The thread that runs this connection, if all connections of the client share one.
    pub(crate) home: Home,
}

/// The server to which a connection was opened.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) address: Address,
    /// The number of Sentinel failovers that were known when the connection was opened.
    pub(crate) switches: u64,
    pub(crate) login: Login,
}

pub(crate) struct Connection {
    pub(crate) origin: Origin,
    pub(crate) reader: ReadSide,
    pub(crate) writer: Writer,
    /// Bytes that arrived after the replies to the setup requests.
    pub(crate) buffer: BytesMut,
    /// The protocol version.
    pub(crate) protocol: u8,
    /// The fields of the server's reply to HELLO.
    pub(crate) server: HashMap<String, String>,
}

impl Setup {
    /// The server, as `Debug` shows it: its address, or the service whose primary Sentinel names.
    pub(crate) fn server(&self) -> String {
        match &self.destination {
            Destination::Fixed => self.address.to_string(),
            Destination::Primary(sentinels) | Destination::Sentinel(sentinels) => {
                format!("{sentinels:?}")
            }
        }
    }
}

/// The server with which a TLS handshake is in progress.
type Handshake = Mutex<Option<Address>>;

/// Opens a connection within the time limit.
pub(crate) async fn open(setup: &Setup) -> Result<Connection> {
    let handshake = Handshake::default();
    let opened = tokio::time::timeout(setup.connect_timeout, introduce(setup, &handshake)).await;
    opened.unwrap_or_else(|_| {
        let limit = setup.connect_timeout;
        if let Some(address) = &*lock(&handshake) {
            let text = format!("TLS: no handshake within {limit:?}: does this port use TLS?");
            let error = std::io::Error::new(ErrorKind::InvalidData, text);
            return Err(Error::socket(&format!("no connection to {address}"), error));
        }
        let text = match &setup.destination {
            Destination::Fixed => format!("no connection to {} within {limit:?}", setup.address),
            _ => format!("no connection to the primary that Sentinel names within {limit:?}"),
        };
        Err(Error::new(Kind::Disconnected, text))
    })
}

async fn introduce(setup: &Setup, handshake: &Handshake) -> Result<Connection> {
    let mut connection = greet(setup, handshake).await?;
    if let Some(tracking) = &setup.tracking {
        connection.track(tracking).await?;
    }
    Ok(connection)
}

async fn greet(setup: &Setup, handshake: &Handshake) -> Result<Connection> {
    let login = setup.credentials.credentials.current().await?;
    let (address, switches) = setup.destination.find(&setup.address).await?;
    let (reader, writer) = socket(setup, &address, handshake).await?;
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

async fn socket(
    setup: &Setup,
    address: &Address,
    handshake: &Handshake,
) -> Result<(ReadSide, Writer)> {
    let failed =
        |error: std::io::Error| Error::socket(&format!("no connection to {address}"), error);
    match address {
        Address::Tcp { host, port, tls } => {
            let found = tokio::net::lookup_host((host.as_str(), *port)).await.map_err(failed)?;
            let stream = first_to_connect(found.take(ADDRESSES_MAX).collect()).await;
            let stream = stream.map_err(failed)?;
            watch(&stream, &setup.tuning).map_err(failed)?;
            if *tls {
                *lock(handshake) = Some(address.clone());
                let secured = secure(setup, host, stream).await;
                *lock(handshake) = None;
                return secured.map_err(failed)?;
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

/// Connects to one of these addresses of a host. The next address is tried as soon as one fails, or if the earlier ones
/// have not replied for [`STAGGER`]. An address that drops packets therefore delays the connection only a little.
async fn first_to_connect(mut addresses: VecDeque<SocketAddr>) -> std::io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut failure = None;
    loop {
        if let Some(address) = addresses.pop_front() {
            attempts.spawn(TcpStream::connect(address));
        }
        if attempts.is_empty() {
            let nowhere = || std::io::Error::new(ErrorKind::NotFound, "the host has no address");
            return Err(failure.unwrap_or_else(nowhere));
        }
        tokio::select! {
            Some(attempt) = attempts.join_next() => match attempt {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(_) => {}
            },
            () = sleep(STAGGER), if !addresses.is_empty() => {}
        }
    }
}

/// Sets the TCP options: no delay, and how the operating system detects a dead peer.
fn watch(stream: &TcpStream, tuning: &Tuning) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    if let Some(idle) = tuning.keep_alive {
        let keepalive = TcpKeepalive::new().with_time(idle);
        #[cfg(any(
            target_os = "linux",
            target_os = "macos",
            target_os = "windows",
            target_os = "freebsd"
        ))]
        let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_PROBES);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(tuning.unacked_max))?;
    Ok(())
}

/// Establishes TLS over a socket.
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

/// The error if TLS is requested but not compiled in.
pub(crate) fn without_tls() -> Error {
    let text = "the address uses TLS, which requires the Cargo feature `tls` of the crate `brisk`";
    Error::new(Kind::Invalid, text)
}

/// Reports whether an error only means that the server is too old to know the command.
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
    /// Sends the setup requests with this protocol version; false if the server does not support it.
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
        let ours = [("LIB-NAME", "brisk"), ("LIB-VER", env!("CARGO_PKG_VERSION"))];
        for (what, value) in ours.into_iter().filter(|_| setup.tuning.announces) {
            let mut info = request("CLIENT SETINFO");
            info.args([what, value]);
            first.push(info);
        }
        if setup.readonly {
            // Replicas outside a cluster serve reads without READONLY.
            first.push(request("READONLY"));
        }
        let role_at = setup.destination.wants_primary().then_some(first.len());
        if role_at.is_some() {
            first.push(request("ROLE"));
        }
        if setup.db != 0 {
            let mut select = request("SELECT");
            select.arg(setup.db);
            first.push(select);
        }
        let replies = self.request(&first).await.map_err(|error| self.suspect_tls(error))?;
        for (at, reply) in replies.iter().enumerate() {
            if role_at == Some(at) {
                self.check_role(reply)?;
            }
            let result = reply.read::<Reply>();
            let is_select = setup.db != 0 && at + 1 == replies.len();
            match result {
                Ok(reply) if at == 0 && version == 3 => {
                    self.server = reply
                        .read::<HashMap<String, brisk_resp::reply::value::Value>>()?
                        .into_iter()
                        .map(|(name, value)| (name, value.to_string()))
                        .collect();
                }
                Ok(_) => {}
                Err(error) if at == 0 && version == 3 && is_unknown(&error) => return Ok(false),
                // The login and SELECT must succeed.
                Err(error) if at < needed || is_select => return Err(error),
                // CLIENT SETINFO and similar requests are optional.
                Err(_) => {}
            }
        }
        Ok(true)
    }

    /// The error of a setup that got no reply, with a hint if the server may use TLS and the client does not.
    fn suspect_tls(&self, error: Error) -> Error {
        if !matches!(self.writer, Writer::Tcp(_)) {
            return error;
        }
        if self.buffer.starts_with(TLS_ALERT) {
            let text = format!(
                "no connection to {}: this port uses TLS, use rediss://",
                self.origin.address
            );
            return Error::new(Kind::Tls, text);
        }
        match error.kind() {
            Kind::Disconnected => error.with_note("if this port uses TLS, use rediss://"),
            _ => error,
        }
    }

    /// Checks the server's role. A former primary may not know yet that it has been demoted, and a new primary may not
    /// know that it has been promoted.
    fn check_role(&self, role: &Reply) -> Result<()> {
        let mut reader = role.reader();
        let is_primary =
            reader.part().and_then(|_| Ok(reader.part()?.as_bytes() == Some(b"master")));
        match is_primary {
            Ok(true) => Ok(()),
            // If the user may not execute ROLE, a wrong role shows up with the first write.
            Err(error) if error.code() == Some(Code::NoPerm) => Ok(()),
            Err(error) => Err(error),
            Ok(false) => {
                let text =
                    format!("{} is not the primary (yet, or any longer)", self.origin.address);
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
    pub(crate) async fn request(&mut self, requests: &[Request]) -> Result<Vec<Reply>> {
        let mut out = Vec::new();
        requests.iter().for_each(|request| request.encode(&mut out));
        let lost = |error: std::io::Error| Error::socket("", error);
        // A server that rejects the connection may have sent its reason, so read even if the write failed.
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
                let text = "the server closed the connection before it replied";
                return Err(Error::new(Kind::Disconnected, text));
            }
        }
        Ok(replies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};

    /// A listener that accepts no more connections: a client that connects to it waits for a reply.
    struct BlackHole {
        address: SocketAddr,
        _listener: Socket,
        _held: Vec<std::net::TcpStream>,
    }

    impl BlackHole {
        fn new() -> BlackHole {
            let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
            listener.listen(0).unwrap();
            let address = listener.local_addr().unwrap().as_socket().unwrap();
            let mut held = Vec::new();
            // The listener's queue is full once an attempt to connect times out.
            while let Ok(stream) =
                std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100))
            {
                held.push(stream);
                assert!(held.len() < 64, "the system queues no more than some");
            }
            BlackHole { address, _listener: listener, _held: held }
        }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn an_address_that_drops_packets_does_not_delay_the_next_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        let hole = BlackHole::new();
        let closed = SocketAddr::from(([127, 0, 0, 1], 1));
        run(async {
            for addresses in [vec![hole.address, good], vec![closed, hole.address, closed, good]] {
                let connected = first_to_connect(addresses.into()).await.unwrap();
                assert_eq!(connected.peer_addr().unwrap(), good);
            }
            let rejected = first_to_connect(vec![closed, closed].into()).await.unwrap_err();
            assert_eq!(rejected.kind(), ErrorKind::ConnectionRefused);
            let nowhere = first_to_connect(VecDeque::new()).await.unwrap_err();
            assert_eq!(nowhere.kind(), ErrorKind::NotFound);
        });
    }

    #[test]
    fn the_system_gives_up_a_link_before_a_command_times_out() {
        let seconds = Duration::from_secs_f64;
        for (silence, timeout, wanted) in [
            (4.0, Some(3.0), 2.0),
            (4.0, Some(30.0), 4.0),
            (4.0, None, 4.0),
            // A lost packet is retransmitted within this time.
            (4.0, Some(0.1), 1.0),
            (0.5, Some(3.0), 0.5),
        ] {
            let mut tuning = Tuning::default();
            tuning.limit_unacked(seconds(silence), timeout.map(seconds));
            assert_eq!(tuning.unacked_max, seconds(wanted));
        }
    }
}
