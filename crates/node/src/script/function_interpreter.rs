//! A worker's function interpreter, and the libraries that it has loaded.
//!
//! All libraries share the interpreter's memory. Only the functions of a library refer to its data, so the data is
//! garbage once the functions are dropped.

use super::libraries::Library;
use super::machine::{Machine, error_with};
use crate::core::shared::Shared;
use brisk_engine::{CommandError, Result};
use brisk_script::Registered;
use std::collections::HashMap;
use std::rc::Rc;

/// The interpreter that runs the functions of libraries.
pub struct FunctionInterpreter {
    pub machine: Rc<Machine>,
    shared: &'static Shared,
    /// The functions of each library, by library id.
    libraries: HashMap<u64, Functions>,
    /// The generation of the set of libraries that was last seen.
    generation: u64,
}

/// The functions of a library by name.
type Functions = HashMap<Vec<u8>, Rc<brisk_script::Script>>;

impl FunctionInterpreter {
    pub(super) fn new(machine: Rc<Machine>, shared: &'static Shared) -> FunctionInterpreter {
        let generation = shared.scripting.libraries.generation();
        FunctionInterpreter { machine, shared, libraries: HashMap::new(), generation }
    }

    /// Drops deleted libraries. Returns false if no library is left. Costs one memory read if nothing has changed.
    #[inline]
    pub(super) fn refresh(&mut self) -> bool {
        let now = self.shared.scripting.libraries.generation();
        self.generation == now || self.sweep(now)
    }

    #[cold]
    fn sweep(&mut self, now: u64) -> bool {
        if Rc::strong_count(&self.machine) > 1 {
            // A function is suspended, and it may belong to a deleted library. The caller checks again later.
            return true;
        }
        self.generation = now;
        let set = self.shared.scripting.libraries.now();
        if set.libraries.is_empty() {
            return false;
        }
        let known: Vec<u64> = set.libraries.values().map(|library| library.id).collect();
        let before = self.libraries.len();
        self.libraries.retain(|id, _| known.contains(id));
        if self.libraries.len() < before {
            self.machine.interpreter.borrow_mut().collect();
        }
        true
    }

    /// A function's code. Runs the code of its library if this interpreter has not done so yet.
    pub fn function(&mut self, library: &Library, name: &[u8]) -> Result<Rc<brisk_script::Script>> {
        let found = match self.libraries.get(&library.id) {
            Some(functions) => functions.get(name).cloned(),
            None => {
                let functions = self.run_library(&library.code, library.header_len);
                let functions = by_name(functions.map_err(|text| error_with(b"ERR ", &text))?);
                let found = functions.get(name).cloned();
                // The library may have been deleted since the client's command found the function.
                let set = self.shared.scripting.libraries.now();
                if set.libraries.get(&library.name).is_some_and(|known| known.id == library.id) {
                    self.libraries.insert(library.id, functions);
                }
                found
            }
        };
        found.ok_or_else(|| {
            CommandError::text(
                "ERR The library did not register this function when it was run again",
            )
        })
    }

    /// Runs the code of a library. Returns the functions that it registers.
    pub fn run_library(
        &self,
        code: &[u8],
        header_len: usize,
    ) -> std::result::Result<Vec<Registered>, Vec<u8>> {
        self.machine.interpreter.borrow_mut().load_library(code, header_len)
    }

    /// Keeps the functions of a library that is in force.
    pub fn keep(&mut self, id: u64, functions: Vec<Registered>) {
        self.libraries.insert(id, by_name(functions));
    }
}

fn by_name(functions: Vec<Registered>) -> Functions {
    functions.into_iter().map(|f| (f.name, Rc::new(f.function))).collect()
}
