//! `help`: the server's documentation of commands.

use crate::docs::{Docs, Entry, same_words};
use crate::screen;
use crate::session::{Loudness, Session};

/// The server's documentation of its commands; `None` without a server, or if the server has none.
pub(super) fn docs(session: &mut Session) -> Option<Docs> {
    if !session.is_connected() {
        return None;
    }
    let reply = session.request(&["COMMAND", "DOCS"]).ok()?;
    let docs = Docs::of(&reply);
    (!docs.entries.is_empty()).then_some(docs)
}

/// Prints the requested help: a general text, a command with all its subcommands, or a group.
pub(crate) fn show(session: &mut Session, topic: &[Vec<u8>]) {
    if topic.is_empty() {
        screen::print(general());
        return;
    }
    if !session.is_connected() && session.connect(Loudness::Loud).is_err() {
        return;
    }
    let Some(docs) = docs(session) else {
        screen::print("Help not available\n");
        return;
    };
    let group = topic[0].strip_prefix(b"@");
    for entry in &docs.entries {
        match group {
            Some(group) if entry.group.as_bytes().eq_ignore_ascii_case(group) => {
                screen::print(shown(entry, false));
            }
            None if entry.name.split(' ').count() >= topic.len()
                && same_words(entry.name.split(' '), topic) =>
            {
                screen::print(shown(entry, true));
            }
            _ => {}
        }
    }
    screen::print("\r\n");
}

fn shown(entry: &Entry, with_group: bool) -> String {
    let Entry { name, arguments, summary, since, group, .. } = entry;
    let mut text = format!(
        "\r\n  \x1b[1m{name}\x1b[0m \x1b[90m{arguments}\x1b[0m\r\n  \
         \x1b[33msummary:\x1b[0m {summary}\r\n  \x1b[33msince:\x1b[0m {since}\r\n"
    );
    if with_group {
        text.push_str(&format!("  \x1b[33mgroup:\x1b[0m {group}\r\n"));
    }
    text
}

fn general() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "brisk-cli {version}\n\
         help <command>     shows a command with its arguments and subcommands\n\
         help @<group>      shows all commands of a group, for example @string\n\
         help <tab>         cycles through all help topics\n\
         :set hints         shows arguments while you type; :set nohints disables this.\n\
         \u{20}                  ~/.brisk_clirc can contain these lines\n\
         :set pager off     prints long replies directly; :set pager on uses a pager\n\
         get key | jq .     passes a reply to a shell command; '|' in quotes is an argument\n\
         connect <host> <port>, clear, quit\n"
    )
}
