//! The console over HTTP: its page, its sessions over WebSockets, its events, and every connection that it rejects.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Server, each_backend, wait_until};
use brisk_tests::web::Web;
use brisk_tests::websocket::{self, BINARY, CLOSE, PING, PONG, TEXT, WebSocket};
use brisk_tests::with_workers;
use serde_json::Value;

/// The maximum number of consoles, as in `system::CONSOLES_MAX`.
const CONSOLES_MAX: usize = 16;
/// The maximum size of a message, as in `console::websocket`.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// Runs the body on two back ends.
fn each(mode: &str, body: impl Fn(&mut Server, &Port)) {
    if subject_is_redis() {
        return;
    }
    let port = Port::claim();
    let launch = || {
        let launch = with_workers(2).set("http-port", &port.number().to_string());
        launch.set("http-console", mode)
    };
    each_backend(launch, |server| body(server, &port));
}

fn open(port: &Port) -> WebSocket {
    WebSocket::open(port, "/console/session", "brisk-console").expect("the console opens")
}

fn event(socket: &mut WebSocket) -> Value {
    serde_json::from_str(&socket.text()).expect("an event is JSON")
}

#[test]
fn the_page_and_its_files_have_a_strict_policy() {
    each("yes", |server, port| {
        let host = format!("127.0.0.1:{}", port.number());
        let page = |path: &str, host: &str| {
            let mut web = Web::connect(port);
            web.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
            web.answer(false)
        };
        let root = page("/", &host);
        assert_eq!((root.status, root.body.contains("<!doctype html>")), (200, true));
        let policy = root.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(root.header("x-content-type-options"), "nosniff");
        let files = root.body.split('"').filter(|word| word.starts_with("/console/"));
        let files: Vec<&str> = files.collect();
        assert!(files.len() >= 3, "{}", root.body);
        for file in files {
            let kind = match file.rsplit_once('.') {
                Some((_, "css")) => "text/css",
                Some((_, "svg")) => "image/svg+xml",
                _ => "text/javascript",
            };
            let file = page(file, &host);
            assert_eq!((file.status, file.header("content-type").contains(kind)), (200, true));
        }
        assert_eq!(page("/console/missing.js", &host).status, 404);
        assert_eq!(page("/", "attacker.example").status, 403);
        server.connect().cmd("CONFIG SET http-console-hosts db1.example");
        assert_eq!(page("/", "db1.example:80").status, 200);
        server.connect().cmd("CONFIG SET http-console no");
        assert_eq!(page("/", &host).status, 404);
        let closed = WebSocket::open(port, "/console/session", "brisk-console");
        assert_eq!(closed.unwrap_err(), 404);
    });
}

#[test]
fn a_session_is_that_of_an_ordinary_client() {
    each("yes", |server, port| {
        let mut socket = open(port);
        assert_eq!(socket.ask("PING", "\r\n"), b"+PONG\r\n");
        // The client has the address of the browser.
        let info = socket.ask("CLIENT INFO", "\n\r\n");
        let info = String::from_utf8(info).unwrap();
        assert!(info.contains(" addr=127.0.0.1:"), "{info}");
        assert!(info.contains(&format!(" laddr=127.0.0.1:{} ", port.number())), "{info}");
        // A request may be split over messages, and a message may contain several requests.
        for byte in b"*1\r\n$4\r\nPING\r\n" {
            socket.send(BINARY, &[*byte]);
        }
        assert_eq!(socket.ask("ECHO a\r\nECHO b", "b\r\n"), b"+PONG\r\n$1\r\na\r\n$1\r\nb\r\n");
        // Large requests and replies pass in both directions.
        let value = vec![b'v'; 900_000];
        let request = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$900000\r\n", value.as_slice(), b"\r\n"];
        socket.send(BINARY, &request.concat());
        assert_eq!(socket.ask("EXISTS k", ":1\r\n"), b"+OK\r\n:1\r\n");
        let reply = socket.ask(&["GET k"; 30].join("\r\n"), "v\r\n");
        assert!(reply.len() >= 900_000);
        let mut length = reply.len();
        while length < 30 * 900_011 {
            length += socket.receive_frame().unwrap().1.len();
        }
        assert_eq!(length, 30 * 900_011);
        socket.send(PING, b"hello");
        assert_eq!(socket.receive_frame(), Some((PONG, b"hello".to_vec())));
        // CLIENT KILL and QUIT end a session, and the browser sees that.
        socket.send(BINARY, b"QUIT\r\n");
        assert_eq!(socket.close_status(), 1001);
        assert_eq!(socket.receive_frame(), None);
        // A browser that closes the page ends its session.
        let mut socket = open(port);
        assert_eq!(socket.ask("CLIENT SETNAME page", "\r\n"), b"+OK\r\n");
        let is_listed = || server.connect().cmd("CLIENT LIST").text().contains("name=page");
        assert!(is_listed());
        socket.send(CLOSE, &1000u16.to_be_bytes());
        assert_eq!(socket.close_status(), 1000);
        wait_until("the session to end", || !is_listed());
    });
}

