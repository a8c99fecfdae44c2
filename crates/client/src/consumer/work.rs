//! The main loop of a consumer.
//!
//! ```text
//!   source ──> held ──> queue ──> handlers (tasks) ──Ok──> acknowledgments, one command at a time ──> gone
//!                ^         ^                        ──Err──> again later, or dead
//!                └─ room ──┴── while entries are held, their idle time on the server is reset
//! ```
//!
//! 1. An entry is held from its arrival until the server has confirmed its result. The source requests only as many
//!    entries as there is room for, so `held` never exceeds the room.
//! 2. At most one step of the source, one acknowledgment command and one reset of idle times run at a time. Results
//!    that arrive in the meantime are sent with the next command.
//! 3. All of these are tasks in `handlers` or `background`, which are dropped together with the worker.

use super::event::{Event, Fate, Summary};
use super::ledger::{self, IDS_MAX};
use super::message::{Id, Message};
use super::queue::Queue;
use super::source::{Source, StepResult, is_permanent};
use super::{OnExhausted, Plan, Until};
use crate::client::Client;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{AbortHandle, JoinError, JoinSet};

const BACKOFF_FIRST: Duration = Duration::from_millis(10);
const BACKOFF_LONGEST: Duration = Duration::from_secs(2);
/// The time limit for the final reports during shutdown.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);
/// An idle loop wakes up at this interval.
const SLEEP_LONGEST: Duration = Duration::from_secs(60);

/// The pause before a retry, which doubles each time.
#[derive(Debug, Default)]
pub(super) struct Backoff(Option<Duration>);

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        let next = self.0.map_or(BACKOFF_FIRST, |last| (last * 2).min(BACKOFF_LONGEST));
        self.0 = Some(next);
        next
    }
}

/// An entry that this member holds.
struct Held {
    message: Message,
    key: Option<Bytes>,
    /// A time before the server last reset the entry's idle time. The entry has been idle at most since then.
    touched: Instant,
    /// When its handler began.
    began: Instant,
    /// True if a handler has already started on the entry in this run.
    was_started: bool,
}

/// The result of a handler's task.
enum Outcome {
    Handled,
    Failed(String),
    /// The entry's retry was due, but the entry is no longer pending.
    Removed,
    /// The server could not record the new attempt.
    NotStarted,
}

/// Tasks other than handlers.
enum Completed {
    Step(Box<Source>, Instant, Result<StepResult>),
    Acknowledged(Vec<Id>, Result<()>),
    IdleReset(Vec<Id>, Instant, Result<()>),
    Buried(Id, String, Result<()>),
}

pub(super) struct Worker<F> {
    db: Client,
    plan: Arc<Plan>,
    handler: Arc<F>,
    until: Option<Until>,
    held: HashMap<Id, Held>,
    queue: Queue,
    handlers: JoinSet<Outcome>,
    tasks: HashMap<tokio::task::Id, Id>,
    background: JoinSet<Completed>,
    /// `None` while a step is in progress.
    source: Option<Box<Source>>,
    step: Option<AbortHandle>,
    step_at: Instant,
    step_backoff: Backoff,
    /// IDs to acknowledge. The next field has those that are being acknowledged.
    done: Vec<Id>,
    acknowledging: Vec<Id>,
    acknowledge_at: Instant,
    acknowledge_backoff: Backoff,
    burials: usize,
    is_resetting_idle: bool,
    idle_reset_at: Instant,
    /// When the shutdown must be complete. `None` until it begins.
    deadline: Option<Instant>,
    failure: Option<Error>,
    summary: Summary,
}

