//! Command-line options of the form `--name value`, `--flag` and plain words.

use anyhow::{Context, Result, bail};
use std::str::FromStr;

/// Options that take no value.
const FLAGS: &[&str] = &["check", "sample", "json", "update", "resume"];

/// The arguments after the task on the command line.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) words: Vec<String>,
    named: Vec<(String, String)>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                None => options.words.push(word),
                Some(flag) if FLAGS.contains(&flag) => {
                    options.named.push((flag.to_owned(), String::new()));
                }
                Some(name) => {
                    let Some(value) = words.next() else { bail!("--{name} wants a value") };
                    options.named.push((name.to_owned(), value));
                }
            }
        }
        Ok(options)
    }

    /// Options that a command of this program sets itself.
    pub(crate) fn of<const N: usize>(named: [(&str, &str); N]) -> Options {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Options { words: Vec::new(), named: named.map(own).to_vec() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(n, _)| n == name)
    }

    /// The value of an option. If it is repeated, the last value.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.named.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All values of a repeated option, in their order.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        self.named.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The option as a number, or `default`.
    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.text(name).map_or(Ok(default), |text| {
            text.replace('_', "").parse().with_context(|| format!("--{name} {text}"))
        })
    }
}
