//! Interactive sessions in a pseudoterminal: the output for typed input.

use crate::harness::terminal::Terminal;
use crate::harness::{ours, prepare, servers};
use brisk_testkit::{Launch, TempDir};

fn session(port: u16, args: &[&str], vars: &[(&str, &str)]) -> Terminal {
    let port = port.to_string();
    let args: Vec<&str> = ["-p", &port].into_iter().chain(args.iter().copied()).collect();
    Terminal::start(&ours(), &args, vars)
}

#[test]
fn the_prompt_shows_place_database_and_transaction() {
    for server in servers() {
        let port = server.port();
        let at = format!("127.0.0.1:{port}");
        let mut shown = session(port, &[], &[]);
        shown.type_at(&format!("{at}> "), "get greeting");
        shown.expect("\"hello\"\r\n");
        shown.type_at(&format!("{at}> "), "select 3");
        shown.expect("OK\r\n");
        shown.type_at(&format!("{at}[3]> "), "multi");
        shown.type_at(&format!("{at}[3](TX)> "), "select 4");
        shown.expect("QUEUED\r\n");
        shown.type_at("(TX)> ", "discard");
        shown.type_at(&format!("{at}[3]> "), "multi");
        shown.type_at(&format!("{at}[3](TX)> "), "exec");
        shown.expect("(empty array)\r\n");
        shown.type_at(&format!("{at}[3]> "), "reset");
        shown.expect("RESET\r\n");
        shown.type_at(&format!("{at}> "), "2 ping");
        shown.expect("PONG\r\nPONG\r\n");
        shown.type_at(&format!("{at}> "), "get 'a");
        shown.expect("Invalid argument(s)\r\n");
        shown.type_at(&format!("{at}> "), "quit");
        assert_eq!(shown.end(), Some(0));
    }
}

#[test]
fn hints_show_the_arguments_that_are_left_and_can_be_turned_off() {
    for server in servers() {
        let mut shown = session(server.port(), &[], &[]);
        shown.expect("> ");
        shown.press("getrange");
        shown.expect("\x1b[0;90;49m key start end\x1b[0m");
        shown.press(" list");
        shown.expect("list\x1b[0;90;49m start end\x1b[0m");
        shown.press(" ");
        shown.expect("\x1b[0;90;49mstart end\x1b[0m");
        shown.press("0 1\r");
        shown.expect("WRONGTYPE");
        shown.type_at("> ", ":set nohints");
        shown.expect("> ");
        shown.press("getrange");
        shown.press(" greeting 0 1\r");
        let line = shown.expect("\"he\"\r\n");
        assert!(!line.contains("start"), "{line:?}");
    }
}

#[test]
fn tab_completes_commands_subcommands_and_groups() {
    for server in servers() {
        let mut shown = session(server.port(), &[], &[]);
        shown.expect("> ");
        shown.press("object enc\t list\r");
        shown.expect("OBJECT ENCODING");
        shown.expect("list");
        shown.expect("> ");
        shown.press("help @hyp\t\r");
        shown.expect("PFCOUNT");
    }
}

/// The line that `redis-cli` 7.2 shows while it waits for messages, according to its own test suite.
const INVITATION: &str = "Reading messages... (press Ctrl-C to quit or any key to type command)\r";

#[test]
fn ctrl_c_ends_a_subscription_and_the_session_continues() {
    for server in servers() {
        for (args, command, first) in [
            (&[][..], "subscribe news", "1) \"subscribe\"\r\n"),
            (&["-3"][..], "subscribe news", "1) \"subscribe\"\r\n"),
            (&[][..], "monitor", "OK\r\n"),
        ] {
            let mut shown = session(server.port(), args, &[]);
            shown.type_at("> ", "select 2");
            shown.type_at("[2]> ", command);
            shown.expect(first);
            if command != "monitor" {
                shown.expect("3) (integer) 1\r\n");
                shown.expect(INVITATION);
                server.connect().cmd("PUBLISH news flash");
                shown.expect("\x1b[K1) \"message\"\r\n2) \"news\"\r\n3) \"flash\"\r\n");
                shown.expect(INVITATION);
            } else {
                server.connect().cmd("GET monitored");
                shown.expect("monitored");
            }
            shown.press("\x03");
            shown.type_at("[2]> ", "get greeting");
            shown.expect("(nil)\r\n");
        }
    }
}

