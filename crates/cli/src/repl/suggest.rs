//! Suggestions after an unknown command or subcommand: the names that differ by few letters.

use crate::docs::Docs;

/// Maximum number of suggestions.
const SUGGESTIONS_MAX: usize = 3;

/// The line to print after an error; `None` if no command has a similar name.
pub(super) fn line(docs: &Docs, error: &[u8], words: &[Vec<u8>]) -> Option<String> {
    let error = String::from_utf8_lossy(error);
    let text = |at: usize| words.get(at).map(|word| String::from_utf8_lossy(word).to_uppercase());
    let names: Vec<&str> = docs.entries.iter().map(|entry| entry.name.as_str()).collect();
    let found = if error.starts_with("ERR unknown command") {
        let commands = names.into_iter().filter(|name| !name.contains(' '));
        similar(&text(0)?, commands.map(|name| (name, name)))
    } else if error.to_ascii_lowercase().starts_with("err unknown subcommand") {
        let container = format!("{} ", text(0)?);
        let subcommands =
            names.into_iter().filter_map(|name| Some((name.strip_prefix(&container)?, name)));
        similar(&text(1)?, subcommands)
    } else {
        return None;
    };
    let (last, others) = found.split_last()?;
    Some(match others {
        [] => format!("Did you mean {last}?\n"),
        others => format!("Did you mean {} or {last}?\n", others.join(", ")),
    })
}

/// The full names of the candidates that differ least from a word, in alphabetical order.
fn similar<'a>(word: &str, candidates: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    // Short names are similar to too many others.
    let allowed = if word.chars().count() <= 3 { 1 } else { 2 };
    let mut found: Vec<(usize, &str)> = candidates
        .map(|(name, full)| (distance(word, name), full))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    found.sort_unstable();
    let best = found.first().map_or(0, |(distance, _)| *distance);
    let best = found.into_iter().filter(|(distance, _)| *distance == best);
    best.map(|(_, full)| full).take(SUGGESTIONS_MAX).collect()
}

/// The number of letters that must be inserted, deleted, replaced or swapped with their neighbor.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut current = vec![row];
        for column in 1..=other.len() {
            let is_same = one[row - 1] == other[column - 1];
            let mut best = (last[column] + 1)
                .min(current[column - 1] + 1)
                .min(last[column - 1] + usize::from(!is_same));
            let is_swapped = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if is_swapped {
                best = best.min(before[column - 2] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::Entry;

    #[test]
    fn distances_count_swapped_letters_once() {
        assert_eq!(distance("GET", "GET"), 0);
        assert_eq!(distance("GTE", "GET"), 1);
        assert_eq!([distance("", "AB"), distance("AB", ""), distance("KEYS", "KEY")], [2, 2, 1]);
    }

    #[test]
    fn the_closest_names_are_suggested() {
        let entry = |name: &str| Entry { name: name.to_owned(), ..Entry::default() };
        let entries = ["GET", "HGETALL", "OBJECT", "OBJECT ENCODING", "OBJECT FREQ", "SET"];
        let docs = Docs { entries: entries.map(entry).into(), groups: Vec::new() };
        let line = |error: &str, typed: &str| {
            let words: Vec<Vec<u8>> =
                typed.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            line(&docs, error.as_bytes(), &words)
        };
        let unknown = "ERR unknown command 'x', with args beginning with: ";
        assert_eq!(line(unknown, "hgetal k").as_deref(), Some("Did you mean HGETALL?\n"));
        assert_eq!(line(unknown, "gte").as_deref(), Some("Did you mean GET?\n"));
        assert_eq!(line(unknown, "eet").as_deref(), Some("Did you mean GET or SET?\n"));
        assert_eq!(line(unknown, "nonsense"), None);
        assert_eq!(
            line("ERR unknown subcommand 'encodign'. Try OBJECT HELP.", "object encodign k")
                .as_deref(),
            Some("Did you mean OBJECT ENCODING?\n")
        );
        assert_eq!(line("WRONGTYPE", "get a"), None);
    }
}
