//! Settings with a syntax of their own. Each is a `Special`: how it is shown, parsed and written to
//! a file.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::choice::ShutdownMode;
use super::config::Config;
use super::directive::{Field, Special, Write, not_one_of};
use super::value::{
    self, ClientClass, OutputLimit, PrimaryAddress, SaveRule, SettingRejection, Text, Threads,
};
use super::words;

/// Maximum number of addresses for `bind`.
pub const BIND_ADDRESSES_MAX: usize = 16;
/// Maximum number of percentiles for INFO; Redis has no limit.
pub const PERCENTILES_MAX: usize = 100;
/// Maximum number of save rules; Redis has no limit.
pub const SAVE_RULES_MAX: usize = 1_000;
/// Maximum number of workers.
pub const THREADS_MAX: usize = 256;

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// `bind`: without an address, the server does not listen on TCP. `-` before an address means that
/// it may be unavailable.
pub(super) const BIND: Special = Special {
    form: "addresses",
    get: |c| c.network.bind.join(" "),
    set: |c, words, _| set_addresses(&mut c.network.bind, words),
    lines: |c| address_lines(&c.network.bind),
};

/// `http-bind`: the same for HTTP.
pub(super) const HTTP_BIND: Special = Special {
    form: "addresses",
    get: |c| c.network.http_bind.join(" "),
    set: |c, words, _| set_addresses(&mut c.network.http_bind, words),
    lines: |c| address_lines(&c.network.http_bind),
};

fn set_addresses(place: &mut Vec<String>, words: &[Vec<u8>]) -> Result<(), SettingRejection> {
    if words.len() > BIND_ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".into());
    }
    *place = match words {
        [one] if one.is_empty() => Vec::new(),
        words => words.iter().map(|word| text(word)).collect(),
    };
    Ok(())
}

fn address_lines(addresses: &[String]) -> Vec<String> {
    if addresses.is_empty() {
        return vec!["\"\"".to_owned()];
    }
    let words: Vec<String> = addresses.iter().map(|a| plain_or_quoted(a.as_bytes())).collect();
    vec![words.join(" ")]
}

/// Returns an argument unchanged if it reads back the same, otherwise in quotes.
pub fn plain_or_quoted(word: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.iter().all(plain) { text(word) } else { words::quote(word) }
}

/// `save`: pairs of seconds and changes. Further lines of a file add rules; an empty value removes
/// all rules.
pub(super) const SAVE: Special = Special {
    form: "pairs of seconds and changes",
    get: |c| save_lines(c).join(" "),
    set: |c, words, write| {
        const INVALID: SettingRejection = SettingRejection::Borrowed("Invalid save parameters");
        let words = if matches!(words, [one] if one.is_empty()) { &[] } else { words };
        let mut rules = Vec::new();
        for pair in words.chunks(2) {
            let [seconds, changes] = pair else { return Err(INVALID) };
            match (value::integer(seconds), value::integer(changes)) {
                (Some(seconds @ 1..), Some(changes @ 0..)) => {
                    rules.push(SaveRule { seconds, changes });
                }
                _ => return Err(INVALID),
            }
        }
        let kept = &mut c.persistence.save;
        if write == Write::Replace || rules.is_empty() {
            kept.clear();
        }
        if kept.len() + rules.len() > SAVE_RULES_MAX {
            return Err(INVALID);
        }
        kept.append(&mut rules);
        Ok(())
    },
    lines: |c| {
        let lines = save_lines(c);
        if lines.is_empty() { vec!["\"\"".to_owned()] } else { lines }
    },
};

fn save_lines(c: &Config) -> Vec<String> {
    c.persistence.save.iter().map(|rule| format!("{} {}", rule.seconds, rule.changes)).collect()
}

/// The words of the client classes. CONFIG GET shows `slave`; files should say `replica`.
const CLASSES: [(&str, ClientClass); 4] = [
    ("normal", ClientClass::Normal),
    ("slave", ClientClass::Replica),
    ("pubsub", ClientClass::Pubsub),
    ("replica", ClientClass::Replica),
];

