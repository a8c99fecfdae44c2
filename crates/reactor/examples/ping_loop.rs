//! The minimum work of an event loop: it replies +PONG to every request. Any additional cost of a
//! server is the server's own.
//!
//! `ping_loop [--port N] [--backend epoll+io_uring|epoll|io_uring]`. The program does not parse
//! requests. The first byte of a connection shows whether requests are arrays (one request per `*`,
//! so arguments must not contain one) or lines (one request per `\n`). That is enough for load
//! generators that send PING, and for the CONFIG GET that some of them send first.

use brisk_reactor::{
    Accept, BackendChoice, CloseReason, Control, Handler, Listener, Reactor, ReactorConfig,
    TcpOptions, Token,
};
use std::process::ExitCode;

#[derive(Default)]
struct Pong {
    /// By connection index: the byte that marks one request, 0 before the first receive.
    counted: Vec<u8>,
}

impl Handler for Pong {
    fn accepted(&mut self, _: &mut Control, token: Token, _: usize) -> Accept {
        if self.counted.len() <= token.index() {
            self.counted.resize(token.index() + 1, 0);
        }
        self.counted[token.index()] = 0;
        Accept::Keep
    }

    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]) {
        let counted = &mut self.counted[token.index()];
        if *counted == 0 {
            *counted = if bytes.first() == Some(&b'*') { b'*' } else { b'\n' };
        }
        let output = io.output(token);
        for _ in bytes.iter().filter(|byte| *byte == counted) {
            output.extend_from_slice(b"+PONG\r\n");
        }
        io.send(token);
    }

    fn closed(&mut self, _: &mut Control, _: Token, _: CloseReason) {}
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut port = 7000;
    let mut config = ReactorConfig::default();
    let mut args = std::env::args().skip(1);
    while let Some(option) = args.next() {
        let value = args.next().ok_or_else(|| format!("{option} needs a value"))?;
        match (option.as_str(), value.as_str()) {
            ("--port", number) => port = number.parse()?,
            ("--backend", "epoll+io_uring") => config.backend = BackendChoice::BatchedEpoll,
            ("--backend", "epoll") => config.backend = BackendChoice::Epoll,
            ("--backend", "io_uring") => config.backend = BackendChoice::Uring,
            _ => return Err(format!("unknown option {option} {value}").into()),
        }
    }
    let mut reactor = Reactor::new(&config)?;
    let options = TcpOptions { backlog: 4096, ..TcpOptions::default() };
    reactor.listen(Listener::tcp(([127, 0, 0, 1], port).into(), &options)?)?;
    let mut handler = Pong::default();
    loop {
        reactor.poll(&mut handler, None)?;
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ping_loop: {error}");
            ExitCode::FAILURE
        }
    }
}
