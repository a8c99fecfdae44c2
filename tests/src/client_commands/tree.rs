//! The arguments of a command as a tree that can be reshaped. They are those of the row, plus distinctions that typed
//! functions need.

use super::names;
use brisk_engine::command::{Arg, ArgKind};

/// An argument; see [`Arg`].
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) token: &'static str,
    pub(super) since: &'static str,
    pub(super) optional: bool,
    pub(super) multiple: bool,
    pub(super) repeats_token: bool,
}

/// The kind of a node.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Word,
    Time,
    Key,
    Token,
    OneOf(Vec<Node>),
    Block(Vec<Node>),
}

impl Node {
    fn of(arg: &Arg) -> Node {
        let kind = match arg.kind {
            ArgKind::String | ArgKind::Integer | ArgKind::Double | ArgKind::Pattern => Kind::Word,
            ArgKind::UnixTime => Kind::Time,
            ArgKind::Key => Kind::Key,
            ArgKind::Token => Kind::Token,
            ArgKind::OneOf(choices) => Kind::OneOf(nodes(choices)),
            ArgKind::Block(parts) => Kind::Block(nodes(parts)),
        };
        Node {
            name: arg.name,
            kind,
            token: arg.token,
            since: arg.since,
            optional: arg.optional,
            multiple: arg.multiple,
            repeats_token: arg.multiple_token,
        }
    }

    fn words(name: &'static str) -> Node {
        let mut node = Node::of(&Arg::string(name));
        node.multiple = true;
        node
    }

    /// The syntax, as in the documentation of commands.
    pub(super) fn syntax(&self) -> String {
        let inner = match &self.kind {
            Kind::Token => String::new(),
            Kind::Word | Kind::Time | Kind::Key => self.name.to_owned(),
            Kind::OneOf(choices) => {
                choices.iter().map(Node::syntax).collect::<Vec<_>>().join(" | ")
            }
            Kind::Block(parts) => parts.iter().map(Node::syntax).collect::<Vec<_>>().join(" "),
        };
        let choice = matches!(self.kind, Kind::OneOf(_)) && !self.optional;
        let inner = if choice { format!("<{inner}>") } else { inner };
        let mut text = match (self.token, inner.as_str()) {
            ("", "") => "\"\"".to_owned(),
            ("", inner) => inner.to_owned(),
            (token, "") => token.to_owned(),
            (token, inner) => format!("{token} {inner}"),
        };
        if self.multiple {
            text += " …";
        }
        if self.optional { format!("[{text}]") } else { text }
    }

    fn is_pure_token(&self) -> bool {
        matches!(self.kind, Kind::Token)
    }
}

/// The trees of a row's arguments.
pub(super) fn nodes(args: &[Arg]) -> Vec<Node> {
    args.iter().map(Node::of).collect()
}

/// A group of functions of one row that share their options.
#[derive(Debug)]
pub(super) struct Variant {
    /// For example `set`, `client_list` or `xread_block`.
    pub(super) base: String,
    pub(super) nodes: Vec<Node>,
    /// The option that was made a required part of the variant.
    pub(super) fork: Option<&'static str>,
}

/// Options that become separate functions, by their tokens or names. They change the structure of the reply in a way
/// that the type cannot express, or the requirements on the connection. Row, option, function.
const FORKS: &[(&str, &str, &str)] = &[
    ("acl|log", "RESET", "acl_log_reset"),
    ("georadius", "STORE", "georadius_store"),
    ("georadius", "STOREDIST", "georadius_store_dist"),
    ("georadiusbymember", "STORE", "georadiusbymember_store"),
    ("georadiusbymember", "STOREDIST", "georadiusbymember_store_dist"),
    ("lcs", "IDX", "lcs_idx"),
    ("lcs", "LEN", "lcs_len"),
    ("sort", "STORE", "sort_store"),
    ("xpending", "filters", "xpending_range"),
    ("xread", BLOCK, "xread_block"),
    ("xreadgroup", BLOCK, "xreadgroup_block"),
];

