//! Replies of every shape are printed as by `redis-cli`, byte for byte, in each output format.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::scripted::Scripted;
use crate::harness::{self, Case, assert_same, ours, run};

const FORMS: &[&[&str]] = &[
    &["--no-raw"],
    &["--raw"],
    &["-d", "<>", "-D", "|", "--raw"],
    &["--csv"],
    &["--json"],
    &["-2", "--quoted-json"],
    &["--no-raw", "--show-pushes", "yes"],
    &["--csv", "--show-pushes", "yes"],
    &["-e"],
];

const REPLIES: &[&[u8]] = &[
    b"+OK\r\n",
    b"+\r\n",
    b"-ERR a\"b\\c\r\n",
    b"-MOVED 3 127.0.0.1:9\r\n",
    b":-12\r\n",
    b"$0\r\n\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"_\r\n",
    b"$12\r\n\x00\x01\"\\\n\r\t\x07\x08\x7f\xc3\xa9\r\n",
    b"$4\r\n\xff\xfe\xc3(\r\n",
    b"*0\r\n",
    b"%0\r\n",
    b"~0\r\n",
    b"*3\r\n*0\r\n$0\r\n\r\n*-1\r\n",
    b"*2\r\n*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n*11\r\n+1\r\n+2\r\n+3\r\n+4\r\n+5\r\n+6\r\n+7\r\n+8\r\n+9\r\n+10\r\n*2\r\n+y\r\n-ERR z\r\n",
    b"%2\r\n+k\r\n*2\r\n:1\r\n%1\r\n$1\r\nq\r\n~2\r\n,1.5\r\n#t\r\n*2\r\n+a\r\n+b\r\n_\r\n",
    b"%4\r\n+a\r\n*1\r\n:1\r\n+b\r\n%1\r\n+x\r\n+y\r\n+c\r\n~1\r\n+z\r\n+d\r\n%1\r\n+q\r\n*2\r\n+1\r\n+2\r\n",
    b"%3\r\n+a\r\n=7\r\ntxt:a\nb\r\n+c\r\n*1\r\n=7\r\ntxt:a\nb\r\n+d\r\n*1\r\n*1\r\n+x\r\n",
    b"%2\r\n$2\r\na\n\r\n:1\r\n:5\r\n_\r\n",
    b"%1\r\n*1\r\n:1\r\n*0\r\n",
    b"%1\r\n+a\r\n%0\r\n",
    b"*2\r\n#t\r\n#f\r\n",
    b",inf\r\n",
    b",-inf\r\n",
    b",1e10\r\n",
    b",3.1415926535897931\r\n",
    b"=7\r\nmkd:abc\r\n",
    b"*1\r\n=7\r\ntxt:a\nb\r\n",
    b"*2\r\n$3\r\na,b\r\n$3\r\na\"b\r\n",
    b"*2\r\n-ERR a\r\n$1\r\nb\r\n",
    b"*2\r\n>1\r\n+x\r\n:1\r\n",
    b">0\r\n+after\r\n",
    b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$2\r\nb\n\r\n+OK\r\n",
    b">2\r\n$10\r\ninvalidate\r\n_\r\n+OK\r\n",
    b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n",
    // Bytes that are not a reply, or are incomplete.
    b"hello\r\n",
    b"\xff\r\n",
    b":abc\r\n",
    b",abc\r\n",
    b"$5\r\nabc",
    b"",
];

#[test]
fn every_reply_looks_as_redis_cli_shows_it() {
    let server = Scripted::start();
    let port = server.port();
    for reply in REPLIES {
        server.reply(reply);
        for form in FORMS {
            let args: Vec<&str> = ["-p", &port].into_iter().chain(form.iter().copied()).collect();
            assert_same(&Case::new(&[&args[..], &["command"]].concat()));
        }
    }
}

