//! A worker's interpreter, and what it has compiled.

use super::cache::{self, Digest, Script, Scripts};
use super::desk::Desk;
use super::libraries::Library;
use crate::core::shared::Shared;
use brisk_engine::{CommandError, Dialect, Result};
use brisk_observe::version::{BRISK_VERSION, REDIS_VERSION, number_of};
use brisk_script::{Interpreter, Registered, Texts, Version};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Compiled scripts among which evicted ones are not looked for.
const UNSWEPT_MAX: usize = 2 * cache::EVALUATED_MAX;

/// The words of errors in scripts.
pub fn texts(dialect: Dialect) -> &'static Texts {
    match dialect {
        Dialect::Redis => &Texts::REDIS,
        Dialect::Valkey => &Texts::VALKEY,
    }
}

/// A worker's interpreter. It is made when the first script runs.
pub struct Machine {
    pub(super) interpreter: RefCell<Interpreter>,
    pub(super) desk: Rc<Desk>,
    compiled: RefCell<Compiled>,
    worker: usize,
    shared: &'static Shared,
}

#[derive(Default)]
struct Compiled {
    scripts: HashMap<Digest, Rc<CompiledScript>, BuildHasherDefault<DigestHasher>>,
    sweep_at: usize,
    /// The functions of libraries, by the libraries' numbers.
    libraries: HashMap<u64, HashMap<Vec<u8>, Rc<brisk_script::Script>>>,
    generations: (u64, u64),
}

/// Digests are hashes already: some of their digits will do. Only texts with digests that agree there
/// could make searching slow.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        for digits in bytes.chunks_exact(8).take(2) {
            let digits = u64::from_le_bytes(digits.try_into().unwrap_or_default());
            self.0 = (self.0.rotate_left(29) ^ digits).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// A script with its code.
pub struct CompiledScript {
    pub script: Arc<Script>,
    pub code: Rc<brisk_script::Script>,
}

impl Machine {
    pub fn new(shared: &'static Shared, worker: usize) -> Result<Machine> {
        let desk = Rc::new(Desk::new(shared, worker));
        let version = Version {
            redis: REDIS_VERSION,
            redis_number: number_of(REDIS_VERSION),
            name: "brisk",
            own: BRISK_VERSION,
            own_number: number_of(BRISK_VERSION),
            texts: texts(shared.config().process.dialect),
        };
        let host = Rc::clone(&desk) as Rc<dyn brisk_script::Host>;
        let interpreter = Interpreter::new(host, &version)
            .map_err(|error| CommandError::text(format!("ERR no interpreter: {error}")))?;
        Ok(Machine {
            interpreter: RefCell::new(interpreter),
            desk,
            compiled: RefCell::default(),
            worker,
            shared,
        })
    }

    /// Forgets what was flushed meanwhile, and what takes too much. Three loads if nothing was or does.
    #[inline]
    pub fn refresh(&self) {
        let shared = self.shared;
        let now = (shared.scripts.generation(), shared.libraries.generation());
        if self.compiled.borrow().generations != now {
            self.sweep(now);
        }
        if self.interpreter.try_borrow().is_ok_and(|interpreter| interpreter.is_full()) {
            self.compiled.borrow_mut().scripts.clear();
        }
    }

    #[cold]
    fn sweep(&self, now: (u64, u64)) {
        let mut compiled = self.compiled.borrow_mut();
        let flushed = compiled.generations.0 != now.0;
        compiled.generations = now;
        compiled.scripts.retain(|_, entry| entry.script.is_known());
        let set = self.shared.libraries.now();
        let known: Vec<u64> = set.libraries.values().map(|library| library.id).collect();
        compiled.libraries.retain(|id, _| known.contains(id));
        // Redis begins with a new interpreter then, so memory is expected to be given back.
        if flushed && let Ok(mut interpreter) = self.interpreter.try_borrow_mut() {
            interpreter.collect();
        }
    }

