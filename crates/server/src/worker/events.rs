//! The worker's handlers for events of the event loop: connections open, send, and close.

use super::sending::close_flushed;
use super::{LINGER, Worker};
use brisk_engine::env::Garbage;
use brisk_net::listeners::Purpose;
use brisk_net::tls::TlsStream;
use brisk_node::clients::address::Address;
use brisk_node::clients::{ClientRecord, flag};
use brisk_node::core::mailbox::{Message, NewConnection, Work};
use brisk_node::core::session::{Session, Stall};
use brisk_node::run::release;
use brisk_reactor::unix_ms;
use brisk_reactor::{Accept, Close, CloseReason, Control, Handler, Token};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const TOO_MANY_CLIENTS: &str = "-ERR max number of clients reached\r\n";

impl Handler for Worker {
    fn accepted(&mut self, io: &mut Control, token: Token, listener: usize) -> Accept {
        self.core.refresh_config();
        let purpose = self.listeners.purpose(listener);
        let shared = &self.core.shared;
        let config = &self.core.config;
        let metrics = &shared.observe.metrics;
        let admin = purpose.is_admin();
        let max =
            if admin { config.clients.admin_maxclients } else { config.clients.maxclients } as u64;
        if !shared.clients.admit(admin, max) {
            metrics.rejected_connections.fetch_add(1, Ordering::Relaxed);
            // Before a TLS handshake, the client would not understand an error message.
            let why = if purpose == Purpose::Tls { "" } else { TOO_MANY_CLIENTS };
            return Accept::Refuse(why.as_bytes().into());
        }
        let peer = io.peer_addr(token);
        if purpose != Purpose::Tls && self.is_stranger(&peer) {
            shared.clients.retract(admin);
            metrics.rejected_connections.fetch_add(1, Ordering::Relaxed);
            return Accept::Refuse(brisk_node::core::session::PROTECTED_MODE.as_bytes().into());
        }
        let mut tls = None;
        if purpose == Purpose::Tls {
            tls = self.new_stream();
            if tls.is_none() {
                shared.clients.retract(admin);
                return Accept::Refuse(b"".as_slice().into());
            }
        }
        let unix = matches!(purpose, Purpose::Unix | Purpose::AdminUnix);
        let (addr, laddr) = if unix {
            let network = &config.network;
            let path = if admin { &network.admin_unixsocket } else { &network.unixsocket };
            let path = path.to_string_lossy();
            (Address::Path(path.as_ref().into()), Address::Path(path.into()))
        } else {
            (Address::Socket(peer), Address::Socket(io.accepted_at(token, listener)))
        };
        let record = self.new_record(io, token, (peer.is_local(), unix), (addr, laddr));
        record.set(flag::ADMIN, admin);
        self.begin_session(record, tls);
        Accept::Keep
    }

    fn received(&mut self, io: &mut Control, token: Token, bytes: &[u8]) {
        if self.stage(token, bytes) {
            if self.staged.is_full() {
                self.run_staged(io);
            }
            return;
        }
        self.run_staged(io);
        let Some(mut session) = self.sessions.take(token) else { return };
        self.begin_turn();
        if session.connection.is_encrypted() {
            self.receive_encrypted(io, &mut session, bytes);
        } else {
            self.take_input(io, &mut session, bytes);
        }
        self.after_turn(io, &mut session);
        self.sessions.put(session);
        self.close_connections(io);
        self.end_of_turns(io);
    }

    fn finished(&mut self, io: &mut Control, token: Token) {
        self.run_staged(io);
        let Some(session) = self.sessions.at(token.index()) else { return };
        session.connection.finish();
        if session.is_in_full_sync() {
            // A replica that has disconnected needs no snapshot.
            io.close(token, Close::Now);
        } else if session.stall() == Stall::None {
            close_flushed(io, session);
        } else if session.stall().ends_with_the_client() {
            io.close(token, Close::Now);
        }
    }

    fn closed(&mut self, io: &mut Control, token: Token, _: CloseReason) {
        let _ = io;
        let Some(mut session) = self.sessions.take(token) else { return };
        self.abandon_wait(&mut session);
        release::release(&mut self.core, &mut session);
        if let Some(stream) = session.output.take_stream() {
            self.core.env.garbage.borrow_mut().push(Garbage::View(stream));
        }
        let stats = self.core.stats();
        stats.output_bytes.fetch_sub(session.accounting.counted_output(), Ordering::Relaxed);
        self.monitors.remove(token);
        self.core.shared.clients.set_blocked(&session.record, false);
        self.core.shared.clients.weights.forget(&session.record);
        self.core.shared.clients.input_weights.forget(&session.record);
        self.core.shared.clients.remove(&session.record);
    }

    fn hung_up(&mut self, io: &mut Control, token: Token) {
        let Some(session) = self.sessions.at(token.index()) else { return };
        if session.stall().ends_with_the_client() {
            io.close(token, Close::Now);
        }
    }

