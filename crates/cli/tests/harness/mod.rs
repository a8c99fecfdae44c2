//! Runs our program and `redis-cli` for comparison, with arguments, input and environment variables, in pipes or in a
//! pseudoterminal. Not every test file uses all of it.

pub(crate) mod scripted;
pub(crate) mod terminal;

use brisk_testkit::port::Port;
use brisk_testkit::server::redis_tool;
use brisk_testkit::{Launch, Server};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// How long the order of a server's keys may take to become stable.
const SAME_WITHIN: Duration = Duration::from_secs(60);

/// The inputs of the programs in one comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case<'a> {
    pub(crate) args: Vec<&'a str>,
    pub(crate) stdin: &'a [u8],
    pub(crate) vars: Vec<(&'a str, &'a str)>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(args: &[&'a str]) -> Case<'a> {
        Case { args: args.to_vec(), ..Case::default() }
    }

    pub(crate) fn with_stdin(mut self, stdin: &'a [u8]) -> Case<'a> {
        self.stdin = stdin;
        self
    }

    pub(crate) fn with_var(mut self, name: &'a str, value: &'a str) -> Case<'a> {
        self.vars.push((name, value));
        self
    }
}

pub(crate) fn ours() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_brisk-cli"))
}

pub(crate) fn theirs() -> PathBuf {
    redis_tool("redis-cli")
}

/// Runs a program until it exits, without the user's own settings.
pub(crate) fn run(program: &PathBuf, case: &Case<'_>) -> Output {
    let mut child = Command::new(program)
        .args(&case.args)
        .env_remove("REDISCLI_AUTH")
        .env("HOME", "/nonexistent")
        .env("TERM", "xterm")
        .envs(case.vars.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("it was piped");
    let bytes = case.stdin.to_vec();
    let writer = std::thread::spawn(move || {
        // The write fails if the program exits without reading.
        let _ = stdin.write_all(&bytes);
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("writing does not panic");
    output
}

/// The exit code of a program that had to be stopped.
pub(crate) const ENDED: i32 = 124;

/// Runs our program for at most `seconds`, with nothing on standard input.
pub(crate) fn run_for(seconds: &str, args: &[&str]) -> Output {
    let ours = ours().display().to_string();
    let args = [&[seconds, &ours][..], args].concat();
    run(&PathBuf::from("timeout"), &Case::new(&args))
}

/// Runs our program with a server's port before the arguments.
pub(crate) fn brisk_cli(server: &Server, args: &[&str]) -> Output {
    let port = server.port().to_string();
    let all: Vec<&str> = ["-p", &port].into_iter().chain(args.iter().copied()).collect();
    run(&ours(), &Case::new(&all))
}

/// Asserts that both programs print the same on both streams, and exit with the same code.
#[track_caller]
pub(crate) fn assert_same(case: &Case<'_>) {
    let (expected, found) = (run(&theirs(), case), run(&ours(), case));
    let shown = |output: &Output| {
        format!(
            "code {:?}\n--- stdout\n{}\n--- stderr\n{}",
            output.status.code(),
            output.stdout.escape_ascii().to_string().replace("\\n", "\n"),
            output.stderr.escape_ascii().to_string().replace("\\n", "\n")
        )
    };
    assert!(
        expected == found,
        "{:?} {:?}\n=== redis-cli\n{}\n=== brisk-cli\n{}",
        case.args,
        case.vars,
        shown(&expected),
        shown(&found)
    );
}

/// Waits until both programs print the same, for output that may still change. On a timeout, the last difference is
/// shown.
#[track_caller]
pub(crate) fn wait_until_same(case: &Case<'_>) {
    let same = || run(&theirs(), case) == run(&ours(), case);
    if !brisk_testkit::wait::holds_within(SAME_WITHIN, same) {
        assert_same(case);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Consecutive ports.
pub(crate) fn consecutive(count: usize) -> Vec<Port> {
    let mut ports: Vec<Port> = Vec::new();
    while ports.len() < count {
        let next = Port::claim();
        if ports.last().is_some_and(|last| last.number() + 1 != next.number()) {
            ports.clear();
        }
        ports.push(next);
    }
    ports
}

/// A real Redis and our server, with the same data.
pub(crate) fn servers() -> Vec<Server> {
    [Launch::redis(), Launch::subject()]
        .map(|launch| {
            let server = launch.start();
            prepare(&server);
            server
        })
        .into()
}

/// Writes keys of every type.
pub(crate) fn prepare(server: &Server) {
    let mut conn = server.connect();
    for line in [
        "FLUSHALL",
        "SET greeting hello",
        r#"SET binary "a\x00\x01\n\r\t\"\\\xff""#,
        "SET number 42",
        "RPUSH list a b c d e f g h i j k",
        "HSET hash one 1",
        "SADD set member",
        "ZADD zset 1.5 a 2 b",
        "XADD stream 1-1 field value",
        "PFADD sketch a b c",
    ] {
        conn.cmd(line);
    }
}
