//! The command line of a comparison, without private data, for published results.

use super::comparison::ServerInfo;
use crate::subject::{Place, SubjectSpec};

/// Options whose values are private: addresses, credentials, TLS files.
const PRIVATE_OPTIONS: [&str; 10] =
    ["-h", "-s", "-u", "-a", "--user", "--sni", "--cacert", "--cacertdir", "--cert", "--key"];
/// Directives whose names contain one of these strings have private values.
const PRIVATE_DIRECTIVES: [&str; 3] = ["auth", "pass", "user"];
const HIDDEN: &str = "...";
/// Replaces the address of a running server in the command line.
const ADDRESS: &str = "ADDRESS";

/// The command line with these arguments, some of which are servers, quoted for a shell. Omits passwords, addresses and
/// directories.
pub(super) fn command_line(arguments: &[String], servers: &[String]) -> String {
    let mut text = "brisk-benchmark compare".to_owned();
    let mut is_private = false;
    for argument in arguments {
        let shown = if is_private {
            HIDDEN.to_owned()
        } else if servers.contains(argument) {
            public_server(argument)
        } else if argument.starts_with(['/', '~']) {
            file_name(argument).to_owned()
        } else {
            argument.clone()
        };
        text.push(' ');
        text += &quoted(&shown);
        is_private = !is_private && PRIVATE_OPTIONS.contains(&argument.as_str());
    }
    text
}

/// The server without its address or the directories of its command. A server without a name gets a number.
pub(super) fn public_info(number: usize, server: ServerInfo) -> ServerInfo {
    let name = if server.name == server.place { format!("server {number}") } else { server.name };
    let place = public_place(SubjectSpec::parse(&server.place).place);
    ServerInfo { name, place, ..server }
}

fn public_server(text: &str) -> String {
    let spec = SubjectSpec::parse(text);
    let name = format!("{}=", spec.name);
    let name = if text.starts_with(&name) { name.as_str() } else { "" };
    format!("{name}{}", public_place(spec.place))
}

fn public_place(place: Place) -> String {
    let command = match place {
        Place::At(_) => return ADDRESS.to_owned(),
        Place::StartedBy(command) => command,
    };
    let mut is_private = false;
    let words = command.split_whitespace().map(|word| {
        let shown = if is_private { HIDDEN } else { file_name(word) };
        let has = |part: &&str| word.contains(*part);
        is_private = word.starts_with("--") && PRIVATE_DIRECTIVES.iter().any(has);
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else if word.contains('\'') && !word.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{word}\"")
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_command_line_has_no_directories_addresses_and_passwords() {
        let servers = words(&[
            "redis=/usr/bin/redis-server --port {port} --save '' --requirepass secret",
            "target/debug/brisk-server --port {port} --dir /srv/ann/data",
            "other=db.example:7000",
            "db.example:7001",
        ]);
        let mut arguments = servers.clone();
        arguments.extend(words(&["-a", "secret", "-t", "get", "--pin", "1/0"]));
        arguments.extend(words(&["--save", "docs/x.json", "--html", "/srv/ann/x.html"]));
        assert_eq!(
            command_line(&arguments, &servers),
            "brisk-benchmark compare \"redis=redis-server --port {port} --save '' --requirepass ...\" \
             'brisk-server --port {port} --dir data' other=ADDRESS ADDRESS -a ... -t get --pin 1/0 \
             --save docs/x.json --html x.html"
        );
    }

    #[test]
    fn servers_are_described_without_addresses_and_directories() {
        let public = |name: &str, place: &str| {
            let (name, place) = (name.to_owned(), place.to_owned());
            let info = public_info(2, ServerInfo { name, place, version: None, local: true });
            (info.name, info.place)
        };
        let owned = |name: &str, place: &str| (name.to_owned(), place.to_owned());
        assert_eq!(public("a", "/x/y --port 1"), owned("a", "y --port 1"));
        assert_eq!(public("a", "db.example:1"), owned("a", "ADDRESS"));
        assert_eq!(public("db.example:1", "db.example:1"), owned("server 2", "ADDRESS"));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = [("a=1", "a=1"), ("", "''"), ("a b", "'a b'"), ("a '$' b", r"'a '\''$'\'' b'")];
        for (word, wanted) in words {
            assert_eq!(quoted(word), wanted);
        }
    }
}
