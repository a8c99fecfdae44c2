//! A worker's eval interpreter, and the scripts that it has compiled.

use super::cache::{self, Digest, Script, Scripts};
use super::machine::{Machine, error_with};
use crate::core::shared::Shared;
use brisk_engine::Result;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// If there are at most this many compiled scripts, the worker does not look for evicted scripts.
const UNSWEPT_MAX: usize = 2 * cache::EVALUATED_MAX;

/// The interpreter that runs the scripts of EVAL.
pub struct EvalInterpreter {
    pub machine: Rc<Machine>,
    shared: &'static Shared,
    scripts: HashMap<Digest, Rc<CompiledScript>, BuildHasherDefault<DigestHasher>>,
    sweep_at: usize,
    /// The generation of the set of scripts that was last seen.
    generation: u64,
}

/// Uses some digits of a digest as its hash, because digests are already hashes. Only scripts whose digests agree in
/// these digits could make lookups slow.
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

impl EvalInterpreter {
    pub(super) fn new(machine: Rc<Machine>, shared: &'static Shared) -> EvalInterpreter {
        let generation = shared.scripting.scripts.generation();
        EvalInterpreter { machine, shared, scripts: HashMap::default(), sweep_at: 0, generation }
    }

    /// Drops flushed scripts, and evicted scripts if there are too many. Costs two memory reads if there is nothing to
    /// drop.
    #[inline]
    pub(super) fn refresh(&mut self) {
        let now = self.shared.scripting.scripts.generation();
        if self.generation != now {
            self.sweep(now);
        }
        if self.machine.interpreter.try_borrow().is_ok_and(|interpreter| interpreter.is_full()) {
            self.scripts.clear();
        }
    }

    #[cold]
    fn sweep(&mut self, now: u64) {
        self.generation = now;
        self.scripts.retain(|_, entry| entry.script.is_known());
        // Redis starts a new interpreter after a flush, so users expect memory to be freed.
        if let Ok(mut interpreter) = self.machine.interpreter.try_borrow_mut() {
            interpreter.collect();
        }
    }

    /// The script with this digest, if there is one.
    pub fn script(&mut self, digest: &Digest) -> Result<Option<Rc<CompiledScript>>> {
        if let Some(entry) = self.scripts.get(digest)
            && entry.script.is_known()
        {
            return Ok(Some(Rc::clone(entry)));
        }
        let script = self.shared.scripting.scripts.find(digest);
        script.map(|script| self.compile(script)).transpose()
    }

    /// The script with this text, which is kept from now on. If `loaded` is set, it stays until a flush.
    pub fn script_from(&mut self, source: &[u8], loaded: bool) -> Result<Rc<CompiledScript>> {
        let digest = cache::digest_of(source);
        if let Some(entry) = self.script(&digest)? {
            if loaded {
                self.shared.scripting.scripts.keep(Arc::clone(&entry.script), true);
            }
            return Ok(entry);
        }
        let script = Scripts::read(source, digest, self.shared.table)
            .map_err(|text| error_with(b"ERR ", &text))?;
        let entry = self.compile(Arc::clone(&script))?;
        let kept = self.shared.scripting.scripts.keep(script, loaded);
        if Arc::ptr_eq(&kept, &entry.script) {
            return Ok(entry);
        }
        // Another worker may have added the script first.
        let entry = Rc::new(CompiledScript { script: kept, code: Rc::clone(&entry.code) });
        self.scripts.insert(digest, Rc::clone(&entry));
        Ok(entry)
    }

    fn compile(&mut self, script: Arc<Script>) -> Result<Rc<CompiledScript>> {
        let mut interpreter = self.machine.interpreter.borrow_mut();
        let code = interpreter.compile(&script.source, script.header_len).map_err(|text| {
            let before = b"ERR Error compiling script (new function): ";
            error_with(before, text.as_bytes())
        })?;
        let entry = Rc::new(CompiledScript { script, code: Rc::new(code) });
        if self.scripts.len() >= self.sweep_at.max(UNSWEPT_MAX) {
            self.scripts.retain(|_, entry| entry.script.is_known());
            self.sweep_at = 2 * self.scripts.len();
        }
        self.scripts.insert(entry.script.digest, Rc::clone(&entry));
        Ok(entry)
    }
}
