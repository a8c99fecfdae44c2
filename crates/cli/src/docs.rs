//! What the server says of its commands: summaries and arguments, for `help`, hints and completion. They are
//! asked of it with COMMAND DOCS, so they fit its version and its modules.

use brisk_resp::Value;

/// Arguments are nested this deep at most; what is deeper is not shown.
const DEPTH_MAX: usize = 16;

/// One command or subcommand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// In capitals, with a space before the subcommand.
    pub(crate) name: String,
    /// The arguments, as people write them.
    pub(crate) arguments: String,
    pub(crate) summary: String,
    pub(crate) since: String,
    pub(crate) group: String,
}

/// All commands in the order of their names, and their groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Docs {
    pub(crate) entries: Vec<Entry>,
    pub(crate) groups: Vec<String>,
}

impl Docs {
    /// Reads the answer to COMMAND DOCS of either protocol; what it does not understand it leaves out.
    pub(crate) fn of(reply: &Value) -> Docs {
        let mut docs = Docs::default();
        for (name, doc) in pairs(reply) {
            docs.add(&text(name), doc, DEPTH_MAX);
        }
        docs.entries.sort_by(|a, b| a.name.cmp(&b.name));
        docs.entries.dedup_by(|a, b| a.name == b.name);
        let mut groups: Vec<String> =
            docs.entries.iter().map(|entry| entry.group.clone()).collect();
        groups.sort();
        groups.dedup();
        docs.groups = groups;
        docs
    }

    fn add(&mut self, name: &str, doc: &Value, depth: usize) {
        let field = |wanted: &str| {
            let mut fields = pairs(doc).into_iter();
            fields.find(|(name, _)| name.as_bytes() == Some(wanted.as_bytes())).map(|(_, it)| it)
        };
        let word = |wanted: &str| field(wanted).map(text).unwrap_or_default();
        let arguments = field("arguments").and_then(Value::as_slice).unwrap_or_default();
        self.entries.push(Entry {
            name: name.replace('|', " ").to_uppercase(),
            arguments: joined(arguments, " ", depth),
            summary: word("summary"),
            since: word("since"),
            group: word("group"),
        });
        if depth > 0
            && let Some(subcommands) = field("subcommands")
        {
            for (sub, doc) in pairs(subcommands) {
                let sub = text(sub);
                let full = if sub.contains('|') { sub } else { format!("{name} {sub}") };
                self.add(&full, doc, depth - 1);
            }
        }
    }

    /// The command with the longest name that a line begins with, and how many words that name has.
    pub(crate) fn longest(&self, words: &[Vec<u8>]) -> Option<(&Entry, usize)> {
        let begins = |entry: &&Entry| {
            let parts = entry.name.split(' ').count();
            parts <= words.len() && same_words(entry.name.split(' '), words)
        };
        let fitting = self.entries.iter().filter(begins);
        fitting.map(|entry| (entry, entry.name.split(' ').count())).max_by_key(|(_, parts)| *parts)
    }
}

/// Whether the words are the same as far as both go.
pub(crate) fn same_words<'a>(name: impl Iterator<Item = &'a str>, words: &[Vec<u8>]) -> bool {
    name.zip(words).all(|(part, word)| part.as_bytes().eq_ignore_ascii_case(word))
}

/// A map of RESP3, or the array that stands for it in RESP2.
fn pairs(value: &Value) -> Vec<(&Value, &Value)> {
    match value.without_attributes() {
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (key, value)).collect(),
        other => {
            let list = other.as_slice().unwrap_or_default().chunks_exact(2);
            list.map(|pair| (&pair[0], &pair[1])).collect()
        }
    }
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

fn joined(arguments: &[Value], separator: &str, depth: usize) -> String {
    if depth == 0 {
        return String::new();
    }
    let each: Vec<String> = arguments.iter().map(|argument| shown(argument, depth - 1)).collect();
    each.join(separator)
}

/// One argument with its token, its brackets if it may be left out, and dots if it may be repeated.
fn shown(argument: &Value, depth: usize) -> String {
    let fields = pairs(argument);
    let field = |wanted: &str| {
        let mut fields = fields.iter();
        fields.find(|(name, _)| name.as_bytes() == Some(wanted.as_bytes())).map(|(_, it)| *it)
    };
    let word = |wanted: &str| field(wanted).map(text);
    let flags: Vec<String> = field("flags")
        .and_then(Value::as_slice)
        .map(|flags| flags.iter().map(text).collect())
        .unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|it| it == flag);
    let within = |separator| {
        joined(field("arguments").and_then(Value::as_slice).unwrap_or_default(), separator, depth)
    };
    let kind = word("type").unwrap_or_default();
    let name = match kind.as_str() {
        "block" => within(" "),
        "oneof" => within("|"),
        "pure-token" => String::new(),
        _ => word("name").unwrap_or_default(),
    };
    // The empty token is one that has to be written as such.
    let token = word("token").map(|token| if token.is_empty() { "\"\"".to_owned() } else { token });
    let whole = match &token {
        Some(token) if name.is_empty() => token.clone(),
        Some(token) => format!("{token} {name}"),
        None => name.clone(),
    };
    let whole = match (has("multiple"), has("multiple_token")) {
        (true, true) => format!("{whole} [{whole} ...]"),
        (true, false) => format!("{whole} [{name} ...]"),
        (false, _) => whole,
    };
    if has("optional") { format!("[{whole}]") } else { whole }
}
