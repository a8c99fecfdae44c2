//! One caller of the client library, and the shared counters of all callers.

use crate::clock::now_ns;
use crate::engine::plan::{End, OnError, Plan};
use crate::error::RunError;
use crate::load::batch::{Batch, RequestSource, SentRequest};
use crate::load::tag::Tag;
use crate::outcome::{Errors, Outcome, new_histogram};
use brisk::{Client, Command, Reply, Request, Traits, Value};
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// The state that the callers share.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) db: Client,
    pub(super) callers: usize,
    names: Vec<(Vec<u8>, Traits)>,
    measure_ns: AtomicU64,
    end_ns: AtomicU64,
    /// Number of measured requests handed out so far.
    issued: AtomicU64,
    stopped: AtomicBool,
    /// One entry for each thread, so that threads do not wait for one another.
    stats: Vec<Mutex<CallerStats>>,
}

/// The measurements of the callers on one thread.
#[derive(Debug)]
struct CallerStats {
    latency: Histogram<u64>,
    latency_ns: u64,
    operations: u64,
    errors: Errors,
    mismatches: u64,
    first_mismatch: Option<String>,
    last_ns: u64,
}

impl Run {
    pub(super) fn new(
        plan: &Plan,
        db: Client,
        names: Vec<(Vec<u8>, Traits)>,
        callers: usize,
    ) -> Result<Run, RunError> {
        let stats = |_| {
            Ok(Mutex::new(CallerStats {
                latency: new_histogram(plan.precision)?,
                latency_ns: 0,
                operations: 0,
                errors: Errors::default(),
                mismatches: 0,
                first_mismatch: None,
                last_ns: 0,
            }))
        };
        Ok(Run {
            plan: plan.clone(),
            db,
            callers,
            names,
            measure_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            issued: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            stats: (0..plan.threads.max(1)).map(stats).collect::<Result<_, RunError>>()?,
        })
    }

    /// Requests that are sent from `measure_ns` on are measured. Nothing is sent from `end_ns` on.
    pub(super) fn begin(&self, measure_ns: u64, end_ns: u64) {
        self.measure_ns.store(measure_ns, Relaxed);
        self.end_ns.store(end_ns, Relaxed);
    }

    /// Stops sending requests.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// The number of replies, and the sum of their latencies.
    pub(super) fn tally(&self) -> (u64, u64) {
        let each = self.stats.iter().map(|stats| {
            let stats = locked(stats);
            (stats.operations, stats.latency_ns)
        });
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Adds the measurements to an outcome. Returns the time at which the last reply arrived.
    pub(super) fn add_to(&self, outcome: &mut Outcome) -> u64 {
        let mut last_ns = 0;
        for stats in &self.stats {
            let stats = locked(stats);
            outcome.operations += stats.operations;
            // The histograms have the same bounds, so this cannot fail.
            let _ = outcome.latency.add(&stats.latency);
            outcome.errors.merge(&stats.errors);
            outcome.mismatches += stats.mismatches;
            let first = &mut outcome.first_mismatch;
            *first = first.take().or_else(|| stats.first_mismatch.clone());
            last_ns = last_ns.max(stats.last_ns);
        }
        last_ns
    }

    /// Reports whether another request may be sent.
    fn take(&self) -> bool {
        match self.plan.end {
            End::After(_) => true,
            End::Requests(requests) => self.issued.fetch_add(1, Relaxed) < requests,
        }
    }

    /// The command of an encoded request. The argument after the name is assumed to be the key, which determines the
    /// connection.
    fn command<T>(&self, request: &[u8]) -> Command<&Client, T> {
        let mut words = words(request);
        let name = words.next().unwrap_or_default();
        let traits = self.names.iter().find(|(known, _)| known == name).map(|(_, traits)| *traits);
        let mut made = Request::new(&String::from_utf8_lossy(name), traits.unwrap_or_default());
        if let Some(key) = words.next() {
            made.key(key);
        }
        words.for_each(|word| made.arg(word));
        Command::<(), T>::new(made).on(&self.db)
    }

    fn record(&self, started: u64, result: Result<Option<String>, String>) {
        let now = now_ns();
        let mut stats = locked(&self.stats[own_place() % self.stats.len()]);
        let latency = now.saturating_sub(started);
        stats.latency.saturating_record(latency);
        stats.latency_ns += latency;
        stats.operations += 1;
        stats.last_ns = stats.last_ns.max(now);
        match result {
            Ok(None) => {}
            Ok(Some(mismatch)) => {
                stats.mismatches += 1;
                stats.first_mismatch.get_or_insert(mismatch);
            }
            Err(error) => stats.errors.add(&error),
        }
    }

    /// Describes what is wrong with a reply, if anything.
    fn judge(&self, reply: &Value, sent: Option<SentRequest>) -> Option<String> {
        let sent = sent?;
        let expect = self.plan.workload.commands[sent.command].expect;
        let wanted = expect.check(reply, sent.number, &self.plan.workload.values).err()?;
        Some(format!("expected {wanted}, got {reply}"))
    }
}

fn locked(stats: &Mutex<CallerStats>) -> MutexGuard<'_, CallerStats> {
    stats.lock().expect("nothing that panics is done with it")
}

