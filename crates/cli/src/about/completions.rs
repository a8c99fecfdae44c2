//! Completions for shells.

use crate::cluster;
use crate::options::Shell;
use crate::options::table::{Completed, Row, SECTIONS};

/// What is to be put where the shell looks for completions.
pub(crate) fn of(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(),
        Shell::Zsh => zsh(),
        Shell::Fish => fish(),
    }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    SECTIONS.iter().flat_map(|section| section.rows)
}

/// The words that may follow an option, if it is one of few.
fn words(row: &Row) -> Option<String> {
    match row.completed {
        Completed::Word(words) => Some(words.join(" ")),
        Completed::ClusterCommand => Some(cluster::commands().collect::<Vec<_>>().join(" ")),
        Completed::Nothing | Completed::File | Completed::Folder => None,
    }
}

fn bash() -> String {
    let mut cases = String::new();
    for row in rows().filter(|row| !row.value.is_empty()) {
        let done = match (row.completed, words(row)) {
            (_, Some(words)) => format!("COMPREPLY=($(compgen -W \"{words}\" -- \"$word\"))"),
            (Completed::File, _) => {
                "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))".to_owned()
            }
            (Completed::Folder, _) => {
                "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\"))".to_owned()
            }
            _ => "COMPREPLY=()".to_owned(),
        };
        let names = row.names.join("|");
        cases.push_str(&format!("        {names}) {done}; return ;;\n"));
    }
    let all: Vec<&str> = rows().flat_map(|row| row.names.iter().copied()).collect();
    format!(
        "# bash completion for brisk-cli\n\
         _brisk_cli() {{\n    \
         local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n    \
         case $before in\n{cases}    esac\n    \
         if [[ $word == -* ]]; then\n        \
         COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n    \
         fi\n}}\ncomplete -F _brisk_cli brisk-cli\n",
        all.join(" ")
    )
}

fn zsh() -> String {
    let mut specs = String::new();
    for row in rows() {
        let text =
            row.text.replace('[', "(").replace(']', ")").replace(':', "\\:").replace('\'', "'\\''");
        for name in row.names {
            let mut spec = format!("{name}[{text}]");
            if !row.value.is_empty() {
                let what = row.value.trim_start_matches('<').split('>').next().unwrap_or_default();
                let what = what.replace(':', "\\:");
                let action = match (row.completed, words(row)) {
                    (_, Some(words)) => format!("({words})"),
                    (Completed::File, _) => "_files".to_owned(),
                    (Completed::Folder, _) => "_files -/".to_owned(),
                    _ => " ".to_owned(),
                };
                spec.push_str(&format!(":{what}:{action}"));
            }
            specs.push_str(&format!("    '{spec}' \\\n"));
        }
    }
    format!("#compdef brisk-cli\n_arguments \\\n{specs}    '*:: :_default'\n")
}

fn fish() -> String {
    let mut lines = String::from("# fish completion for brisk-cli\ncomplete -c brisk-cli -f\n");
    for row in rows() {
        let mut line = "complete -c brisk-cli".to_owned();
        for name in row.names {
            line.push_str(&match name.strip_prefix("--") {
                Some(long) => format!(" -l {long}"),
                None => format!(" -s {}", &name[1..]),
            });
        }
        if !row.value.is_empty() {
            line.push_str(&match (row.completed, words(row)) {
                (_, Some(words)) => format!(" -x -a '{words}'"),
                (Completed::File, _) => " -r -F".to_owned(),
                (Completed::Folder, _) => " -x -a '(__fish_complete_directories)'".to_owned(),
                _ => " -x".to_owned(),
            });
        }
        let text = row.text.replace('\\', "\\\\").replace('\'', "\\'");
        lines.push_str(&format!("{line} -d '{text}'\n"));
    }
    lines
}
