//! The requests: commands, their keys, the sizes of their values, and their mixture.
//!
//! | file | contents |
//! |---|---|
//! | `template` | a command compiled to bytes with places to patch |
//! | `keys`, `sizes`, `random` | the choice of keys and of value sizes |
//! | `batch` | the requests of one connection, written and patched in place |
//! | `tag` | hash tags of cluster nodes |
//! | `suite` | the tests of redis-benchmark |
//! | `verify` | the expected replies |

pub mod batch;
pub mod keys;
pub mod random;
pub mod sizes;
pub mod suite;
pub mod tag;
pub mod template;
pub mod verify;

use keys::KeyChoice;
use sizes::ValueSizes;
use suite::Test;
use template::{Placeholders, Template, Values, value_bytes};
use verify::Expect;

/// A command of a workload.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its request.
    pub template: Template,
    /// How often it is sent, relative to the weights of other commands.
    pub weight: u64,
    /// The expected reply, if replies are verified.
    pub expect: Expect,
}

/// Everything about the requests of one run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The title in reports.
    pub title: String,
    /// At least one command. The weights are not all 0.
    pub commands: Vec<Command>,
    /// How numbers are drawn.
    pub keys: KeyChoice,
    /// Numbers are below this bound. If it is 0, all numbers are 0.
    pub keyspace: u64,
    /// The contents and sizes of values.
    pub values: Values,
    /// The payload size in reports, in bytes: the size of values, or of the user's command.
    pub payload_bytes: usize,
}

/// The settings that the commands of a workload have in common.
#[derive(Clone, Debug)]
pub struct Material {
    /// How numbers are drawn.
    pub keys: KeyChoice,
    /// Numbers are below this bound. Without a bound, placeholders for numbers are ordinary text.
    pub keyspace: Option<u64>,
    /// The sizes of values.
    pub sizes: ValueSizes,
    /// True if replies will be verified. Values are then marked with their keys.
    pub verified: bool,
    /// True in cluster mode: keys have hash tags, and `{tag}` is a placeholder for one.
    pub tagged: bool,
}

impl Workload {
    /// Reports whether every command has a hash tag.
    #[must_use]
    pub fn is_tagged(&self) -> bool {
        self.commands.iter().all(|command| command.template.is_tagged())
    }
}

impl Default for Material {
    /// The defaults of redis-benchmark.
    fn default() -> Material {
        Material {
            keys: KeyChoice::Uniform,
            keyspace: None,
            sizes: ValueSizes::Fixed(3),
            verified: false,
            tagged: false,
        }
    }
}

impl Material {
    fn values(&self) -> Values {
        Values {
            data: value_bytes(self.sizes.max()),
            sizes: self.sizes.clone(),
            marked: self.verified && self.keyspace.is_some(),
        }
    }

    fn placeholders(&self) -> Placeholders {
        Placeholders { numbers: self.keyspace.is_some(), tags: self.tagged }
    }

    fn workload(&self, title: String, values: Values, commands: Vec<Command>) -> Workload {
        Workload {
            title,
            commands,
            keys: self.keys,
            keyspace: self.keyspace.unwrap_or(0),
            payload_bytes: values.sizes.max(),
            values,
        }
    }

    fn command_of(&self, test: &Test, weight: u64, values: &Values) -> Command {
        let replaced = self.placeholders();
        let template = if test.words.is_empty() {
            Template::inline("PING", values)
        } else {
            Template::new(&test.words_of(replaced), replaced, values)
        };
        Command { template, weight, expect: test.expect }
    }

    /// A test from the suite.
    #[must_use]
    pub fn test(&self, test: &Test) -> Workload {
        let values = self.values();
        let command = self.command_of(test, 1, &values);
        self.workload(test.title.to_owned(), values, vec![command])
    }

    /// The workload of a command that the user has specified.
    #[must_use]
    pub fn own<W: AsRef<[u8]>>(&self, title: String, words: &[W]) -> Workload {
        let values = self.values();
        let template = Template::new(words, self.placeholders(), &values);
        let payload_bytes = template.whole().map_or(values.sizes.max(), |(bytes, _)| bytes.len());
        let command = Command { template, weight: 1, expect: Expect::Any };
        Workload { payload_bytes, ..self.workload(title, values, vec![command]) }
    }

    /// The workload of several tests and user-specified commands, each with its weight.
    ///
    /// # Errors
    /// If there is nothing to send.
    pub fn mix(&self, title: String, parts: &[(Ingredient, u64)]) -> Result<Workload, String> {
        let values = self.values();
        let commands: Vec<Command> = parts
            .iter()
            .map(|(ingredient, weight)| match ingredient {
                Ingredient::Test(test) => self.command_of(test, *weight, &values),
                Ingredient::Own(words) => Command {
                    template: Template::new(words, self.placeholders(), &values),
                    weight: *weight,
                    expect: Expect::Any,
                },
            })
            .filter(|command| command.weight > 0)
            .collect();
        if commands.is_empty() {
            return Err("a mix needs a command with a weight above 0".to_owned());
        }
        Ok(self.workload(title, values, commands))
    }
}

/// A part of a mix.
#[derive(Clone, Debug)]
pub enum Ingredient {
    /// A test from the suite.
    Test(&'static Test),
    /// A command as a list of arguments.
    Own(Vec<Vec<u8>>),
}