#[test]
fn a_subscriber_can_type_and_gets_messages_between_commands() {
    for server in servers() {
        for args in [&[][..], &["-3"]] {
            let mut shown = session(server.port(), args, &[]);
            shown.type_at("> ", "subscribe news sport");
            shown.expect("2) \"sport\"\r\n3) (integer) 2\r\n");
            shown.expect(INVITATION);
            // The key that ends the wait is part of the line.
            shown.press("unsubscribe sport");
            shown.expect("\x1b[K");
            shown.expect("(subscribed mode)> ");
            server.connect().cmd("PUBLISH news flash");
            shown.press("\r");
            shown
                .expect("3) \"flash\"\r\n1) \"unsubscribe\"\r\n2) \"sport\"\r\n3) (integer) 1\r\n");
            shown.expect(INVITATION);
            shown.press("ping\r");
            shown.expect(if args.is_empty() { "1) \"pong\"\r\n2) \"\"\r\n" } else { "PONG\r\n" });
            shown.expect(INVITATION);
            shown.press("get greeting\r");
            shown.expect(if args.is_empty() {
                "(error) ERR Can't execute 'get'"
            } else {
                "\"hello\"\r\n"
            });
            shown.expect(INVITATION);
            shown.press("reset\r");
            shown.expect("RESET\r\n");
            shown.type_at(&format!(":{}> ", server.port()), "get greeting");
            shown.expect("\"hello\"\r\n");
            shown.type_at("> ", "subscribe news");
            shown.expect(INVITATION);
            shown.press("x");
            shown.expect("(subscribed mode)> ");
            shown.press("\x7f\x04");
            // The prompt of the subscribed mode is drawn again for each key.
            shown.type_at(&format!(":{}> ", server.port()), "get greeting");
            shown.expect("\"hello\"\r\n");
        }
    }
}

#[test]
fn a_line_longer_than_the_terminal_is_wrapped_and_stays_whole() {
    let server = Launch::subject().start();
    let mut shown = session(server.port(), &[], &[]);
    let long: String = (0..90).map(|number| format!("part{number:02}-")).collect();
    shown.type_at("> ", &format!("echo {long}"));
    shown.expect(&format!("\"{long}\"\r\n"));
    // Lines that are pasted together are executed one after the other.
    shown.expect("> ");
    shown.press("set pasted 1\rincr pasted\rget pasted\r");
    shown.expect("OK\r\n");
    shown.expect("(integer) 2\r\n");
    shown.expect("\"2\"\r\n");
}

#[test]
fn ctrl_c_clears_the_line_and_ends_a_session_that_waits_for_a_reply() {
    for server in servers() {
        let mut shown = session(server.port(), &[], &[]);
        shown.expect("> ");
        shown.press("set never written");
        shown.expect("written");
        shown.press("\x03");
        shown.expect("> ");
        shown.press("\x03");
        shown.expect("(To exit, press Ctrl-D or type quit.)\r\n");
        shown.type_at("> ", "exists never");
        shown.expect("(integer) 0\r\n");
        shown.type_at("> ", "quit");
        assert_eq!(shown.end(), Some(0));
        let mut shown = session(server.port(), &[], &[]);
        shown.type_at("> ", "blpop nothing 0");
        brisk_testkit::wait_until("the client waits", || server.info("blocked_clients") == "1");
        shown.press("\x03");
        assert_eq!(shown.end(), Some(1));
        let mut shown = session(server.port(), &[], &[]);
        shown.expect("> ");
        shown.press("\x04");
        assert_eq!(shown.end(), Some(0));
    }
}

#[test]
fn a_lost_server_is_reported_and_reconnected() {
    for launch in [Launch::redis(), Launch::subject()] {
        let mut server = launch.clone().start();
        prepare(&server);
        let mut shown = session(server.port(), &[], &[]);
        shown.type_at("> ", "select 2");
        shown.type_at("[2]> ", "ping");
        shown.expect("PONG");
        shown.expect("[2]> ");
        server.kill_for_now();
        shown.press("ping\r");
        shown.expect("Error: ");
        shown.type_at("not connected> ", "ping");
        shown.expect("Could not connect to Redis at 127.0.0.1:");
        shown.expect("not connected> ");
        launch.start_again(&mut server);
        shown.press("ping\r");
        shown.expect("PONG\r\n");
        shown.type_at("[2]> ", "connect 127.0.0.1 1");
        shown.expect("Could not connect to Redis at 127.0.0.1:1: Connection refused");
        shown.expect("not connected> ");
    }
}

