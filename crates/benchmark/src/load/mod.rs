//! The requests: commands, their keys, the sizes of their values, and their mixture.
//!
//! | file | about |
//! |---|---|
//! | `template` | a command compiled to bytes with places to patch |
//! | `keys`, `sizes`, `random` | which key, how long a value |
//! | `batch` | the requests of one connection, written and patched in place |
//! | `tag` | hash tags of the nodes of a cluster |
//! | `suite` | the tests of redis-benchmark |
//! | `verify` | what replies must be |

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
    /// How often it is sent, in proportion to the others' weights.
    pub weight: u64,
    /// What its replies must be if they are verified.
    pub expect: Expect,
}

/// Everything about the requests of one run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What reports call it.
    pub title: String,
    /// At least one; their weights are not all 0.
    pub commands: Vec<Command>,
    /// How numbers are drawn.
    pub keys: KeyChoice,
    /// Numbers are below this; 0 draws always 0.
    pub keyspace: u64,
    /// What values are made of.
    pub values: Values,
    /// What reports call the payload, in bytes: the size of values, or of an own command.
    pub payload_bytes: usize,
}

/// The settings that the commands of a workload have in common.
#[derive(Clone, Debug)]
pub struct Material {
    /// How numbers are drawn.
    pub keys: KeyChoice,
    /// Numbers are below this; without it, placeholders of numbers are ordinary text.
    pub keyspace: Option<u64>,
    /// How long values are.
    pub sizes: ValueSizes,
    /// Whether replies will be verified, for which values are marked.
    pub verified: bool,
    /// Whether keys have hash tags, and `{tag}` stands for one: in cluster mode.
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
    /// What redis-benchmark does without options.
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

    /// A test of the suite.
    #[must_use]
    pub fn test(&self, test: &Test) -> Workload {
        let values = self.values();
        let command = self.command_of(test, 1, &values);
        self.workload(test.title.to_owned(), values, vec![command])
    }

    /// A command of the user's.
    #[must_use]
    pub fn own<W: AsRef<[u8]>>(&self, title: String, words: &[W]) -> Workload {
        let values = self.values();
        let template = Template::new(words, self.placeholders(), &values);
        let payload_bytes = template.whole().map_or(values.sizes.max(), |(bytes, _)| bytes.len());
        let command = Command { template, weight: 1, expect: Expect::Any };
        Workload { payload_bytes, ..self.workload(title, values, vec![command]) }
    }

    /// Several tests and commands of the user's, each with its weight.
    ///
    /// # Errors
    /// Nothing to send.
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
    /// A test of the suite.
    Test(&'static Test),
    /// A command, word by word.
    Own(Vec<Vec<u8>>),
}
