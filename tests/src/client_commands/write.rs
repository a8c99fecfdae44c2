//! The code of functions, options and methods.

use super::names;
use super::replies::{NOTES, SWITCHES};
use super::rows::{Call, Options};
use super::tree::{Method, Piece};
use std::fmt::Write;

/// The maximum length of a comment line.
const COMMENT_MAX: usize = 106;

/// Writes a comment with these paragraphs. Its lines begin with `mark`.
pub(super) fn docs(out: &mut String, mark: &str, paragraphs: &[String]) {
    for (at, paragraph) in paragraphs.iter().filter(|text| !text.is_empty()).enumerate() {
        if at > 0 {
            let _ = writeln!(out, "{mark}");
        }
        let mut line = String::new();
        for word in paragraph.split(' ') {
            // A word that Markdown would read as a list item or a heading must not begin a line.
            let begins = word.starts_with(|c: char| c.is_alphabetic() || "[`(".contains(c));
            if begins && !line.is_empty() && line.len() + 1 + word.len() > COMMENT_MAX {
                let _ = writeln!(out, "{mark} {line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        let _ = writeln!(out, "{mark} {line}");
    }
}

/// Escapes text for a doc comment.
fn plain(text: &str) -> String {
    text.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<").replace('>', "\\>")
}

fn sentence(text: &str) -> String {
    let text = plain(text.trim());
    if text.is_empty() || text.ends_with('.') { text } else { text + "." }
}

fn parameters(pieces: &[Piece]) -> Vec<String> {
    let parameter = |piece: &Piece| match piece {
        Piece::Literal(_) | Piece::Count(_) => None,
        Piece::Word(name) | Piece::Key(name) => Some(format!("{name}: impl ToArg")),
        Piece::Words(name) | Piece::Keys(name) => Some(format!("{name}: impl ToArgs")),
        Piece::Time(name) => Some(format!("{name}: i64")),
        Piece::Choice(name, of) => Some(format!("{name}: types::{of}")),
    };
    pieces.iter().filter_map(parameter).collect()
}

fn arguments(pieces: &[Piece]) -> Vec<String> {
    let name = |piece: &Piece| match piece {
        Piece::Literal(_) | Piece::Count(_) => None,
        Piece::Word(name)
        | Piece::Key(name)
        | Piece::Words(name)
        | Piece::Keys(name)
        | Piece::Time(name)
        | Piece::Choice(name, _) => Some(name.clone()),
    };
    pieces.iter().filter_map(name).collect()
}

fn statement(piece: &Piece) -> String {
    match piece {
        Piece::Literal(word) => format!("request.arg({word:?})"),
        Piece::Word(name) | Piece::Time(name) | Piece::Choice(name, _) => {
            format!("request.arg({name})")
        }
        Piece::Words(name) => format!("request.args({name})"),
        Piece::Key(name) => format!("request.key({name})"),
        Piece::Keys(name) => format!("request.keys({name})"),
        Piece::Count(of) => format!("request.arg({of}.count())"),
    }
}

impl Call<'_> {
    fn generics(&self) -> &'static str {
        match (self.reply.contains('K'), self.is_generic()) {
            (true, _) => "<K, T>",
            (false, true) => "<T>",
            (false, false) => "",
        }
    }

    fn is_generic(&self) -> bool {
        self.reply.contains('T')
    }

    /// The type of the command, with `whose` as the owner.
    fn command(&self, whose: &str) -> String {
        match &self.options {
            Some(options) => format!("Command<{whose}, {}, options::{options}>", self.reply),
            None => format!("Command<{whose}, {}>", self.reply),
        }
    }

    fn all_pieces(&self) -> Vec<Piece> {
        [&self.function.head[..], &self.function.tail].concat()
    }

    fn about(&self) -> Vec<String> {
        let spec = self.spec;
        let note = NOTES.iter().find(|(name, _)| *name == self.base);
        let summary = sentence(spec.summary);
        let summary = match note {
            Some((_, note)) => format!("{summary} {note}"),
            None => summary,
        };
        vec![summary, format!("`{}`", self.syntax)]
    }

    /// Writes a free function that builds the command.
    pub(super) fn write_function(&self, out: &mut String) {
        let mut about = self.about();
        let errors = match self.generics() {
            "" => "Errors: those of the server.",
            "<T>" => {
                "Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`."
            }
            _ => {
                "Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `K` and `T`."
            }
        };
        let complexity = match self.spec.complexity {
            "" | "N/A" => String::new(),
            complexity => sentence(complexity) + " ",
        };
        let (origin, since) = (self.spec.origin.name(), self.spec.since);
        about.push(format!("{complexity}Since {origin} {since}. {errors}"));
        if self.traits.binds {
            about.push(
                "This command changes or reports the state of its connection, so it is not a method of \
                 [`Client`](crate::Client), whose connections are shared."
                    .to_owned(),
            );
        } else if self.traits.blocks {
            about.push(
                "This command may block later commands on its connection, so it is not a method of \
                 [`Client`](crate::Client), whose connections are shared."
                    .to_owned(),
            );
        }
        docs(out, "///", &about);
        if let Some(deprecated) = &self.spec.deprecated {
            let instead = deprecated.replaced_by.replace('!', "");
            let note = format!("since Redis {}: {instead} instead", deprecated.since);
            let _ = writeln!(out, "#[deprecated(note = {note:?})]");
        }
        let parameters = parameters(&self.all_pieces()).join(", ");
        let (name, command) = (&self.function.name, self.command("()"));
        let _ = writeln!(out, "pub fn {name}{}({parameters}) -> {command} {{", self.generics());
        let begin = format!("Request::new({:?}, {})", self.words, self.traits.constant());
        let (head, tail) = (&self.function.head, &self.function.tail);
        if head.is_empty() && tail.is_empty() {
            let _ = writeln!(out, "Command::typed({begin})\n}}\n");
            return;
        }
        let _ = writeln!(out, "let mut request = {begin};");
        head.iter().for_each(|piece| {
            let _ = writeln!(out, "{};", statement(piece));
        });
        if self.function.is_parted {
            out.push_str("request.end_of_options();\n");
        }
        tail.iter().for_each(|piece| {
            let _ = writeln!(out, "{};", statement(piece));
        });
        out.push_str("Command::typed(request)\n}\n\n");
    }

    /// Writes the method of an owner that sends the command.
    pub(super) fn write_method(&self, out: &mut String, owner: &str) {
        docs(out, "///", &self.about());
        let pieces = self.all_pieces();
        let parameters = [&["&self".to_owned()][..], &parameters(&pieces)].concat().join(", ");
        let (name, command) = (&self.function.name, self.command(&format!("&{owner}")));
        let _ = writeln!(out, "pub fn {name}{}({parameters}) -> {command} {{", self.generics());
        let arguments = arguments(&pieces).join(", ");
        let _ = writeln!(out, "commands::{name}({arguments}).on(self)\n}}\n");
    }
}

/// Writes the marker type of options, and their methods.
pub(super) fn write_options(out: &mut String, options: &Options) {
    let Options { base, function, words, reply, methods, .. } = options;
    let marker = names::type_name(base);
    docs(
        out,
        "///",
        &[format!("Options of `{words}`, see [`{function}`](crate::commands::{function}).")],
    );
    let _ = writeln!(out, "#[derive(Clone, Copy, Debug)]\npub struct {marker}(());\n");
    let switch = |method: &Method| {
        let found = SWITCHES.iter().find(|(of, name, _)| of == base && *name == method.name);
        found.map(|(.., reply)| *reply)
    };
    let (others, switching): (Vec<&Method>, Vec<&Method>) =
        methods.iter().partition(|method| switch(method).is_none());
    if !others.is_empty() {
        let _ = writeln!(out, "impl<C, T> Command<C, T, {marker}> {{");
        for method in others {
            write_option(out, method, "", "Self", "");
            let alias =
                names::ALIASES.iter().find(|(of, own, _)| of == base && *own == method.name);
            if let Some((.., alias)) = alias {
                let alias = Method { name: (*alias).to_owned(), ..method.clone() };
                write_option(out, &alias, "", "Self", "");
            }
        }
        out.push_str("}\n\n");
    }
    for method in switching {
        let to = switch(method).unwrap_or_default();
        let generics = if reply.contains('T') { "<C, T>" } else { "<C>" };
        let own = if to.contains('U') { "<U>" } else { "" };
        let _ = writeln!(out, "impl{generics} Command<C, {reply}, {marker}> {{");
        let to = format!("Command<C, {to}, {marker}>");
        write_option(out, method, own, &to, ".reply_as()");
        out.push_str("}\n\n");
    }
}

fn write_option(out: &mut String, method: &Method, generics: &str, to: &str, then: &str) {
    let mut about = format!("`{}`", method.syntax);
    if !method.since.is_empty() {
        let _ = write!(about, ", since Redis {}", method.since);
    }
    about.push('.');
    if method.again {
        about += " May be called again.";
    }
    if let Some(before) = &method.suffix {
        let _ = write!(about, " Only after `{before}`.");
    }
    docs(out, "///", &[about]);
    let own = if method.is_last { "mut self" } else { "self" };
    let parameters = [&[own.to_owned()][..], &parameters(&method.pieces)].concat().join(", ");
    let _ = writeln!(out, "pub fn {}{generics}({parameters}) -> {to} {{", method.name);
    if method.is_last {
        for piece in &method.pieces {
            let statement = statement(piece).replacen("request", "self = self", 1);
            let _ = writeln!(out, "{statement};");
        }
        let _ = writeln!(out, "self{then}\n}}\n");
        return;
    }
    let statements: Vec<_> = method.pieces.iter().map(statement).collect();
    let body = match &statements[..] {
        [only] => only.clone(),
        several => format!("{{ {}; }}", several.join("; ")),
    };
    let _ = writeln!(out, "self.option(|request| {body}){then}\n}}\n");
}

/// Writes the enumerations.
pub(super) fn write_types(out: &mut String) {
    for (words, name, about) in names::CHOICES {
        docs(out, "///", &[format!("{about}.")]);
        let _ = writeln!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum {name} {{");
        for word in *words {
            let variant = names::type_name(&names::token(word));
            let _ = writeln!(out, "/// `{word}`.\n{variant},");
        }
        let _ = writeln!(out, "}}\n\nimpl ToArg for {name} {{");
        out.push_str("fn write(&self, args: &mut Args<'_>) {\nlet arg = match self {\n");
        for word in *words {
            let variant = names::type_name(&names::token(word));
            let _ = writeln!(out, "{name}::{variant} => {word:?},");
        }
        out.push_str("};\nargs.push(arg.as_bytes());\n}\n}\n\n");
    }
}