#[test]
fn invalidations_are_printed_before_the_next_reply() {
    for server in servers() {
        let mut shown = session(server.port(), &["-3"], &[]);
        shown.type_at("> ", "client tracking on");
        shown.type_at("> ", "get greeting");
        shown.expect("\"hello\"");
        shown.expect("> ");
        server.connect().cmd("SET greeting other");
        shown.press("ping\r");
        shown.expect("-> invalidate: 'greeting'\r\nPONG\r\n");
    }
}

#[test]
fn history_keeps_lines_across_sessions_but_none_with_a_password() {
    let server = Launch::subject().start();
    let home = TempDir::new();
    let file = home.path("history");
    let path = file.display().to_string();
    for variable in ["REDISCLI_HISTFILE", "BRISK_CLI_HISTFILE"] {
        let vars = [(variable, path.as_str())];
        let mut shown = session(server.port(), &[], &vars);
        shown.type_at("> ", "echo remembered");
        shown.expect("\"remembered\"");
        shown.type_at("> ", "auth secret");
        shown.expect("(error)");
        for line in ["auth \"secret", "config set requirepass \"secret"] {
            shown.type_at("> ", line);
            shown.expect("Invalid argument(s)");
        }
        shown.type_at("> ", "config set requirepass ''");
        shown.expect("OK");
        shown.type_at("> ", "exit");
        assert_eq!(shown.end(), Some(0));
        let text = std::fs::read_to_string(&file).expect("it was written");
        assert_eq!(text, "echo remembered\nexit\n");
        let mut shown = session(server.port(), &[], &vars);
        shown.expect("> ");
        // Pressing Up twice and Enter runs the line of the previous session.
        shown.press("\x1b[A\x1b[A\r");
        shown.expect("\"remembered\"");
        shown.type_at("> ", "exit");
        assert_eq!(shown.end(), Some(0));
        std::fs::remove_file(&file).expect("it was written");
    }
}

#[test]
fn preferences_are_read_from_a_file() {
    let server = Launch::subject().start();
    let home = TempDir::new();
    let file = home.path("settings");
    std::fs::write(&file, ":set nohints\n:set nonsense\n").expect("it can be written");
    let path = file.display().to_string();
    let mut shown = session(server.port(), &[], &[("REDISCLI_RCFILE", &path)]);
    shown.expect("unknown redis-cli preference 'nonsense'");
    shown.expect("> ");
    shown.press("getrange a 0 1\r");
    let line = shown.expect("\"\"\r\n");
    assert!(!line.contains("start"), "{line:?}");
}

#[test]
fn the_duration_of_a_long_command_is_printed() {
    let server = Launch::subject().start();
    let mut shown = session(server.port(), &[], &[]);
    shown.type_at("> ", "blpop nothing 0.6");
    shown.expect("(nil)\r\n(0.");
    shown.expect("s)\r\n");
    shown.type_at("> ", "ping");
    let between = shown.expect("> ");
    assert!(!between.contains("s)"), "{between:?}");
}

#[test]
fn askpass_prompts_for_the_password_and_does_not_show_it() {
    let server = Launch::subject().set("requirepass", "secret").start();
    let mut shown = session(server.port(), &["--askpass"], &[]);
    shown.expect("Please input password: ");
    shown.press("secreX\x7ft\r");
    shown.type_at("> ", "ping");
    shown.expect("PONG");
    assert!(!shown.screen().contains("secre"), "{:?}", shown.screen());
}

#[test]
fn scripts_are_debugged_if_the_server_supports_it() {
    let home = TempDir::new();
    let file = home.path("script.lua");
    std::fs::write(&file, "local a = 1\nredis.call('set', KEYS[1], ARGV[1])\nreturn a\n")
        .expect("it can be written");
    let path = file.display().to_string();
    let redis = Launch::redis().start();
    let mut shown = session(redis.port(), &["--ldb", "--eval", &path, "k", ",", "v"], &[]);
    shown.expect("Lua debugging session started");
    shown.type_at("lua debugger> ", "step");
    shown.type_at("lua debugger> ", "print a");
    shown.expect("<value> 1");
    shown.type_at("lua debugger> ", "continue");
    shown.expect("(integer) 1\r\n\r\n(Lua debugging session ended -- dataset changes rolled back)");
    shown.type_at("> ", "exists k");
    shown.expect("(integer) 0");
    shown.type_at("> ", "quit");
    assert_eq!(shown.end(), Some(0));

    let ours = Launch::subject().start();
    let mut shown = session(ours.port(), &["--ldb", "--eval", &path, "k", ",", "v"], &[]);
    shown.expect("This server has no script debugger");
    assert_eq!(shown.end(), Some(1));
}
