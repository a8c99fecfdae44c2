//! Tests the behavior when no descriptor is free. It runs in a process of its own because it takes
//! all descriptors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use brisk_reactor::{
    Accept, BackendChoice, CloseReason, Control, Handler, Listener, Reactor, ReactorConfig,
    TcpOptions, Token, uring_available,
};
use std::fs::File;
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Counting {
    accepted: usize,
    failed: u64,
}

impl Handler for Counting {
    fn accepted(&mut self, _: &mut Control, _: Token, _: usize) -> Accept {
        self.accepted += 1;
        Accept::Keep
    }

    fn received(&mut self, _: &mut Control, _: Token, _: &[u8]) {}

    fn closed(&mut self, _: &mut Control, _: Token, _: CloseReason) {}

    fn accept_failed(&mut self, _: &mut Control, _: usize, error: &std::io::Error) {
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        self.failed += 1;
    }
}

#[test]
fn without_descriptors_the_listener_pauses_until_some_are_free() {
    for backend in [BackendChoice::Epoll, BackendChoice::BatchedEpoll, BackendChoice::Uring] {
        if backend == BackendChoice::Uring && uring_available().is_err() {
            continue;
        }
        let mut reactor = Reactor::new(&ReactorConfig { backend }).unwrap();
        let listener = Listener::tcp(([127, 0, 0, 1], 0).into(), &TcpOptions::default()).unwrap();
        let address = listener.local_addr().unwrap();
        reactor.listen(listener).unwrap();
        let mut handler = Counting::default();
        reactor.poll(&mut handler, Some(Duration::ZERO)).unwrap();
        // The client's own descriptor is the last one available.
        let mut hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        hoard.pop();
        let client = TcpStream::connect(address).unwrap();

        let rounds_before = reactor.io().counters().rounds;
        let deadline = Instant::now() + Duration::from_secs(20);
        while handler.failed < 3 {
            assert!(Instant::now() < deadline);
            reactor.poll(&mut handler, Some(Duration::from_secs(1))).unwrap();
        }
        // There are two suspensions between three failures. A loop without suspensions would have
        // made thousands of rounds.
        let rounds = reactor.io().counters().rounds - rounds_before;
        assert!(rounds < 30, "{rounds}");
        assert_eq!(handler.accepted, 0);

        drop(hoard);
        while handler.accepted == 0 {
            assert!(Instant::now() < deadline);
            reactor.poll(&mut handler, Some(Duration::from_secs(1))).unwrap();
        }
        drop(client);
    }
}
