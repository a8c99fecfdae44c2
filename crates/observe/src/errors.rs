//! Error replies by their code, as INFO errorstats shows them.

use brisk_structures::poison::EvenPoisoned;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Maximum number of codes that are counted separately; scripts can create any number.
const WORDS_MAX: usize = 128;
/// The name under which all further codes are counted together.
const FURTHER: &str = "ERRORSTATS_OVERFLOW";

/// The codes of errors that do not come from scripts.
const OWN_ERRORS: &[&str] = &[
    "ERR",
    "WRONGTYPE",
    "OOM",
    "NOAUTH",
    "NOPERM",
    "WRONGPASS",
    "NOSCRIPT",
    "NOTBUSY",
    "BUSY",
    "UNKILLABLE",
    "EXECABORT",
    "UNBLOCKED",
    "NOGROUP",
    "BUSYGROUP",
    "BUSYKEY",
    "NOPROTO",
    "DENIED",
    "INVALIDOBJ",
    "LOADING",
    "MISCONF",
    "READONLY",
    "NOREPLICAS",
    "MASTERDOWN",
    "NOMASTERLINK",
    "CROSSSLOT",
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "INPROG",
    "NOGOODSLAVE",
    "IOERR",
];

/// How often each error was sent.
#[derive(Debug, Default)]
pub struct ErrorCounts(Mutex<HashMap<String, u64>>);

impl ErrorCounts {
    /// Counts an error reply. O(1).
    pub fn count(&self, text: &str) {
        let mut word = text.split(' ').next().unwrap_or_default();
        let mut errors = self.lock();
        if errors.len() >= WORDS_MAX && !errors.contains_key(word) && !OWN_ERRORS.contains(&word) {
            word = FURTHER;
        }
        match errors.get_mut(word) {
            Some(count) => *count += 1,
            None => _ = errors.insert(word.to_owned(), 1),
        }
    }

    /// Returns the counts.
    pub fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().even_poisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_made_up_by_scripts_are_bounded_in_number() {
        let counts = ErrorCounts::default();
        for number in 0..1000 {
            counts.count(&format!("MADEUP{number} text"));
        }
        counts.count("WRONGTYPE Operation against a key");
        let counts = counts.lock();
        assert_eq!(counts.len(), WORDS_MAX + 2);
        assert_eq!((counts[FURTHER], counts["WRONGTYPE"]), (1000 - WORDS_MAX as u64, 1));
    }
}
