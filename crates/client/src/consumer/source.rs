//! Reads entries: first those that are pending for this member, and then, alternately, those that other members
//! abandoned and new ones.
//!
//! The source takes one step at a time, and each step requests no more entries than there is room for. It waits for new
//! entries on its own connection. If a step fails, the server may have delivered entries that never arrived, so the
//! next step reads the pending entries again.

use super::message::{Delivered, Fields, Id, Message, Page};
use super::{Begin, Plan};
use crate::client::Client;
use crate::error::{Code, Error, Kind, Phase, Result};
use crate::session::Session;
use brisk_resp::reply::value::Value;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time that one command waits for new entries, in milliseconds. A dead connection is noticed soon after
/// this time.
const BLOCK_MS_MAX: u128 = 5_000;
/// How long a reply may take in addition to the time for which its command waits.
const REPLY_MARGIN: Duration = Duration::from_secs(5);

/// The number of pending entries that one command lists.
const PAGE_LEN: usize = 1000;

/// Owner, idle time and number of deliveries of a pending entry.
type Pending = (Id, Bytes, i64, u64);
/// Streams and their entries.
type Read = Vec<(Bytes, Vec<Delivered>)>;

pub(super) struct Source {
    db: Client,
    plan: Arc<Plan>,
    session: Option<Session>,
    has_group: bool,
    /// True if the group has existed before.
    had_group: bool,
    /// This member's pending entries after this ID have not been checked yet.
    recover_after: Option<Id>,
    /// The ID at which the scan for abandoned entries continues. The next field is the time at which the scan starts
    /// again.
    claim_from: Id,
    claim_at: Instant,
    /// True if the last step claimed entries, so that new entries are next.
    has_claimed: bool,
    /// The ID of the newest entry that arrived.
    last_seen: Id,
}

/// The entries that a step returned.
#[derive(Debug, Default)]
pub(super) struct StepResult {
    pub(super) messages: Vec<Message>,
    /// Entries that were deleted from the stream. Those that the server still lists as pending must be acknowledged.
    pub(super) deleted: Vec<Id>,
    /// True if the entries were claimed from other members.
    pub(super) are_claimed: bool,
    pub(super) created_group: bool,
}

impl StepResult {
    fn add(&mut self, entries: Vec<Delivered>, deliveries: impl Fn(Id) -> u64) {
        for (id, fields) in entries.into_iter().filter_map(|entry| entry.0) {
            match fields {
                Some(fields) => self.messages.push(message(id, fields, deliveries(id))),
                None => self.deleted.push(id),
            }
        }
    }
}

fn message(id: Id, fields: Fields, deliveries: u64) -> Message {
    Message { id, fields, deliveries }
}

impl Source {
    pub(super) fn new(db: Client, plan: Arc<Plan>) -> Source {
        Source {
            db,
            plan,
            session: None,
            has_group: false,
            had_group: false,
            recover_after: Some(Id::default()),
            claim_from: Id::default(),
            claim_at: Instant::now(),
            has_claimed: false,
            last_seen: Id::default(),
        }
    }

    /// Reports whether the next step needs the set of held entries.
    pub(super) fn is_recovering(&self) -> bool {
        self.recover_after.is_some()
    }

    /// Returns up to `room` entries that are not held yet.
    pub(super) async fn step(&mut self, room: usize, held: &HashSet<Id>) -> Result<StepResult> {
        let result = self.try_step(room, held).await;
        match result {
            Ok(result) => {
                let newest = result.messages.iter().map(|message| message.id).max();
                self.last_seen = self.last_seen.max(newest.unwrap_or_default());
                Ok(result)
            }
            Err(error) => {
                self.session = None;
                self.recover_after = Some(Id::default());
                let text = error.message();
                if error.code() == Some(Code::NoGroup) || text.starts_with("UNBLOCKED") {
                    self.has_group = false;
                    return Ok(StepResult::default());
                }
                Err(error)
            }
        }
    }

