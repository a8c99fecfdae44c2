//! Facts from a command's row as text: versions, flags, categories, keys, tips.

use super::text::code_list;
use brisk_engine::command::{
    Arg, ArgKind, Begin, Categories, Deprecated, Find, Flags, KeyFlags, KeySpec, Spec,
};

/// Meanings of the flags, by the names that COMMAND INFO shows.
pub(super) const FLAGS: &[(&str, &str)] = &[
    ("write", "May change data. Read-only replicas reject it."),
    ("readonly", "Reads data and does not change it."),
    ("denyoom", "Rejected if `maxmemory` is exceeded and no key can be evicted."),
    ("admin", "For administrators."),
    ("pubsub", "Belongs to Pub/Sub."),
    ("noscript", "Not allowed in scripts."),
    ("blocking", "May block the connection."),
    ("loading", "Allowed while a dataset is being loaded."),
    (
        "stale",
        "Allowed on a replica that has lost its primary and has `replica-serve-stale-data no`.",
    ),
    ("skip_monitor", "Not shown by MONITOR."),
    ("skip_slowlog", "Not recorded in the slow log."),
    ("asking", "Accepted without ASKING for a slot that is being imported."),
    ("fast", "Takes constant or logarithmic time for each element."),
    ("no_auth", "Allowed before authentication."),
    ("no_mandatory_keys", "May be called without keys."),
    (
        "no_async_loading",
        "Rejected while a replica serves its old dataset and loads a new one \
         (`repl-diskless-load swapdb`).",
    ),
    ("no_multi", "Not allowed in a transaction."),
    ("movablekeys", "The positions of the keys depend on other arguments."),
    ("allow_busy", "Allowed while a slow script is running."),
];

/// Returns the names of the flags that COMMAND INFO shows.
pub(super) fn flags(spec: &Spec) -> Vec<&'static str> {
    let shown = Flags::NAMES.iter().filter(|(flag, _)| spec.flags.contains(*flag));
    shown.map(|(_, name)| *name).collect()
}

/// Returns the ACL categories with their `@`.
pub(super) fn categories(spec: &Spec) -> String {
    let all = spec.all_categories();
    let names = Categories::NAMES.iter().filter(|(category, _)| all.contains(*category));
    let names: Vec<String> = names.map(|(_, name)| format!("@{name}")).collect();
    code_list(names.iter().map(String::as_str))
}

/// Returns the version in which a command appeared, with the project's name.
pub(super) fn since(spec: &Spec) -> String {
    format!("{} {}", spec.origin.name(), spec.since)
}

/// Returns the sentence about a deprecated command.
pub(super) fn deprecated(spec: &Spec, deprecated: &Deprecated) -> String {
    let origin = spec.origin.name();
    let since = format!("Deprecated since {origin} {}", deprecated.since);
    // Redis marks tokens in this text with `!`.
    match deprecated.replaced_by.replace('!', "").as_str() {
        "" => format!("{since}."),
        instead => format!("{since}. Use {instead} instead."),
    }
}

/// Returns how a command uses its keys, one text for each key specification.
pub(super) fn keys(spec: &Spec) -> Vec<String> {
    let usage = |(index, key)| {
        let mut names = Vec::new();
        add_names(spec.args, index, &mut names);
        usage_of(key, &names)
    };
    (0..).zip(spec.keys).map(usage).collect()
}

/// Adds the arguments that a key specification finds, as the syntax shows them.
fn add_names(args: &[Arg], index: u8, names: &mut Vec<String>) {
    for arg in args {
        match arg.kind {
            ArgKind::OneOf(parts) | ArgKind::Block(parts) => add_names(parts, index, names),
            _ if arg.key_spec != Some(index) => {}
            _ if !arg.token.is_empty() => names.push(format!("`{} {}`", arg.token, arg.name)),
            _ if arg.multiple => names.push(format!("each `{}`", arg.name)),
            _ => names.push(format!("`{}`", arg.name)),
        }
    }
}