/// Choices between tokens that become a function or a method each, because the following arguments depend on them.
const SPLIT: &[&str] = &["strategy"];

/// The token for the default, which need not be sent.
const DEFAULT: &str = "=";

/// The option without which the command does not block.
pub(super) const BLOCK: &str = "BLOCK";

/// Rows whose trees lack the final arguments.
const WORDS: &[(&str, &str)] = &[
    ("command|getkeys", "words"),
    ("command|getkeysandflags", "words"),
    ("debug", "words"),
    ("replconf", "words"),
];

/// Optional arguments that almost every caller uses. They become parameters, which may be empty.
const WANTED: &[(&str, &str)] = &[
    ("acl|setuser", "rule"),
    ("pfadd", "element"),
    ("pubsub|numsub", "channel"),
    ("pubsub|shardnumsub", "shardchannel"),
];

/// The variants of a row.
pub(super) fn variants(row: &str, args: &[Arg]) -> Vec<Variant> {
    let mut nodes = nodes(args);
    if let Some((_, name)) = WORDS.iter().find(|(name, _)| *name == row) {
        assert!(nodes.is_empty(), "{row} says by now what its words are");
        nodes.push(Node::words(name));
    }
    for (_, name) in WANTED.iter().filter(|(name, _)| *name == row) {
        let wanted = nodes.iter_mut().find(|node| node.name == *name);
        wanted.unwrap_or_else(|| panic!("{row} has no {name}")).optional = false;
    }
    if row == "client|kill" {
        // The old form, with only an address, cannot be distinguished from the filters.
        nodes = filters(&nodes);
    }
    let forks: Vec<_> = FORKS.iter().filter(|(name, ..)| *name == row).collect();
    let mut base = nodes.clone();
    for (_, option, _) in &forks {
        base = without(base, option);
    }
    let mut variants =
        vec![Variant { base: names::function(row), nodes: base.clone(), fork: None }];
    for (_, option, function) in &forks {
        let others = forks.iter().filter(|(_, other, _)| other != option);
        let rest = others.fold(nodes.clone(), |nodes, (_, other, _)| without(nodes, other));
        let nodes = with(rest, option).unwrap_or_else(|| panic!("{row} has no {option}"));
        variants.push(Variant { base: (*function).to_owned(), nodes, fork: Some(option) });
    }
    variants
}

fn filters(nodes: &[Node]) -> Vec<Node> {
    let Some(Kind::OneOf(forms)) = nodes.first().map(|node| &node.kind) else {
        panic!("CLIENT KILL has one argument, which is a choice")
    };
    let filters = forms.iter().find_map(|form| match &form.kind {
        Kind::OneOf(filters) => Some(filters.clone()),
        _ => None,
    });
    filters.expect("one form of CLIENT KILL has filters")
}

fn is(node: &Node, option: &str) -> bool {
    node.optional && (node.token == option || node.name == option)
}

fn without(nodes: Vec<Node>, option: &str) -> Vec<Node> {
    let kept = nodes.into_iter().filter(|node| !is(node, option));
    kept.map(|mut node| {
        if let (true, Kind::OneOf(choices)) = (node.optional, &mut node.kind) {
            choices.retain(|choice| choice.token != option);
        }
        node
    })
    .collect()
}

/// The nodes with this option made required.
fn with(mut nodes: Vec<Node>, option: &str) -> Option<Vec<Node>> {
    for node in &mut nodes {
        if is(node, option) {
            node.optional = false;
            // The first key of the command already has that name.
            if node.name == "key" {
                node.name = "destination";
            }
            return Some(nodes);
        }
        if let (true, Kind::OneOf(choices)) = (node.optional, &node.kind)
            && let Some(choice) = choices.iter().find(|choice| choice.token == option)
        {
            *node = choice.clone();
            return Some(nodes);
        }
    }
    None
}