    async fn try_step(&mut self, room: usize, held: &HashSet<Id>) -> Result<StepResult> {
        if !self.has_group {
            let created_group = self.create_group().await?;
            (self.has_group, self.had_group) = (true, true);
            return Ok(StepResult { created_group, ..StepResult::default() });
        }
        if let Some(after) = self.recover_after {
            return self.recover(after, room, held).await;
        }
        let now = Instant::now();
        let mut block = self.claim_at.saturating_duration_since(now).as_millis();
        if block == 0 {
            if !self.has_claimed {
                self.has_claimed = true;
                return self.claim(room).await;
            }
            // There are more entries to claim.
            block = 1;
        }
        self.has_claimed = false;
        self.read(room, block.min(BLOCK_MS_MAX) as u64).await
    }

    /// Reads new entries.
    async fn read(&mut self, room: usize, block_ms: u64) -> Result<StepResult> {
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                none.insert(self.db.session_for(&self.plan.stream).await.map_err(as_temporary)?)
            }
        };
        let plan = &self.plan;
        let read = session
            .xreadgroup_block::<Read>(&plan.group, &plan.member, block_ms, &plan.stream, ">")
            .count(room)
            .timeout(Duration::from_millis(block_ms) + REPLY_MARGIN);
        let mut result = StepResult::default();
        let read = read.await.map_err(as_temporary)?;
        read.into_iter().for_each(|(_, entries)| result.add(entries, |_| 1));
        Ok(result)
    }

    /// Reads entries that are pending for this member and not held: an earlier run left them, or their delivery was
    /// lost.
    ///
    /// The entries are listed first, which does not count as a delivery. Then only the missing entries are read, so the
    /// delivery counts of the others do not change.
    async fn recover(&mut self, after: Id, room: usize, held: &HashSet<Id>) -> Result<StepResult> {
        let plan = &self.plan;
        let look = held.len() + room;
        let listed = self
            .db
            .xpending_range::<Pending>(&plan.stream, &plan.group, format!("({after}"), "+", look)
            .consumer(&plan.member)
            .await?;
        let counts: HashMap<Id, u64> =
            listed.iter().map(|(id, _, _, count)| (*id, *count)).collect();
        let missing = |(id, ..): &&Pending| !held.contains(id);
        let last = listed.iter().filter(missing).nth(room - 1).or(listed.last());
        let is_last_page =
            listed.len() < look && last.map(|one| one.0) == listed.last().map(|one| one.0);
        let mut result = StepResult::default();
        let taken: Vec<&Pending> = listed.iter().filter(missing).take(room).collect();
        for run in runs(&listed, &taken) {
            let Some(first) = run.first() else { continue };
            let (stream, after) = (&plan.stream, first.before());
            let read = self.db.xreadgroup::<Read>(&plan.group, &plan.member, stream, after);
            for (_, entries) in read.count(run.len()).await? {
                // Other members may have claimed some of the entries in the meantime. In that case, later entries
                // arrive instead.
                result.add(entries, |id| counts.get(&id).map_or(1, |count| count + 1));
            }
        }
        self.recover_after = last.map(|one| one.0).filter(|_| !is_last_page);
        Ok(result)
    }

    /// Claims entries of any member that have been pending for too long.
    async fn claim(&mut self, room: usize) -> Result<StepResult> {
        let plan = &self.plan;
        let (idle_ms, from) = (plan.claim_idle.as_millis() as u64, self.claim_from);
        let page = self
            .db
            .xautoclaim::<Page>(&plan.stream, &plan.group, &plan.member, idle_ms, from)
            .count(room)
            .await?;
        let ids = page.entries.iter().filter_map(|entry| Some(entry.0.as_ref()?.0));
        let counts = self.count_deliveries(ids.collect()).await?;
        self.claim_from = page.next;
        if page.next == Id::default() {
            self.claim_at = Instant::now() + plan.claim_idle / 2;
        }
        let mut result =
            StepResult { are_claimed: true, deleted: page.deleted, ..StepResult::default() };
        result.add(page.entries, |id| counts.get(&id).copied().unwrap_or(1));
        Ok(result)
    }

    /// The delivery counts of these entries, which belong to this member.
    async fn count_deliveries(&self, mut ids: BTreeSet<Id>) -> Result<HashMap<Id, u64>> {
        let plan = &self.plan;
        let mut counts = HashMap::new();
        while let (Some(first), Some(last)) = (ids.first(), ids.last()) {
            let listed = self
                .db
                .xpending_range::<Pending>(&plan.stream, &plan.group, first, last, PAGE_LEN)
                .consumer(&plan.member)
                .await?;
            // Any number of other pending entries may lie between the first and the last of these IDs.
            let end = listed.last().filter(|_| listed.len() == PAGE_LEN).map(|one| one.0);
            counts.extend(listed.into_iter().map(|(id, _, _, count)| (id, count)));
            ids.retain(|id| end.is_some_and(|end| *id > end));
        }
        Ok(counts)
    }

    /// Creates the group if it does not exist. Returns whether it created it.
    async fn create_group(&mut self) -> Result<bool> {
        let plan = &self.plan;
        let begin = match plan.begin {
            _ if self.had_group => self.restart_id().await?.to_string(),
            Begin::Oldest => "0".to_owned(),
            Begin::Newest => "$".to_owned(),
            Begin::After(id) => id.to_string(),
        };
        let made = self.db.xgroup_create(&plan.stream, &plan.group, begin).mk_stream().await;
        let is_new = match made {
            Err(error) if error.code() == Some(Code::BusyGroup) => false,
            made => made.map(|()| true)?,
        };
        // The group's position is needed if the group is deleted before an entry arrives.
        let groups = self.db.xinfo_groups::<HashMap<String, Value>>(&plan.stream).await?;
        let ours = groups.iter().find(|group| bytes(group, "name") == Some(&plan.group));
        let position = ours.and_then(|group| id(group, "last-delivered-id"));
        self.last_seen = position.unwrap_or(self.last_seen);
        Ok(is_new)
    }

    /// The start ID for a group that existed before. If the stream was created again, all of its entries are new.
    async fn restart_id(&self) -> Result<Id> {
        let last_seen = self.last_seen;
        let stream = self.db.xinfo_stream::<HashMap<String, Value>>(&self.plan.stream).await;
        let newest = match stream {
            Ok(stream) => id(&stream, "last-generated-id"),
            Err(error) if error.code() == Some(Code::Err) => None,
            Err(error) => return Err(error),
        };
        Ok(newest.filter(|newest: &Id| *newest >= last_seen).map_or(Id::default(), |_| last_seen))
    }
}