impl<F, Fut, E> Worker<F>
where
    F: Fn(Message) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = std::result::Result<(), E>> + Send + 'static,
    E: fmt::Display,
{
    pub(super) fn new(db: Client, plan: Plan, handler: F, until: Option<Until>) -> Worker<F> {
        let (plan, now) = (Arc::new(plan), Instant::now());
        Worker {
            source: Some(Box::new(Source::new(db.clone(), Arc::clone(&plan)))),
            db,
            plan,
            handler: Arc::new(handler),
            until,
            held: HashMap::new(),
            queue: Queue::default(),
            handlers: JoinSet::new(),
            tasks: HashMap::new(),
            background: JoinSet::new(),
            step: None,
            step_at: now,
            step_backoff: Backoff::default(),
            done: Vec::new(),
            acknowledging: Vec::new(),
            acknowledge_at: now,
            acknowledge_backoff: Backoff::default(),
            burials: 0,
            is_resetting_idle: false,
            idle_reset_at: now,
            deadline: None,
            failure: None,
            summary: Summary::default(),
        }
    }

    pub(super) async fn run(mut self) -> Result<Summary> {
        loop {
            let now = Instant::now();
            self.begin_handlers(now);
            self.begin_step(now);
            self.begin_acknowledging(now);
            self.begin_idle_reset(now);
            if self.is_over(now) {
                break;
            }
            let wake = tokio::time::Instant::from_std(self.wakes_at(now));
            let is_stopping = self.deadline.is_some();
            tokio::select! {
                () = stopped(&mut self.until), if !is_stopping => self.stop(None),
                Some(done) = self.handlers.join_next_with_id() => {
                    self.handler_ended(done);
                    // Entries that complete at the same time are acknowledged together.
                    while let Some(done) = self.handlers.try_join_next_with_id() {
                        self.handler_ended(done);
                    }
                }
                Some(done) = self.background.join_next() => self.background_ended(done),
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        self.end().await
    }

    fn wakes_at(&self, now: Instant) -> Instant {
        let mut wake = self.idle_reset_at.min(now + SLEEP_LONGEST);
        match self.deadline {
            Some(deadline) => wake = wake.min(deadline),
            None => {
                wake = self.queue.next_due().map_or(wake, |due| wake.min(due));
                if self.source.is_some() && self.step_at > now {
                    wake = wake.min(self.step_at);
                }
            }
        }
        let must_acknowledge = self.acknowledging.is_empty() && !self.done.is_empty();
        if must_acknowledge { wake.min(self.acknowledge_at) } else { wake }
    }

    // Starting tasks.

    fn begin_handlers(&mut self, now: Instant) {
        if self.deadline.is_some() {
            return;
        }
        self.queue.wake(now);
        while self.handlers.len() < self.plan.parallel {
            let Some(id) = self.queue.pop() else { break };
            let Some(held) = self.held.get_mut(&id) else { continue };
            let is_again = std::mem::replace(&mut held.was_started, true);
            held.began = now;
            held.message.deliveries += u64::from(is_again);
            let message = held.message.clone();
            if is_again {
                self.summary.retried += 1;
                self.plan.notify(&Event::Retried { id, deliveries: message.deliveries });
            }
            let (db, plan) = (self.db.clone(), Arc::clone(&self.plan));
            let handler = Arc::clone(&self.handler);
            let task = self.handlers.spawn(async move {
                if is_again {
                    match ledger::count_attempt(&db, &plan, &message).await {
                        Ok(true) => {}
                        Ok(false) => return Outcome::Removed,
                        Err(_) => return Outcome::NotStarted,
                    }
                }
                match handler(message).await {
                    Ok(()) => Outcome::Handled,
                    Err(error) => Outcome::Failed(error.to_string()),
                }
            });
            self.tasks.insert(task.id(), id);
        }
    }

    fn begin_step(&mut self, now: Instant) {
        let room = self.plan.room().saturating_sub(self.held.len());
        if self.deadline.is_some() || room == 0 || now < self.step_at {
            return;
        }
        let Some(mut source) = self.source.take() else { return };
        let held: HashSet<Id> = match source.is_recovering() {
            true => self.held.keys().copied().collect(),
            false => HashSet::new(),
        };
        let step = self.background.spawn(async move {
            let result = source.step(room, &held).await;
            Completed::Step(source, now, result)
        });
        self.step = Some(step);
    }

    fn begin_acknowledging(&mut self, now: Instant) {
        if !self.acknowledging.is_empty() || self.done.is_empty() || now < self.acknowledge_at {
            return;
        }
        let ids: Vec<Id> = self.done.drain(..self.done.len().min(IDS_MAX)).collect();
        self.acknowledging.clone_from(&ids);
        let (db, plan) = (self.db.clone(), Arc::clone(&self.plan));
        self.background.spawn(async move {
            let acknowledged = ledger::acknowledge(&db, &plan, &ids).await;
            Completed::Acknowledged(ids, acknowledged)
        });
    }

    /// Resets the idle time of entries that have been running for long, so that other members do not claim them.
    fn begin_idle_reset(&mut self, now: Instant) {
        if now < self.idle_reset_at {
            return;
        }
        self.idle_reset_at = now + self.plan.claim_idle / 8;
        if self.is_resetting_idle {
            return;
        }
        let is_old = |held: &&Held| now.duration_since(held.touched) >= self.plan.claim_idle / 2;
        let ids: Vec<Id> = self.held.values().filter(is_old).map(|held| held.message.id).collect();
        if ids.is_empty() {
            return;
        }
        self.is_resetting_idle = true;
        let (db, plan) = (self.db.clone(), Arc::clone(&self.plan));
        self.background.spawn(async move {
            let reset = ledger::reset_idle(&db, &plan, &ids).await;
            Completed::IdleReset(ids, now, reset)
        });
    }

    // Completed tasks.

    fn handler_ended(&mut self, ended: std::result::Result<(tokio::task::Id, Outcome), JoinError>) {
        let (task, outcome) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let task = error.id();
                (task, Outcome::Failed(panic_text(error)))
            }
        };
        let Some(id) = self.tasks.remove(&task) else { return };
        let Some(held) = self.held.get_mut(&id) else { return };
        let deliveries = held.message.deliveries;
        match outcome {
            Outcome::Handled => {
                self.summary.handled += 1;
                let took = held.began.elapsed();
                self.plan.notify(&Event::Handled { id, deliveries, took });
                self.queue.settle(held.key.as_ref());
                self.done.push(id);
            }
            Outcome::Failed(why) if deliveries >= self.plan.attempts => {
                self.summary.failed += 1;
                self.plan.notify(&Event::Failed { id, deliveries, why: &why, again_in: None });
                self.queue.settle(held.key.as_ref());
                self.give_up(id, why);
            }
            Outcome::Failed(why) => {
                self.summary.failed += 1;
                let rest = self.plan.rest(deliveries);
                self.plan.notify(&Event::Failed {
                    id,
                    deliveries,
                    why: &why,
                    again_in: Some(rest),
                });
                self.queue.again(id, Instant::now() + rest);
            }
            Outcome::Removed => {
                self.queue.settle(held.key.as_ref());
                self.held.remove(&id);
            }
            Outcome::NotStarted => {
                held.message.deliveries -= 1;
                self.queue.again(id, Instant::now() + BACKOFF_LONGEST.min(self.plan.retry_longest));
            }
        }
    }

    /// Handles an entry that has no attempts left.
    fn give_up(&mut self, id: Id, why: String) {
        let Some(held) = self.held.get(&id) else { return };
        let deliveries = held.message.deliveries;
        let fate = match &self.plan.on_exhausted {
            OnExhausted::DeadLetter(stream) => {
                self.burials += 1;
                let (db, plan, stream) = (self.db.clone(), Arc::clone(&self.plan), stream.clone());
                let message = held.message.clone();
                self.background.spawn(async move {
                    let buried = ledger::bury(&db, &plan, &stream, &message, &why).await;
                    Completed::Buried(id, why, buried)
                });
                return;
            }
            OnExhausted::Discard => {
                self.done.push(id);
                Fate::Discarded
            }
            OnExhausted::Keep => {
                self.held.remove(&id);
                Fate::Kept
            }
        };
        self.summary.dead += 1;
        self.plan.notify(&Event::Dead { id, deliveries, why: &why, fate });
    }

    fn background_ended(&mut self, ended: std::result::Result<Completed, JoinError>) {
        let completed = match ended {
            Ok(completed) => completed,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Shutdown has aborted the last step of the source.
            Err(_) => return,
        };
        match completed {
            Completed::Step(source, began, result) => {
                (self.source, self.step) = (Some(source), None);
                match result {
                    Ok(result) => {
                        self.step_backoff = Backoff::default();
                        self.take(result, began);
                    }
                    Err(error) => {
                        let again_in = self.step_backoff.next();
                        self.step_at = Instant::now() + again_in;
                        self.interrupted(error, again_in);
                    }
                }
            }
            Completed::Acknowledged(ids, acknowledged) => {
                self.acknowledging.clear();
                match acknowledged {
                    Ok(()) => {
                        self.acknowledge_backoff = Backoff::default();
                        ids.iter().for_each(|id| drop(self.held.remove(id)));
                    }
                    Err(error) => {
                        let again_in = self.acknowledge_backoff.next();
                        self.acknowledge_at = Instant::now() + again_in;
                        // Put these IDs first, so that the next acknowledgment includes them.
                        self.done.splice(..0, ids);
                        self.interrupted(error, again_in);
                    }
                }
            }
            Completed::IdleReset(ids, at, reset) => {
                self.is_resetting_idle = false;
                if reset.is_ok() {
                    for id in ids {
                        self.held.entry(id).and_modify(|held| held.touched = at);
                    }
                }
            }
            Completed::Buried(id, why, buried) => {
                self.burials -= 1;
                let Some(held) = self.held.remove(&id) else { return };
                match buried {
                    Ok(()) => {
                        let (deliveries, fate) = (held.message.deliveries, Fate::DeadLetter);
                        self.summary.dead += 1;
                        self.plan.notify(&Event::Dead { id, deliveries, why: &why, fate });
                    }
                    Err(error) => {
                        self.held.insert(id, held);
                        self.interrupted(error, Duration::ZERO);
                    }
                }
            }
        }
    }

    fn interrupted(&mut self, error: Error, again_in: Duration) {
        if is_permanent(&error) {
            self.stop(Some(error));
        } else {
            self.plan.notify(&Event::Interrupted { error: &error, again_in });
        }
    }

    /// Handles entries that arrived.
    fn take(&mut self, result: StepResult, touched: Instant) {
        if result.created_group {
            self.plan.notify(&Event::GroupCreated);
        }
        for id in result.deleted {
            self.plan.notify(&Event::Deleted { id });
            if !self.held.contains_key(&id) {
                self.done.push(id);
            }
        }
        for message in result.messages {
            let (id, deliveries) = (message.id, message.deliveries);
            if self.held.contains_key(&id) {
                continue;
            }
            if result.are_claimed {
                self.summary.claimed += 1;
                self.plan.notify(&Event::Claimed { id, deliveries });
            }
            let key = self.plan.key.as_ref().and_then(|field| message.raw_field(field)).cloned();
            let is_exhausted = deliveries > self.plan.attempts;
            let held = Held { message, key, touched, began: touched, was_started: false };
            if is_exhausted {
                self.held.insert(id, held);
                self.give_up(
                    id,
                    format!("delivered {} times before, never acknowledged", deliveries - 1),
                );
                continue;
            }
            self.queue.add(id, held.key.as_ref());
            self.held.insert(id, held);
        }
    }

    // Shutdown.

    /// Begins the shutdown: no new handlers start, and running ones may finish.
    fn stop(&mut self, failure: Option<Error>) {
        if self.deadline.is_none() {
            self.deadline = Some(Instant::now() + self.plan.stop_within);
            self.failure = failure;
            self.source = None;
            if let Some(step) = self.step.take() {
                step.abort();
            }
            self.plan.notify(&Event::Stopping);
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let is_done = self.handlers.is_empty()
            && self.burials == 0
            && self.acknowledging.is_empty()
            && self.done.is_empty();
        // After a permanent error, waiting for acknowledgments is pointless.
        now >= deadline || is_done || (self.failure.is_some() && self.handlers.is_empty())
    }

    async fn end(mut self) -> Result<Summary> {
        // If these reports are lost, other members claim the entries after the idle time.
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, self.hand_over()).await;
        self.failure.map_or(Ok(self.summary), Err)
    }

    /// The final reports: acknowledged entries, returned entries, and possibly the removal of the member.
    async fn hand_over(&mut self) {
        self.handlers.shutdown().await;
        self.background.shutdown().await;
        let done: Vec<Id> = self.acknowledging.drain(..).chain(self.done.drain(..)).collect();
        for ids in done.chunks(IDS_MAX) {
            let _ = ledger::acknowledge(&self.db, &self.plan, ids).await;
        }
        let begun = self.held.values().filter(|held| held.was_started);
        let begun = begun.map(|held| (held.message.id, held.message.deliveries)).collect();
        self.summary.returned =
            ledger::give_back(&self.db, &self.plan, &begun).await.unwrap_or_default();
        if self.plan.leaves {
            let _ = ledger::leave(&self.db, &self.plan).await;
        }
    }
}

/// Completes when the consumer has to stop.
async fn stopped(until: &mut Option<Until>) {
    match until {
        Some(until) => until.await,
        None => pending().await,
    }
}

fn panic_text(error: JoinError) -> String {
    let text = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
    };
    let payload = error.try_into_panic().ok().and_then(text);
    format!("panic: {}", payload.as_deref().unwrap_or("no message"))
}
