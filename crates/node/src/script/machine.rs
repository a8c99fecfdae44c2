//! A worker's interpreters: one for scripts, one for functions.
//!
//! Each interpreter has its own memory, so data that libraries keep does not reduce the memory available to scripts.
//! Both share one runner, because a worker runs one script or function at a time.

use super::eval_interpreter::EvalInterpreter;
use super::function_interpreter::FunctionInterpreter;
use super::runner::ScriptRunner;
use crate::core::shared::Shared;
use brisk_engine::{CommandError, Dialect, Result};
use brisk_observe::version::{BRISK_VERSION, REDIS_VERSION, number_of};
use brisk_script::{Interpreter, Texts, Version};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The texts of errors in scripts.
pub fn texts(dialect: Dialect) -> &'static Texts {
    match dialect {
        Dialect::Redis => &Texts::REDIS,
        Dialect::Valkey => &Texts::VALKEY,
    }
}

/// An interpreter, and the host through which its scripts access the server.
pub struct Machine {
    pub(super) interpreter: RefCell<Interpreter>,
    pub(super) runner: Rc<ScriptRunner>,
    /// Published memory usage of the interpreter, for other threads.
    bytes: &'static AtomicUsize,
}

impl Machine {
    fn new(
        shared: &Shared,
        runner: &Rc<ScriptRunner>,
        bytes: &'static AtomicUsize,
    ) -> Result<Rc<Machine>> {
        let version = Version {
            redis: REDIS_VERSION,
            redis_number: number_of(REDIS_VERSION),
            name: "brisk",
            own: BRISK_VERSION,
            own_number: number_of(BRISK_VERSION),
            texts: texts(shared.config().process.dialect),
        };
        let host = Rc::clone(runner) as Rc<dyn brisk_script::Host>;
        let interpreter = Interpreter::new(host, &version)
            .map_err(|error| CommandError::text(format!("ERR no interpreter: {error}")))?;
        let (interpreter, runner) = (RefCell::new(interpreter), Rc::clone(runner));
        Ok(Rc::new(Machine { interpreter, runner, bytes }))
    }

    /// Publishes the memory usage of the interpreter.
    pub fn publish_memory(&self) {
        self.bytes.store(self.interpreter.borrow().memory(), Ordering::Relaxed);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.bytes.store(0, Ordering::Relaxed);
    }
}

/// A worker's interpreters. Each is created when it is first needed.
pub struct Interpreters {
    shared: &'static Shared,
    worker: usize,
    runner: Rc<ScriptRunner>,
    eval: Option<EvalInterpreter>,
    functions: Option<FunctionInterpreter>,
}

impl Interpreters {
    pub fn new(shared: &'static Shared, worker: usize) -> Interpreters {
        let runner = Rc::new(ScriptRunner::new(shared, worker));
        Interpreters { shared, worker, runner, eval: None, functions: None }
    }

    /// The eval interpreter, after it has dropped flushed scripts.
    pub fn eval(&mut self) -> Result<&mut EvalInterpreter> {
        let shared = self.shared;
        let eval = match &mut self.eval {
            Some(eval) => eval,
            none => {
                let bytes = shared.scripting.running.memory_of(self.worker, true);
                none.insert(EvalInterpreter::new(
                    Machine::new(shared, &self.runner, bytes)?,
                    shared,
                ))
            }
        };
        eval.refresh();
        Ok(eval)
    }

    /// The function interpreter, after it has dropped deleted libraries.
    pub fn functions(&mut self) -> Result<&mut FunctionInterpreter> {
        self.forget_libraries();
        let shared = self.shared;
        Ok(match &mut self.functions {
            Some(functions) => functions,
            none => {
                let bytes = shared.scripting.running.memory_of(self.worker, false);
                let machine = Machine::new(shared, &self.runner, bytes)?;
                none.insert(FunctionInterpreter::new(machine, shared))
            }
        })
    }

    /// Drops deleted libraries. Frees the interpreter if no library is left.
    fn forget_libraries(&mut self) {
        if let Some(functions) = &mut self.functions
            && !functions.refresh()
        {
            self.functions = None;
        }
    }

    /// Drops flushed scripts, and publishes the memory usage of the interpreters.
    pub fn forget_flushed(&mut self) {
        if let Some(eval) = &mut self.eval {
            eval.refresh();
            eval.machine.publish_memory();
        }
        self.forget_libraries();
        if let Some(functions) = &self.functions {
            functions.machine.publish_memory();
        }
    }

    /// Reports whether the running code, or the code that ran last, is a script and not a function.
    pub fn runs_eval(&self) -> bool {
        self.runner.is_eval.get()
    }
}

/// An error that ends with text from the client.
pub fn error_with(before: &[u8], text: &[u8]) -> CommandError {
    let mut whole = [before, text].concat();
    for byte in &mut whole {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    CommandError::bytes(whole)
}
