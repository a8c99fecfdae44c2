//! Startup and shutdown: from the command line to running workers, and back.
//!
//! | part | about |
//! |---|---|
//! | `judge` | lines of a configuration file that only the whole program can validate |
//! | `load` | loading the saved dataset while workers already accept clients |
//! | `service` | running in the background, under a service manager, with a pid file |

pub mod judge;
pub(crate) mod load;
pub mod service;

use crate::boot::service::Service;
use crate::commands;
use crate::doctor;
use crate::http::Http;
use crate::topology;
use crate::worker::Worker;
use brisk_acl::{self as acl, SetError, User, Vocabulary};
use brisk_config::args::{self, Invocation};
use brisk_config::choice::IoBackend;
use brisk_config::value::Text;
use brisk_config::{self, Config, FileError, Store, os_reason, system};
use brisk_engine::Keyspace;
use brisk_engine::keyspace::KeyHasher;
use brisk_engine::table::CommandTable;
use brisk_net::listeners::Listeners;
use brisk_net::tls::TlsSettings;
use brisk_node::core::Core;
use brisk_node::core::call::ServerHandler;
use brisk_node::core::conditions::Condition;
use brisk_node::core::process::Process;
use brisk_node::core::settings::Settings;
use brisk_node::core::shared::Shared;
use brisk_node::persistence::loading::steps::{
    self, LoadingProgress, LoadingSteps, StepsInbox, WorkerLoading,
};
use brisk_node::persistence::{ending, snapshot};
use brisk_observe::log::{Log, Role};
use brisk_observe::version::{BRISK_VERSION, REDIS_VERSION};
use brisk_reactor::unix_ms;
use brisk_reactor::{BackendChoice, Listener, Reactor};
use brisk_structures::alloc;
use brisk_structures::reclaim::Participant;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// How often the main thread checks whether the workers have ended.
const END_SLICE: Duration = Duration::from_millis(1);
/// How long clients wait for the dataset to be loaded. After that, they get LOADING errors.
const LOADING_UNSEEN: Duration = Duration::from_millis(100);

/// Runs the program.
pub fn main() -> ExitCode {
    brisk_reactor::ignore_idle_signals();
    brisk_observe::memory::spare_huge_pages();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let judge = judge::Judge::new();
    let load = |launch| brisk_config::load(&launch, &mut std::io::stdin(), &judge);
    let launch = match args::parse(&arguments) {
        Invocation::Run(launch) => launch,
        Invocation::Doctor { launch, as_json } => return doctor::run(load(launch), as_json),
        Invocation::Version => {
            say(&mut std::io::stdout(), &version_line());
            return ExitCode::SUCCESS;
        }
        Invocation::PrintConfig => {
            say(&mut std::io::stdout(), &brisk_config::template());
            return ExitCode::SUCCESS;
        }
        Invocation::Help => {
            say(&mut std::io::stderr(), args::USAGE);
            return ExitCode::FAILURE;
        }
        Invocation::Refuse(why) => {
            say(&mut std::io::stderr(), &why);
            return ExitCode::FAILURE;
        }
    };
    let store = match load(launch) {
        Ok(store) => store,
        Err(error) => {
            say(&mut std::io::stderr(), &error.to_string());
            return ExitCode::FAILURE;
        }
    };
    match run(store) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&mut std::io::stderr(), &error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The text of `--version`. Programs that start a server read the Redis version from `v=`. So the line has the same
/// fields as Redis's own line, with the version that INFO reports. Brisk's version comes last.
fn version_line() -> String {
    let (allocator, bits) = (brisk_node::core::memory::ALLOCATOR, usize::BITS);
    format!(
        "Redis server v={REDIS_VERSION} sha=00000000:0 malloc={allocator} bits={bits} \
         build=0000000000000000 brisk={BRISK_VERSION}"
    )
}

/// Writes a line before the log is open. Errors, for example because of a closed pipe, are ignored.
fn say(to: &mut dyn Write, text: &str) {
    let _ = writeln!(to, "{}", text.trim_end_matches('\n'));
}

/// Writes panics to the log as well. Otherwise a process without a terminal would exit without a message.
///
/// A panic is a bug. A release build aborts immediately, so that its supervisor can start another process. Otherwise
/// the server would continue without a worker or with a partly changed value. Unwinding is used only for the script
/// interpreter.
fn log_panics(log: &Arc<Log>) {
    let (log, before) = (Arc::clone(log), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        let trace = std::backtrace::Backtrace::force_capture();
        log.warning(format_args!("This is a defect of Brisk, please report it: {panic}\n{trace}"));
        if cfg!(not(debug_assertions)) {
            std::process::abort();
        }
    }));
}

