//! The scripts that EVALSHA finds.
//!
//! A script that SCRIPT LOAD has loaded stays until SCRIPT FLUSH. Only a limited number of scripts that were merely run
//! by EVAL are kept. Each worker compiles a script when the worker first needs it.

use brisk_engine::command::{Begin, Find, InMulti, KeySpec, Scope};
use brisk_engine::table::CommandTable as Table;
use brisk_script::confined::{KeyArgs, is_confined};
use brisk_script::header::{self, ScriptFlags};
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::sha1::sha1;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of scripts that are kept without SCRIPT LOAD.
pub const EVALUATED_MAX: usize = 500;

/// A script's digest: the SHA1 of its text as lowercase hexadecimal digits.
pub type Digest = [u8; 40];

/// A script.
#[derive(Debug)]
pub struct Script {
    pub digest: Digest,
    pub source: Box<[u8]>,
    pub flags: ScriptFlags,
    /// Length of the first line if it is a `#!` line. The code begins after it.
    pub header_len: usize,
    /// True if the code shows that the script uses only keys that it declares.
    pub confined: bool,
    /// True if the script has used keys that it did not declare. It then starts while all other workers are quiesced.
    pub uses_undeclared_keys: AtomicBool,
    /// True if the script has had an effect that other clients can see.
    pub acts: AtomicBool,
    /// True if the script can be evicted to make room.
    evictable: AtomicBool,
    /// True if the script has run since the last check for eviction.
    used: AtomicBool,
    /// True if the script was flushed or evicted. A worker that still has it must not run it.
    is_removed: AtomicBool,
}

impl Script {
    /// Reports whether the script can still be run by its digest.
    #[inline]
    pub fn is_known(&self) -> bool {
        !self.is_removed.load(Ordering::Relaxed)
    }

    /// Notes that the script is about to run.
    #[inline]
    pub fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
}

/// All scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    known: Mutex<Known>,
    /// Incremented by each flush.
    generation: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    by_digest: HashMap<Digest, Arc<Script>>,
    /// Scripts that may be evicted. May include scripts that SCRIPT LOAD has loaded in the meantime.
    evictable: VecDeque<Arc<Script>>,
    bytes: u64,
}

