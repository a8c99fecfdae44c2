//! Digests of slots, with which a primary and a replica check that they hold the same data, and the
//! replacement of a slot that differs.
//!
//! A slot's digest is the sum, over its keys, of a keyed hash of what clients see of a key: name, type, elements
//! regardless of encoding, expiry time. The order of keys does not matter, because it differs between servers. Keys
//! that have expired at the [`DigestContext`]'s time do not count on either side, whether or not they have been removed
//! yet. The last use of a key and the last activity of consumers do not count.
//!
//! ```text
//!  slot within SLOT_STEPS ──────────── digested under its lock
//!  else: values within LIGHT_STEPS ─── digested under its lock, if they are not too many
//!        the others ────────────────── returned as views; another thread computes their digests
//! ```
//! Which case applies depends only on the contents, so both servers choose the same one.

use crate::base::number::Digits;
use crate::env::Env;
use crate::keyspace::{DbIndex, EntryRef, Keys, Keyspace, SlotId, UnixMs, must_postpone_writes};
use crate::types::dump::Dumpable;
use crate::types::hash::Hash;
use crate::types::list::{End, List};
use crate::types::stream::{Stream, StreamId};
use crate::types::{Collection, Value};
use brisk_structures::hash::HashKey;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Maximum number of steps of a slot that is digested as a whole under its lock, which takes up to
/// about a millisecond.
const SLOT_STEPS: usize = 8 << 10;
/// Maximum number of steps of a value that is digested under the lock of a larger slot.
const LIGHT_STEPS: usize = 256;
/// Maximum number of steps under the lock of a larger slot. A slot with more steps is skipped.
const SLOT_STEPS_MAX: usize = 64 << 10;
/// Maximum number of keys in a slot, or fields in a hash, that are searched for expired ones. If
/// there are more, all of them count, because the search would take too long.
const COUNTED_MAX: usize = 2 * SLOT_STEPS_MAX;
/// Bytes that count as one step, in addition to one step per element. Hashing these bytes takes
/// about as long as a step.
const BYTES_PER_STEP: usize = 128;

/// The parameters of a digest: the same on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DigestContext {
    /// Random for each comparison, so that an attacker cannot construct contents with equal digests.
    pub secret: HashKey,
    /// Keys and fields that expire at or before this time do not count.
    pub now: UnixMs,
}

/// The digest of a slot.
#[derive(Debug, Default)]
pub struct SlotDigest {
    /// The sum of the digests of the keys; 0 without keys. For a large value, the sum includes only
    /// that the value exists.
    pub sum: u64,
    /// The large values.
    pub large: Vec<LargeValue>,
}

/// A large value, as it was when the slot was digested.
#[derive(Debug)]
pub struct LargeValue {
    /// The id of its key.
    pub id: u64,
    value: Value,
}

impl LargeValue {
    /// The digest of the value. O(value).
    #[must_use]
    pub fn digest(&self, context: &DigestContext) -> u64 {
        let mut walk = DigestWalk { context, left: usize::MAX };
        walk.value(Dumpable::of_value(&self.value)).unwrap_or_default()
    }
}

impl DigestContext {
    /// The id of a key.
    #[must_use]
    pub fn id(&self, key: &[u8]) -> u64 {
        self.secret.hash(key)
    }

    fn is_expired(&self, entry: &EntryRef<'_>) -> bool {
        entry.deadline().is_some_and(|at| at <= self.now)
    }
}

/// Computes digests of slots of a database. Calls `report` with the results while all of the slots
/// are still held; the result of a slot with too many steps is `None`. Returns `None` if writes are
/// postponed, because the data may be in the middle of a change. The calling thread must hold no
/// slot.
pub fn digest_slots<R>(
    (keyspace, env): (&Keyspace, &Env),
    db: DbIndex,
    slots: &[SlotId],
    context: &DigestContext,
    report: impl FnOnce(Vec<Option<SlotDigest>>) -> R,
) -> Option<R> {
    let keys = Keys::hold_blocking(keyspace, env, db, &[], slots);
    if must_postpone_writes() {
        return None;
    }
    Some(report(slots.iter().map(|slot| digest_slot(&keys, *slot, context)).collect()))
}