/// One or more arguments of a call.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Literal(&'static str),
    Word(String),
    Words(String),
    Time(String),
    Key(String),
    Keys(String),
    /// The number of arguments with this name.
    Count(String),
    /// One token of an enumeration: the name, and the type.
    Choice(String, &'static str),
}

/// Arguments that belong together.
#[derive(Clone, Debug, Default)]
pub(super) struct Phrase {
    /// The names that distinguish it from its alternatives.
    pub(super) name: Vec<String>,
    pub(super) pieces: Vec<Piece>,
}

impl Phrase {
    fn of(pieces: Vec<Piece>) -> Phrase {
        Phrase { name: Vec::new(), pieces }
    }

    fn literals(&self) -> Vec<String> {
        let literal = |piece: &Piece| match piece {
            Piece::Literal(word) => Some(names::token(word)),
            _ => None,
        };
        self.pieces.iter().filter_map(literal).collect()
    }
}

fn product(left: &[Phrase], right: &[Phrase]) -> Vec<Phrase> {
    let both = |one: &Phrase, other: &Phrase| Phrase {
        name: [&one.name[..], &other.name].concat(),
        pieces: [&one.pieces[..], &other.pieces].concat(),
    };
    left.iter().flat_map(|one| right.iter().map(move |other| both(one, other))).collect()
}

/// The forms of a required argument: one phrase for each function.
pub(super) fn phrases(node: &Node) -> Vec<Phrase> {
    let inner = if node.multiple { vec![Phrase::of(several(node))] } else { single(node) };
    match node.token {
        "" => inner,
        token => product(&[Phrase::of(vec![Piece::Literal(token)])], &inner),
    }
}

fn single(node: &Node) -> Vec<Phrase> {
    let name = names::parameter(node.name);
    match &node.kind {
        Kind::Token => vec![Phrase::default()],
        Kind::Word => vec![Phrase::of(vec![Piece::Word(name)])],
        Kind::Time => vec![Phrase::of(vec![Piece::Time(name)])],
        Kind::Key => vec![Phrase::of(vec![Piece::Key(name)])],
        // Both numbers are one parameter, because they always occur together.
        Kind::Block(_) if node.name == "longitude_latitude" => {
            vec![Phrase::of(vec![Piece::Words(name)])]
        }
        Kind::Block(parts) => sequence(parts),
        Kind::OneOf(choices) => choice(node, choices),
    }
}

/// The combinations of the forms of consecutive parts. Optional parts may be missing.
fn sequence(parts: &[Node]) -> Vec<Phrase> {
    let parts = counted(parts);
    parts.iter().fold(vec![Phrase::default()], |before, part| {
        let Part::Node(node) = part else { return product(&before, &part.phrases()) };
        if !node.optional {
            return product(&before, &phrases(node));
        }
        let named = phrases_of_option(node).into_iter().map(|mut phrase| {
            phrase.name = phrase.literals();
            phrase
        });
        let all: Vec<_> = std::iter::once(Phrase::default()).chain(named).collect();
        product(&before, &all)
    })
}

fn phrases_of_option(node: &Node) -> Vec<Phrase> {
    match &node.kind {
        Kind::OneOf(choices) => {
            choices.iter().filter(|choice| choice.token != DEFAULT).flat_map(phrases).collect()
        }
        _ => phrases(node),
    }
}

/// An argument, or the number of the arguments after it.
enum Part<'a> {
    Node(&'a Node),
    Count(&'a Node),
}

impl Part<'_> {
    fn phrases(&self) -> Vec<Phrase> {
        match self {
            Part::Node(node) => phrases(node),
            Part::Count(of) => {
                vec![Phrase::of(vec![Piece::Count(names::parameters(of.name))])]
            }
        }
    }
}