/// `client-output-buffer-limit`: class, hard limit, soft limit, soft seconds. Classes that are not
/// named stay unchanged.
pub(super) const OUTPUT_LIMITS: Special = Special {
    form: "class, hard limit, soft limit and seconds, for any of normal, replica and pubsub",
    get: |c| {
        let shown = CLASSES[..3].iter().map(|(name, class)| {
            let limit = c.clients.output_limits[*class as usize];
            format!("{name} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
        });
        shown.collect::<Vec<_>>().join(" ")
    },
    set: |c, words, _| {
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".into());
        }
        for group in words.chunks_exact(4) {
            let named = |(name, _): &&(&str, _)| name.as_bytes().eq_ignore_ascii_case(&group[0]);
            let (_, class) = CLASSES.iter().find(named).ok_or(SettingRejection::Borrowed(
                "Invalid client class specified in buffer limit configuration.",
            ))?;
            let seconds =
                value::integer(&group[3]).filter(|s| (0..=i64::from(i32::MAX)).contains(s));
            match (value::memory(&group[1]), value::memory(&group[2]), seconds) {
                (Some(hard_bytes), Some(soft_bytes), Some(soft_seconds)) => {
                    c.clients.output_limits[*class as usize] =
                        OutputLimit { hard_bytes, soft_bytes, soft_seconds };
                }
                _ => {
                    return Err("Error in hard, soft or soft_seconds setting in buffer limit \
                                configuration."
                        .into());
                }
            }
        }
        Ok(())
    },
    lines: |c| {
        let line = |name, class| {
            let OutputLimit { hard_bytes, soft_bytes, soft_seconds } =
                c.clients.output_limits[class as usize];
            let (hard, soft) = (value::memory_text(hard_bytes), value::memory_text(soft_bytes));
            format!("{name} {hard} {soft} {soft_seconds}")
        };
        vec![
            line("normal", ClientClass::Normal),
            line("replica", ClientClass::Replica),
            line("pubsub", ClientClass::Pubsub),
        ]
    },
};

/// `oom-score-adj-values`: for primary, replica and background children.
pub(super) const OOM_SCORES: Special = Special {
    form: "three numbers, -2000 to 2000",
    get: oom_scores,
    set: |c, words, _| {
        if words.len() != 3 {
            return Err("wrong number of arguments".into());
        }
        for (place, word) in c.process.oom_score_adj_values.iter_mut().zip(words) {
            *place = value::integer(word).filter(|v| (-2_000..=2_000).contains(v)).ok_or(
                SettingRejection::Borrowed(
                    "Invalid oom-score-adj-values, elements must be between -2000 and 2000.",
                ),
            )?;
        }
        Ok(())
    },
    lines: |c| vec![oom_scores(c)],
};

fn oom_scores(c: &Config) -> String {
    c.process.oom_score_adj_values.map(|v| v.to_string()).join(" ")
}

/// `latency-tracking-info-percentiles`: numbers from 0 to 100.
pub(super) const PERCENTILES: Special = Special {
    form: "numbers, 0 to 100",
    get: percentiles,
    set: |c, words, _| {
        const INVALID: SettingRejection =
            SettingRejection::Borrowed("Invalid latency-tracking-info-percentiles parameters");
        if words.len() > PERCENTILES_MAX {
            return Err(INVALID);
        }
        let mut wanted = Vec::with_capacity(words.len());
        for word in words.iter().filter(|word| words.len() > 1 || !word.is_empty()) {
            let number = std::str::from_utf8(word).ok().and_then(|w| w.parse::<f64>().ok());
            let number = number.filter(|n| !n.is_nan()).ok_or(INVALID)?;
            if !(0.0..=100.0).contains(&number) {
                return Err("latency-tracking-info-percentiles parameters should sit between \
                            [0.0,100.0]"
                    .into());
            }
            wanted.push(number);
        }
        c.observe.latency_percentiles = wanted;
        Ok(())
    },
    lines: |c| {
        let shown = percentiles(c);
        vec![if shown.is_empty() { "\"\"".to_owned() } else { shown }]
    },
};

