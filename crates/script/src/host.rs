//! What an interpreter asks of the server that it belongs to.

use brisk_resp::{Protocol, Spans};

/// The words of a command that a script wants to run.
#[derive(Debug, Default)]
pub struct Words {
    /// The words, one behind the other.
    pub bytes: Vec<u8>,
    pub spans: Spans,
}

impl Words {
    /// Memory that is kept for the next command, in bytes and in words.
    const KEPT_BYTES_MAX: usize = 64 * 1024;
    const KEPT_WORDS_MAX: usize = 1024;

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(Words::KEPT_BYTES_MAX);
        self.spans.clear();
        self.spans.shrink(Words::KEPT_WORDS_MAX);
    }

    #[inline]
    pub(crate) fn push(&mut self, word: &[u8]) {
        self.spans.push(self.bytes.len(), word.len());
        self.bytes.extend_from_slice(word);
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// What became of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Called {
    /// It ran; its reply, an error perhaps, is in the buffer.
    Replied,
    /// It may not run. The text goes without a code word if that is `ERR`, else behind a `-`.
    Refused(String),
    /// It may run later: the script is to be suspended, and to ask again when it goes on.
    Wait,
    /// The whole script is to stop here, and what it did so far is to be forgotten.
    Abandoned,
}

/// What a script may do at the end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    GoOn,
    /// It is to be suspended. If it is somewhere where that is not possible, it goes on, and the
    /// question comes again.
    Suspend,
    /// It is to end here.
    Stop,
}

/// The server, as an interpreter sees it.
pub trait Host {
    /// Runs a command for the script; its reply in `protocol` goes to `reply`, which is empty.
    fn call(&self, words: &Words, protocol: Protocol, reply: &mut Vec<u8>) -> Called;

    /// Whether the user for whom the script runs may run a command; `None` if there is no such
    /// command.
    fn may_call(&self, words: &Words) -> Option<bool>;

    /// Whether lines of this level (0 debug to 3 warning) are logged.
    fn logs(&self, level: u8) -> bool;

    /// Writes to the log.
    fn log(&self, level: u8, line: &[u8]);

    /// The code of a library was compiled and is now running.
    fn library_begins(&self) {}

    /// Asked every some steps of a script.
    fn pace(&self) -> Pace;
}