fn counted(parts: &[Node]) -> Vec<Part<'_>> {
    let is_count = |at: usize| {
        matches!(parts[at].name, "numkeys" | "numfields")
            && parts.get(at + 1).is_some_and(|next| next.multiple)
    };
    let part =
        |(at, node)| if is_count(at) { Part::Count(&parts[at + 1]) } else { Part::Node(node) };
    parts.iter().enumerate().map(part).collect()
}

fn several(node: &Node) -> Vec<Piece> {
    let name = names::parameters(node.name);
    let keys = match &node.kind {
        Kind::Key => true,
        Kind::Block(parts) => parts.iter().any(|part| matches!(part.kind, Kind::Key)),
        _ => false,
    };
    vec![if keys { Piece::Keys(name) } else { Piece::Words(name) }]
}

fn choice(node: &Node, choices: &[Node]) -> Vec<Phrase> {
    let name = names::parameter(node.name);
    let (tokens, others): (Vec<_>, Vec<_>) = choices.iter().partition(|one| one.is_pure_token());
    if others.is_empty() && !SPLIT.contains(&node.name) {
        let words: Vec<_> = tokens.iter().map(|token| token.token).collect();
        return vec![Phrase::of(vec![Piece::Choice(name, names::choice(&words))])];
    }
    // An argument that can have a special value: `*` of XADD, `$` of XGROUP CREATE.
    if let ([plain], false) = (&others[..], tokens.is_empty())
        && plain.token.is_empty()
    {
        return phrases(plain);
    }
    let named = choices.iter().flat_map(phrases).map(|mut phrase| {
        phrase.name = phrase.literals();
        phrase
    });
    named.collect()
}

/// A method for an option.
#[derive(Clone, Debug)]
pub(super) struct Method {
    pub(super) name: String,
    pub(super) pieces: Vec<Piece>,
    pub(super) syntax: String,
    pub(super) since: &'static str,
    /// True if its arguments come after all others.
    pub(super) is_last: bool,
    /// The method that must be called first.
    pub(super) suffix: Option<String>,
    pub(super) again: bool,
}

/// The methods for optional arguments.
pub(super) fn methods(row: &str, node: &Node) -> Vec<Method> {
    let mut found = Vec::new();
    option(row, node, "", &mut found);
    if node.repeats_token || (node.multiple && matches!(node.kind, Kind::OneOf(_))) {
        found.iter_mut().for_each(|method| method.again = true);
    }
    found
}

fn option(row: &str, node: &Node, since: &'static str, found: &mut Vec<Method>) {
    let since = if node.since.is_empty() { since } else { node.since };
    match &node.kind {
        Kind::Block(parts) if !node.multiple || node.repeats_token => {
            return block(row, node, parts, since, found);
        }
        Kind::OneOf(choices) if node.token.is_empty() => {
            let said = choices.iter().filter(|choice| choice.token != DEFAULT);
            return said.for_each(|choice| option(row, choice, since, found));
        }
        _ => {}
    }
    let mut one = node.clone();
    one.optional = false;
    one.multiple &= !node.repeats_token;
    let syntax = one.syntax();
    for phrase in phrases(&one) {
        let name = match (node.token, &phrase.name[..]) {
            ("", _) if node.multiple => names::parameters(node.name),
            ("", _) => names::parameter(node.name),
            (token, []) => names::token(token),
            (token, name) => format!("{}_{}", names::token(token), name.join("_")),
        };
        found.push(method(row, name, phrase, &syntax, since));
    }
}

fn method(row: &str, name: String, phrase: Phrase, syntax: &str, since: &'static str) -> Method {
    Method {
        name: names::method(row, name),
        pieces: phrase.pieces,
        syntax: syntax.to_owned(),
        since,
        is_last: false,
        suffix: None,
        again: false,
    }
}

