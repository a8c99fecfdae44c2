//! `brisk-cli top` on a terminal and in a pipe.

use crate::harness::terminal::Terminal;
use crate::harness::{brisk_cli, ours, servers, text};
use brisk_testkit::Server;
use std::sync::atomic::{AtomicBool, Ordering};

/// Leaves the alternate screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

fn top(server: &Server, args: &[&str]) -> Terminal {
    let port = server.port().to_string();
    Terminal::start(&ours(), &[&["-p", &port, "top"][..], args].concat(), &[])
}

#[test]
fn top_shows_the_server_and_each_table_for_its_key() {
    for (server, is_brisk) in servers().into_iter().zip([false, true]) {
        let mut shown = top(&server, &[]);
        shown.expect("\x1b[?1049h");
        shown.expect(if is_brisk { "Brisk 0." } else { "Redis 7.0" });
        shown.expect(&format!("127.0.0.1:{}  primary  up ", server.port()));
        shown.expect("ops/s ");
        shown.expect("memory ");
        shown.expect("CPU ");
        shown.expect("command ");
        // The INFO requests of the program itself.
        shown.expect("\r\ninfo ");
        server.connect().cmd("GET greeting");
        shown.expect("\r\nget ");
        shown.press("l");
        shown.expect("address ");
        shown.expect("\r\n127.0.0.1:");
        shown.expect("(this top)");
        shown.expect("client list");
        shown.press("w");
        shown.expect("worker ");
        shown.expect(if is_brisk { "\r\n1 " } else { "does not report workers" });
        shown.press("\t");
        shown.expect("calls/s");
        shown.press("?");
        shown.expect("reverse the order");
        shown.press("\x1b");
        shown.expect("calls/s");
        shown.press("q");
        shown.expect(LEAVE);
        assert_eq!(shown.exit_code(), Some(0));
        assert!(shown.echoes());
    }
}

#[test]
fn top_samples_hot_keys_and_measures_keys_of_a_scan() {
    for server in servers() {
        let stops = AtomicBool::new(false);
        let mut conn = server.connect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stops.load(Ordering::Relaxed) {
                    conn.cmd("GET ghost");
                }
            });
            let found = std::panic::catch_unwind(|| {
                let mut shown = top(&server, &["--table", "keys", "-i", "0.1"]);
                shown.expect("biggest keys; ");
                shown.expect("key ");
                shown.expect("memory▼");
                // This key does not exist, so only the sample contains it.
                shown.expect("\r\nghost ");
                shown.expect("\r\nstream ");
                shown.expect("keys scanned; requests/s: sample of ");
                shown.press("\x03");
                assert_eq!(shown.end(), Some(0));
            });
            stops.store(true, Ordering::Relaxed);
            assert!(found.is_ok());
        });
    }
}

#[test]
fn top_sorts_by_the_chosen_column_and_fits_the_window() {
    let server = &servers()[1];
    let mut shown = top(server, &["-i", "0.1"]);
    shown.expect("time▼");
    shown.press("\x1b[D");
    shown.expect("µs/call▼");
    shown.press("r");
    shown.expect("µs/call▲");
    shown.press("<<");
    shown.expect("command▲");
    shown.press(">");
    shown.expect("calls/s▲");
    shown.resize(10, 30);
    shown.expect("q quit  ? help  c commands\x1b[K\x1b[J");
    shown.press("p");
    shown.expect("PAUSED");
    shown.press("k");
    shown.expect("paused: press p to continue");
    shown.press("p");
    shown.press("\x1b");
    assert_eq!(shown.end(), Some(0));
}

#[test]
fn a_command_that_was_called_keeps_its_row() {
    for server in servers() {
        let mut shown = top(&server, &["-i", "0.1"]);
        let title = "averages of the last ";
        shown.expect(title);
        server.connect().cmd("GET greeting");
        shown.expect("\r\nget ");
        for _ in 0..20 {
            shown.expect(title);
            let between = shown.expect("\r\nget ");
            assert!(!between.contains(title), "a screen has no row: {between}");
        }
        shown.press("q");
        assert_eq!(shown.end(), Some(0));
    }
}

#[test]
fn top_shows_slow_commands_with_their_arguments_and_clients() {
    for server in servers() {
        let mut conn = server.connect();
        for line in [
            "CLIENT SETNAME backoffice",
            "CONFIG SET slowlog-log-slower-than 0",
            "GET slow:key",
            "CONFIG SET slowlog-log-slower-than 10000000",
        ] {
            conn.cmd(line);
        }
        let mut shown = top(&server, &["-i", "0.1"]);
        shown.expect("ops/s ");
        shown.press("s");
        shown.expect("age▼");
        shown.expect("GET slow:key ");
        shown.expect("127.0.0.1:");
        shown.expect("backoffice");
        shown.press(">");
        shown.expect("ms▼");
        conn.cmd("ACL SETUSER default -slowlog");
        shown.expect("The server rejects SLOWLOG: NOPERM");
        shown.press("q");
        assert_eq!(shown.end(), Some(0));
    }
}

#[test]
fn a_signal_or_a_lost_connection_restores_the_terminal() {
    for mut server in servers() {
        for signal in ["TERM", "HUP", "INT"] {
            let mut shown = top(&server, &[]);
            shown.expect("ops/s ");
            assert!(!shown.echoes());
            shown.signal(signal);
            shown.expect(LEAVE);
            assert_eq!(shown.exit_code(), None, "{signal}");
            assert!(shown.echoes());
        }
        let mut shown = top(&server, &["-i", "0.1"]);
        shown.expect("ops/s ");
        server.kill_for_now();
        shown.expect(LEAVE);
        shown.expect("Error: ");
        assert_eq!(shown.exit_code(), Some(1));
        assert!(shown.echoes());
    }
}

#[test]
fn top_prints_tables_if_standard_output_is_a_pipe() {
    for server in servers() {
        let found = brisk_cli(&server, &["top", "--count", "2", "-i", "0.05"]);
        let said = text(&found.stdout);
        assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
        assert_eq!(said.matches("ops/s ").count(), 2, "{said}");
        assert_eq!(said.matches("\ninfo ").count(), 2, "{said}");
        assert!(!said.contains('\x1b'), "{said}");
        let clients =
            text(&brisk_cli(&server, &["top", "--table", "clients", "-i", "0.05"]).stdout);
        assert!(clients.contains("\n127.0.0.1:") && clients.contains("client list"), "{clients}");
        assert!(clients.contains("  (this top)  "), "{clients}");
    }
    let found = brisk_cli(&servers()[0], &["top", "--table", "x"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(text(&found.stderr).contains("Unknown table 'x'"), "{}", text(&found.stderr));
}