impl Scripts {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().even_poisoned()
    }

    /// The script with this digest.
    pub fn find(&self, digest: &Digest) -> Option<Arc<Script>> {
        self.lock().by_digest.get(digest).cloned()
    }

    /// Parses a script from its text but does not keep it. `table` contains the commands that the script may call.
    ///
    /// # Errors
    /// The header is invalid.
    pub fn read(source: &[u8], digest: Digest, table: &Table) -> Result<Arc<Script>, Vec<u8>> {
        let (flags, header_len) = header::of_script(source)?;
        let confined = is_confined(&source[header_len..], |name| key_args(table, name));
        Ok(Arc::new(Script {
            digest,
            source: source.into(),
            flags,
            header_len,
            confined,
            uses_undeclared_keys: AtomicBool::new(false),
            acts: AtomicBool::new(false),
            evictable: AtomicBool::new(true),
            used: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
        }))
    }

    /// The flags in the header of a text, if the header is valid.
    pub fn flags_in(source: &[u8]) -> Option<ScriptFlags> {
        header::of_script(source).ok().map(|(flags, _)| flags)
    }

    /// Keeps a script, unless it is already kept. If `loaded` is set, it stays until a flush. Returns the script to
    /// use.
    pub fn keep(&self, script: Arc<Script>, loaded: bool) -> Arc<Script> {
        let mut known = self.lock();
        let script = match known.by_digest.get(&script.digest) {
            Some(script) => Arc::clone(script),
            None => {
                known.bytes += bytes_of(&script);
                known.by_digest.insert(script.digest, Arc::clone(&script));
                if !loaded {
                    known.evictable.push_back(Arc::clone(&script));
                    self.make_room(&mut known);
                }
                script
            }
        };
        if loaded {
            script.evictable.store(false, Ordering::Relaxed);
        }
        script
    }

    /// Evicts approximately the least recently used script, based on one bit per script.
    fn make_room(&self, known: &mut Known) {
        while known.evictable.len() > EVALUATED_MAX {
            let Some(script) = known.evictable.pop_front() else { return };
            if !script.evictable.load(Ordering::Relaxed) {
                continue;
            }
            if script.used.swap(false, Ordering::Relaxed) {
                known.evictable.push_back(script);
                continue;
            }
            script.is_removed.store(true, Ordering::Relaxed);
            known.bytes -= bytes_of(&script);
            known.by_digest.remove(&script.digest);
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes all scripts. The workers drop their compiled code when they next check.
    pub fn flush(&self) -> Vec<Arc<Script>> {
        let known = std::mem::take(&mut *self.lock());
        self.generation.fetch_add(1, Ordering::Release);
        let scripts: Vec<Arc<Script>> = known.by_digest.into_values().collect();
        scripts.iter().for_each(|script| script.is_removed.store(true, Ordering::Relaxed));
        scripts
    }

    /// The generation of the set of scripts, which changes with each flush.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Number of scripts, their size in bytes, and the number of evicted scripts.
    pub fn metrics(&self) -> (u64, u64, u64) {
        let known = self.lock();
        (known.by_digest.len() as u64, known.bytes, self.evicted.load(Ordering::Relaxed))
    }
}

fn bytes_of(script: &Script) -> u64 {
    (size_of::<Script>() + script.source.len()) as u64
}

/// The digest of a text.
pub fn digest_of(source: &[u8]) -> Digest {
    let mut digits = [0; 40];
    for (byte, pair) in sha1(source).iter().zip(digits.chunks_exact_mut(2)) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    digits
}

const HEX: [u8; 16] = *b"0123456789abcdef";

/// Parses an argument as a digest, in upper or lower case.
pub fn digest_from(word: &[u8]) -> Option<Digest> {
    let mut digest: Digest = word.try_into().ok()?;
    digest.make_ascii_lowercase();
    Some(digest)
}

/// The arguments that are keys, for a command that touches only its keys.
fn key_args(table: &Table, name: &[u8]) -> KeyArgs {
    let Some(row) = table.find(name) else { return KeyArgs::Unknown };
    let is_plain = row.spec.scope == Scope::Keys && row.spec.in_multi != InMulti::Selects;
    if !is_plain || row.is_container() || row.looks_up_keys {
        return KeyArgs::Unknown;
    }
    let index = |spec: &KeySpec| match (spec.begin, spec.find) {
        (Begin::Index(index), Find::Range { last: 0, .. }) => Some(index),
        _ => None,
    };
    match row.spec.keys {
        [] => KeyArgs::Leading(0),
        [spec] if index(spec) == Some(1) => KeyArgs::Leading(1),
        [one, two] if index(one) == Some(1) && index(two) == Some(2) => KeyArgs::Leading(2),
        [spec] => match (spec.begin, spec.find) {
            (Begin::Index(1), Find::Range { last: -1, step: 1, limit: 0 | 1 }) => KeyArgs::All,
            _ => KeyArgs::Unknown,
        },
        _ => KeyArgs::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::call::Command;
    use std::sync::LazyLock;

    fn keep(scripts: &Scripts, source: &str, loaded: bool) -> Arc<Script> {
        let digest = digest_of(source.as_bytes());
        static TABLE: LazyLock<Table> =
            LazyLock::new(|| Table::build(std::iter::empty::<&Command>(), &[]).unwrap().0);
        scripts.keep(Scripts::read(source.as_bytes(), digest, &TABLE).unwrap(), loaded)
    }

    #[test]
    fn scripts_that_were_only_evaluated_make_room_for_others() {
        let scripts = Scripts::default();
        let loaded = keep(&scripts, "return 'loaded'", true);
        let late = keep(&scripts, "return 'loaded late'", false);
        keep(&scripts, "return 'loaded late'", true);
        let used = keep(&scripts, "return 'used'", false);
        let first = keep(&scripts, "return 'first'", false);
        for number in 0..EVALUATED_MAX {
            used.note_use();
            keep(&scripts, &format!("return {number}"), false);
        }
        assert!(loaded.is_known() && late.is_known() && used.is_known());
        assert!(!first.is_known() && scripts.find(&first.digest).is_none());
        assert_eq!(scripts.metrics().0 as usize, EVALUATED_MAX + 2);
        scripts.flush();
        assert!(!loaded.is_known());
        assert_eq!(scripts.metrics().1, 0);
    }

    #[test]
    fn a_digest_is_the_sha1_in_hexadecimal() {
        assert_eq!(&digest_of(b""), b"da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(digest_from(b"DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"), Some(digest_of(b"")));
        assert_eq!(digest_from(b"short"), None);
    }
}
