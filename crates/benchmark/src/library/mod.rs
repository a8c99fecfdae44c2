//! The client library as a load generator. Callers share a client of the crate `brisk`. Each caller sends a request,
//! waits for the reply, and sends the next request.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | supported plans, connecting, executing a plan |
//! | `caller` | one caller, and the counters that all of them write to |
//! | `threads` | the CPU time of the runtime's threads |
//!
//! The measurements are those of a program that uses the library: the time from before a command is created until its
//! reply has been read, and the CPU time of the threads, which run both callers and connections. The requests are the
//! same as those of the engine. Each caller creates a command from the arguments of a request, which costs about as
//! much as in a program that builds its own arguments.

mod caller;
mod threads;

use crate::clock::now_ns;
use crate::engine::plan::{End, LibraryLoad, Pace, Plan};
use crate::engine::{Progress, Watch, allow_descriptors};
use crate::error::RunError;
use crate::load::Workload;
use crate::load::random::Random;
use crate::load::template::Places;
use crate::outcome::Outcome;
use brisk::{Client, Lanes, Request, Traits};
use brisk_dial::address::Address;
use caller::{Run, call};
use std::sync::Arc;
use std::time::Duration;
use threads::Threads;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Maximum number of callers of a run.
const CALLERS_MAX: usize = 1 << 17;
/// Open files in addition to the connections.
const DESCRIPTORS_RESERVED: usize = 64;
/// The interval between progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// Number of unmeasured requests per connection before the first measured one, so that all connections are open.
const GREETINGS: usize = 16;

/// Executes a plan with the client library.
///
/// # Errors
/// If the library does not support the plan; otherwise the first error that occurred.
pub(crate) fn run(
    plan: &Plan,
    load: LibraryLoad,
    watch: &mut dyn Watch,
) -> Result<Outcome, RunError> {
    refuse(plan)?;
    let names = names(&plan.workload, load.is_pool)?;
    allow_descriptors(plan.clients + DESCRIPTORS_RESERVED)?;
    let threads = Arc::new(Threads::new(plan.cpus.clone()));
    let runtime = runtime(plan.threads, &threads)?;
    let db = runtime.block_on(connect(plan, load))?;
    let callers = load.callers.clamp(1, CALLERS_MAX);
    let run = Arc::new(Run::new(plan, db, names, callers)?);
    let outcome = runtime.block_on(carry_out(&run, &threads, watch));
    run.stop();
    run.db.close();
    let mut outcome = outcome?;
    let kind = if load.is_pool { "pooled" } else { "shared" };
    let note = format!(
        "sent by the client library, {callers} callers on {} {kind} connections",
        plan.clients
    );
    outcome.notes.push(note);
    if !load.is_pool && plan.clients > 1 && names_one_key(&plan.workload) {
        let note = "all requests use the same key and so the same connection: set the number of keys with -r";
        outcome.notes.push(note.to_owned());
    }
    Ok(outcome)
}

/// Returns an error if only the engine supports the plan.
fn refuse(plan: &Plan) -> Result<(), RunError> {
    let refused = |what: &str| Err(RunError::Plan(format!("the client library {what}")));
    if plan.target.tls.is_some() {
        return refused("does not support --tls in this tool");
    }
    if !plan.keep_alive {
        return refused("reuses its connections, so -k 0 is not supported");
    }
    if plan.target.session.tracking {
        return refused("does not support --enable-tracking in this tool");
    }
    match plan.pace {
        Pace::Closed => Ok(()),
        Pace::Open { .. } => {
            refused("has callers that wait for their replies, so --rate is not supported")
        }
        Pace::Idle => refused("has callers that send requests, so -I is not supported"),
    }
}

