//! One test body for every protocol and I/O back end.

use crate::conn::Conn;
use crate::server::{Launch, Server, subject_is_redis};
use crate::skip::skipped;
use std::fmt;

/// One cell of the matrix, with a running server.
#[derive(Debug)]
pub struct Config {
    server: Server,
    resp: u8,
}

impl Config {
    /// A connection that speaks the cell's protocol.
    #[track_caller]
    pub fn connect(&self) -> Conn {
        let mut conn = self.server.connect();
        if self.resp == 3 {
            conn.hello(3);
        }
        conn
    }

    /// `N` connections that speak the cell's protocol.
    #[track_caller]
    pub fn connections<const N: usize>(&self) -> [Conn; N] {
        std::array::from_fn(|_| self.connect())
    }

    /// 2 or 3.
    pub const fn resp(&self) -> u8 {
        self.resp
    }
}

impl std::ops::Deref for Config {
    type Target = Server;
    fn deref(&self) -> &Server {
        &self.server
    }
}

/// An I/O back end of our server, as the directive `io-backend` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Auto,
    Epoll,
    IoUring,
    /// The server's own choice. A real Redis has no other back end.
    Own,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Auto => "auto",
            Backend::Epoll => "epoll",
            Backend::IoUring => "io_uring",
            Backend::Own => "its own back end",
        })
    }
}

fn backends() -> &'static [Backend] {
    if subject_is_redis() {
        &[Backend::Own]
    } else {
        &[Backend::Auto, Backend::Epoll, Backend::IoUring]
    }
}

/// Every back end and every protocol, but not every pair: a back end handles bytes, and does not know the protocol.
fn cells() -> &'static [(Backend, u8)] {
    if subject_is_redis() {
        &[(Backend::Own, 2), (Backend::Own, 3)]
    } else {
        &[(Backend::Auto, 2), (Backend::Auto, 3), (Backend::Epoll, 2), (Backend::IoUring, 3)]
    }
}

fn launched(backend: Backend, launch: &dyn Fn() -> Launch) -> Option<Server> {
    let launch = match backend {
        Backend::Own => launch(),
        named => launch().set("io-backend", &named.to_string()),
    };
    match launch.try_start() {
        Ok(server) => Some(server),
        // Containers often forbid io_uring. The server then does not start if io_uring is forced.
        Err(error)
            if backend == Backend::IoUring && error.contains("io_uring is not available") =>
        {
            skipped("no io_uring on this machine");
            None
        }
        Err(error) => panic!("with {backend}: {error}"),
    }
}

/// Runs `body` for both protocols and all back ends, each time with a fresh server.
#[track_caller]
pub fn each_config(body: impl Fn(&Config)) {
    each_config_of(Launch::subject, body);
}

/// Like [`each_config`], with servers that `launch` configures.
#[track_caller]
pub fn each_config_of(launch: impl Fn() -> Launch, body: impl Fn(&Config)) {
    for &(backend, resp) in cells() {
        let Some(server) = launched(backend, &launch) else { continue };
        eprintln!("with RESP{resp} over {backend}:"); // shown only when the test fails
        body(&Config { server, resp });
    }
}

/// Runs `body` for each I/O back end, for behavior that does not depend on the protocol.
#[track_caller]
pub fn each_backend(launch: impl Fn() -> Launch, body: impl Fn(&mut Server)) {
    for &backend in backends() {
        let Some(mut server) = launched(backend, &launch) else { continue };
        eprintln!("over {backend}:");
        body(&mut server);
    }
}

/// Runs `body` for RESP2 and RESP3 on the server's preferred back end.
#[track_caller]
pub fn each_protocol(body: impl Fn(&Config)) {
    for resp in [2, 3] {
        eprintln!("with RESP{resp}:");
        body(&Config { server: Launch::subject().start(), resp });
    }
}
