//! What a link's thread has of the world outside of the server: time, threads, connections, and how it
//! waits. In unit tests these are the simulation's, which decides when what happens.

use brisk_node::replication::incoming::Stream;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

#[cfg(not(test))]
pub(super) use std::{net::TcpStream, sync::mpsc::sync_channel, thread, time::Instant};

#[cfg(test)]
pub(super) use crate::simulation::outside::{Instant, TcpStream, sync_channel, thread};

/// Waits until there is room for more of the stream, at most so long; whether there is.
pub(super) fn wait_for_room(stream: &Stream, most: Duration) -> bool {
    wait(most, |most| stream.wait_for_room(most))
}

/// Waits until everything that came of the stream was executed, at most so long; whether it was.
pub(super) fn wait_for_end(stream: &Stream, most: Duration) -> bool {
    wait(most, |most| stream.wait_for_end(most))
}

#[cfg(not(test))]
fn wait(most: Duration, waits: impl Fn(Duration) -> bool) -> bool {
    waits(most)
}

#[cfg(test)]
fn wait(most: Duration, waits: impl Fn(Duration) -> bool) -> bool {
    crate::simulation::outside::wait(most, || waits(Duration::ZERO))
}

/// Connects from the address `source`.
#[cfg(not(test))]
pub(super) fn connect_from(
    source: IpAddr,
    to: SocketAddr,
    timeout: Duration,
) -> io::Result<TcpStream> {
    use rustix::net::sockopt::Timeout;
    use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    // As in Redis: if that is no address of this machine, the system chooses one.
    let _ = net::bind(&socket, &SocketAddr::new(source, 0));
    net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

#[cfg(test)]
pub(super) fn connect_from(_: IpAddr, to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&to, timeout)
}
