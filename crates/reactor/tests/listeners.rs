//! Listening sockets: ports in use, options that connections inherit, Unix paths.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_reactor::{
    Accept, BackendChoice, CloseReason, Control, Handler, Listener, PeerAddr, Reactor,
    ReactorConfig, TcpOptions, Token, probe_tcp, uring_available,
};
use socket2::SockRef;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Keeps its connections and ignores their input.
#[derive(Default)]
struct Idle {
    tokens: Vec<(Token, usize)>,
    failures: usize,
    /// The events in order: `a`ccepted, `r`eceived.
    events: String,
}

impl Handler for Idle {
    fn accepted(&mut self, _: &mut Control, token: Token, listener: usize) -> Accept {
        self.tokens.push((token, listener));
        self.events.push('a');
        Accept::Keep
    }

    fn received(&mut self, _: &mut Control, _: Token, _: &[u8]) {
        self.events.push('r');
    }

    fn closed(&mut self, _: &mut Control, _: Token, _: CloseReason) {}

    fn accept_failed(&mut self, _: &mut Control, _: usize, _: &std::io::Error) {
        self.failures += 1;
    }
}

fn each_reactor(test: impl Fn(Reactor)) {
    for backend in [BackendChoice::Epoll, BackendChoice::BatchedEpoll] {
        test(Reactor::new(&ReactorConfig { backend }).unwrap());
    }
    if uring_available().is_ok() {
        test(Reactor::new(&ReactorConfig { backend: BackendChoice::Uring }).unwrap());
    }
}

fn poll_until(reactor: &mut Reactor, idle: &mut Idle, count: usize) {
    for _ in 0..2000 {
        if idle.tokens.len() >= count {
            return;
        }
        reactor.poll(idle, Some(Duration::from_millis(10))).unwrap();
    }
    panic!("{} of {count} connections came", idle.tokens.len());
}

#[test]
fn a_port_shared_among_workers_is_seen_as_used_by_others() {
    let options = TcpOptions::default();
    let first = Listener::tcp(([127, 0, 0, 1], 0).into(), &options).unwrap();
    let address = first.local_addr().unwrap();
    let second = Listener::tcp(address, &options).unwrap();
    let error = probe_tcp(address).unwrap_err();
    assert!(error.is_in_use());
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {address}: bind: Address already in use (os error 98)")
    );
    drop((first, second));
    probe_tcp(address).unwrap();
}

#[test]
fn accepted_connections_inherit_no_delay_and_keep_alive() {
    each_reactor(|mut reactor| {
        let options = TcpOptions { keepalive_s: 60, ..TcpOptions::default() };
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), &options).unwrap();
        let address = listener.local_addr().unwrap();
        reactor.listen(listener).unwrap();
        let mut idle = Idle::default();
        let first = TcpStream::connect(address).unwrap();
        poll_until(&mut reactor, &mut idle, 1);
        reactor.set_keepalive(0).unwrap();
        let second = TcpStream::connect(address).unwrap();
        poll_until(&mut reactor, &mut idle, 2);
        let io = reactor.io();
        let (with, without) = (idle.tokens[0].0, idle.tokens[1].0);
        let fd = io.fd(with).unwrap();
        let socket = SockRef::from(&fd);
        assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(60));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(20));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        let fd = io.fd(without).unwrap();
        assert!(!SockRef::from(&fd).keepalive().unwrap());
        assert_eq!(io.peer_addr(with), PeerAddr::Tcp(first.local_addr().unwrap()));
        assert_eq!(io.local_addr(with), PeerAddr::Tcp(address));
        assert_eq!(io.connection_count(), 2);
        drop(second);
    });
}