/// The names of a workload's commands, and the library's information about them.
fn names(workload: &Workload, is_pool: bool) -> Result<Vec<(Vec<u8>, Traits)>, RunError> {
    let refused = |what: String| RunError::Plan(format!("the client library sends no {what}"));
    let mut names: Vec<(Vec<u8>, Traits)> = Vec::new();
    for command in &workload.commands {
        let (mut bytes, mut places) = (Vec::new(), Places::default());
        command.template.append(&mut bytes, &mut places, &mut Random::new(0));
        let mut words = caller::words(&bytes);
        let Some(name) = words.next() else {
            return Err(refused("inline requests (ping_inline)".to_owned()));
        };
        let text = String::from_utf8_lossy(name).into_owned();
        let mut traits = Request::named(&text).traits();
        if let Some(word) = words.next() {
            // Some names consist of two words.
            let two = Request::named(&format!("{text} {}", String::from_utf8_lossy(word))).traits();
            traits.blocks |= two.blocks;
            traits.binds |= two.binds;
        }
        if traits.binds {
            return Err(refused(format!("{text} over a connection that callers share")));
        }
        if traits.blocks && !is_pool {
            return Err(refused(format!("{text} over shared connections, only over a pool")));
        }
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.to_vec(), traits));
        }
    }
    Ok(names)
}

/// Reports whether the workload has no random parts that could be a key.
fn names_one_key(workload: &Workload) -> bool {
    workload.keyspace <= 1 && workload.commands.len() == 1
}

fn runtime(count: usize, threads: &Arc<Threads>) -> Result<Runtime, RunError> {
    let begun = Arc::clone(threads);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(count)
        .thread_name("caller")
        .on_thread_start(move || begun.begun())
        .enable_all()
        .build()
        .map_err(RunError::machine("starting a runtime"))
}

async fn connect(plan: &Plan, load: LibraryLoad) -> Result<Client, RunError> {
    let session = &plan.target.session;
    let place = match &plan.target.address {
        Address::Tcp { resolved, .. } => format!("redis://{resolved}"),
        Address::Unix(path) => format!("unix://{}", path.display()),
    };
    let lanes = match load.is_pool {
        true => Lanes::Pool(plan.clients),
        false => Lanes::Count(plan.clients),
    };
    let mut builder = Client::builder(&place)
        .lanes(lanes)
        .db(session.database)
        .protocol(if session.resp3 { 3 } else { 2 })
        .name("brisk-benchmark");
    if !load.has_timeouts {
        builder = builder.no_timeout();
    }
    if let Some(password) = &session.password {
        builder = builder.login(session.user.as_deref().unwrap_or("default"), password);
    }
    let db = builder.connect().await.map_err(RunError::Library)?;
    let mut greetings = JoinSet::new();
    for n in 0..plan.clients * GREETINGS {
        let db = db.clone();
        greetings.spawn(async move { db.raw::<()>("PING").key(n).await });
    }
    while let Some(done) = greetings.join_next().await {
        match done {
            // An error reply is accepted, because the user may not have permission for PING.
            Ok(Err(error)) if error.code().is_none() => return Err(RunError::Library(error)),
            _ => {}
        }
    }
    Ok(db)
}