/// Opens the log and runs a server until it shuts down. Returns the exit code.
fn run(mut store: Store) -> Result<u8, FileError> {
    let log = Arc::new(open_log(&store.current())?);
    let code = Service::begin(&mut store, &log).and_then(|service| match service {
        Some(service) => serve(store, service, &log),
        None => Ok(0),
    });
    Ok(code.unwrap_or_else(|why| {
        // Log the error, because a process in the background has no standard error.
        log.warning(format_args!("{why}"));
        1
    }))
}

/// Runs a server until it shuts down. Returns the exit code.
fn serve(mut store: Store, service: Service, log: &Arc<Log>) -> Result<u8, String> {
    let pid = std::process::id();
    log.notice(format_args!(
        "Brisk version={}, bits={}, pid={pid}, just started",
        env!("CARGO_PKG_VERSION"),
        usize::BITS
    ));
    match store.file() {
        Some(file) => log.notice(format_args!("Configuration loaded from {}", file.display())),
        None => log.warning(format_args!(
            "Warning: no config file specified, using the default config. In order to specify a \
             config file use brisk-server /path/to/brisk.conf"
        )),
    }
    log.set_role(Role::Primary);
    if !reserve_files(&mut store, log) {
        return Ok(1);
    }
    let config = store.current();
    alloc::purge_in_background(config.process.jemalloc_bg_thread);
    let workers = config.process.threads.count();
    log_panics(log);
    let logfile = &config.process.logfile;
    let path = (!logfile.is_empty()).then(|| config.path_in_dir(logfile));
    // Resolve the path now, because the working directory may change.
    let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
    brisk_reactor::set_crash_reports(config.process.crash_log_enabled);
    brisk_reactor::report_crashes(path.as_deref());
    let shared = share(log, store, workers, service.is_supervised)?;
    create_users(shared, &config)?;
    match TlsSettings::prepare(&config, log) {
        Ok(None) => {}
        Ok(Some(settings)) => shared.network.set_tls(settings),
        Err(_) => {
            log.warning(format_args!("Failed to configure TLS. Check logs for more info."));
            return Ok(1);
        }
    }
    let Some(listeners) = brisk_net::listeners::open(&config, workers, log) else { return Ok(1) };
    let Some(for_http) = brisk_net::listeners::open_http(&config, log) else { return Ok(1) };
    shared.network.note_listeners(listeners.iter().flatten());
    let topology = topology::start(shared, &config)?;
    // The role in the topology document is now part of the settings.
    let config = shared.config();
    service.write_pid_file(log);
    let port = if config.network.port > 0 { config.network.port } else { config.tls.port };
    let mode = if config.cluster.cluster_enabled { "cluster" } else { "standalone" };
    log.notice(format_args!("Running mode={mode}, port={port}, workers={workers}, PID: {pid}."));
    for warning in system::warnings(&config) {
        log.warning(format_args!("{warning}"));
    }
    shared
        .threads
        .start(workers, &shared.keyspace, &shared.mailboxes)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    watch_signals(shared, log)?;
    log.notice(format_args!("Server initialized"));
    let http = start_http(shared, &config, for_http)?;
    let (steps, inbox) = steps::pair(shared);
    let threads = start_workers(shared, &config, listeners, (inbox, log))?;
    let service = Arc::new(service);
    load_in_background(shared, &service, steps)?;
    let code = shared.process.shutdown.wait();
    service.stopping(log);
    shared.mailboxes.wake_all();
    join_workers(shared, threads);
    if let Some(topology) = topology {
        topology.stop();
    }
    shared.network.close();
    if let Some(http) = http {
        http.stop();
    }
    service.remove_pid_file(log);
    for path in [&config.network.unixsocket, &config.network.admin_unixsocket] {
        if !path.is_empty() {
            let _ = std::fs::remove_file(path.as_path());
        }
    }
    log.warning(format_args!("Brisk is now ready to exit, bye bye..."));
    Ok(code)
}

/// Waits for the workers to end. Workers that are quiesced permanently do not end.
fn join_workers(shared: &Shared, threads: Vec<std::thread::JoinHandle<()>>) {
    for thread in threads {
        // After a final snapshot, the workers stay quiesced. This may begin during the wait.
        while !thread.is_finished() && !shared.quiesce.is_for_good() {
            std::thread::park_timeout(END_SLICE);
        }
        if thread.is_finished() {
            // A worker that panicked has reported it on stderr.
            let _ = thread.join();
        }
    }
}