fn bytes<'a>(about: &'a HashMap<String, Value>, name: &str) -> Option<&'a [u8]> {
    about.get(name)?.as_bytes()
}

fn id(about: &HashMap<String, Value>, name: &str) -> Option<Id> {
    std::str::from_utf8(bytes(about, name)?).ok()?.parse().ok()
}

/// Runs of `taken` entries that are adjacent in `listed`.
fn runs(listed: &[Pending], taken: &[&Pending]) -> Vec<Vec<Id>> {
    let mut runs: Vec<Vec<Id>> = Vec::new();
    let mut wanted = taken.iter().map(|one| one.0).peekable();
    let mut is_open = false;
    for (id, ..) in listed {
        if wanted.peek() != Some(id) {
            is_open = false;
            continue;
        }
        wanted.next();
        match runs.last_mut() {
            Some(run) if is_open => run.push(*id),
            _ => runs.push(vec![*id]),
        }
        is_open = true;
    }
    runs
}

/// Treats errors of the blocking connection as temporary, because a new connection is opened.
fn as_temporary(error: Error) -> Error {
    match error.kind() {
        Kind::Closed | Kind::Server(Code::Err) => {
            Error::lost(Phase::Queued, &format!("the consumer's own connection: {error}"))
        }
        _ => error,
    }
}

/// Reports whether an error is permanent.
pub(super) fn is_permanent(error: &Error) -> bool {
    match error.kind() {
        Kind::Closed | Kind::Invalid | Kind::UnexpectedReply => true,
        Kind::Server(code) => matches!(
            code,
            Code::Err
                | Code::WrongType
                | Code::CrossSlot
                | Code::NoAuth
                | Code::WrongPass
                | Code::NoPerm
                | Code::NoProto
        ),
        _ => false,
    }
}