#[test]
fn a_session_that_ends_before_the_browser_has_read_its_output_loses_nothing() {
    each("yes", |server, port| {
        let mut other = server.connect();
        other.call(&["SET", "k", &"v".repeat(900_000)]);
        let mut socket = open(port);
        assert_eq!(socket.ask("CLIENT SETNAME page", "\r\n"), b"+OK\r\n");
        let requests = format!("{}QUIT\r\n", "GET k\r\n".repeat(30));
        socket.send(BINARY, requests.as_bytes());
        let mut length = 0;
        // While the session exists, read so slowly that its output always waits for the browser.
        let mut is_open = true;
        while let (BINARY, bytes) = socket.receive_frame().unwrap() {
            length += bytes.len();
            is_open = is_open && other.cmd("CLIENT LIST").text().contains("name=page");
        }
        assert!(!is_open);
        assert_eq!(length, 30 * 900_011 + 5);
    });
}

#[test]
fn events_have_the_fields_of_info_that_changed() {
    each("write", |server, port| {
        let mut socket = open(port);
        socket.send(TEXT, b"events on");
        let first = event(&mut socket);
        assert_eq!(first["console"]["write"], true);
        assert_eq!(first["info"]["role"], "master");
        assert_eq!(first["info"]["tcp_port"].as_str().unwrap(), server.port().to_string());
        let fields = first["info"].as_object().unwrap().len();
        server.connect().cmd("SET key value");
        let mut has_keys = false;
        for _ in 0..20 {
            let next = event(&mut socket);
            assert!(next["info"].as_object().unwrap().len() < fields / 2, "{next}");
            assert!(next["info"].get("role").is_none(), "{next}");
            has_keys |= next["info"].get("db0").is_some();
            if has_keys {
                break;
            }
        }
        assert!(has_keys);
        server.connect().cmd("FLUSHALL");
        wait_until("the database to disappear", || {
            event(&mut socket)["info"].get("db0").is_some_and(Value::is_null)
        });
        // A change of the mode reaches open consoles.
        server.connect().cmd("CONFIG SET http-console yes");
        wait_until("the new mode", || event(&mut socket)["console"]["write"] == false);
        // A second console begins with all fields, and the first one goes on with changes.
        let mut other = open(port);
        other.send(TEXT, b"events on");
        assert!(event(&mut other)["info"].as_object().unwrap().len() >= fields - 10);
        assert!(event(&mut socket)["info"].as_object().unwrap().len() < fields / 2);
    });
}

#[test]
fn permissions_are_those_of_the_authenticated_user() {
    each("yes", |server, port| {
        let mut admin = server.connect();
        admin.cmd("ACL SETUSER reader on >pw +@all -info -set ~app:* &*");
        admin.cmd("CONFIG SET requirepass secret");
        let mut socket = open(port);
        assert!(socket.ask("PING", "\r\n").starts_with(b"-NOAUTH "));
        socket.send(TEXT, b"events on");
        assert_eq!(event(&mut socket)["denied"], "info");
        assert!(socket.ask("AUTH reader wrong", "\r\n").starts_with(b"-WRONGPASS "));
        assert_eq!(socket.ask("AUTH reader pw", "\r\n"), b"+OK\r\n");
        assert!(socket.ask("SET app:1 x", "\r\n").starts_with(b"-NOPERM "));
        assert!(socket.ask("GET other", "\r\n").starts_with(b"-NOPERM "));
        socket.send(TEXT, b"events off");
        socket.send(TEXT, b"events on");
        assert_eq!(event(&mut socket)["denied"], "info");
        // Events begin when the permission is granted, and end when it is revoked.
        admin.cmd("AUTH secret");
        admin.cmd("ACL SETUSER reader +info");
        assert_eq!(event(&mut socket)["console"]["write"], false);
        admin.cmd("ACL SETUSER reader -info");
        wait_until("the events to end", || event(&mut socket).get("denied").is_some());
        admin.cmd("ACL DELUSER reader");
        assert_eq!(socket.close_status(), 1001);
        let mut socket = open(port);
        assert_eq!(socket.ask("AUTH secret", "\r\n"), b"+OK\r\n");
        socket.send(TEXT, b"events on");
        assert_eq!(event(&mut socket)["info"]["role"], "master");
    });
}