/// The index of the calling thread.
fn own_place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = NEXT.fetch_add(1, Relaxed);
    }
    PLACE.with(|place| *place)
}

/// Sends requests until the run ends.
pub(super) async fn call(run: Arc<Run>, caller: usize) -> Result<(), RunError> {
    let plan = &run.plan;
    let workload = Arc::clone(&plan.workload);
    let mut source = RequestSource::new(workload, plan.seed, caller, run.callers, plan.verify);
    let mut batch = Batch::default();
    loop {
        let begun = now_ns();
        let is_over = begun >= run.end_ns.load(Relaxed) || run.stopped.load(Relaxed);
        let counts = begun >= run.measure_ns.load(Relaxed);
        if is_over || (counts && !run.take()) {
            return Ok(());
        }
        let len = source.fill(&mut batch, 1, Tag::default());
        let started = now_ns();
        let response = match plan.verify {
            true => run.command::<Value>(batch.bytes(len)).await.map(Some),
            false => run.command::<Reply>(batch.bytes(len)).await.map(|_| None),
        };
        let sent = batch.pop_pending();
        let result = match response {
            Ok(reply) => Ok(reply.and_then(|reply| run.judge(&reply, sent))),
            Err(error) if error.code().is_none() => return Err(RunError::Library(error)),
            Err(error) if plan.on_error == OnError::Stop => {
                return Err(RunError::Reply(error.message().to_owned()));
            }
            Err(error) => Err(error.message().to_owned()),
        };
        if counts {
            run.record(started, result);
        }
    }
}

/// The arguments of an encoded request. Empty for an inline request.
pub(super) fn words(request: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_array = request.first() == Some(&b'*');
    let begin = request.iter().position(|byte| *byte == b'\n').map_or(request.len(), |at| at + 1);
    let mut rest = if is_array { &request[begin..] } else { &[] };
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| *byte == b'\r')?;
        let digits = rest.get(1..end)?.iter();
        let len = digits.fold(0, |len: usize, digit| len * 10 + usize::from(digit - b'0'));
        let word = rest.get(end + 2..end + 2 + len)?;
        rest = rest.get(end + 4 + len..)?;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_request_are_read_back() {
        let mut bytes = Vec::new();
        let words_sent: [&[u8]; 4] = [b"SET", b"", b"a\r\n$1\r\nb", b"0123456789ab"];
        brisk_resp::request::encode(&mut bytes, &words_sent);
        assert!(words(&bytes).eq(words_sent));
        assert_eq!(words(b"PING\r\n").count(), 0);
    }
}
