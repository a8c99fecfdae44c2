//! The scripts and functions of the server.

use super::cache::{self, Scripts};
use super::libraries::Libraries;
use super::slow::RunningScripts;
use brisk_engine::Dialect;
use brisk_script::header::ScriptFlags;

/// The scripts and functions that all workers share.
#[derive(Debug)]
pub struct Scripting {
    /// The scripts that EVALSHA finds.
    pub scripts: Scripts,
    pub libraries: Libraries,
    /// The scripts and functions that are running.
    pub running: RunningScripts,
}

impl Scripting {
    pub fn new(workers: usize, dialect: Dialect) -> Scripting {
        Scripting {
            scripts: Scripts::default(),
            libraries: Libraries::default(),
            running: RunningScripts::new(workers, dialect),
        }
    }

    /// The flags of the function with this name, if there is one.
    pub fn flags_of_function(&self, name: &[u8]) -> Option<ScriptFlags> {
        self.libraries.now().function(name).map(|(_, function)| function.flags)
    }

    /// The flags of the script with this hexadecimal digest, if it is known.
    pub fn flags_of_script(&self, digest: &[u8]) -> Option<ScriptFlags> {
        let digest = cache::digest_from(digest)?;
        self.scripts.find(&digest).map(|script| script.flags)
    }

    /// Memory of all scripts and of the interpreters that run them, in bytes.
    pub fn eval_bytes(&self) -> u64 {
        self.scripts.metrics().1 + self.running.interpreter_bytes().0
    }

    /// Memory of all libraries and of the interpreters that run their functions, in bytes.
    pub fn function_bytes(&self) -> u64 {
        self.libraries.now().bytes() + self.running.interpreter_bytes().1
    }
}