/// Starts the HTTP server if it is configured. This happens before the dataset is loaded, so that
/// the probes can report the loading.
fn start_http(
    shared: &'static Shared,
    config: &Config,
    listeners: Vec<Listener>,
) -> Result<Option<Http>, String> {
    if listeners.is_empty() {
        return Ok(None);
    }
    Http::start(shared, listeners, backend_choice(config)).map(Some)
}

fn backend_choice(config: &Config) -> BackendChoice {
    match config.network.io_backend {
        IoBackend::Auto => BackendChoice::BatchedEpoll,
        IoBackend::Epoll => BackendChoice::Epoll,
        IoBackend::IoUring => BackendChoice::Uring,
    }
}

/// Loads the dataset on a separate thread, then reports to the service manager that the server is ready.
fn load_in_background(
    shared: &'static Shared,
    service: &Arc<Service>,
    steps: LoadingSteps,
) -> Result<(), String> {
    let service = Arc::clone(service);
    let load = move || match load::load(shared, &steps) {
        Ok(()) => {
            shared.log.notice(format_args!("Ready to accept connections"));
            service.ready(&shared.log);
        }
        Err(why) => {
            // Log the error, because a process in the background has no standard error.
            shared.log.warning(format_args!("{why}"));
            shared.process.shutdown.request(1);
        }
    };
    let thread = std::thread::Builder::new().name("brisk-load".to_owned()).spawn(load);
    thread.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Raises the limit on open files for the clients, or lowers the number of clients. Returns false if not even one
/// client can be served.
fn reserve_files(store: &mut Store, log: &Log) -> bool {
    let config = store.current();
    let files = system::reserve_open_files(config.clients.maxclients, system::reserved(&config));
    for note in &files.notes {
        if files.raised {
            log.notice(format_args!("{note}"));
        } else {
            log.warning(format_args!("{note}"));
        }
    }
    store.adopt(|config| config.clients.maxclients = files.maxclients);
    files.maxclients > 0
}

fn open_log(config: &Config) -> Result<Log, FileError> {
    let process = &config.process;
    if process.logfile.is_empty() {
        return Ok(Log::to_stdout(process.loglevel));
    }
    let path = config.path_in_dir(&process.logfile);
    Log::to_file(process.loglevel, &path)
        .map_err(|error| FileError::Log { reason: os_reason(&error), path })
}

/// Creates the state that the workers share. It lives as long as the process.
fn share(
    log: &Arc<Log>,
    store: Store,
    workers: usize,
    is_supervised: bool,
) -> Result<&'static Shared, String> {
    let renames = store.current().security.renamed_commands();
    let (table, handlers) = commands::table(&renames)?;
    let table = (&*Box::leak(Box::new(table)), &*handlers.leak());
    let hasher = KeyHasher::seeded(random_u64()?, random_u64()?);
    let ids = (random_id()?, random_id()?);
    Ok(assemble(log, store, workers, is_supervised, table, (hasher, ids)))
}

/// Like [`share`], but with the given command table, random hash, run id, and replication id.
pub(crate) fn assemble(
    log: &Arc<Log>,
    store: Store,
    workers: usize,
    is_supervised: bool,
    table: (&'static CommandTable, &'static [ServerHandler]),
    (hasher, (run_id, history_id)): (KeyHasher, (String, String)),
) -> &'static Shared {
    let config = store.current();
    let databases = config.process.databases.clamp(1, i64::from(i32::MAX)) as u32;
    let keyspace = Keyspace::new(databases, hasher);
    let has_admin_lane = config.network.has_admin_lane();
    let workers = workers + usize::from(has_admin_lane);
    let process = Process::new(run_id, unix_ms(), has_admin_lane, is_supervised);
    let settings = Settings::new((*config).clone(), store);
    let log = Arc::clone(log);
    let shared = Shared::new(log, settings, table, keyspace, workers, process, history_id);
    shared.apply_settings(&config);
    shared.update_stale();
    shared.update_few_replicas(&config.replication);
    shared.keyspace.journal().set_relayed(config.replication.replicaof.is_some());
    shared.conditions.set(Condition::Loading, true);
    Box::leak(Box::new(shared))
}

