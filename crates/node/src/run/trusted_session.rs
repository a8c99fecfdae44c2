//! Sessions for commands that this server or its primary has already executed. Their replies are not read.

use crate::clients::ClientRecord;
use crate::clients::address::Address;
use crate::core::Core;
use crate::core::session::Session;
use crate::script::run;
use brisk_reactor::{PeerAddr, Token, unix_ms};
use std::sync::Arc;

/// A session that may run every command. MONITOR shows `peer` as the address of its commands.
pub fn new(core: &Core, peer: PeerAddr) -> Session {
    let is_unix = peer == PeerAddr::Unix;
    let address = || Address::Socket(peer);
    let record = ClientRecord::new(
        core.shared.clients.next_id(),
        core.id,
        Token::from_u64(u64::MAX),
        -1,
        is_unix,
        is_unix,
        (address(), address()),
        unix_ms(),
    );
    with_record(core, Arc::new(record))
}

/// A session that may run every command, for a client that has a record.
pub fn with_record(core: &Core, record: Arc<ClientRecord>) -> Session {
    let mut session = Session::new(record, core.shared.accounts.default_account());
    session.trust();
    session
}

/// Runs a suspended script of `session` to its end. Only scripts are suspended, because long commands of trusted
/// sessions are not moved to another thread.
#[cold]
pub fn finish_script(core: &mut Core, session: &mut Session) {
    while core.scripts.is_parked() {
        core.shared.quiesce.checkpoint(core.id);
        // The reply is not read.
        let _ = run::run_script_slice(core, Some(&mut *session));
        core.free_garbage();
    }
}