#[test]
fn a_round_accepts_as_many_as_allowed_and_serves_the_others_first() {
    const NEW: usize = 20;
    each_reactor(|mut reactor| {
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), &TcpOptions::default()).unwrap();
        let address = listener.local_addr().unwrap();
        let index = reactor.listen(listener).unwrap();
        reactor.io().limit_accepts(index, 3);
        reactor.io().limit_accepts(index + 1, 3); // no such listener: nothing happens
        let mut idle = Idle::default();
        let mut first = TcpStream::connect(address).unwrap();
        poll_until(&mut reactor, &mut idle, 1);
        let new: Vec<_> = (0..NEW).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut most = 0;
        while idle.tokens.len() < 1 + NEW {
            let before = idle.tokens.len();
            first.write_all(b"x").unwrap();
            idle.events.clear();
            poll_until(&mut reactor, &mut idle, before + 1);
            assert!(!idle.events.contains("ar"), "{}", idle.events);
            most = most.max(idle.tokens.len() - before);
        }
        assert_eq!(most, 3);
        drop(new);
    });
}

#[test]
fn ipv4_and_ipv6_listen_side_by_side_and_listeners_can_be_removed() {
    each_reactor(|mut reactor| {
        let options = TcpOptions::default();
        let four = Listener::tcp(([127, 0, 0, 1], 0).into(), &options).unwrap();
        let address = four.local_addr().unwrap();
        let mut expected = vec![reactor.listen(four).unwrap()];
        let mut clients = vec![TcpStream::connect(address).unwrap()];
        let six = SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()));
        if let Ok(six_listener) = Listener::tcp(six, &options) {
            expected.push(reactor.listen(six_listener).unwrap());
            clients.push(TcpStream::connect(six).unwrap());
        }
        let mut idle = Idle::default();
        poll_until(&mut reactor, &mut idle, clients.len());
        let mut listeners: Vec<_> = idle.tokens.iter().map(|(_, listener)| *listener).collect();
        listeners.sort_unstable();
        assert_eq!(listeners, expected);
        drop(reactor.unlisten(expected[0]).unwrap());
        assert!(reactor.unlisten(expected[0]).is_none());
        for _ in 0..3 {
            reactor.poll(&mut idle, Some(Duration::ZERO)).unwrap();
        }
        assert!(TcpStream::connect(address).is_err());
        assert_eq!(reactor.io().connection_count(), clients.len());
    });
}

/// Stopping a listener is not reported as a failed accept, and the reactor does not retry it.
#[test]
fn a_stopped_listener_gets_no_connections_and_is_not_reported() {
    each_reactor(|mut reactor| {
        let mut idle = Idle::default();
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), &TcpOptions::default()).unwrap();
        let (address, stopper) = (listener.local_addr().unwrap(), listener.stopper());
        let index = reactor.listen(listener).unwrap();
        let _client = TcpStream::connect(address).unwrap();
        poll_until(&mut reactor, &mut idle, 1);
        let accepts = reactor.io().counters().accepts;
        stopper.stop();
        for _ in 0..10 {
            reactor.poll(&mut idle, Some(Duration::from_millis(1))).unwrap();
        }
        let since = reactor.io().counters().accepts - accepts;
        assert!(since <= 1, "{since} accepts after the listener was stopped");
        assert!(TcpStream::connect(address).is_err());
        assert_eq!((idle.tokens.len(), idle.failures), (1, 0));
        assert_eq!(reactor.io().connection_count(), 1);
        assert!(!stopper.is_closed());
        drop(reactor.unlisten(index).unwrap());
        assert!(stopper.is_closed());
    });
}

#[test]
fn a_unix_socket_replaces_files_but_not_directories() {
    let name = format!("brisk-reactor-file-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir(&path).unwrap();
    let error = Listener::unix(&path, None, 16).unwrap_err();
    assert!(error.is_in_use() && error.to_string().contains(path.to_str().unwrap()));
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "of somebody").unwrap();
    let first = Listener::unix(&path, None, 16).unwrap();
    let second = Listener::unix(&path, None, 16).unwrap(); // as after a crash
    assert!(first.try_clone().is_ok() && second.as_fd().try_clone_to_owned().is_ok());
    std::fs::remove_file(&path).unwrap();
}