/// Runs the callers until the end, and reports progress.
async fn carry_out(
    run: &Arc<Run>,
    threads: &Threads,
    watch: &mut dyn Watch,
) -> Result<Outcome, RunError> {
    let plan = &run.plan;
    // Called only when this thread runs, because it must record the CPU time used until then.
    let begin = |watch: &mut dyn Watch| {
        watch.begins();
        let (used, measure_ns) = (threads.used(), now_ns());
        let end_ns = match plan.end {
            End::After(time) => measure_ns.saturating_add(nanoseconds(time)),
            End::Requests(_) => u64::MAX,
        };
        run.begin(measure_ns, end_ns);
        (used, measure_ns)
    };
    let mut begun = plan.warmup.is_zero().then(|| begin(watch));
    let warm_ns = now_ns().saturating_add(nanoseconds(plan.warmup));
    let mut calls = JoinSet::new();
    for caller in 0..run.callers {
        calls.spawn(call(Arc::clone(run), caller));
    }
    let mut seen = Seen { ns: now_ns(), ..Seen::default() };
    loop {
        let left = Duration::from_nanos(warm_ns.saturating_sub(now_ns()));
        let pause = if begun.is_some() { PROGRESS_EVERY } else { PROGRESS_EVERY.min(left) };
        tokio::select! {
            done = calls.join_next() => match done {
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => return Err(error),
                Some(Err(_)) => return Err(RunError::Closed),
                None => break,
            },
            () = tokio::time::sleep(pause) => {
                if begun.is_none() && now_ns() >= warm_ns {
                    begun = Some(begin(watch));
                } else {
                    let measure_ns = begun.map_or(seen.ns, |(_, measure_ns)| measure_ns);
                    watch.progress(&progress(run, measure_ns, &mut seen));
                }
            }
        }
    }
    // All callers have returned, which happens only at the end.
    let (used, measure_ns) = begun.ok_or(RunError::Closed)?;
    let now = threads.used();
    watch.ends();
    let mut outcome = Outcome::new(plan)?;
    let last_ns = run.add_to(&mut outcome);
    outcome.seconds = last_ns.saturating_sub(measure_ns) as f64 / 1e9;
    let part = |ns: u64| ns as f64 / 1e9 / outcome.seconds.max(1e-9) / plan.threads as f64;
    let (cpu_ns, delay_ns) = (now.cpu_ns - used.cpu_ns, now.delay_ns - used.delay_ns);
    outcome.generator.cpu_seconds = cpu_ns as f64 / 1e9;
    outcome.generator.busy = part(cpu_ns + delay_ns).min(1.0);
    outcome.generator.delayed = part(delay_ns).min(1.0);
    outcome.judge_generator();
    Ok(outcome)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The values from which the last progress was computed.
#[derive(Clone, Copy, Default)]
struct Seen {
    ns: u64,
    operations: u64,
    latency_ns: u64,
}

fn progress(run: &Run, measure_ns: u64, seen: &mut Seen) -> Progress {
    let (operations, latency_ns) = run.tally();
    let now = Seen { ns: now_ns(), operations, latency_ns };
    let before = std::mem::replace(seen, now);
    let seconds = |from: u64| now.ns.saturating_sub(from) as f64 / 1e9;
    let mean_ms = |ns: u64, count: u64| ns as f64 / 1e6 / count.max(1) as f64;
    let new = operations - before.operations;
    Progress {
        connected: run.plan.clients as u64,
        waiting: run.db.pending() as u64,
        operations,
        seconds: seconds(measure_ns),
        rate_now: new as f64 / seconds(before.ns).max(1e-9),
        latency_now_ms: mean_ms(latency_ns - before.latency_ns, new),
        latency_ms: mean_ms(latency_ns, operations),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Material, suite};
    use crate::subject::local_target;

    fn refused(command: &str, is_pool: bool) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        let workload = Material::default().own(command.to_owned(), &words);
        names(&workload, is_pool)
            .map(drop)
            .map_err(|error| error.to_string())
            .err()
            .unwrap_or_default()
    }

    #[test]
    fn commands_unfit_for_shared_connections_are_rejected_before_anything_is_sent() {
        assert_eq!(refused("GET a", false), "");
        assert_eq!(refused("client id", false), "");
        assert!(refused("SELECT 1", true).contains("no SELECT over a connection"));
        assert!(refused("client reply off", true).contains("no client over a connection"));
        assert!(refused("blpop a 1", false).contains("only over a pool"));
        assert_eq!(refused("blpop a 1", true), "");
        let inline = Material::default().test(suite::test_named("ping_inline").unwrap());
        assert!(names(&inline, false).unwrap_err().to_string().contains("ping_inline"));
    }

    #[test]
    fn options_of_the_engine_alone_are_rejected() {
        let plan =
            || Plan::new(Material::default().own("a".to_owned(), &["GET", "a"]), local_target(1));
        assert!(refuse(&plan()).is_ok());
        let arrivals = crate::engine::plan::Arrivals::Even;
        for (plan, wanted) in [
            (Plan { keep_alive: false, ..plan() }, "-k 0"),
            (Plan { pace: Pace::Open { rate: 1.0, arrivals }, ..plan() }, "--rate"),
            (Plan { pace: Pace::Idle, ..plan() }, "-I"),
        ] {
            let error = refuse(&plan).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
