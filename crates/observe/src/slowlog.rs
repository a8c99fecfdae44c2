//! The slow log: the latest slow commands.

use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of arguments of a command that are kept. If a command has more, the last one says
/// how many were left out.
const WORDS_MAX: usize = 32;
/// Maximum number of bytes of an argument that are kept.
const WORD_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: u64,
    pub unix_seconds: u64,
    pub duration_us: u64,
    pub words: Vec<Vec<u8>>,
    pub client: String,
    pub client_name: String,
}

/// The log, the latest entry first.
#[derive(Debug, Default)]
pub struct Slowlog {
    entries: Mutex<VecDeque<Entry>>,
    next_id: AtomicU64,
}

impl Slowlog {
    /// Adds an entry and drops the oldest ones above `len_max`. This function assigns the id.
    pub fn add(&self, mut entry: Entry, len_max: usize) {
        let mut entries = self.entries.lock().even_poisoned();
        entry.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        entries.push_front(entry);
        entries.truncate(len_max);
    }

    pub fn len(&self) -> usize {
        self.entries.lock().even_poisoned().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&self) {
        self.entries.lock().even_poisoned().clear();
    }

    /// Returns the latest `count` entries.
    pub fn latest(&self, count: usize) -> Vec<Entry> {
        let entries = self.entries.lock().even_poisoned();
        entries.iter().take(count).cloned().collect()
    }
}

/// Returns the arguments as the log keeps them: long ones are truncated and excess ones left out,
/// with a note.
pub fn truncate_args<'w>(words: impl ExactSizeIterator<Item = &'w [u8]>) -> Vec<Vec<u8>> {
    let total = words.len();
    let kept = if total > WORDS_MAX { WORDS_MAX - 1 } else { total };
    let mut truncated: Vec<Vec<u8>> = words
        .take(kept)
        .map(|word| {
            if word.len() <= WORD_BYTES_MAX {
                return word.to_vec();
            }
            let more = word.len() - WORD_BYTES_MAX;
            [&word[..WORD_BYTES_MAX], format!("... ({more} more bytes)").as_bytes()].concat()
        })
        .collect();
    if kept < total {
        truncated.push(format!("... ({} more arguments)", total - kept).into_bytes());
    }
    truncated
}
