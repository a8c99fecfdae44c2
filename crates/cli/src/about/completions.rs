//! Shell completions: the options, and the program's own commands. `analyze` has its own options.

use crate::cluster;
use crate::options::Shell;
use crate::options::table::own::COMMANDS;
use crate::options::table::{Completed, SECTIONS};
use brisk_analyze::args;

/// The text to install in the shell's completion directory.
pub(crate) fn of(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(),
        Shell::Zsh => zsh(),
        Shell::Fish => fish(),
    }
}

/// An option for a shell's completion.
struct Word {
    names: Vec<&'static str>,
    /// The name of its value, such as `host`; empty for a flag.
    value: &'static str,
    completed: Completed,
    text: String,
}

impl Word {
    /// The possible values, if there are few.
    fn choices(&self) -> Option<String> {
        match self.completed {
            Completed::Word(words) => Some(words.join(" ")),
            Completed::ClusterCommand => Some(cluster::commands().collect::<Vec<_>>().join(" ")),
            Completed::Nothing | Completed::File | Completed::Directory => None,
        }
    }
}

/// The options of the program.
fn of_program() -> Vec<Word> {
    let rows = SECTIONS.iter().flat_map(|section| section.rows);
    rows.map(|row| Word {
        names: row.names.to_vec(),
        value: row.value.trim_start_matches('<').split('>').next().unwrap_or_default(),
        completed: row.completed,
        text: row.text.to_owned(),
    })
    .collect()
}

/// The options of `analyze`.
fn of_analyze() -> Vec<Word> {
    let rows = args::options().into_iter();
    rows.map(|option| Word {
        names: vec![option.name],
        value: option.value,
        completed: match option.value {
            "FILE" => Completed::File,
            "8|16" => Completed::Word(&["8", "16"]),
            _ => Completed::Nothing,
        },
        text: option.text,
    })
    .collect()
}

/// A function that runs `first` and then completes these options. Where no option is being typed, it runs `otherwise`.
fn bash_function(name: &str, words: &[Word], first: &str, otherwise: &str) -> String {
    let mut cases = String::new();
    for word in words.iter().filter(|word| !word.value.is_empty()) {
        let done = match (word.completed, word.choices()) {
            (_, Some(words)) => format!("COMPREPLY=($(compgen -W \"{words}\" -- \"$word\"))"),
            (Completed::File, _) => {
                "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))".to_owned()
            }
            (Completed::Directory, _) => {
                "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\"))".to_owned()
            }
            _ => "COMPREPLY=()".to_owned(),
        };
        cases.push_str(&format!("        {}) {done}; return ;;\n", word.names.join("|")));
    }
    let all: Vec<&str> = words.iter().flat_map(|word| word.names.iter().copied()).collect();
    format!(
        "{name}() {{\n    \
         local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n{first}    \
         case $before in\n{cases}    esac\n    \
         if [[ $word == -* ]]; then\n        \
         COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n    \
         else\n        {otherwise}\n    fi\n}}\n",
        all.join(" ")
    )
}

fn bash() -> String {
    let words = of_program();
    // The value of an option is not the command.
    let valued: Vec<&str> = words
        .iter()
        .filter(|word| !word.value.is_empty())
        .flat_map(|word| word.names.iter().copied())
        .collect();
    let find_command = format!(
        "    local at\n    \
         for ((at = 1; at < COMP_CWORD; at++)); do\n        \
         case ${{COMP_WORDS[at]}} in\n            \
         {}) ((++at)) ;;\n            \
         analyze) _brisk_cli_analyze; return ;;\n            \
         -*) ;;\n            \
         *) break ;;\n        \
         esac\n    done\n",
        valued.join("|")
    );
    let analyze = bash_function(
        "_brisk_cli_analyze",
        &of_analyze(),
        "",
        "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))",
    );
    // Only the command can be one of the program's own. `at` is the position of the command; if there is none yet, it
    // is after the current word.
    let program = bash_function(
        "_brisk_cli",
        &words,
        &find_command,
        &format!(
            "((at < COMP_CWORD)) || COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))",
            own_names()
        ),
    );
    format!("# bash completion for brisk-cli\n{analyze}{program}complete -F _brisk_cli brisk-cli\n")
}

/// Each option in the syntax of zsh's `_arguments`.
fn zsh_specs(words: &[Word], indent: &str) -> String {
    let mut specs = String::new();
    for word in words {
        let text = word.text.replace('[', "(").replace(']', ")");
        let text = text.replace(':', "\\:").replace('\'', "'\\''");
        for name in &word.names {
            let mut spec = format!("{name}[{text}]");
            if !word.value.is_empty() {
                let what = word.value.replace(':', "\\:");
                let action = match (word.completed, word.choices()) {
                    (_, Some(words)) => format!("({words})"),
                    (Completed::File, _) => "_files".to_owned(),
                    (Completed::Directory, _) => "_files -/".to_owned(),
                    _ => " ".to_owned(),
                };
                spec.push_str(&format!(":{what}:{action}"));
            }
            specs.push_str(&format!("{indent}'{spec}' \\\n"));
        }
    }
    specs
}

fn zsh() -> String {
    format!(
        "#compdef brisk-cli\n\
         local state\n\
         _arguments \\\n{}    '1:command:({})' '*:: :->behind'\n\
         [[ $state == behind ]] || return\n\
         if [[ $words[1] == analyze ]]; then\n    \
         _arguments \\\n{}        '1:file or directory:_files'\n\
         else\n    _default\nfi\n",
        zsh_specs(&of_program(), "    "),
        own_names(),
        zsh_specs(&of_analyze(), "        "),
    )
}

/// A line for each option, which applies if `condition` holds.
fn fish_lines(words: &[Word], condition: &str) -> String {
    let mut lines = String::new();
    for word in words {
        let mut line = format!("complete -c brisk-cli -n '{condition}'");
        for name in &word.names {
            line.push_str(&match name.strip_prefix("--") {
                Some(long) => format!(" -l {long}"),
                None => format!(" -s {}", &name[1..]),
            });
        }
        if !word.value.is_empty() {
            line.push_str(&match (word.completed, word.choices()) {
                (_, Some(words)) => format!(" -x -a '{words}'"),
                (Completed::File, _) => " -r -F".to_owned(),
                (Completed::Directory, _) => " -x -a '(__fish_complete_directories)'".to_owned(),
                _ => " -x".to_owned(),
            });
        }
        let text = word.text.replace('\\', "\\\\").replace('\'', "\\'");
        lines.push_str(&format!("{line} -d '{text}'\n"));
    }
    lines
}

/// The names of the program's own commands.
fn own_names() -> String {
    COMMANDS.iter().map(|command| command.name).collect::<Vec<_>>().join(" ")
}

/// A line for each of the program's own commands.
fn fish_commands() -> String {
    let names = own_names();
    let line = |name: &str, text: &str| {
        let text = text.split("; see").next().unwrap_or_default().replace('\'', "\\'");
        format!(
            "complete -c brisk-cli -n 'not __fish_seen_subcommand_from {names}' -a {name} -d '{text}'\n"
        )
    };
    COMMANDS.iter().map(|command| line(command.name, command.text)).collect()
}

fn fish() -> String {
    let (analyze, program) =
        ("__fish_seen_subcommand_from analyze", "not __fish_seen_subcommand_from analyze");
    format!(
        "# fish completion for brisk-cli\n\
         complete -c brisk-cli -f\n\
         {}\
         complete -c brisk-cli -n '{analyze}' -F\n{}{}",
        fish_commands(),
        fish_lines(&of_program(), program),
        fish_lines(&of_analyze(), analyze),
    )
}
