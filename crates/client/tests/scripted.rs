//! Scripted servers: a test determines their replies.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Listens on a free port of 127.0.0.1 until the test process ends. `reply` receives each request and its connection.
/// It returns the bytes of the reply, or `None` to send no reply. The arguments of requests must not contain line
/// endings.
pub(crate) fn serve(
    reply: impl Fn(&[String], &TcpStream) -> Option<String> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let reply = Arc::new(reply);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || reply_to_all(&stream, &*reply));
        }
    });
    address
}

fn reply_to_all(stream: &TcpStream, reply: &dyn Fn(&[String], &TcpStream) -> Option<String>) {
    let mut writer = stream;
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(count) = lines.next() {
        let count: usize = count.trim_start_matches('*').parse().expect("a request");
        let request: Vec<String> = (0..count).filter_map(|_| lines.nth(1)).collect();
        let reply = reply(&request, stream).unwrap_or_default();
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// A RESP array of bulk strings.
pub(crate) fn array(elements: &[&str]) -> String {
    let element = |text: &&str| format!("${}\r\n{text}\r\n", text.len());
    format!("*{}\r\n{}", elements.len(), elements.iter().map(element).collect::<String>())
}
