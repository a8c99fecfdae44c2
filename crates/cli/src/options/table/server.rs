//! Options for the server and the user.

use super::super::parse::{Words, seconds};
use super::super::{ArgsError, Options, Protocol, uri};
use super::{Completed, Row, Section};
use crate::quote::leading_number;
use std::time::Duration;

/// The shortest time limit that sockets accept.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

pub(super) const SERVER: Section = Section {
    title: "Connection",
    rows: &[
        Row::value(&["-h"], "<host>", "Host (127.0.0.1).", |options, words| {
            options.host = words.text();
            Ok(())
        }),
        Row::value(&["-p", "--port"], "<port>", "Port (6379).", |options, words| {
            let port = words.text();
            options.port = leading_number(port.as_bytes());
            options.cluster.local.port = Some(port);
            Ok(())
        }),
        Row::value(
            &["-t"],
            "<seconds>",
            "Time limit for connecting and for each reply; 0 for no limit (0).",
            |options, words| {
                let wanted = seconds(words);
                let timeout = (wanted > 0.0).then(|| Duration::from_secs_f64(wanted));
                options.timeout = timeout.map(|timeout| timeout.max(TIMEOUT_MIN));
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
            "Server as a URI: redis://user:password@host:port/database, rediss:// for TLS.",
            address,
        ),
        Row::value(
            &["-a", "--pass"],
            "<password>",
            "Password. Other users of this machine may see it; REDISCLI_AUTH is safer.",
            |options, words| {
                options.password = Some(words.value());
                options.shows_password = true;
                Ok(())
            },
        ),
        Row::value(
            &["--user"],
            "<name>",
            "User name for authentication, with a password.",
            |options, words| {
                options.user = Some(words.value());
                Ok(())
            },
        ),
        Row::flag(&["--askpass"], "Prompts for the password.", |options| {
            options.asks_password = true
        }),
        Row::flag(
            &["--no-auth-warning"],
            "Does not warn about passwords on the command line.",
            |options| options.warns_of_password = false,
        ),
        Row::value(&["-n"], "<number>", "Database number.", |options, words| {
            options.database = words.number();
            Ok(())
        }),
        Row::flag(&["-2"], "Uses RESP2.", |options| speak(options, Protocol::Resp2)),
        Row::flag(&["-3"], "Uses RESP3.", |options| speak(options, Protocol::Resp3)),
        Row::flag(&["-c"], "Cluster mode: follows MOVED and ASK redirections.", |options| {
            options.cluster_mode = true;
        }),
    ],
};

pub(super) const TLS: Section = Section {
    title: "TLS",
    rows: &[
        Row::flag(&["--tls"], "Uses TLS.", |options| options.tls = true),
        Row::value(
            &["--sni"],
            "<host>",
            "Server name to request (SNI) and to verify.",
            |options, words| {
                options.tls_files.server_name = Some(words.text());
                Ok(())
            },
        ),
        Row::value(
            &["--cacert"],
            "<file>",
            "Trusted CA certificates in PEM format; the default is those of the system.",
            |options, words| {
                options.tls_files.ca_file = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
        Row::value(
            &["--cacertdir"],
            "<directory>",
            "Directory with such files.",
            |options, words| {
                options.tls_files.ca_dir = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::Directory),
        Row::flag(&["--insecure"], "Does not verify the certificate of the server.", |options| {
            options.tls_files.insecure = true;
        }),
        Row::value(&["--cert"], "<file>", "Client certificate, with --key.", |options, words| {
            options.tls_files.certificate = Some(words.path());
            Ok(())
        })
        .completed(Completed::File),
        Row::value(
            &["--key"],
            "<file>",
            "Private key of the client certificate.",
            |options, words| {
                options.tls_files.key = Some(words.path());
                Ok(())
            },
        )
        .completed(Completed::File),
        Row::value(
            &["--tls-ciphers"],
            "<list>",
            "Allowed cipher suites for TLS 1.2, separated by colons.",
            ciphers,
        ),
        Row::value(
            &["--tls-ciphersuites"],
            "<list>",
            "Allowed cipher suites for TLS 1.3.",
            ciphers,
        ),
    ],
};

fn address(options: &mut Options, words: &mut Words) -> Result<(), ArgsError> {
    options.shows_password = true;
    uri::apply(options, &words.text()).map_err(|text| ArgsError::Because(format!("{text}\n")))
}

fn speak(options: &mut Options, protocol: Protocol) {
    options.contradicts |= match options.protocol {
        Protocol::Resp2 => protocol == Protocol::Resp3,
        Protocol::Resp3 => protocol == Protocol::Resp2,
        Protocol::Unsaid | Protocol::Resp3IfKnown => false,
    };
    options.protocol = protocol;
}

/// Adds allowed ciphers. There is one list for all TLS versions.
fn ciphers(options: &mut Options, words: &mut Words) -> Result<(), ArgsError> {
    let more = words.text();
    let ciphers = &mut options.tls_files.ciphers;
    *ciphers = Some(match ciphers.take() {
        Some(before) => format!("{before}:{more}"),
        None => more,
    });
    Ok(())
}