    /// The script of this digest, if there is one.
    pub fn script(&self, digest: &Digest) -> Result<Option<Rc<CompiledScript>>> {
        if let Some(entry) = self.compiled.borrow().scripts.get(digest)
            && entry.script.is_known()
        {
            return Ok(Some(Rc::clone(entry)));
        }
        let script = self.shared.scripts.find(digest);
        script.map(|script| self.compile(script)).transpose()
    }

    /// The script of this text, which is kept from now on, until a flush if it is `loaded`.
    pub fn script_from(&self, source: &[u8], loaded: bool) -> Result<Rc<CompiledScript>> {
        let digest = cache::digest_of(source);
        if let Some(entry) = self.script(&digest)? {
            if loaded {
                self.shared.scripts.keep(Arc::clone(&entry.script), true);
            }
            return Ok(entry);
        }
        let script = Scripts::read(source, digest, self.shared.table)
            .map_err(|text| error_with(b"ERR ", &text))?;
        let entry = self.compile(Arc::clone(&script))?;
        let kept = self.shared.scripts.keep(script, loaded);
        if Arc::ptr_eq(&kept, &entry.script) {
            return Ok(entry);
        }
        // Another worker was first.
        let entry = Rc::new(CompiledScript { script: kept, code: Rc::clone(&entry.code) });
        self.compiled.borrow_mut().scripts.insert(digest, Rc::clone(&entry));
        Ok(entry)
    }

    fn compile(&self, script: Arc<Script>) -> Result<Rc<CompiledScript>> {
        let code = self.interpreter.borrow_mut().compile(&script.source, script.header_len);
        let code = code.map_err(|text| {
            let before = b"ERR Error compiling script (new function): ";
            error_with(before, text.as_bytes())
        })?;
        let entry = Rc::new(CompiledScript { script, code: Rc::new(code) });
        let mut compiled = self.compiled.borrow_mut();
        if compiled.scripts.len() >= compiled.sweep_at.max(UNSWEPT_MAX) {
            compiled.scripts.retain(|_, entry| entry.script.is_known());
            compiled.sweep_at = 2 * compiled.scripts.len();
        }
        compiled.scripts.insert(entry.script.digest, Rc::clone(&entry));
        Ok(entry)
    }

    /// A function's code. Runs the code of its library if this interpreter has not done so yet.
    pub fn function(&self, library: &Library, name: &[u8]) -> Result<Rc<brisk_script::Script>> {
        let known = |compiled: &Compiled| {
            compiled.libraries.get(&library.id).map(|functions| functions.get(name).cloned())
        };
        let mut found = known(&self.compiled.borrow());
        if found.is_none() {
            let functions = self
                .run_library(&library.code, library.header_len)
                .map_err(|text| error_with(b"ERR ", &text))?;
            self.keep_functions(library.id, functions);
            found = known(&self.compiled.borrow());
        }
        found.flatten().ok_or_else(|| {
            CommandError::text(
                "ERR The library did not register this function when it was run again",
            )
        })
    }

    /// Runs the code of a library; what it registers.
    pub fn run_library(
        &self,
        code: &[u8],
        header_len: usize,
    ) -> std::result::Result<Vec<Registered>, Vec<u8>> {
        self.desk.begin_loading();
        self.interpreter.borrow_mut().load_library(code, header_len)
    }

    /// Keeps the functions of a library.
    pub fn keep_functions(&self, id: u64, functions: Vec<Registered>) {
        let by_name = functions.into_iter().map(|f| (f.name, Rc::new(f.function))).collect();
        self.compiled.borrow_mut().libraries.insert(id, by_name);
    }

    /// Publishes how much memory the interpreter takes.
    pub fn publish_memory(&self) {
        let bytes = self.interpreter.borrow().memory();
        self.shared.scripting.interpreter_bytes[self.worker].store(bytes, Ordering::Relaxed);
    }
}

/// An error that ends with a text of the client's.
pub fn error_with(before: &[u8], text: &[u8]) -> CommandError {
    let mut whole = [before, text].concat();
    for byte in &mut whole {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    CommandError::bytes(whole)
}