/// Creates the configured users. No session exists yet.
fn create_users(shared: &Shared, config: &Config) -> Result<(), String> {
    let security = &config.security;
    let (accounts, clients) = (&shared.accounts, &shared.clients);
    accounts.set_default_password(security.requirepass.as_bytes(), clients);
    if !security.aclfile.is_empty() && !security.users.is_empty() {
        return Err("Configuring Brisk with users defined in the configuration file and at the \
                    same setting an ACL file path is invalid. This setup is very likely to lead \
                    to configuration errors and security holes, please define either an ACL file \
                    or declare users directly in your configuration file, but not both."
            .to_owned());
    }
    let vocabulary = shared.vocabulary();
    for words in &security.users {
        let Some((name, rules)) = words.split_first() else { continue };
        let user = configured_user(name, rules, vocabulary)?;
        if !user.is_enabled() {
            shared.log.notice(format_args!(
                "The user '{}' is disabled (there is no 'on' modifier in the user description). \
                 Make sure this is not a configuration error.",
                name.to_string_lossy()
            ));
        }
        accounts.set(name.as_bytes(), user, clients);
    }
    if !security.aclfile.is_empty() {
        let (name, path) = (security.aclfile.as_bytes(), config.path_in_dir(&security.aclfile));
        accounts.load(name, &path, vocabulary, clients).map_err(|errors| {
            let errors = String::from_utf8_lossy(&errors).into_owned();
            format!("Aborting Brisk startup because of ACL errors: {errors}")
        })?;
    }
    Ok(())
}

/// Creates the user of a `user` line.
fn configured_user(
    name: &Text,
    rules: &[Text],
    vocabulary: Vocabulary<'_>,
) -> Result<User, String> {
    if acl::has_spaces(name.as_bytes()) {
        return Err("Spaces not allowed in ACL usernames".to_owned());
    }
    let rules: Vec<&[u8]> = rules.iter().map(Text::as_bytes).collect();
    User::new(vocabulary.channels).changed(&rules, vocabulary).map_err(|error| match error {
        SetError::Unmatched(rule) => format!(
            "Unmatched parenthesis in acl selector starting at '{}'.",
            String::from_utf8_lossy(&rule)
        ),
        SetError::Rule(rule, why) => format!(
            "Error loading ACL rule '{}' for the user named '{}': {why}",
            String::from_utf8_lossy(&rule),
            name.to_string_lossy()
        ),
    })
}

/// Returns 40 random hexadecimal digits.
fn random_id() -> Result<String, String> {
    let mut digits = String::new();
    for _ in 0..5 {
        digits.push_str(&format!("{:08x}", random_u64()? as u32));
    }
    Ok(digits)
}

fn random_u64() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("the system gives no random bytes: {error}"))
}

fn start_workers(
    shared: &'static Shared,
    config: &Config,
    listeners: Vec<Listeners>,
    (inbox, log): (StepsInbox, &Arc<Log>),
) -> Result<Vec<std::thread::JoinHandle<()>>, String> {
    let backend = backend_choice(config);
    let mut threads = Vec::new();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let mut inbox = Some(inbox);
    // No client is served until the baseline memory usage of the server has been measured.
    let gate = Arc::new(Barrier::new(listeners.len() + 1));
    for (id, own) in listeners.into_iter().enumerate() {
        let (ready, seed) = (ready.clone(), random_u64()?);
        // The first worker takes the inbox.
        let inbox = inbox.take();
        let (log, gate) = (Arc::clone(log), Arc::clone(&gate));
        let name = if id < shared.serving_workers() {
            format!("brisk-worker-{id}")
        } else {
            "brisk-admin".to_owned()
        };
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            match set_up(shared, id, own, backend, seed) {
                Ok((mut worker, reactor)) => {
                    let _ = ready.send(Ok(()));
                    gate.wait();
                    if let Some(inbox) = inbox {
                        worker.begin_loading(WorkerLoading::new(inbox));
                    }
                    wait_for_data(&mut worker);
                    work(shared, worker, reactor, &log);
                }
                Err(why) => {
                    let _ = ready.send(Err(why));
                }
            }
        });
        threads.push(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
    }
    for _ in 0..threads.len() {
        is_ready.recv().map_err(|_| "a worker exited immediately".to_owned())??;
    }
    shared.observe.metrics.startup_memory.store(brisk_observe::memory::used(), Ordering::Relaxed);
    gate.wait();
    Ok(threads)
}

