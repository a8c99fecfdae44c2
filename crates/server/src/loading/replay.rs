//! The commands of an append-only file, executed as those of a client that waits for no reply.

use brisk_engine::ReplyBuffer;
use brisk_engine::UnixMs;
use brisk_node::clients::ClientRecord;
use brisk_node::clients::address::Address;
use brisk_node::core::Core;
use brisk_node::core::session::Session;
use brisk_node::run::batch::{Batch, Look, REQUESTS_MAX};
use brisk_node::run::dispatch::{self, Flow};
use brisk_persist::aof::{AofError, AofReader, EventKind};
use brisk_reactor::{PeerAddr, Token, unix_ms};
use brisk_resp::Limits;
use brisk_structures::reclaim::Participant;
use std::io::{Read, Seek};
use std::sync::Arc;

/// Commands are gathered up to so many bytes, so that they are cut and looked up ahead.
const GATHERED_BYTES: usize = 64 << 10;

/// How a file ended.
#[derive(Debug)]
pub(super) enum Failed {
    /// It cannot be read on, or is not whole.
    File(AofError),
    /// A command that this server does not know: what it is, and where about.
    Command(String, u64),
}

/// A client that the file stands for.
pub(super) struct Replay<'p> {
    session: Session,
    batch: Batch,
    replies: ReplyBuffer,
    gathered: Vec<u8>,
    /// `None` amid a command of the same thread, which asks for nothing ahead.
    participant: Option<&'p Participant>,
    pub(super) commands: u64,
}

impl<'p> Replay<'p> {
    pub(super) fn new(core: &Core, participant: Option<&'p Participant>) -> Replay<'p> {
        let accounts = &core.shared.accounts;
        let nowhere = || Address::Socket(PeerAddr::Unix);
        let record = ClientRecord::new(
            core.shared.clients.next_id(),
            core.id,
            Token::from_u64(u64::MAX),
            -1,
            true,
            true,
            (nowhere(), nowhere()),
            unix_ms(),
        );
        let mut session = Session::new(Arc::new(record), accounts.default_account());
        // Whoever may use the server, the file is its own.
        (session.authenticated, session.restricted) = (true, false);
        session.is_replay = true;
        Replay {
            session,
            batch: Batch::default(),
            replies: ReplyBuffer::new(),
            gathered: Vec::with_capacity(GATHERED_BYTES * 2),
            participant,
            commands: 0,
        }
    }

    /// Executes all commands from where the reader stands. Each file begins in database 0, and outside
    /// of transactions.
    ///
    /// # Errors
    /// What stopped it; what was executed before stays.
    pub(super) fn run(
        &mut self,
        core: &mut Core,
        reader: &mut AofReader<impl Read + Seek>,
    ) -> Result<(), Failed> {
        self.session.db = Default::default();
        // What a file tells of was not past its deadline then.
        core.env.set_now_for_replay(UnixMs(0));
        let ended = loop {
            match reader.next_event() {
                Ok(Some(event)) => {
                    if let EventKind::Command(command) = event.kind {
                        self.gathered.extend_from_slice(command.bytes());
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(Failed::File(error)),
            }
            if self.gathered.len() >= GATHERED_BYTES {
                self.execute(core, reader.position())?;
            }
        };
        let executed = self.execute(core, reader.position());
        // A transaction that was not finished has not happened.
        brisk_node::transactions::execute::end_transaction(core, &mut self.session);
        core.env.set_now(UnixMs(unix_ms()));
        executed.and(ended)
    }

    /// Executes what was gathered, up to a position in the file.
    fn execute(&mut self, core: &mut Core, position: u64) -> Result<(), Failed> {
        let bytes = std::mem::take(&mut self.gathered);
        let mut at = 0;
        while at < bytes.len() {
            at += self.execute_some(core, &bytes[at..], position)?;
            core.free_garbage();
            if let Some(participant) = self.participant {
                participant.quiescent();
            }
        }
        self.gathered = bytes;
        self.gathered.clear();
        self.gathered.shrink_to(GATHERED_BYTES * 2);
        Ok(())
    }

    /// Executes a batch; the bytes that it takes.
    fn execute_some(
        &mut self,
        core: &mut Core,
        data: &[u8],
        position: u64,
    ) -> Result<usize, Failed> {
        let Replay { session, batch, replies, participant, commands, .. } = self;
        let shared = core.shared;
        let look = Look {
            table: shared.table,
            hasher: shared.keyspace.hasher(),
            database: shared.keyspace.database(session.db),
            participant: *participant,
        };
        // The reader has found it whole, whatever the limits are today.
        let limits = Limits { bulk_bytes_max: u64::MAX, authenticated: true, ..core.limits };
        let (len, _) = batch.fill(data, REQUESTS_MAX, &mut session.decoder, &limits, &look);
        for at in 0..batch.len() {
            let request = *batch.request(at);
            shared.quiesce.checkpoint(core.id);
            while let Flow::Later(_) =
                dispatch::dispatch(core, session, batch, &request, data, replies)
            {
                // Nobody else uses keys: what is busy is so for a moment.
                std::thread::yield_now();
            }
            if request.row.is_none() {
                let name = batch.args(data, &request, shared.keyspace.hasher());
                let name = String::from_utf8_lossy(name.word(0)).into_owned();
                return Err(Failed::Command(name, position));
            }
            replies.clear();
        }
        *commands += batch.len() as u64;
        core.ran = 0;
        if len == 0 {
            // Not a request after all: the reader and the decoder disagree.
            return Err(Failed::Command("?".to_owned(), position));
        }
        Ok(len)
    }
}