#[test]
fn pages_of_other_sites_cannot_open_a_session() {
    each("write", |_, port| {
        let host = format!("127.0.0.1:{}", port.number());
        let own = format!("http://{host}");
        let status = |headers: &str| {
            WebSocket::connect(port, "/console/session", headers).err().unwrap_or(101)
        };
        let good = websocket::handshake(&host, &own, "brisk-console");
        assert_eq!(status(&good), 101);
        assert_eq!(
            status(&websocket::handshake(&host, "http://attacker.example", "brisk-console")),
            403
        );
        assert_eq!(
            status(&websocket::handshake(&host, &format!("https://{host}"), "brisk-console")),
            403
        );
        assert_eq!(status(&websocket::handshake(&host, "null", "brisk-console")), 403);
        // DNS rebinding: the attacker's host name resolves to this server.
        let name = format!("attacker.example:{}", port.number());
        let foreign = websocket::handshake(&name, &format!("http://{name}"), "brisk-console");
        assert_eq!(status(&foreign), 403);
        assert_eq!(status(&good.replace(&format!("Origin: {own}\r\n"), "")), 403);
        assert_eq!(status(&good.replace("Upgrade: websocket", "Upgrade: h2c")), 400);
        assert_eq!(status(&good.replace("Connection: Upgrade", "Connection: close")), 400);
        assert_eq!(status(&good.replace("Version: 13", "Version: 8")), 426);
        assert_eq!(status(&good.replace("ub25jZQ==", "")), 400);
        assert_eq!(status(&good.replace("brisk-console", "chat")), 400);
        assert_eq!(status(&format!("{good}Content-Length: 1\r\n")), 400);
    });
}

#[test]
fn violations_of_the_protocol_end_the_connection() {
    each("yes", |server, port| {
        let status = |bytes: &[u8]| {
            let mut socket = open(port);
            socket.send_bytes(bytes);
            let status = socket.close_status();
            assert_eq!(socket.receive_frame(), None);
            status
        };
        assert_eq!(status(&[0x82, 1, b'a']), 1002, "not masked");
        assert_eq!(status(&websocket::frame(0x80 | TEXT, b"events maybe")), 1002);
        let long = websocket::frame(0x80 | BINARY, &vec![b'x'; MESSAGE_BYTES_MAX + 1]);
        assert_eq!(status(&long[..14]), 1009);
        // Not even fragments can be joined to a longer message.
        let mut socket = open(port);
        socket.send_bytes(&websocket::frame(BINARY, &vec![b'x'; MESSAGE_BYTES_MAX]));
        socket.send_bytes(&websocket::frame(0x80, b"x"));
        assert_eq!(socket.close_status(), 1009);
        // An incomplete frame has a time limit, although other messages arrived before.
        let mut socket = open(port);
        assert_eq!(socket.ask("PING", "\r\n"), b"+PONG\r\n");
        socket.send_bytes(&[0x82]);
        assert_eq!(socket.receive_frame(), None);
        assert_eq!(server.connect().cmd("PING").text(), "PONG");
    });
}

#[test]
fn consoles_that_are_not_authenticated_make_room_for_others() {
    each("yes", |server, port| {
        server.connect().cmd("CONFIG SET requirepass secret");
        let mut authenticated = open(port);
        assert_eq!(authenticated.ask("AUTH secret", "\r\n"), b"+OK\r\n");
        let mut others: Vec<WebSocket> = (1..CONSOLES_MAX).map(|_| open(port)).collect();
        let mut one_more = open(port);
        assert!(one_more.ask("PING", "\r\n").starts_with(b"-NOAUTH "));
        // The oldest one was closed.
        assert_eq!(others[0].receive_frame(), None);
        assert!(others[1].ask("PING", "\r\n").starts_with(b"-NOAUTH "));
        assert_eq!(authenticated.ask("PING", "\r\n"), b"+PONG\r\n");
    });
}

#[test]
fn the_number_of_consoles_is_limited_and_monitoring_continues() {
    each("yes", |server, port| {
        let mut consoles: Vec<WebSocket> = (0..CONSOLES_MAX).map(|_| open(port)).collect();
        for console in &mut consoles {
            assert_eq!(console.ask("PING", "\r\n"), b"+PONG\r\n");
        }
        let open_one = || WebSocket::open(port, "/console/session", "brisk-console");
        assert_eq!(open_one().unwrap_err(), 503);
        assert_eq!(Web::connect(port).get("/health", "").status, 200);
        // Other connections replace each other, but never a console.
        let others: Vec<Web> = (0..80).map(|_| Web::connect(port)).collect();
        assert_eq!(Web::connect(port).get("/health", "").status, 200);
        for console in &mut consoles {
            assert_eq!(console.ask("PING", "\r\n"), b"+PONG\r\n");
        }
        drop((others, consoles));
        wait_until("a console to be accepted again", || open_one().is_ok());
        // Sessions count toward maxclients.
        let mut only = server.connect();
        only.cmd("CONFIG SET maxclients 1");
        let mut socket = open(port);
        let (opcode, text) = socket.receive_frame().unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!((opcode, text.as_str()), (BINARY, "-ERR max number of clients reached\r\n"));
        assert_eq!(socket.close_status(), 1001);
        assert_eq!(only.cmd("PING").text(), "PONG");
    });
}
