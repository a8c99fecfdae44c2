//! Connections as CLIENT LIST shows them, one line each.
//!
//! The line of the caller's own connection shows the current values. The line of any other connection shows the values
//! that the connection published at the end of its last turn.

use crate::clients::{ClientRecord, Traffic, flag};
use crate::core::Core;
use crate::core::call::Call;
use crate::core::session::Session;
use crate::pubsub::Space;
use brisk_acl::DEFAULT_USER;
use brisk_engine::Args;
use brisk_engine::ctx::full_name;
use brisk_engine::table::Row;
use brisk_observe::text::Text;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The usual length of a line.
const LINE_BYTES: usize = 384;

/// Values that are known only for the caller.
struct CallerValues {
    id: u64,
    /// Bytes of the arguments of the current command.
    words_bytes: u64,
    /// Bytes of replies made in this turn, without the current reply.
    reply_bytes: u64,
    /// The session's totals, including earlier commands of this turn but not the current command.
    traffic: Traffic,
}

/// The line that CLIENT LIST shows for `session`, which sent `args`. There is no line ending. `command` is the command
/// that the session runs, unless that is already its last command.
pub fn describe(core: &Core, session: &Session, args: &Args<'_>, command: Option<&Row>) -> String {
    let record = &session.record;
    let last = record.last_command.load(Ordering::Relaxed) as usize;
    let row = command.or_else(|| core.shared.table.all().find(|row| row.id == last));
    let own = CallerValues::new(core, session, args, 0);
    one_line(core, record, Some(&own), row.map_or("NULL", Row::full_name))
}

/// The line of a client that is not executing anything and whose last command was `command`.
pub fn describe_at_rest(core: &Core, record: &ClientRecord, command: &str) -> String {
    one_line(core, record, None, command)
}

fn one_line(
    core: &Core,
    record: &ClientRecord,
    own: Option<&CallerValues>,
    command: &str,
) -> String {
    let mut text = Text::with_capacity(LINE_BYTES);
    line(&mut text, record, own, core.env.now().0, command);
    let mut text = text.done();
    text.truncate(text.trim_end_matches('\n').len());
    text
}

impl CallerValues {
    fn new(core: &Core, session: &Session, args: &Args<'_>, reply_bytes: u64) -> CallerValues {
        let mut traffic = session.accounting.traffic();
        traffic.commands += core.accounting.ran();
        CallerValues {
            id: session.id(),
            traffic,
            words_bytes: args.arguments().map(|word| word.len() as u64).sum(),
            reply_bytes,
        }
    }
}

/// Writes the lines.
pub struct Writer {
    own: CallerValues,
    now_ms: u64,
    /// Names of commands by row id.
    commands: Vec<Cow<'static, str>>,
}

impl Writer {
    pub fn new(call: &mut Call<'_>, args: &Args<'_>) -> Writer {
        let table = call.core.shared.table;
        let mut commands = vec![Cow::Borrowed("NULL"); table.id_count()];
        for row in table.all() {
            commands[row.id] = full_name(row.parent, row.spec);
        }
        let record = &call.session.record;
        if !call.in_exec() {
            record.last_command.store(call.row.id as u32, Ordering::Relaxed);
        }
        record.last_active_ms.store(call.core.env.now().0, Ordering::Relaxed);
        Writer {
            own: CallerValues::new(call.core, call.session, args, call.reply.buffer().len() as u64),
            now_ms: call.core.env.now().0,
            commands,
        }
    }

    pub fn lines(&self, records: &[Arc<ClientRecord>]) -> String {
        let mut text = Text::with_capacity(records.len() * LINE_BYTES);
        for record in records {
            let own = (record.id == self.own.id).then_some(&self.own);
            let last = record.last_command.load(Ordering::Relaxed) as usize;
            let command = self.commands.get(last).map_or("NULL", |name| name.as_ref());
            line(&mut text, record, own, self.now_ms, command);
        }
        text.done()
    }
}