fn digest_slot(keys: &Keys<'_>, slot: SlotId, context: &DigestContext) -> Option<SlotDigest> {
    let count = count(keys, slot, context);
    if count <= SLOT_STEPS
        && let Some(digest) = digest_whole(keys, slot, context)
    {
        return Some(digest);
    }
    if count > SLOT_STEPS_MAX { None } else { digest_in_parts(keys, slot, context) }
}

/// Number of keys of a slot that have not expired. If expired keys counted, a server that has not
/// removed them yet would choose a different case than the other server.
fn count(keys: &Keys<'_>, slot: SlotId, context: &DigestContext) -> usize {
    let all = keys.entry_count(slot);
    if all <= SLOT_STEPS || all > COUNTED_MAX || !keys.may_have_due(slot, context.now) {
        return all;
    }
    let mut expired = 0;
    keys.each_entry(slot, |entry| expired += usize::from(context.is_expired(&entry)));
    all - expired
}

fn digest_whole(keys: &Keys<'_>, slot: SlotId, context: &DigestContext) -> Option<SlotDigest> {
    let mut walk = DigestWalk { context, left: SLOT_STEPS };
    let mut sum = Some(0_u64);
    keys.each_entry(slot, |entry| {
        if sum.is_some() && !context.is_expired(&entry) {
            let value = walk.of_entry(&entry);
            sum = sum.zip(value).map(|(sum, value)| sum.wrapping_add(value));
        }
    });
    Some(SlotDigest { sum: sum?, large: Vec::new() })
}

fn digest_in_parts(keys: &Keys<'_>, slot: SlotId, context: &DigestContext) -> Option<SlotDigest> {
    let mut digest = SlotDigest::default();
    let mut left = SLOT_STEPS_MAX;
    keys.each_entry(slot, |entry| {
        if left == 0 || context.is_expired(&entry) {
            return;
        }
        // A string that is stored in its entry has at most 64 KiB.
        let steps = if entry.object().is_some() { LIGHT_STEPS } else { SLOT_STEPS };
        let mut walk = DigestWalk { context, left: steps };
        let value = walk.of_entry(&entry);
        left = left.saturating_sub(steps - walk.left + 1);
        let value = value.or_else(|| {
            let id = context.id(entry.key());
            let value = entry.object()?.clone();
            digest.large.push(LargeValue { id, value });
            Some(context.secret.hash(&words(&[id, deadline_word(&entry)])))
        });
        digest.sum = digest.sum.wrapping_add(value.unwrap_or_default());
    });
    (left > 0).then_some(digest)
}

/// A walk over values, limited by a number of steps.
struct DigestWalk<'l> {
    context: &'l DigestContext,
    left: usize,
}

