//! The server's documentation of its commands (summaries and arguments), for `help`, hints and completion. It is read
//! with COMMAND DOCS, so it matches the server's version and modules.

use brisk_resp::Value;

/// Maximum nesting of arguments. Deeper ones are not shown.
const DEPTH_MAX: usize = 16;

/// One command or subcommand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name in capitals, with a space before the subcommand.
    pub(crate) name: String,
    /// The arguments in their usual notation.
    pub(crate) arguments: String,
    pub(crate) parts: Vec<Argument>,
    pub(crate) summary: String,
    pub(crate) since: String,
    pub(crate) group: String,
}

/// All commands, sorted by name, and their groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Docs {
    pub(crate) entries: Vec<Entry>,
    pub(crate) groups: Vec<String>,
}

impl Docs {
    /// Parses a reply to COMMAND DOCS, in RESP2 or RESP3. Unknown parts are omitted.
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
        let parts = Argument::read_all(field("arguments"), depth);
        self.entries.push(Entry {
            name: name.replace('|', " ").to_uppercase(),
            arguments: joined(&parts, " "),
            parts,
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

    /// The command with the longest name that matches the beginning of a line, and the number of words in that name.
    pub(crate) fn longest(&self, words: &[Vec<u8>]) -> Option<(&Entry, usize)> {
        let begins = |entry: &&Entry| {
            let parts = entry.name.split(' ').count();
            parts <= words.len() && same_words(entry.name.split(' '), words)
        };
        let fitting = self.entries.iter().filter(begins);
        fitting.map(|entry| (entry, entry.name.split(' ').count())).max_by_key(|(_, parts)| *parts)
    }
}

/// Reports whether one list of words is a prefix of the other.
pub(crate) fn same_words<'a>(name: impl Iterator<Item = &'a str>, words: &[Vec<u8>]) -> bool {
    name.zip(words).all(|(part, word)| part.as_bytes().eq_ignore_ascii_case(word))
}

/// The pairs of a RESP3 map, or of the corresponding RESP2 array.
pub(crate) fn pairs(value: &Value) -> Vec<(&Value, &Value)> {
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

/// The kinds of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    #[default]
    Word,
    Integer,
    Decimal,
    /// Only the token.
    Token,
    /// All of its parts, in order.
    Block,
    /// One of its parts.
    Choice,
}

/// One argument of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The token before the value.
    pub(crate) token: Option<String>,
    pub(crate) is_optional: bool,
    pub(crate) is_multiple: bool,
    /// If the argument is repeated, the token is repeated too.
    pub(crate) repeats_token: bool,
    pub(crate) parts: Vec<Argument>,
}

/// The syntax of several arguments.
pub(crate) fn joined(arguments: &[Argument], separator: &str) -> String {
    let each: Vec<String> = arguments.iter().map(Argument::syntax).collect();
    each.join(separator)
}

impl Argument {
    /// Parses the arguments of a list that are not nested too deep.
    fn read_all(list: Option<&Value>, depth: usize) -> Vec<Argument> {
        let list = list.and_then(Value::as_slice).filter(|_| depth > 0).unwrap_or_default();
        list.iter().map(|argument| Argument::read(argument, depth - 1)).collect()
    }

    fn read(value: &Value, depth: usize) -> Argument {
        let fields = pairs(value);
        let field = |wanted: &str| {
            let mut fields = fields.iter();
            fields.find(|(name, _)| name.as_bytes() == Some(wanted.as_bytes())).map(|(_, it)| *it)
        };
        let word = |wanted: &str| field(wanted).map(text);
        let flags = field("flags").and_then(Value::as_slice).unwrap_or_default();
        let has = |flag: &str| flags.iter().any(|it| it.as_bytes() == Some(flag.as_bytes()));
        let kind = match word("type").unwrap_or_default().as_str() {
            "block" => Kind::Block,
            "oneof" => Kind::Choice,
            "pure-token" => Kind::Token,
            "integer" | "unix-time" => Kind::Integer,
            "double" => Kind::Decimal,
            _ => Kind::Word,
        };
        Argument {
            name: word("name").unwrap_or_default(),
            kind,
            token: word("token"),
            is_optional: has("optional"),
            is_multiple: has("multiple"),
            repeats_token: has("multiple_token"),
            parts: Argument::read_all(field("arguments"), depth),
        }
    }

    /// The syntax of the argument with its token, with brackets if it is optional, and with dots if it can be repeated.
    pub(crate) fn syntax(&self) -> String {
        let once = self.once();
        let whole = match self.repeated() {
            Some(repeated) => format!("{once} {repeated}"),
            None => once,
        };
        if self.is_optional { format!("[{whole}]") } else { whole }
    }

    /// The syntax without brackets and dots.
    fn once(&self) -> String {
        let body = self.body();
        // An empty token must be typed as two quotes.
        let token =
            self.token.as_deref().map(|token| if token.is_empty() { "\"\"" } else { token });
        match token {
            Some(token) if body.is_empty() => token.to_owned(),
            Some(token) => format!("{token} {body}"),
            None => body,
        }
    }

    /// The part after the token.
    pub(crate) fn body(&self) -> String {
        match self.kind {
            Kind::Block => joined(&self.parts, " "),
            Kind::Choice => joined(&self.parts, "|"),
            Kind::Token => String::new(),
            Kind::Word | Kind::Integer | Kind::Decimal => self.name.clone(),
        }
    }

    /// The syntax of a repetition, if the argument can be repeated.
    pub(crate) fn repeated(&self) -> Option<String> {
        let again = if self.repeats_token { self.once() } else { self.body() };
        self.is_multiple.then(|| format!("[{again} ...]"))
    }
}
