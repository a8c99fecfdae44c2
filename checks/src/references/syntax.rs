//! The syntax of a command as text, from its argument tree.

use brisk_engine::command::{Arg, ArgKind, Spec};

/// Maximum width of a line of a syntax block.
const WIDTH: usize = 80;

/// Returns the syntax of a command or subcommand. `words` are its names. A long syntax continues in indented lines,
/// each with one or more groups of arguments.
pub(super) fn syntax(words: &str, spec: &Spec) -> String {
    let mut text = words.to_uppercase();
    let mut column = text.len();
    for arg in spec.args {
        let next = argument(arg);
        if column + 1 + next.len() > WIDTH {
            text.push_str("\n  ");
            column = 2;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(&next);
        column += next.len();
    }
    text
}

/// Returns one argument with its token, its repetitions, and brackets if it is optional.
fn argument(arg: &Arg) -> String {
    let value = value(arg);
    let once = match (&arg.kind, arg.token) {
        (ArgKind::Token, "") => "\"\"".to_owned(),
        (ArgKind::Token, token) => token.to_owned(),
        (_, "") => value.clone(),
        (_, token) => format!("{token} {value}"),
    };
    let all = match (arg.multiple, arg.multiple_token) {
        (false, _) => once,
        (true, true) => format!("{once} [{once} ...]"),
        (true, false) => format!("{once} [{value} ...]"),
    };
    if arg.optional { format!("[{}]", without_brackets(&all, arg)) } else { all }
}

/// Returns an argument's value without its token.
fn value(arg: &Arg) -> String {
    match arg.kind {
        ArgKind::OneOf(choices) => {
            let choices: Vec<String> = choices.iter().map(argument).collect();
            format!("<{}>", choices.join(" | "))
        }
        ArgKind::Block(parts) => {
            let parts: Vec<String> = parts.iter().map(argument).collect();
            parts.join(" ")
        }
        _ => arg.name.to_owned(),
    }
}

/// Removes the angle brackets of alternatives that are optional as a whole, because one pair of brackets is enough.
fn without_brackets<'t>(text: &'t str, arg: &Arg) -> &'t str {
    let bare = matches!(arg.kind, ArgKind::OneOf(_)) && arg.token.is_empty() && !arg.multiple;
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    inner.filter(|_| bare).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(args: &'static [Arg]) -> String {
        syntax("x", &Spec { args, ..Spec::EMPTY })
    }

    #[test]
    fn every_kind_of_argument_is_shown() {
        const CHOICES: &[Arg] = &[Arg::token("nx", "NX"), Arg::integer("n").after("EX")];
        const CASES: &[(&[Arg], &str)] = &[
            (&[], "X"),
            (&[Arg::key("key").multiple()], "X key [key ...]"),
            (&[Arg::integer("n").after("COUNT").optional()], "X [COUNT n]"),
            (&[Arg::one_of("c", CHOICES)], "X <NX | EX n>"),
            (&[Arg::one_of("c", CHOICES).optional()], "X [NX | EX n]"),
            (&[Arg::one_of("c", CHOICES).after("BY").optional()], "X [BY <NX | EX n>]"),
            (
                &[Arg::string("p").after("PREFIX").multiple().multiple_token().optional()],
                "X [PREFIX p [PREFIX p ...]]",
            ),
            (&[Arg::string("k").after("KEYS").multiple()], "X KEYS k [k ...]"),
            (&[Arg::block("b", CHOICES).optional()], "X [NX EX n]"),
        ];
        for (args, text) in CASES {
            assert_eq!(shown(args), *text);
        }
    }

    #[test]
    fn long_syntax_continues_in_indented_lines() {
        const NAMES: &[Arg] = &[
            Arg::string("a-name-of-thirty-letters-in-all").optional(),
            Arg::string("another-name-of-forty-letters-in-all-of-it").optional(),
            Arg::string("z"),
        ];
        assert_eq!(
            shown(NAMES),
            "X [a-name-of-thirty-letters-in-all] [another-name-of-forty-letters-in-all-of-it]\n  z"
        );
    }
}