/// The required part of the block is a method, or one for each alternative; optional parts before and after it are
/// separate methods.
fn block(row: &str, node: &Node, parts: &[Node], since: &'static str, found: &mut Vec<Method>) {
    let first = parts.iter().position(|part| !part.optional);
    let last = parts.iter().rposition(|part| !part.optional);
    let (before, core, suffix) = match (first, last) {
        (Some(first), Some(last)) => (&parts[..first], &parts[first..=last], &parts[last + 1..]),
        _ => (&parts[..0], &parts[..0], parts),
    };
    before.iter().for_each(|part| option(row, part, since, found));
    let mut all = sequence(core);
    if !node.token.is_empty() {
        all = product(&[Phrase::of(vec![Piece::Literal(node.token)])], &all);
    }
    let syntax = core.iter().map(Node::syntax).collect::<Vec<_>>().join(" ");
    let syntax = format!("{} {syntax}", node.token).trim().to_owned();
    let own = found.len();
    for phrase in all {
        let literals = phrase.literals();
        let name = match (&literals[..], &phrase.pieces[..]) {
            ([], [Piece::Word(only)]) => only.clone(),
            ([], _) => names::parameter(node.name),
            (literals, _) => literals.join("_"),
        };
        found.push(method(row, name, phrase, &syntax, since));
    }
    let main = found.get(own).map(|method| method.name.clone());
    for part in suffix {
        let from = found.len();
        option(row, part, since, found);
        found[from..].iter_mut().for_each(|method| {
            if method.suffix.is_none() {
                method.suffix = main.clone();
            }
        });
    }
}

/// A function: the arguments before and after the options.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) head: Vec<Piece>,
    pub(super) tail: Vec<Piece>,
    /// True if options come between the two.
    pub(super) is_parted: bool,
}

/// Replaces required blocks with their parts.
fn flat(nodes: &[Node]) -> Vec<Node> {
    let mut all = Vec::new();
    for node in nodes {
        match &node.kind {
            Kind::Block(parts) if !node.optional && !node.multiple => {
                if !node.token.is_empty() {
                    all.push(Node { kind: Kind::Token, ..node.clone() });
                }
                all.extend(flat(parts));
            }
            _ => all.push(node.clone()),
        }
    }
    all
}

/// The functions of a variant, and the methods for their options.
pub(super) fn functions(row: &str, variant: &Variant) -> (Vec<Function>, Vec<Method>) {
    let mut nodes = flat(&variant.nodes);
    for at in 1..nodes.len() {
        // EVAL may have no keys, but they are a parameter anyway.
        if nodes[at - 1].name == "numkeys" {
            nodes[at].optional = false;
        }
    }
    let first_option = nodes.iter().position(|node| node.optional);
    let last_required = nodes.iter().rposition(|node| !node.optional);
    let is_parted = first_option.zip(last_required).is_some_and(|(first, last)| first < last);
    let (mut heads, mut tails) = (vec![Phrase::default()], vec![Phrase::default()]);
    let mut methods_of_all: Vec<Method> = Vec::new();
    for (at, part) in counted(&nodes).into_iter().enumerate() {
        match part {
            Part::Node(node) if node.optional => {
                // This is the same as `Command::args`.
                if node.name == "arg" && node.multiple {
                    continue;
                }
                let is_last = is_parted && last_required.is_some_and(|last| at > last);
                let methods = methods(row, node).into_iter();
                methods_of_all.extend(methods.map(|method| Method { is_last, ..method }));
            }
            part if first_option.is_some_and(|first| at > first) => {
                tails = product(&tails, &part.phrases());
            }
            part => heads = product(&heads, &part.phrases()),
        }
    }
    let mut functions = Vec::new();
    for head in &heads {
        for tail in &tails {
            let name = [&[variant.base.clone()][..], &head.name, &tail.name].concat().join("_");
            let (head, tail) = (head.pieces.clone(), tail.pieces.clone());
            functions.push(Function { name, head, tail, is_parted });
        }
    }
    (functions, methods_of_all)
}
