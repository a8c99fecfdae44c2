//! A session for commands that were executed before, by this server or by its primary: nobody waits for
//! their replies.

use crate::clients::ClientRecord;
use crate::clients::address::Address;
use crate::core::Core;
use crate::core::session::Session;
use crate::script::run;
use brisk_reactor::{PeerAddr, Token, unix_ms};
use std::sync::Arc;

/// One that may do everything. Monitors are shown that its commands come from `peer`.
pub fn session(core: &Core, peer: PeerAddr) -> Session {
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
    session_of(core, Arc::new(record))
}

/// The same for a client that is known.
pub fn session_of(core: &Core, record: Arc<ClientRecord>) -> Session {
    let mut session = Session::new(record, core.shared.accounts.default_account());
    (session.authenticated, session.restricted) = (true, false);
    session
}

/// Runs a script of it to its end that takes long. No other command is computed elsewhere for a session that
/// nobody waits for.
#[cold]
pub fn end_script(core: &mut Core, session: &mut Session) {
    while core.scripts.parked.is_some() {
        core.shared.quiesce.checkpoint(core.id);
        // Nobody waits for the answer.
        let _ = run::go_on_with_script(core, Some(&mut *session));
        core.free_garbage();
    }
}