/// `redis-cli` fails on RESP3 types that Redis itself does not use. Our program shows them.
#[test]
fn big_numbers_attributes_and_long_errors_are_shown() {
    let server = Scripted::start();
    let port = server.port();
    for (reply, shown) in [
        (
            &b"(123456789012345678901234567890\r\n"[..],
            "(big number) 123456789012345678901234567890\n",
        ),
        (b"|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n", "\"a\"\n"),
        (b"!5\r\nERR x\r\n", "(error) ERR x\n"),
        (b",nan\r\n", "(double) nan\n"),
    ] {
        server.reply(reply);
        let found = run(&ours(), &Case::new(&["-p", &port, "--no-raw", "command"]));
        assert_eq!(harness::text(&found.stdout), shown);
        assert_eq!(found.status.code(), Some(0));
    }
}

#[test]
fn malformed_replies_end_the_program_with_a_message() {
    let server = Scripted::start();
    let port = server.port();
    let mut seed = 12345u64;
    for _ in 0..60 {
        let mut bytes = vec![b"+-:$*%~>|(,#=!_x"[(seed % 16) as usize]];
        for _ in 0..seed % 23 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            bytes.push(b"0123456789-\r\n$*+:,.txt"[(seed >> 33) as usize % 22]);
        }
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // An incomplete reply ends with the stream.
        bytes.push(b'.');
        server.reply(&bytes);
        let found = run(&ours(), &Case::new(&["-p", &port, "--no-raw", "command"]));
        let said = harness::text(&found.stderr);
        assert!(matches!(found.status.code(), Some(0 | 1)), "{bytes:?}: {:?} {said}", found.status);
        assert!(!said.contains("panicked"), "{bytes:?}: {said}");
    }
}

/// Requests of the modes get replies of every shape except the expected one.
#[test]
fn modes_end_with_a_message_when_replies_have_an_unexpected_shape() {
    const STRANGE: &[&[u8]] = &[
        b"+OK\r\n",
        b"-ERR no\r\n",
        b":-7\r\n",
        b"$-1\r\n",
        b"*0\r\n",
        b"*2\r\n:0\r\n+x\r\n",
        b"*2\r\n$1\r\n0\r\n*1\r\n*0\r\n",
        b"%1\r\n*0\r\n%0\r\n",
        b"$7\r\ndb0:key\r\n",
        b"$9\r\na b c d e\r\n",
        b"$EOF:short\r\n",
        b"$99999999999999999999\r\n",
        b"*2147483647\r\n",
        b"garbage\r\n",
        b"$5\r\nab",
    ];
    const MODES: &[&[&str]] = &[
        &["--scan"],
        &["--bigkeys"],
        &["--memkeys"],
        &["--hotkeys"],
        &["--latency", "-i", "0.01"],
        &["--rdb", "/nonexistent/x"],
        &["--functions-rdb", "/nonexistent/x"],
        &["help", "get"],
        &["help", "@string"],
        &["-c", "get", "a"],
        &["subscribe", "a"],
        &["--pipe", "--pipe-timeout", "1"],
        &["doctor"],
        &["peek", "a"],
        &["peek", "a", "--all"],
        &["top", "-i", "0.01"],
        &["top", "--table", "clients", "-i", "0.01"],
        &["top", "--table", "keys", "-i", "0.01"],
    ];
    const TIME: &str = "0.4";
    let server = Scripted::start();
    let port = server.port();
    let place = format!("127.0.0.1:{port}");
    let cluster: Vec<Vec<&str>> = ["info", "check", "fix", "rebalance"]
        .iter()
        .map(|command| vec!["--cluster", command, &place])
        .chain([vec!["--cluster", "create", &place, &place, &place]])
        .collect();
    for reply in STRANGE {
        server.reply(reply);
        for mode in MODES.iter().map(|mode| mode.to_vec()).chain(cluster.iter().cloned()) {
            let args = [&["-p", &port][..], &mode].concat();
            // Some modes continue as long as the server replies, or wait for the rest of a reply. They are ended by
            // SIGTERM, which is not a failure.
            let found = harness::run_for(TIME, &args);
            let said = harness::text(&found.stderr);
            assert!(!said.contains("panicked"), "{args:?} {reply:?}: {said}");
            let code = found.status.code();
            assert!(
                matches!(code, Some(0 | 1 | harness::ENDED)),
                "{args:?} {reply:?}: {code:?} {said}"
            );
        }
    }
}
