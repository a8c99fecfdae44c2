//! Options that say where the server is, and who asks.

use super::super::parse::{Words, seconds};
use super::super::{Options, Protocol, Refusal, uri};
use super::{Completed, Row, Section};
use std::time::Duration;

/// The shortest time limit that sockets accept.
const PATIENCE_MIN: Duration = Duration::from_millis(1);

pub(super) const SERVER: Section = Section {
    title: "Where the server is, and who asks",
    rows: &[
        Row::value(&["-h"], "<host>", "Host (127.0.0.1).", |options, words| {
            options.host = words.text();
            Ok(())
        }),
        Row::value(&["-p", "--port"], "<port>", "Port (6379).", |options, words| {
            options.port = words.number();
            options.cluster.local.port = Some(options.port);
            Ok(())
        }),
        Row::value(
            &["-t"],
            "<seconds>",
            "Time limit for connecting and for each reply; 0 for no limit (0).",
            |options, words| {
                let wanted = seconds(words);
                let patience = (wanted > 0.0).then(|| Duration::from_secs_f64(wanted));
                options.patience = patience.map(|patience| patience.max(PATIENCE_MIN));
                Ok(())
            },
        ),
        Row::value(
            &["-s"],
            "<path>",
            "Unix socket, instead of host and port.",
            |options, words| {
                options.socket = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
        Row::value(
            &["-u"],
            "<uri>",
            "All in one: redis://user:password@host:port/database, rediss:// for TLS.",
            address,
        ),
        Row::value(
            &["-a", "--pass"],
            "<word>",
            "Password. Others on this machine may see it: the variable REDISCLI_AUTH is safer.",
            |options, words| {
                options.password = Some(words.value());
                options.shows_password = true;
                Ok(())
            },
        ),
        Row::value(&["--user"], "<name>", "User, with a password.", |options, words| {
            options.user = Some(words.value());
            Ok(())
        }),
        Row::flag(&["--askpass"], "Asks for the password.", |options| options.asks_password = true),
        Row::flag(
            &["--no-auth-warning"],
            "Does not warn of passwords on the command line.",
            |options| options.warns_of_password = false,
        ),
        Row::value(&["-n"], "<number>", "Database.", |options, words| {
            options.database = words.number();
            Ok(())
        }),
        Row::flag(&["-2"], "Speaks RESP2.", |options| speak(options, Protocol::Resp2)),
        Row::flag(&["-3"], "Speaks RESP3.", |options| speak(options, Protocol::Resp3)),
        Row::flag(&["-c"], "Follows MOVED and ASK to the nodes of a cluster.", |options| {
            options.cluster_mode = true;
        }),
    ],
};

pub(super) const TLS: Section = Section {
    title: "TLS",
    rows: &[
        Row::flag(&["--tls"], "Speaks TLS.", |options| options.tls = true),
        Row::value(
            &["--sni"],
            "<host>",
            "Name the server is asked for, and must have.",
            |options, words| {
                options.tls_files.server_name = Some(words.text());
                Ok(())
            },
        ),
        Row::value(
            &["--cacert"],
            "<file>",
            "Trusted authorities, in PEM format; else those of the system.",
            |options, words| {
                options.tls_files.ca_file = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
        Row::value(&["--cacertdir"], "<folder>", "A folder with such files.", |options, words| {
            options.tls_files.ca_dir = Some(words.path());
            Ok(())
        })
        .completed(Completed::Folder),
        Row::flag(&["--insecure"], "Trusts any certificate.", |options| {
            options.tls_files.insecure = true;
        }),
        Row::value(&["--cert"], "<file>", "Our own certificate, with --key.", |options, words| {
            options.tls_files.certificate = Some(words.path());
            Ok(())
        })
        .completed(Completed::File),
        Row::value(&["--key"], "<file>", "Its key.", |options, words| {
            options.tls_files.key = Some(words.path());
            Ok(())
        })
        .completed(Completed::File),
        Row::value(
            &["--tls-ciphers"],
            "<list>",
            "Cipher suites of TLS 1.2 that may be used, separated by colons.",
            ciphers,
        ),
        Row::value(&["--tls-ciphersuites"], "<list>", "The same of TLS 1.3.", ciphers),
    ],
};

fn address(options: &mut Options, words: &mut Words) -> Result<(), Refusal> {
    options.shows_password = true;
    uri::apply(options, &words.text()).map_err(|text| Refusal::Because(format!("{text}\n")))
}

fn speak(options: &mut Options, protocol: Protocol) {
    options.contradicts |= match options.protocol {
        Protocol::Resp2 => protocol == Protocol::Resp3,
        Protocol::Resp3 => protocol == Protocol::Resp2,
        Protocol::Unsaid | Protocol::Resp3IfKnown => false,
    };
    options.protocol = protocol;
}

/// One list of what is allowed, whichever version the names belong to.
fn ciphers(options: &mut Options, words: &mut Words) -> Result<(), Refusal> {
    let more = words.text();
    let ciphers = &mut options.tls_files.ciphers;
    *ciphers = Some(match ciphers.take() {
        Some(before) => format!("{before}:{more}"),
        None => more,
    });
    Ok(())
}