    fn drained(&mut self, io: &mut Control, token: Token) {
        self.core.refresh_config();
        self.core.read_clocks();
        self.continue_full_sync(io, token);
        self.resume(io, token, Stall::Output);
        self.make_up_invalidations(io, token);
        self.continue_stream(io, token);
        self.end_of_turns(io);
    }

    fn woken(&mut self, io: &mut Control) {
        self.core.refresh_config();
        let shared = self.core.shared;
        let mailbox = &shared.mailboxes.of(self.core.id);
        if mailbox.take_overflow() {
            self.monitors.close_all(io);
        }
        for message in mailbox.take() {
            match message {
                Message::Kill { token, id } => {
                    let is_it = |session: &mut Session| session.id() == id;
                    if self.sessions.at(token.index()).is_some_and(is_it) {
                        io.close(token, Close::Now);
                    }
                }
                Message::MonitorLine(line) => {
                    self.monitors.deliver_line(&self.core, &mut self.sessions, io, &line);
                }
                Message::ContinueFullSyncs => self.continue_full_syncs(io),
                Message::Monitor(token) => self.monitors.add(token),
                Message::Listen(_) | Message::Keepalive(_) => {
                    self.listeners.request_change(message)
                }
                Message::Unpause => self.resume_paused(io),
                Message::Run(Work(work)) => {
                    self.core.read_clocks();
                    work(&mut self.core);
                    self.core.free_garbage();
                }
                Message::Served(delivery) => self.deliver_executed(io, delivery),
                Message::Computed(outcome) => self.take_computed(io, outcome),
                Message::Thawed => self.resume_frozen(io),
                Message::Unblock { token, id, how } => self.reply_unserved(io, token, id, how),
                Message::Adopt(connection) => self.adopt(io, *connection),
            }
        }
        self.deliver_messages(io, None);
        self.end_of_turns(io);
        self.commit(io);
    }

    fn waiting(&mut self) {
        self.rounds.record(&self.core);
        self.participant.offline();
        self.core.shared.quiesce.leave(self.core.id);
    }

    fn resumed(&mut self) {
        self.core.shared.quiesce.enter(self.core.id);
        self.participant.online();
        self.rounds.resume(self.core.clock.ticks());
        self.staged.open = true;
    }

    fn round_end(&mut self, io: &mut Control) {
        self.staged.open = false;
        self.run_staged(io);
        self.deliver_all(io);
        self.end_of_turns(io);
        self.commit(io);
        self.cron.publish_traffic(self.core.stats(), io.counters());
        self.participant.announce_boundary();
    }
}

impl Worker {
    /// Serves a connection that another thread has accepted. The thread has checked protected mode.
    fn adopt(&mut self, io: &mut Control, connection: NewConnection) {
        // If the reactor has no room, the socket is closed, which the other thread notices.
        let Ok(token) = io.adopt(connection.socket) else { return };
        let shared = &self.core.shared;
        if !shared.clients.admit(false, self.core.config.clients.maxclients as u64) {
            shared.observe.metrics.rejected_connections.fetch_add(1, Ordering::Relaxed);
            io.output(token).extend_from_slice(TOO_MANY_CLIENTS.as_bytes());
            io.send(token);
            io.close(token, Close::Flush { linger: LINGER });
            return;
        }
        let (addr, laddr) = (Address::Socket(connection.peer), Address::Socket(connection.local));
        let is_local = connection.peer.is_local();
        let record = self.new_record(io, token, (is_local, false), (addr, laddr));
        // Only this worker sets the record, and only once.
        let _ = connection.record.set(Arc::clone(&record));
        self.begin_session(record, None);
    }

    fn new_record(
        &self,
        io: &Control,
        token: Token,
        (is_local, is_unix): (bool, bool),
        addresses: (Address, Address),
    ) -> Arc<ClientRecord> {
        let fd = io.fd(token).map_or(-1, |fd| std::os::fd::AsRawFd::as_raw_fd(&fd));
        let (id, now_ms) = (self.core.shared.clients.next_id(), unix_ms());
        let worker = self.core.id;
        Arc::new(ClientRecord::new(id, worker, token, fd, is_local, is_unix, addresses, now_ms))
    }

    /// Begins the session of a new client, which has been admitted.
    fn begin_session(&mut self, record: Arc<ClientRecord>, tls: Option<Box<TlsStream>>) {
        let shared = self.core.shared;
        shared.clients.add(Arc::clone(&record));
        self.core.stats().connections_received.add(1);
        let mut session = Box::new(Session::new(record, shared.accounts.default_account()));
        session.record.set(flag::AUTHENTICATED, session.is_authenticated());
        session.connection.begin_tls(tls);
        self.core.weigh(0, &mut session);
        self.sessions.add(session);
    }
}
