//! Facts of a command's row in words: versions, flags, categories, keys, tips.

use super::text::code_list;
use brisk_engine::command::{Begin, Categories, Deprecated, Find, Flags, KeyFlags, KeySpec, Spec};

/// Meanings of the flags, by the names that COMMAND INFO shows.
pub(super) const FLAGS: &[(&str, &str)] = &[
    ("write", "May change data. Read-only replicas reject it."),
    ("readonly", "Reads data and does not change it."),
    ("denyoom", "Rejected if `maxmemory` is exceeded and no key can be evicted."),
    ("admin", "For administrators."),
    ("pubsub", "Belongs to Pub/Sub."),
    ("noscript", "Not allowed in scripts."),
    ("blocking", "May block the connection."),
    ("loading", "Allowed while a dataset is loaded."),
    (
        "stale",
        "Allowed on a replica that has lost its primary and has `replica-serve-stale-data no`.",
    ),
    ("skip_monitor", "Not shown by MONITOR."),
    ("skip_slowlog", "Not recorded in the slow log."),
    ("asking", "Accepted for a slot that is being imported, without ASKING."),
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

/// Returns where a command's keys are and how it uses them, one text for each key specification.
pub(super) fn keys(spec: &Spec) -> Vec<String> {
    spec.keys.iter().map(key).collect()
}

fn key(key: &KeySpec) -> String {
    if key.flags.contains(KeyFlags::NOT_KEY) {
        return format!("{} (a channel, which is hashed like a key)", place(key));
    }
    let mut text = format!("{}: {}", place(key), usage(key.flags));
    if key.flags.contains(KeyFlags::VARIABLE_FLAGS) {
        text.push_str(", depending on the options");
    }
    text
}

fn place(key: &KeySpec) -> String {
    match (key.begin, key.find) {
        (Begin::Unknown, _) | (_, Find::Unknown) => "depends on the options".to_owned(),
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
fn usage(flags: KeyFlags) -> String {
    let mut verbs = Vec::new();
    if flags.contains(KeyFlags::ACCESS) {
        verbs.push("read");
    } else if flags.contains(KeyFlags::RO) {
        return "only metadata is read".to_owned();
    }
    if flags.contains(KeyFlags::OW) {
        verbs.push("overwritten");
    } else if flags.contains(KeyFlags::RM) {
        verbs.push("deleted");
    } else if flags.contains(KeyFlags::RW) {
        for (flag, verb) in [
            (KeyFlags::UPDATE, "updated"),
            (KeyFlags::INSERT, "added to"),
            (KeyFlags::DELETE, "removed from"),
        ] {
            if flags.contains(flag) {
                verbs.push(verb);
            }
        }
    }
    match verbs.as_slice() {
        [] => "metadata is read and updated".to_owned(),
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
    fn keys_are_described_by_place_and_use() {
        let all = KeySpec::range(1, -1, 1).remove(KeyFlags::DELETE);
        assert_eq!(key(&all), "arguments 1 to the last: deleted");
        let pairs = KeySpec::range(1, -1, 2).overwrite(KeyFlags::UPDATE);
        assert_eq!(key(&pairs), "every second argument from 1 to the last: overwritten");
        let counted = KeySpec::counted(2).read_only(KeyFlags::ACCESS);
        assert_eq!(key(&counted), "the arguments after argument 2, which is their number: read");
        let first = KeySpec::at(1).read_write(KeyFlags::ACCESS.union(KeyFlags::DELETE));
        assert_eq!(key(&first), "argument 1: read and removed from");
    }
}