/// Writes one line. `own` contains the values that are known only for the caller.
fn line(
    text: &mut Text,
    record: &ClientRecord,
    own: Option<&CallerValues>,
    now_ms: u64,
    command: &str,
) {
    let published = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let capacity = published(&record.query_capacity);
    // The request that is being executed is in no buffer of the session.
    let held = |counter| if own.is_some() { 0 } else { published(counter) };
    let (query, understood) = (held(&record.query_bytes), held(&record.argument_bytes));
    let words = own.map_or(understood, |own| own.words_bytes);
    let replies = own.map_or(0, |own| own.reply_bytes);
    let output = published(&record.output_bytes);
    let queued = published(&record.queued_memory);
    let traffic = own.map_or_else(|| record.traffic(), |own| own.traffic);
    let seconds_since = |moment_ms: u64| now_ms.saturating_sub(moment_ms) / 1000;
    let texts = record.held_texts();
    let own_words = own.map_or(0, |own| own.words_bytes);
    let memory = record.weight.bytes() + own_words + replies;
    let user = match () {
        () if record.has(flag::PRIMARY) => "(superuser)",
        () if texts.user.is_empty() => DEFAULT_USER,
        () => &texts.user,
    };
    // A session has no reply buffer of its own (`rbs`, `rbp`). All sessions of a worker share one, and output that the
    // kernel has not taken is in the output list. Arguments are never copied, so `argv-mem` is the part of the input
    // that they occupy.
    let listens = |space: Space| record.subscriptions[space.index()].load(Ordering::Relaxed);
    // Strings and numbers are appended one by one, which is faster than a single formatted write.
    let number = |text: &mut Text, name: &str, value: u64| {
        text.push(name);
        text.push_number(value);
    };
    let signed = |text: &mut Text, name: &str, value: i64| {
        text.push(name);
        text.push_signed(value);
    };
    number(text, "id=", record.id);
    text.push(" addr=");
    record.addr.write(text);
    text.push(" laddr=");
    record.laddr.write(text);
    signed(text, " fd=", i64::from(record.fd));
    text.push(" name=");
    text.push(&texts.name);
    number(text, " age=", seconds_since(record.created_ms));
    number(text, " idle=", seconds_since(published(&record.last_active_ms)));
    text.push(" flags=");
    flags(text, record);
    number(text, " db=", u64::from(record.db.load(Ordering::Relaxed)));
    number(text, " sub=", u64::from(listens(Space::Channel)));
    number(text, " psub=", u64::from(listens(Space::Pattern)));
    number(text, " ssub=", u64::from(listens(Space::ShardChannel)));
    signed(text, " multi=", record.queued.load(Ordering::Relaxed));
    number(text, " watch=", published(&record.watched));
    number(text, " qbuf=", query);
    number(text, " qbuf-free=", capacity.saturating_sub(query + understood));
    number(text, " argv-mem=", words);
    number(text, " multi-mem=", queued);
    number(text, " rbs=0 rbp=0 obl=", replies);
    text.push(if output > 0 { " oll=1" } else { " oll=0" });
    number(text, " omem=", output);
    number(text, " tot-mem=", memory);
    text.push(" events=");
    text.push(events(output));
    text.push(" cmd=");
    text.push(command);
    text.push(" user=");
    text.push(user);
    signed(text, " redir=", record.redirect.load(Ordering::Relaxed));
    number(text, " resp=", u64::from(record.resp.load(Ordering::Relaxed)));
    text.push(" lib-name=");
    text.push(&texts.lib_name);
    text.push(" lib-ver=");
    text.push(&texts.lib_version);
    number(text, " tot-net-in=", traffic.bytes_in);
    number(text, " tot-net-out=", traffic.bytes_out.saturating_sub(output));
    number(text, " tot-cmds=", traffic.commands + published(&record.commands_elsewhere));
    text.push("\n");
}

/// Writes the letters of the flags, in Redis's order.
fn flags(text: &mut Text, record: &ClientRecord) {
    let broken = record.watcher.get().is_some_and(|watcher| watcher.is_broken());
    let letters = [
        (record.has(flag::MONITOR), "O"),
        (record.has(flag::REPLICA), "S"),
        (record.has(flag::PRIMARY), "M"),
        (record.has(flag::PUBSUB), "P"),
        (record.queued.load(Ordering::Relaxed) >= 0, "x"),
        (record.has(flag::BLOCKED), "b"),
        (record.has(flag::TRACKING), "t"),
        (record.has(flag::TRACKING_BROKEN), "R"),
        (record.has(flag::TRACKING_BROADCAST), "B"),
        (broken, "d"),
        (record.has(flag::CLOSE_AFTER_REPLY), "c"),
        (record.has(flag::CLOSE_ASAP), "A"),
        (record.has(flag::UNIX_SOCKET), "U"),
        (record.has(flag::READS_REPLICA), "r"),
        (record.has(flag::NO_EVICT), "e"),
        (record.has(flag::NO_TOUCH), "T"),
    ];
    let mut is_plain = true;
    for (_, letter) in letters.iter().filter(|(set, _)| *set) {
        text.push(letter);
        is_plain = false;
    }
    if is_plain {
        text.push("N");
    }
}

/// The events that the connection waits for: `r` for input, `w` for room for output. As in Redis, `r` is shown for
/// every client, even while its next command waits for something else.
fn events(output: u64) -> &'static str {
    if output > 0 { "rw" } else { "r" }
}