/// At most six digits after the decimal point, without trailing zeros.
fn percentiles(c: &Config) -> String {
    let shown = c.observe.latency_percentiles.iter().map(|number| {
        let fixed = format!("{number:.6}");
        fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Creates the `Special` of a `shutdown-on-…` field.
macro_rules! shutdown {
    ($($path:ident).+) => {
        Special {
            form: "default, or any of save, nosave, now and force",
            get: |c| c.$($path).+.words(),
            set: |c, words, _| set_shutdown(&mut c.$($path).+, words),
            lines: |c| vec![c.$($path).+.words()],
        }
    };
}
pub(super) const SHUTDOWN_ON_SIGINT: Special = shutdown!(process.shutdown_on_sigint);
pub(super) const SHUTDOWN_ON_SIGTERM: Special = shutdown!(process.shutdown_on_sigterm);

fn set_shutdown(place: &mut ShutdownMode, words: &[Vec<u8>]) -> Result<(), SettingRejection> {
    let mode = ShutdownMode::from_words(words).ok_or_else(|| not_one_of(&ShutdownMode::list()))?;
    if mode.save && mode.nosave {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    *place = mode;
    Ok(())
}

/// `replicaof host port`, or `no one`.
pub(super) const REPLICAOF: Special = Special {
    form: "host and port",
    get: |c| {
        let shown = |p: &PrimaryAddress| format!("{} {}", p.host.to_string_lossy(), p.port);
        c.replication.replicaof.as_ref().map_or(String::new(), shown)
    },
    set: |c, words, _| {
        let [host, port] = words else {
            return Err("wrong number of arguments".into());
        };
        let has_no_primary = host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one");
        c.replication.replicaof = if has_no_primary {
            None
        } else {
            let port = value::integer(port).and_then(|port| u16::try_from(port).ok());
            let port = port.ok_or(SettingRejection::Borrowed("Invalid master port"))?;
            Some(PrimaryAddress { host: Text::from(host.as_slice()), port })
        };
        Ok(())
    },
    lines: |c| {
        let line =
            |p: &PrimaryAddress| format!("{} {}", plain_or_quoted(p.host.as_bytes()), p.port);
        // In cluster mode the topology names the primary, and a line in the file is rejected at
        // startup.
        let primary = c.replication.replicaof.as_ref().filter(|_| !c.cluster.cluster_enabled);
        primary.map(line).into_iter().collect()
    },
};

/// `dir`: must be a directory that the process may enter. Stored as an absolute path without links.
pub(super) const DIR: Special = Special {
    form: "path",
    get: |c| c.process.dir.to_string_lossy().into_owned(),
    set: |c, words, _| {
        let [word] = words else { return Err("wrong number of arguments".into()) };
        let reason = |error: io::Error| SettingRejection::from(os_reason(&error));
        let path = c.process.dir.as_path().join(Text::from(word.as_slice()).as_path());
        let path = if word.is_empty() { PathBuf::new() } else { path };
        // A lookup of `.` requires the same as chdir: a directory, and permission to enter it.
        std::fs::metadata(path.join(".")).map_err(reason)?;
        let path = std::fs::canonicalize(&path).map_err(reason)?;
        c.process.dir = Text::from(path.as_os_str().as_bytes());
        Ok(())
    },
    lines: |c| vec![words::quote(c.process.dir.as_bytes())],
};

/// `threads`: CONFIG GET shows the real number, files keep the configured value. The directive is
/// fixed, so that CONFIG SET does not store the real number as the configured value.
pub(super) const THREADS: Special = Special {
    form: "number, 0 to 256",
    get: |c| c.process.threads.count().to_string(),
    set: |c, words, _| {
        let number = words.first().and_then(|word| value::integer(word));
        let number = number
            .ok_or(SettingRejection::Borrowed("argument couldn't be parsed into an integer"))?;
        let configured =
            usize::try_from(number).ok().filter(|configured| *configured <= THREADS_MAX);
        let configured = configured.ok_or_else(|| {
            SettingRejection::from(format!(
                "argument must be between 0 and {THREADS_MAX} inclusive"
            ))
        })?;
        c.process.threads = Threads { configured };
        Ok(())
    },
    lines: |c| vec![c.process.threads.configured.to_string()],
};

/// Returns the system's error text without Rust's additions: "(os error N)", and the context of a
/// failed name lookup.
pub fn os_reason(error: &io::Error) -> String {
    let full = error.to_string();
    let said = full.rfind(" (os error ").map_or(full.as_str(), |at| &full[..at]);
    said.strip_prefix("failed to lookup address information: ").unwrap_or(said).to_owned()
}

/// Accepts a file name, but not a path. The name may be empty.
pub(super) fn file_name(bytes: &[u8], message: &'static str) -> Result<(), SettingRejection> {
    if bytes.contains(&b'/') || bytes.contains(&b'\\') { Err(message.into()) } else { Ok(()) }
}

/// Accepts host names: letters, digits, hyphens and dots, shorter than 256 bytes.
pub(super) fn host_name(bytes: &[u8]) -> Result<(), SettingRejection> {
    if bytes.len() >= 256 {
        return Err("Hostnames must be less than 256 characters".into());
    }
    if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.')) {
        return Err("Hostnames may only contain alphanumeric characters, hyphens or dots".into());
    }
    Ok(())
}

/// `proc-title-template`: a non-empty text with the known variables in braces.
pub(super) fn title_template(bytes: &[u8]) -> Result<(), SettingRejection> {
    const INVALID: SettingRejection =
        SettingRejection::Borrowed("template format is invalid or contains unknown variables");
    const VARIABLES: [&str; 7] =
        ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];
    let mut rest = std::str::from_utf8(bytes).map_err(|_| INVALID)?;
    if rest.is_empty() {
        return Err(INVALID);
    }
    while let Some((_, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or(INVALID)?;
        if !VARIABLES.contains(&name) {
            return Err(INVALID);
        }
        rest = after;
    }
    Ok(())
}

/// Stores the arguments of a line that other parts of the server read (`user`, `loadmodule`).
pub(super) fn keep_line(field: &Field<Vec<Vec<Text>>>, config: &mut Config, words: &[Vec<u8>]) {
    (field.get_mut)(config).push(words.iter().map(|word| Text::from(word.as_slice())).collect());
}

/// Returns the working directory at startup, the default of `dir`.
pub(super) fn working_directory() -> Text {
    let here = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    Text::from(here.as_os_str().as_bytes())
}
