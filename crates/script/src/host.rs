//! The interface between an interpreter and its server.

use brisk_resp::{Protocol, Spans};

/// The arguments of a command that a script wants to run.
#[derive(Debug, Default)]
pub struct Words {
    /// The arguments, concatenated.
    pub bytes: Vec<u8>,
    pub spans: Spans,
}

impl Words {
    /// Maximum memory that is kept for the next command, in bytes and in arguments.
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

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Called {
    /// The command ran; its reply, possibly an error, is in the buffer.
    Replied,
    /// The command may not run. The error text starts with `-` if it has its own error code;
    /// otherwise the code is `ERR`.
    Refused(String),
    /// The command may run later: the script must suspend, and try again when it is resumed.
    Wait,
    /// The whole script must stop here, and its effects so far are to be discarded.
    Abandoned,
}

/// The host's decision at the end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    GoOn,
    /// The script must suspend. If that is not possible at this point, it continues, and the host
    /// is called again later.
    Suspend,
    /// The script must end here.
    Stop,
}

/// The server, as an interpreter sees it.
pub trait Host {
    /// Runs a command for the script, and writes its reply in `protocol` to `reply`, which is
    /// empty.
    fn call(&self, words: &Words, protocol: Protocol, reply: &mut Vec<u8>) -> Called;

    /// Reports whether the script's user may run a command; `None` if the command does not exist.
    fn may_call(&self, words: &Words) -> Option<bool>;

    /// True if lines of this level (0 debug to 3 warning) are logged.
    fn logs(&self, level: u8) -> bool;

    /// Writes a line to the log.
    fn log(&self, level: u8, line: &[u8]);

    /// Called after a library's code was compiled, before it runs.
    fn library_begins(&self) {}

    /// Called every few steps of a script.
    fn pace(&self) -> Pace;
}
