//! The threads to which workers delegate work.

use super::background::Background;
use super::long::LongWork;
use super::mailbox::Mailboxes;
use brisk_engine::Keyspace;

/// The handles of the threads to which workers delegate work.
#[derive(Debug, Default)]
pub struct HelperThreads {
    /// The thread that frees large values.
    pub freeing: Background,
    /// The threads that compute long commands.
    pub computing: LongWork,
}

impl HelperThreads {
    /// Starts the threads for `workers` workers.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(
        &self,
        workers: usize,
        keyspace: &'static Keyspace,
        mailboxes: &'static Mailboxes,
    ) -> std::io::Result<()> {
        self.freeing.start()?;
        self.computing.start(workers, keyspace, mailboxes)
    }
}
