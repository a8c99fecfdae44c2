//! A server that sends the same bytes as the reply to every request, to test replies of any shape.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Replies to HELLO with +OK, and to everything else as scripted.
pub(crate) struct Scripted {
    port: u16,
    reply: Arc<Mutex<Vec<u8>>>,
}

impl Scripted {
    pub(crate) fn start() -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let reply = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&reply);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let reply = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &reply));
            }
        });
        Scripted { port, reply }
    }

    pub(crate) fn port(&self) -> String {
        self.port.to_string()
    }

    /// Sets the reply. If the bytes do not end with a line end, the stream is closed after them.
    pub(crate) fn reply(&self, bytes: &[u8]) {
        *self.reply.lock().expect("no thread panics") = bytes.to_vec();
    }
}

fn serve(mut stream: TcpStream, reply: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 65536];
    loop {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        let is_hello = buffer[..count].windows(5).any(|word| word == b"HELLO");
        let bytes = match is_hello {
            true => b"+OK\r\n".to_vec(),
            false => reply.lock().expect("no thread panics").clone(),
        };
        if stream.write_all(&bytes).is_err() || !bytes.ends_with(b"\r\n") {
            return;
        }
    }
}