fn usage_of(key: &KeySpec, names: &[String]) -> String {
    let keys = if names.is_empty() { place(key) } else { names.join(" and ") };
    // Commands that remove elements and name several keys use only the first key that is not empty.
    let is_pop = key.flags.contains(KeyFlags::RW.union(KeyFlags::DELETE));
    let keys = if is_pop { keys.replace("each ", "one ") } else { keys };
    if key.flags.contains(KeyFlags::NOT_KEY) {
        return format!("hashes the channels in {keys} as if they were keys");
    }
    let is_variable = key.flags.contains(KeyFlags::VARIABLE_FLAGS);
    let condition = if is_variable { ", depending on the options" } else { "" };
    format!("{} {keys}{condition}", verbs(key.flags))
}

fn place(key: &KeySpec) -> String {
    match (key.begin, key.find) {
        (Begin::Unknown, _) | (_, Find::Unknown) => "keys that the options name".to_owned(),
        (Begin::Keyword { keyword, .. }, Find::Range { limit, .. }) if limit > 1 => {
            format!("the first half of the arguments after `{keyword}`")
        }
        (Begin::Keyword { keyword, .. }, Find::Range { last: 0, .. }) => {
            format!("the argument after `{keyword}`")
        }
        (Begin::Keyword { keyword, .. }, _) => format!("the arguments after `{keyword}`"),
        (Begin::Index(at), Find::KeyNum { .. }) => {
            format!("the arguments after argument {at}, which is their number")
        }
        (Begin::Index(at), Find::Range { last: 0, .. }) => format!("argument {at}"),
        (Begin::Index(at), Find::Range { last, step, .. }) => {
            let end = match last {
                -1 => "the last".to_owned(),
                ..=-2 => format!("the last but {}", last.unsigned_abs() - 1),
                _ => (i32::from(at) + i32::from(last)).to_string(),
            };
            match step {
                0 | 1 => format!("arguments {at} to {end}"),
                2 => format!("every second argument from {at} to {end}"),
                step => format!("every {step}th argument from {at} to {end}"),
            }
        }
    }
}

/// Returns what a command does with a key.
fn verbs(flags: KeyFlags) -> String {
    let mut verbs = Vec::new();
    if flags.contains(KeyFlags::ACCESS) {
        verbs.push("reads");
    } else if flags.contains(KeyFlags::RO) {
        return "reads the metadata of".to_owned();
    }
    if flags.contains(KeyFlags::OW) {
        verbs.push("overwrites");
    } else if flags.contains(KeyFlags::RM) {
        verbs.push("deletes");
    } else if flags.contains(KeyFlags::RW) {
        for (flag, verb) in [
            (KeyFlags::UPDATE, "updates"),
            (KeyFlags::INSERT, "adds to"),
            (KeyFlags::DELETE, "removes from"),
        ] {
            if flags.contains(flag) {
                verbs.push(verb);
            }
        }
    }
    match verbs.as_slice() {
        [] => "updates the metadata of".to_owned(),
        verbs => verbs.join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_meaning() {
        let described: Vec<&str> = FLAGS.iter().map(|(name, _)| *name).collect();
        let shown: Vec<&str> = Flags::NAMES.iter().map(|(_, name)| *name).collect();
        assert_eq!(described, shown);
    }

    #[test]
    fn keys_are_described_by_use_and_name_or_place() {
        let shown = |key: KeySpec| usage_of(&key, &[]);
        let all = KeySpec::range(1, -1, 1).remove(KeyFlags::DELETE);
        assert_eq!(shown(all), "deletes arguments 1 to the last");
        let pairs = KeySpec::range(1, -1, 2).overwrite(KeyFlags::UPDATE);
        assert_eq!(shown(pairs), "overwrites every second argument from 1 to the last");
        let counted = KeySpec::counted(2).read_only(KeyFlags::ACCESS);
        assert_eq!(shown(counted), "reads the arguments after argument 2, which is their number");
        const SPEC: Spec = Spec {
            keys: &[
                KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE)),
                KeySpec::at(2).read_only(KeyFlags::empty()),
                KeySpec::at(3).overwrite(KeyFlags::UPDATE),
            ],
            args: &[
                Arg::key("source"),
                Arg::block("b", &[Arg::key("key").spec(1).multiple()]),
                Arg::key("to").after("STORE").spec(2),
            ],
            ..Spec::EMPTY
        };
        assert_eq!(
            keys(&SPEC),
            [
                "reads and removes from `source`",
                "reads the metadata of each `key`",
                "overwrites `STORE to`"
            ]
        );
    }
}
