//! The prompt's additions to redis-cli: key names, colors, suggestions, confirmations, the pager, and shell commands.

use crate::harness::terminal::Terminal;
use crate::harness::{Case, ours, run, servers, text};
use brisk_testkit::Server;

fn prompt(server: &Server, args: &[&str], vars: &[(&str, &str)]) -> Terminal {
    let port = server.port().to_string();
    Terminal::start(&ours(), &[&["-p", &port][..], args].concat(), vars)
}

#[test]
fn tab_completes_key_names_of_the_selected_database() {
    for server in servers() {
        let mut conn = server.connect();
        conn.cmd("SELECT 3");
        conn.cmd("SET 'user *1' starred");
        conn.cmd("SET user:2 plain");
        conn.cmd("RPUSH queue:jobs a");
        let mut shown = prompt(&server, &["-n", "3"], &[]);
        shown.expect("> ");
        shown.press("get user:\t\r");
        shown.expect("\"plain\"\r\n");
        shown.expect("> ");
        // A key that needs quotes gets them.
        shown.press("get \"user *\t\r");
        shown.expect("\"starred\"\r\n");
        shown.expect("> ");
        // Keys come before the timeout of BLPOP.
        shown.press("blpop qu\t 0\r");
        shown.expect("\"queue:jobs\"\r\n");
        shown.expect("> ");
        // In a transaction, only the command itself is queued.
        shown.press("multi\r");
        shown.expect("(TX)> ");
        shown.press("get user:\t\r");
        shown.expect("QUEUED\r\n");
        shown.type_at("(TX)> ", "exec");
        shown.expect("1) \"plain\"\r\n");
        shown.type_at("> ", "select 0");
        shown.expect("> ");
        shown.press("get gree\t\r");
        shown.expect("\"hello\"\r\n");
    }
}

#[test]
fn commands_strings_and_numbers_are_colored_while_they_are_typed() {
    let server = &servers()[1];
    let mut shown = prompt(server, &[], &[]);
    shown.expect("> ");
    shown.press("set a 'b' 5");
    shown.expect("\x1b[32mset\x1b[0m a \x1b[33m'b'\x1b[0m \x1b[36m5\x1b[0m");
    shown.press("\x03");
    shown.expect("> ");
    shown.press("nonsense a");
    shown.expect("\x1b[31mnonsense\x1b[0m a");
    shown.press("\x03");
    for vars in [&[("NO_COLOR", "1")], &[("TERM", "dumb")]] {
        let mut shown = prompt(server, &[], vars);
        shown.type_at("> ", "get greeting");
        shown.expect("\"hello\"\r\n");
        assert!(!shown.screen().contains("\x1b[32m"), "{:?}", shown.screen());
    }
}

#[test]
fn similar_commands_are_suggested_after_an_error() {
    for server in servers() {
        let mut shown = prompt(&server, &[], &[]);
        shown.type_at("> ", "hgetal hash");
        shown.expect("ERR unknown command");
        shown.expect("Did you mean HGETALL?\r\n");
        shown.type_at("> ", "object encodign hash");
        shown.expect("unknown subcommand");
        shown.expect("Did you mean OBJECT ENCODING?\r\n");
        // In a pipe, the output is that of redis-cli.
        let port = server.port().to_string();
        let case = Case::new(&["-p", &port]).with_stdin(b"hgetal hash\n");
        assert!(!text(&run(&ours(), &case).stdout).contains("Did you mean"));
    }
}

#[test]
fn deleting_everything_needs_a_confirmation_at_the_prompt() {
    for server in servers() {
        let mut shown = prompt(&server, &[], &[]);
        shown.type_at("> ", "flushall");
        shown.expect("FLUSHALL deletes the keys of all databases. Continue? [y/N] ");
        shown.press("\r");
        shown.expect("Not executed.\r\n");
        shown.type_at("> ", "exists greeting");
        shown.expect("(integer) 1\r\n");
        shown.type_at("> ", "flushdb");
        shown.expect("FLUSHDB deletes 9 keys of this database. Continue? [y/N] ");
        shown.press("y\r");
        shown.expect("OK\r\n");
        // KEYS is confirmed only if there are many keys.
        shown.type_at("> ", "keys *");
        shown.expect("(empty array)\r\n");
        let mut shown = prompt(&server, &["--yes"], &[]);
        shown.type_at("> ", "flushall");
        shown.expect("OK\r\n");
        let port = server.port().to_string();
        let case = Case::new(&["-p", &port]).with_stdin(b"flushall\n");
        assert_eq!(text(&run(&ours(), &case).stdout), "OK\n");
    }
}

#[test]
fn keys_with_many_keys_needs_a_confirmation() {
    let server = &servers()[1];
    let script = "for i = 1, 100001 do redis.call('SET', 'k' .. i, i) end";
    server.connect().call(&["EVAL", script, "0"]);
    let mut shown = prompt(server, &[], &[]);
    shown.type_at("> ", "keys none*");
    shown.expect("KEYS reads 100,010 keys and blocks the server for this time. Continue? [y/N] ");
    shown.press("n\r");
    shown.expect("Not executed.\r\n");
}

#[test]
fn replies_longer_than_the_screen_go_to_the_pager() {
    for server in servers() {
        let mut conn = server.connect();
        for number in 0..100 {
            conn.cmd(&format!("RPUSH numbers {number}"));
        }
        let pager = [("PAGER", "sed 's/^/paged /' | tail -n 1")];
        let mut shown = prompt(&server, &[], &pager);
        shown.type_at("> ", "lrange numbers 0 -1");
        shown.expect("paged 100) \"99\"\r\n");
        shown.type_at("> ", "lrange numbers 0 9");
        let short = shown.expect("10) \"9\"\r\n");
        assert!(!short.contains("paged"), "{short:?}");
        shown.type_at("> ", ":set pager off");
        shown.type_at("> ", "lrange numbers 0 -1");
        let all = shown.expect("100) \"99\"\r\n");
        assert!(!all.contains("paged") && all.contains(" 50) \"49\"\r\n"), "{all:?}");
        shown.type_at("> ", ":set pager on");
        shown.type_at("> ", "lrange numbers 0 -1");
        shown.expect("paged 100) \"99\"\r\n");
    }
}

#[test]
fn a_reply_can_be_passed_to_a_shell_command() {
    for server in servers() {
        let mut shown = prompt(&server, &[], &[]);
        shown.type_at("> ", "get greeting | tr a-z A-Z | sed 's/$/!/'");
        shown.expect("\r\nHELLO!\r\n");
        shown.type_at("> ", "lrange list 0 2 | wc -l");
        shown.expect("\r\n3\r\n");
        shown.type_at("> ", "echo '|'");
        shown.expect("\"|\"\r\n");
        shown.type_at("> ", "get greeting");
        shown.expect("\"hello\"\r\n");
    }
}
