//! The subcommands of DEBUG that inspect or create keys.

use brisk_engine::digest::Digest;
use brisk_engine::keyspace::{EntryRef, Keys, Overwrite, evict};
use brisk_engine::number::parse_i64;
use brisk_engine::snapshot::Duplicate;
use brisk_engine::types::list::List;
use brisk_engine::{Args, CommandError, DbIndex, Outcome, Result, exec};
use brisk_node::core::call::Call;
use brisk_node::persistence::loading::{aof, rdb};
use brisk_node::persistence::snapshot;
use brisk_node::script::libraries::Policy;
use brisk_node::script::source;
use brisk_structures::quicklist::{Options, QuickList};
use std::fmt::Write;
use std::ops::ControlFlow;

/// Calls `look` with the stored entry of a key of the selected database, even if it has expired.
fn with_entry<R>(
    call: &mut Call<'_>,
    key: &[u8],
    look: impl FnOnce(&Keys<'_>, Option<EntryRef<'_>>) -> R,
) -> Result<R> {
    let shared = &call.core.shared;
    let key = shared.keyspace.hasher().key(key);
    let prepared = [exec::prepare(0, &key)];
    let keys = Keys::lock(&shared.keyspace, &call.core.env, call.session.db(), &prepared)?;
    let entry = keys.inspect(&key);
    Ok(look(&keys, entry))
}

pub(super) fn object(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let line = with_entry(call, args.bytes()?, |keys, entry| {
        let entry = entry?;
        let mut line = format!(
            "Value at:{:p} refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
            entry.key().as_ptr(),
            entry.reference_count(&keys.env().settings),
            entry.encoding().name(),
            serialized_len(&entry),
            entry.clock(),
            evict::idle_ms(keys.env(), entry.clock()) / 1000,
        );
        if let Some(List::QuickList(list)) = entry.get::<List>() {
            line.push_str(&quicklist_stats(list));
        }
        Some(line)
    })?;
    let line = line.ok_or(CommandError::NoSuchKey)?;
    Ok(call.reply.simple(&line))
}

/// Returns the metrics of a list's nodes in Redis's format.
fn quicklist_stats(list: &QuickList) -> String {
    let Options { fill, compress_depth, .. } = list.options();
    let uncompressed: usize = list.nodes().map(|node| node.uncompressed_bytes()).sum();
    format!(
        " ql_nodes:{} ql_avg_node:{:.2} ql_listpack_max:{fill} ql_compressed:{} \
         ql_uncompressed_size:{uncompressed}",
        list.node_count(),
        list.len() as f64 / list.node_count() as f64,
        u8::from(compress_depth != 0),
    )
}

/// Returns the size, in bytes, of the value in a dump. O(bytes) for all types except strings.
fn serialized_len(entry: &EntryRef<'_>) -> usize {
    let Some(string) = entry.string() else { return entry.dumped_len() };
    // Integers of up to 32 bits are stored as integers. All other values are stored with their length.
    let small = string.as_integer().and_then(|number| i32::try_from(number).ok());
    match (small, string.len()) {
        (Some(number), _) if i8::try_from(number).is_ok() => 2,
        (Some(number), _) if i16::try_from(number).is_ok() => 3,
        (Some(_), _) => 5,
        (None, len @ 0..64) => 1 + len,
        (None, len @ 64..16_384) => 2 + len,
        (None, len) => 5 + len,
    }
}

pub(super) fn digest(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    let quiesced = call.core.quiesce_others()?;
    let keys = call.core.keys_to_walk(call.session.db())?;
    let digest = Digest::of_dataset(&keys);
    drop(quiesced);
    Ok(call.reply.simple(&digest.to_string()))
}

/// RELOAD [MERGE] [NOFLUSH] [NOSAVE]. An incomplete file leaves the dataset unchanged.
pub(super) fn reload(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (mut duplicate, mut flush, mut save) = (Duplicate::Refuse, true, true);
    while args.remaining() > 0 {
        if args.take("MERGE") {
            duplicate = Duplicate::Replace;
        } else if args.take("NOFLUSH") {
            flush = false;
        } else if args.take("NOSAVE") {
            save = false;
        } else {
            let text = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";
            return Err(CommandError::text(text));
        }
    }
    if call.core.shared.conditions.is_loading() {
        return Err(CommandError::text("ERR the dataset is being loaded"));
    }
    let quiesced = call.core.quiesce_others()?;
    if save && snapshot::save(call.core).is_err() {
        return Err(CommandError::text("ERR"));
    }
    let policy = match duplicate {
        Duplicate::Replace => Policy::Replace,
        Duplicate::Refuse if flush => Policy::Flush,
        Duplicate::Refuse => Policy::Append,
    };
    let loaded = snapshot::verify(call.core).map_err(|failure| failure.to_string());
    let loaded = loaded.and_then(|functions| {
        let restored = source::restore(call.core, functions.iter().map(Vec::as_slice), policy);
        restored.map_err(|error| error.to_string())?;
        let core = &*call.core;
        let keyspace = &core.shared.keyspace;
        let mut keys = Keys::unlocked(keyspace, &core.env, call.session.db());
        for db in keyspace.databases().filter(|_| flush) {
            keys.flush(db);
        }
        if flush {
            keys.invalidate_all();
        }
        keys.close_without_effects();
        rdb::reload(core, duplicate).map_err(|failure| failure.to_string())
    });
    drop(quiesced);
    let log = &call.core.shared.log;
    match loaded {
        Ok(_) => {
            log.notice(format_args!("DB reloaded by DEBUG RELOAD"));
            Ok(call.reply.ok())
        }
        Err(failure) => {
            log.warning(format_args!("The snapshot was not loaded: {failure}"));
            let text = "ERR Error trying to load the RDB dump, check server logs.";
            Err(CommandError::text(text))
        }
    }
}

