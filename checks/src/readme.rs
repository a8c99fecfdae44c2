//! Checks that the README's first command starts a server that replies.
//!
//! The command is run as written, with an added port and directory, from the workspace root. So a user who types it
//! there gets the same result.

use crate::documents::blocks;
use anyhow::{Context, Result, bail};
use brisk_testkit::Conn;
use brisk_testkit::port::Port;
use brisk_testkit::server::workspace_root;
use brisk_testkit::wait::holds_within;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time limit. The command first builds the server, optimized across all crates.
const LIMIT: Duration = Duration::from_secs(900);

/// Stops the server when the check ends, even on failure.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command, sends PING to the server, and checks that the server survives failing scripts.
pub(crate) fn main() -> Result<bool> {
    let path = workspace_root().join("README.md");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let command = first_command(&text).context("the README has no ```sh block with a command")?;
    let port = Port::claim();
    let line = with_arguments(&command, &format!("--port {} --save ''", port.number()));
    // `exec`, and cargo's own exec of the program, keep the process ID, which is needed to stop the server.
    let child = Command::new("bash")
        .args(["-euc", &format!("exec {line}")])
        .current_dir(workspace_root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run bash")?;
    let mut child = Started(child);
    let address = format!("127.0.0.1:{}", port.number());
    let mut ended = None;
    let replies = holds_within(LIMIT, || {
        ended = child.0.try_wait().ok().flatten();
        ended.is_some() || replies_to_ping(&address)
    });
    match ended {
        Some(status) => bail!("`{line}` ended with {status}"),
        None if !replies => bail!("`{line}` did not reply to PING on {address} within {LIMIT:?}"),
        None => survives_failing_scripts(&address),
    }
}

/// Script errors pass through the interpreter as exceptions. In a profile without unwinding, they would abort the
/// process. Tests with a different profile would not notice this.
fn survives_failing_scripts(address: &str) -> Result<bool> {
    let mut conn = Conn::try_tcp(address)?;
    for source in ["return math.random(0)", "return redis.call('nonsense')"] {
        let reply = conn.try_cmd(&format!("EVAL \"{source}\" 0")).context(source)?;
        if !reply.to_string().starts_with("(error) ") {
            bail!("{source}: {reply}");
        }
    }
    Ok(replies_to_ping(address))
}

fn replies_to_ping(address: &str) -> bool {
    let reply = Conn::try_tcp(address).and_then(|mut conn| conn.try_cmd("PING"));
    reply.is_ok_and(|reply| reply.to_string() == "PONG")
}

/// The first line of the first block of shell commands that is not a comment.
fn first_command(readme: &str) -> Option<String> {
    let block = blocks(readme, "sh").into_iter().next()?;
    block
        .lines()
        .map(|line| line.split(" # ").next().unwrap_or(line).trim())
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
}

/// Adds arguments for the server. Cargo expects the arguments of the program that it runs after `--`.
fn with_arguments(command: &str, arguments: &str) -> String {
    let separate = command.starts_with("cargo ") && !command.contains(" -- ");
    format!("{command}{} {arguments}", if separate { " --" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_is_the_first_line_without_a_comment() {
        let readme = "# X\n```sh\n# build\n\ncargo build  # all of it\ncargo run\n```\n";
        assert_eq!(first_command(readme).as_deref(), Some("cargo build"));
        assert_eq!(first_command("```shell\ncargo run\n```"), None);
        assert_eq!(first_command("no block"), None);
    }

    #[test]
    fn arguments_reach_the_server_and_not_cargo() {
        assert_eq!(with_arguments("cargo run", "--port 1"), "cargo run -- --port 1");
        assert_eq!(with_arguments("cargo run -- x", "--port 1"), "cargo run -- x --port 1");
        assert_eq!(with_arguments("./server", "--port 1"), "./server --port 1");
    }
}