/// Waits briefly for the dataset, or helps to load it. If the dataset is loaded quickly, clients get no LOADING errors.
fn wait_for_data(worker: &mut Worker) {
    let (shared, id) = (worker.core.shared, worker.core.id);
    let until = Instant::now() + LOADING_UNSEEN;
    while shared.conditions.is_loading()
        && !shared.process.shutdown.is_requested()
        && Instant::now() < until
    {
        shared.quiesce.enter(id);
        let progress = worker.advance_loading();
        shared.quiesce.leave(id);
        if progress != LoadingProgress::More {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}

fn set_up(
    shared: &'static Shared,
    id: usize,
    listeners: Listeners,
    backend: BackendChoice,
    seed: u64,
) -> Result<(Worker, Reactor), String> {
    let mut reactor = Reactor::new(&brisk_reactor::ReactorConfig { backend })
        .map_err(|error| format!("no event loop: {error}"))?;
    shared.process.set_backend(reactor.backend_name());
    shared.mailboxes.of(id).connect(reactor.waker());
    let participant = Participant::register().ok_or("too many threads")?;
    let core = Core::new(shared, id, seed);
    brisk_engine::keyspace::on_slot_wait(move || {
        shared.quiesce.checkpoint(id);
    });
    brisk_engine::keyspace::postpone_writes_while(|| shared.conditions.has(Condition::Busy));
    let mut purposes = Vec::new();
    for (purpose, listener) in listeners {
        let index = reactor.listen(listener).map_err(|error| format!("cannot listen: {error}"))?;
        debug_assert_eq!(index, purposes.len());
        purposes.push(purpose);
    }
    Ok((Worker::new(core, participant, purposes), reactor))
}

/// Runs the worker's loop.
fn work(shared: &Shared, mut worker: Worker, mut reactor: Reactor, log: &Log) {
    let id = worker.core.id;
    shared.quiesce.enter(id);
    loop {
        let wait = worker.between_rounds(reactor.io());
        if worker.listeners.has_changes() {
            crate::worker::listening::take_over(&mut worker, &mut reactor, log);
        }
        if shared.process.shutdown.is_requested() {
            break;
        }
        if let Err(error) = reactor.poll(&mut worker, Some(wait)) {
            log.warning(format_args!("worker {id}: the event loop failed: {error}; shutting down"));
            shared.process.shutdown.request(1);
            break;
        }
    }
    shared.quiesce.leave(id);
    // Leave the connections open until the process exits, because a client that sees its connection close may start
    // another server on the same port.
    reactor.abandon();
}

/// On SIGALRM, logs what each thread is doing, without stopping any thread.
fn log_threads(log: &Log) {
    log.warning(format_args!("Received SIGALRM: state of the threads"));
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads {
        let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let (name, stat) = (read("comm"), read("stat"));
        // Parse after the name, which may contain any character.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, mut times) = (fields.next().unwrap_or("?"), fields.skip(10));
        let (user, system) = (times.next().unwrap_or("?"), times.next().unwrap_or("?"));
        log.warning(format_args!(
            "{} {}: state {state}, {user} ticks in user mode, {system} in the kernel",
            thread.file_name().display(),
            name.trim_end()
        ));
    }
}

fn watch_signals(shared: &'static Shared, log: &Arc<Log>) -> Result<(), String> {
    use signal_hook::consts::{SIGALRM, SIGINT, SIGTERM};
    let failed = |error| format!("cannot handle signals: {error}");
    let mut signals =
        signal_hook::iterator::Signals::new([SIGALRM, SIGINT, SIGTERM]).map_err(failed)?;
    let log = Arc::clone(log);
    std::thread::Builder::new()
        .name("brisk-signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                if signal == SIGALRM {
                    log_threads(&log);
                    continue;
                }
                let (config, shutdown) = (shared.config(), &shared.process.shutdown);
                // If SHUTDOWN has begun, the first signal does not count as a repeated request.
                let is_ending = shutdown.is_requested() || shutdown.scheduled().is_some();
                if signal == SIGINT && is_ending {
                    log.warning(format_args!("You insist... exiting now."));
                    snapshot::discard_unfinished(&config);
                    std::process::exit(1);
                }
                let (name, how) = if signal == SIGINT {
                    ("SIGINT", config.process.shutdown_on_sigint)
                } else {
                    ("SIGTERM", config.process.shutdown_on_sigterm)
                };
                if shared.conditions.is_loading() {
                    log.warning(format_args!("Received {name} during loading, exiting now."));
                    std::process::exit(0);
                }
                log.warning(format_args!("Received {name} scheduling shutdown..."));
                if shutdown.is_planned() || ending::concerns_workers(shared, how) {
                    shutdown.schedule(how);
                } else {
                    log.notice(format_args!("User requested shutdown..."));
                    shutdown.request(0);
                }
            }
        })
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(())
}