impl DigestWalk<'_> {
    /// The hash of a part of a value; `None` if too few steps are left.
    fn part(&mut self, bytes: &[u8]) -> Option<u64> {
        self.spend(1 + bytes.len() / BYTES_PER_STEP)?;
        Some(self.context.secret.hash(bytes))
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map(drop)
    }

    /// `None` if fewer steps are left than there are elements. Then the walk does not begin.
    fn has_room_for(&self, elements: usize) -> Option<()> {
        (elements <= self.left).then_some(())
    }

    fn join(&self, parts: &[u64]) -> u64 {
        self.context.secret.hash(&words(parts))
    }

    fn of_entry(&mut self, entry: &EntryRef<'_>) -> Option<u64> {
        let key = self.part(entry.key())?;
        let value = self.value(entry.dumpable())?;
        if value == EXPIRED {
            return Some(0);
        }
        Some(self.join(&[key, deadline_word(entry), value]))
    }

    fn value(&mut self, value: Dumpable<'_>) -> Option<u64> {
        match value {
            Dumpable::Str(text) => {
                self.has_room_for(text.len() / BYTES_PER_STEP)?;
                let value = self.part(&text.contiguous(&mut Digits::new()))?;
                Some(self.join(&[0, value]))
            }
            Dumpable::Other(Value::Str(text)) => {
                self.has_room_for(text.len() / BYTES_PER_STEP)?;
                let value = self.part(&text.to_vec())?;
                Some(self.join(&[0, value]))
            }
            Dumpable::Other(Value::List(list)) => self.list(list),
            Dumpable::Other(Value::Set(set)) => {
                self.has_room_for(set.len())?;
                let (mut digits, mut sum) = (itoa::Buffer::new(), Some(0));
                set.each(|member| add(&mut sum, || self.part(member.text(&mut digits))));
                Some(self.join(&[2, sum?]))
            }
            Dumpable::Other(Value::SortedSet(set)) => {
                self.has_room_for(set.len())?;
                let mut sum = 0_u64;
                for (member, score) in set.iter(0..set.len()) {
                    let member = self.part(member.text(&mut itoa::Buffer::new()))?;
                    // 0 and -0 are the same score.
                    sum = sum.wrapping_add(self.join(&[member, (score + 0.0).to_bits()]));
                }
                Some(self.join(&[3, sum]))
            }
            Dumpable::Other(Value::Hash(hash)) => self.hash(hash),
            Dumpable::Other(Value::Stream(stream)) => self.stream(stream),
        }
    }

    fn list(&mut self, list: &List) -> Option<u64> {
        self.has_room_for(list.len())?;
        let (mut digits, mut chain) = (itoa::Buffer::new(), Some(0));
        list.walk(0, End::Front, |_, item| {
            chain = chain.zip(self.part(item.text(&mut digits))).map(|(a, b)| self.join(&[a, b]));
            if chain.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Some(self.join(&[1, chain?]))
    }

    fn hash(&mut self, hash: &Hash) -> Option<u64> {
        let now = self.context.now.0;
        self.has_room_for(self.count_fields(hash, now))?;
        let (mut digits, mut sum, mut count) = (itoa::Buffer::new(), Some(0), 0);
        hash.each_timed(|field, value, deadline| {
            if deadline.is_some_and(|at| at <= now) {
                return;
            }
            count += 1;
            add(&mut sum, || {
                let field = self.part(field.text(&mut digits))?;
                let value = self.part(value.text(&mut digits))?;
                Some(self.join(&[field, value, deadline.map_or(0, |at| at.wrapping_add(1))]))
            });
        });
        let sum = sum?;
        Some(if count == 0 { EXPIRED } else { self.join(&[4, sum]) })
    }

    /// Number of fields of a hash that have not expired. The exact number is computed only if it
    /// matters.
    fn count_fields(&self, hash: &Hash, now: u64) -> usize {
        let all = hash.len();
        let may_have_due = hash.next_deadline().is_some_and(|at| at <= now);
        if all <= self.left || all > COUNTED_MAX || !may_have_due {
            return all;
        }
        let mut expired = 0;
        hash.each_timed(|_, _, deadline| {
            expired += usize::from(deadline.is_some_and(|at| at <= now))
        });
        all - expired
    }

    fn stream(&mut self, stream: &Stream) -> Option<u64> {
        let pending: usize = stream.groups().map(|(_, group)| group.pending().len()).sum();
        self.has_room_for(stream.len() + pending)?;
        let mut sum = 0_u64;
        for entry in stream.entries().range(StreamId::MIN, StreamId::MAX) {
            let mut chain = self.id(entry.id);
            for (field, value) in entry.pairs() {
                let (field, value) = (self.part(&field.to_vec())?, self.part(&value.to_vec())?);
                chain = self.join(&[chain, field, value]);
            }
            sum = sum.wrapping_add(chain);
        }
        let (last, deleted) = (self.id(stream.last_id), self.id(stream.max_deleted_id));
        let mut groups = 0_u64;
        for (name, group) in stream.groups() {
            let mut waiting = 0_u64;
            for (id, nack) in group.pending().iter_from(StreamId::MIN) {
                let (id, owner) = (self.id(id), self.part(&group.owner(nack).name)?);
                let times = [nack.delivered_ms.cast_unsigned(), nack.count];
                waiting = waiting.wrapping_add(self.join(&[id, owner, times[0], times[1]]));
            }
            let (name, last) = (self.part(name)?, self.id(group.last_id));
            groups = groups.wrapping_add(self.join(&[name, last, waiting]));
        }
        Some(self.join(&[6, sum, last, deleted, stream.entries_added, groups]))
    }

    fn id(&self, id: StreamId) -> u64 {
        self.join(&[id.ms, id.seq])
    }
}

/// The digest of a hash whose fields have all expired.
const EXPIRED: u64 = 0;

fn add(sum: &mut Option<u64>, part: impl FnOnce() -> Option<u64>) {
    *sum = sum.and_then(|sum| Some(sum.wrapping_add(part()?)));
}

fn deadline_word(entry: &EntryRef<'_>) -> u64 {
    entry.deadline().map_or(0, |at| at.0.wrapping_add(1))
}

fn words(parts: &[u64]) -> smallvec::SmallVec<[u8; 48]> {
    parts.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// Appends the contents of a slot to the stream: a RESTORE for each key, as one transaction,
/// followed by the request that `rest` makes from the keys' ids, so that replicas can remove other
/// keys. Returns false if writes are postponed, because the data may be in the middle of a change.
/// O(slot), while the slot is held. The calling thread must hold no slot.
pub fn emit_slot(
    (keyspace, env): (&Keyspace, &Env),
    db: DbIndex,
    slot: SlotId,
    context: &DigestContext,
    rest: impl FnOnce(&[u64]) -> Vec<u8>,
) -> bool {
    let mut keys = Keys::hold_blocking(keyspace, env, db, &[], &[slot]);
    if must_postpone_writes() {
        return false;
    }
    let (mut ids, mut requests) = (Vec::new(), Vec::new());
    keys.each_entry(slot, |entry| {
        if context.is_expired(&entry) {
            return;
        }
        ids.push(context.id(entry.key()));
        let deadline = entry.deadline().map_or(0, |at| at.0).to_string().into_bytes();
        let words = [b"RESTORE".to_vec(), entry.key().to_vec(), deadline];
        let payload = entry.dumpable().payload();
        let options = [payload, b"REPLACE".to_vec(), b"ABSTTL".to_vec()];
        requests.push(words.into_iter().chain(options).collect::<Vec<_>>());
    });
    requests.into_iter().for_each(|request| keys.propagate(|| request));
    let _ = keys.close(|_| ());
    keyspace.journal().append_request(&rest(&ids));
    true
}

/// Removes the keys of a slot that have none of these ids, as one transaction. Returns their
/// number. O(slot). The calling thread must hold no slot.
pub fn keep_only(
    (keyspace, env): (&Keyspace, &Env),
    db: DbIndex,
    slot: SlotId,
    context: &DigestContext,
    ids: &HashSet<u64>,
) -> usize {
    if keyspace.database_if_used(db).is_none() {
        return 0;
    }
    let mut keys = Keys::hold_blocking(keyspace, env, db, &[], &[slot]);
    let mut names = Vec::new();
    keys.each_entry(slot, |entry| {
        if !ids.contains(&context.id(entry.key())) {
            names.push(entry.key().to_vec());
        }
    });
    for name in &names {
        keys.delete(&keyspace.hasher().key(name));
    }
    let words = || std::iter::once(b"DEL".to_vec()).chain(names.iter().cloned()).collect();
    if !names.is_empty() {
        keys.propagate(words);
    }
    let _ = keys.close(|_| ());
    names.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::SLOTS;
    use crate::testing::Db;

    const CONTEXT: DigestContext =
        DigestContext { secret: HashKey { k0: 5, k1: 6 }, now: UnixMs(1000) };

    /// The digests of all slots, including those of large values.
    fn sums(db: &Db, now: u64) -> Vec<Option<u64>> {
        let context = DigestContext { now: UnixMs(now), ..CONTEXT };
        let whole = |digest: Option<SlotDigest>| {
            let SlotDigest { sum, large } = digest?;
            Some(large.iter().fold(sum, |sum, one| sum.wrapping_add(one.digest(&context))))
        };
        let at = (db.keyspace(), db.env());
        let mut all = Vec::new();
        for first in (0..SLOTS as u16).step_by(64) {
            let slots: Vec<SlotId> = (first..first + 64).map(SlotId::new).collect();
            let report =
                |digest: Vec<Option<SlotDigest>>| digest.into_iter().map(whole).collect::<Vec<_>>();
            all.extend(
                digest_slots(at, DbIndex::FIRST, &slots, &context, report)
                    .expect("no thread changes it"),
            );
        }
        all
    }

    const LINES: &[&str] = &[
        "SET number 12",
        "SET text abc",
        "RPUSH list 1 two 3",
        "SADD intset 1 2 3",
        "SADD set a b c",
        "ZADD zset 1 a 2.5 b",
        "HSET hash f v g 2",
        "XADD stream 1-1 f v",
        "XGROUP CREATE stream g 0",
        "XREADGROUP GROUP g c STREAMS stream >",
    ];

    fn filled(lines: &[&str]) -> Db {
        let mut db = Db::new();
        lines.iter().for_each(|line| drop(db.run(line)));
        db
    }

    #[test]
    fn only_order_and_encoding_are_ignored() {
        let want = sums(&filled(LINES), 1000);
        let mut other = Db::new();
        let limits = &mut other.settings().limits;
        (limits.hash_max_listpack_entries, limits.zset_max_listpack_entries) = (0, 0);
        (limits.set_max_intset_entries, limits.set_max_listpack_entries) = (0, 0);
        let others = [
            "SET text abc",
            "SET number 1",
            "APPEND number 2",
            "SADD set c a b",
            "SADD intset 3 1 2 4",
            "SREM intset 4",
            "RPUSH list two",
            "LPUSH list 1",
            "RPUSH list 3",
            "HSET hash g 2 f v",
            "ZADD zset 2.5 b 1 a",
        ];
        others.iter().chain(&LINES[7..]).for_each(|line| drop(other.run(line)));
        assert_eq!(sums(&other, 1000), want);
        let changes = [
            "SET text abd",
            "RENAME text text2",
            "LSET list 0 2",
            "SADD intset 9",
            "ZADD zset 1.5 a",
            "HSET hash f w",
            "PEXPIREAT text 90000",
            "XADD stream 2-1 f v",
            "XACK stream g 1-1",
            "XSETID stream 9-9",
            "DEL list",
        ];
        for change in changes {
            let mut changed = filled(LINES);
            changed.run(change);
            let sums = sums(&changed, 1000);
            let differing = sums.iter().zip(&want).filter(|(one, other)| one != other).count();
            assert!((1..=2).contains(&differing), "{change}: {differing}");
        }
    }

    #[test]
    fn expired_keys_do_not_count_whether_they_were_removed_or_not() {
        let mut db = filled(&["SET stays 1", "HSET some f 1 g 2", "HSET all f 1", "SET goes 1"]);
        db.run("PEXPIREAT goes 3000");
        db.run("HPEXPIREAT some 3000 FIELDS 1 g");
        db.run("HPEXPIREAT all 3000 FIELDS 1 f");
        let other = filled(&["SET stays 1", "HSET some f 1"]);
        assert_ne!(sums(&db, 2999), sums(&other, 2999));
        assert_eq!(sums(&db, 3000), sums(&other, 3000));
    }

    #[test]
    fn expired_keys_do_not_change_how_the_others_are_digested() {
        // Enough keys that the values are digested one by one, and a hash with few fields that
        // remain.
        let keys =
            |count: usize| -> String { (0..count).map(|n| format!(" {{a}}{n} 1")).collect() };
        let fields = |fields: std::ops::Range<usize>| -> String {
            fields.map(|n| format!(" f{n} 1")).collect()
        };
        let other =
            filled(&[&format!("MSET{}", keys(5000)), &format!("HSET {{a}}hash{}", fields(0..100))]);
        let mut db =
            filled(&[&format!("MSET{}", keys(5000)), &format!("HSET {{a}}hash{}", fields(0..300))]);
        let due: String = (100..300).map(|n| format!(" f{n}")).collect();
        db.run(&format!("HPEXPIREAT {{a}}hash 3000 FIELDS 200{due}"));
        assert_eq!(sums(&db, 3000), sums(&other, 3000));

        // So few keys that they are digested as a whole, and the same number of keys that have
        // expired.
        let members: String = (0..300).map(|n| format!(" member{n}")).collect();
        let small = [format!("MSET{}", keys(3500)), format!("SADD {{a}}set{members}")];
        let lines: Vec<&str> = small.iter().map(String::as_str).collect();
        let (mut db, other) = (filled(&lines), filled(&lines));
        for key in 0..4800 {
            db.run(&format!("SET {{a}}due{key} 1 PXAT 3000"));
        }
        assert_eq!(sums(&db, 3000), sums(&other, 3000));
    }

    #[test]
    fn large_values_are_digested_separately() {
        let fill = |last: &str| {
            let mut db = Db::new();
            for part in 0..9_u32 {
                let members: String = (0..1000).map(|n| format!(" {}", part * 1000 + n)).collect();
                db.run(&format!("SADD large{members}"));
                db.run(&format!("RPUSH {{large}}:list{members}"));
            }
            db.run(&format!("RPUSH {{large}}:list {last}"));
            db.run("SET {large}:small 1");
            db
        };
        let (db, other) = (fill("x"), fill("y"));
        let slot = db.keyspace().hasher().key(b"large").slot;
        let digest_slot = |db: &Db| {
            let report =
                |mut digest: Vec<Option<SlotDigest>>| digest.pop().flatten().expect("not too much");
            digest_slots((db.keyspace(), db.env()), DbIndex::FIRST, &[slot], &CONTEXT, report)
                .expect("at once")
        };
        let (one, two) = (digest_slot(&db), digest_slot(&other));
        assert_eq!((one.large.len(), one.sum), (2, two.sum));
        assert_ne!(sums(&db, 1000), sums(&other, 1000));
        assert_eq!(sums(&db, 1000), sums(&fill("x"), 1000));
    }

    #[test]
    fn a_slot_with_too_many_keys_is_skipped() {
        let mut db = Db::new();
        for key in 0..=SLOT_STEPS_MAX {
            db.run(&format!("SET {{a}}{key} 1"));
        }
        assert_eq!(sums(&db, 1000).into_iter().filter(Option::is_none).count(), 1);
    }

    #[test]
    fn a_slot_is_emitted_completely_and_other_keys_are_removed() {
        let mut db = filled(&["SET {a}1 one", "SET {a}2 two PXAT 9000", "RPUSH {a}3 x"]);
        db.run("PEXPIREAT {a}3 1500");
        let slot = db.keyspace().hasher().key(b"a").slot;
        db.env().hooks.set(crate::env::effect::Hooks::PROPAGATE, true);
        let context = DigestContext { now: UnixMs(2000), ..CONTEXT };
        let mut emitted = Vec::new();
        let at = (db.keyspace(), db.env());
        assert!(emit_slot(at, DbIndex::FIRST, slot, &context, |ids| {
            emitted = ids.to_vec();
            b"*1\r\n$4\r\nREST\r\n".to_vec()
        }));
        assert_eq!(emitted.len(), 2);
        let mut bytes = Vec::new();
        db.keyspace().journal().take(&mut bytes, &mut Vec::new());
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.starts_with("*1\r\n$5\r\nMULTI"), "{text}");
        assert!(text.ends_with("EXEC\r\n*1\r\n$4\r\nREST\r\n"), "{text}");
        assert_eq!(text.matches("$7\r\nRESTORE").count(), 2, "{text}");
        let keep: HashSet<u64> = emitted.into_iter().take(1).collect();
        assert_eq!(keep_only(at, DbIndex::FIRST, slot, &context, &keep), 2);
        assert_eq!(keep_only(at, DbIndex::of(3), slot, &context, &keep), 0);
        db.check("DBSIZE", "(integer) 1");
        db.invariants();
    }
}