/// LOADAOF
pub(super) fn load_aof(call: &mut Call<'_>, _: &mut Args<'_>) -> Result<Outcome> {
    if call.core.unit.is_running() {
        return Err(CommandError::text("ERR DEBUG LOADAOF cannot be part of a transaction"));
    }
    let quiesced = call.core.quiesce_others()?;
    let loaded = aof::load_again(call.core);
    drop(quiesced);
    let log = &call.core.shared.log;
    match loaded {
        Ok(()) => {
            log.notice(format_args!("Append Only File loaded by DEBUG LOADAOF"));
            Ok(call.reply.ok())
        }
        Err(failure) => {
            log.warning(format_args!("{failure}"));
            let text = "ERR Error trying to load the AOF files, check server logs.";
            Err(CommandError::text(text))
        }
    }
}

pub(super) fn digest_value(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    call.reply.array(args.remaining());
    while let Some(key) = args.optional() {
        let digest = with_entry(call, key, |_, entry| {
            entry.map(|entry| Digest::of_value(&entry)).unwrap_or_default()
        })?;
        call.reply.simple(&digest.to_string());
    }
    Ok(Outcome::Replied)
}

/// POPULATE count [prefix] [size]. Does not change existing keys.
pub(super) fn populate(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let positive = |word| {
        let number = parse_i64(word).and_then(|number| u64::try_from(number).ok());
        number.ok_or(CommandError::text("ERR value is out of range, must be positive"))
    };
    let count = positive(args.bytes()?)?;
    let prefix = args.optional().unwrap_or(b"key");
    let size = args.optional().map_or(Ok(0), positive)?;
    let longest = call.core.config.clients.proto_max_bulk_len;
    let size = usize::try_from(size.min(longest)).unwrap_or(usize::MAX);
    let shared = &call.core.shared;
    let db = call.session.db();
    let mut name = Vec::new();
    for number in 0..count {
        name.clear();
        name.extend_from_slice(prefix);
        name.extend_from_slice(format!(":{number}").as_bytes());
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        let key = shared.keyspace.hasher().key(&name);
        let mut keys = Keys::unlocked(&shared.keyspace, &call.core.env, db);
        // A command that has begun must finish, so wait if another thread holds the slot.
        keys.lock_also_blocking(db, &key);
        if !keys.contains(&key) {
            keys.set_string(&key, &value, Overwrite::Persist, "set");
            call.core.stats().changes.add(1);
        }
    }
    Ok(call.reply.ok())
}

/// Replies with the metrics of a database's tables, one per line.
pub(super) fn htstats(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let db = parse_i64(args.bytes()?).ok_or(CommandError::NotAnInteger)?;
    let count = call.core.shared.keyspace.database_count();
    let db = DbIndex::checked(db, count).ok_or(CommandError::text("ERR Out of range database"))?;
    let keys = call.core.keys_to_walk(db)?;
    let mut sum = TableStats::default();
    keys.each_slot(db, |_, slot| {
        let table = slot.table();
        sum.tables += 1;
        sum.keys += table.len();
        sum.buckets += table.bucket_count();
        sum.overflow_buckets += table.overflow_buckets();
        sum.resizing += usize::from(table.is_resizing());
        sum.largest = sum.largest.max(table.len());
        ControlFlow::Continue(())
    });
    let with_deadline = call.core.shared.keyspace.totals().databases[db.index()].with_deadline;
    let text = sum.text(with_deadline);
    Ok(call.reply.verbatim(*b"txt", text.as_bytes()))
}

/// Totals over the tables of a database.
#[derive(Debug, Default)]
struct TableStats {
    /// The number of tables that are not empty.
    tables: usize,
    keys: usize,
    buckets: usize,
    overflow_buckets: usize,
    resizing: usize,
    /// The number of keys in the largest table.
    largest: usize,
}

impl TableStats {
    /// Capacity of a bucket in entries.
    const PLACES: usize = 7;

    fn text(&self, with_deadline: u64) -> String {
        let mut text = String::from("[Dictionary HT]\n");
        let no_stats = "No stats available for empty dictionaries\n";
        if self.keys == 0 {
            text.push_str(no_stats);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "Hash table 0 stats (main hash table):\n \
                 table size: {}\n \
                 number of elements: {}\n \
                 tables: {}\n \
                 max elements in a table: {}\n \
                 buckets: {}\n \
                 overflow buckets: {}\n \
                 tables being resized: {}\n",
                self.buckets * Self::PLACES,
                self.keys,
                self.tables,
                self.largest,
                self.buckets,
                self.overflow_buckets,
                self.resizing
            );
        }
        text.push_str("[Expires HT]\n");
        if with_deadline == 0 {
            text.push_str(no_stats);
        } else {
            let _ = writeln!(text, " number of elements: {with_deadline}");
        }
        text
    }
}

pub(super) fn htstats_key(call: &mut Call<'_>, args: &mut Args<'_>) -> Result<Outcome> {
    let exists = with_entry(call, args.bytes()?, |_, entry| entry.is_some())?;
    // Brisk does not store any type as a hash table.
    Err(if exists {
        CommandError::text(
            "ERR The value stored at the specified key is not represented using an hash table",
        )
    } else {
        CommandError::NoSuchKey
    })
}
