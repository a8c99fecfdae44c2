//! Compiling, running, suspending and stopping scripts.
//!
//! All scripts of an interpreter run in one coroutine. Its body is `runner` of the prelude: it
//! waits for a script, is resumed with one, and yields when the script has ended. Stopping a script
//! ends the coroutine as well; the next script gets a new one.
//!
//! The coroutine and the VM run on their own stack. An interrupt suspends the script by switching
//! away from that stack. Therefore a script can be suspended at any point, even in a function that
//! `table.sort` calls.

use crate::api;
use crate::brief;
use crate::eval_words::{self, EvalWords, table_of};
use crate::header::ScriptFlags;
use crate::host::{Host, Pace, Words};
use crate::libraries::{self, c_string};
use crate::lua51;
use crate::random::Random;
use crate::room::{self, Bounded, Collector, MEMORY_BYTES_MAX, Unbounded};
use crate::texts::Texts;
use crate::to_reply::{self, Allowance, Conversion, error_text};
use brisk_resp::Protocol;
use brisk_resp::reply::encode;
use brisk_structures::fiber::{Fiber, Pauser, Step};
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{BString, Function, Lua, LuaOptions, Result, StdLib, Table, Thread, Value, VmState};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// If more bytes than this are in use after a script, compiled scripts should be discarded.
const FULL_BYTES: usize = MEMORY_BYTES_MAX / 4;
/// Number of steps of Rust code that works for a script between two calls of the host. Luau counts
/// the steps of the script itself (calls, returns, loop iterations): `LUA51_STEPS` in
/// `.cargo/config.toml`.
const STEPS_PER_HOST_CALL: u32 = 64;
/// Number of bytes that such code writes between two calls of the host, because long strings take
/// much work in few steps.
const BYTES_PER_HOST_CALL: usize = 256 * 1024;
/// Maximum numbers of values and of bytes of a reply that are written without yielding.
const VALUES_AT_ONCE: u32 = 10_000;
const BYTES_AT_ONCE: usize = 64 * 1024;
/// Size of the stack of scripts, which is as large as a thread's stack. The VM counts the calls
/// that need stack.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// Maximum length of an error's text in bytes.
const ERROR_BYTES_MAX: usize = 4096;

/// The prefix of each EVAL script.
const PARAMETERS: &[u8] = b"local KEYS,ARGV=... ";
/// The prefix of scripts that may assign to KEYS and ARGV. It makes the compiler treat them as
/// variables. Otherwise, it would resolve them only once.
const GLOBALS: &[u8] = b"if false then KEYS,ARGV=nil end ";
/// The chunks that do not belong to the script: those of the prelude and of the libraries.
pub(crate) const OWN_CHUNKS: [&str; 2] = ["brisk", "libraries"];
const PRELUDE: &str = include_str!("../prelude.luau");

/// The version information that scripts can read.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The version of Redis whose behavior this server provides. `redis_number` is the same version
    /// as `0x00MMmmpp`.
    pub redis: &'static str,
    pub redis_number: u32,
    pub name: &'static str,
    pub own: &'static str,
    pub own_number: u32,
    /// The error texts.
    pub texts: &'static Texts,
}

/// The state that an interpreter shares with the functions it gives to scripts.
pub(crate) struct State {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) texts: &'static Texts,
    pauser: Rc<Pauser>,
    collector: Collector,
    /// True if the script must not run another step.
    pub(crate) stop: Cell<bool>,
    /// Where the script was first stopped, unless that is unknown.
    stopped_at: RefCell<Option<Place>>,
    steps: Cell<u32>,
    /// True at the start of a script: the next interrupt does not call the host. Luau's step count
    /// is still that of the previous script, and may reach its limit immediately.
    begins: Cell<bool>,
    /// The protocol that the script chose for replies.
    pub(crate) protocol: Cell<Protocol>,
    pub(crate) random: Cell<Random>,
    /// The buffer for a command's arguments, kept for the next command.
    pub(crate) words: RefCell<Words>,
    pub(crate) reply: RefCell<Vec<u8>>,
}

impl State {
    /// Capacity in bytes above which the buffer for replies is freed.
    pub(crate) const REPLY_KEPT_MAX: usize = 64 * 1024;

    /// Called at every step of Rust code that works for the script.
    fn step(&self, lua: &Lua) -> Result<()> {
        if self.stop.get() {
            return Err(stopped());
        }
        let steps = self.steps.get() + 1;
        if steps < STEPS_PER_HOST_CALL {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.begins.set(false);
        self.interrupted(lua).map(|_| ())
    }

    /// Called by the VM once every few steps of the script, and at every step after the script was
    /// stopped.
    fn interrupted(&self, lua: &Lua) -> Result<VmState> {
        if self.stop.get() {
            return Err(stopped());
        }
        if self.begins.take() {
            return Ok(VmState::Continue);
        }
        self.collector.make_room(lua);
        room::bound(lua)?;
        self.follow_pace().inspect_err(|_| self.note_place(lua))?;
        Ok(VmState::Continue)
    }

    /// Records the position of a stopped script.
    #[cold]
    pub(crate) fn note_place(&self, lua: &Lua) {
        /// Maximum number of frames of Brisk's own functions between a script and the host: the
        /// number of calls of these functions that can be nested.
        const OWN_MAX: usize = 200;
        let mut place = self.stopped_at.borrow_mut();
        for level in 0..OWN_MAX {
            if place.is_some() {
                return;
            }
            let at = lua.inspect_stack(level, |frame| {
                let source = frame.source().short_src?.into_owned();
                let line = i64::try_from(frame.current_line()?).ok()?;
                let is_own = OWN_CHUNKS.contains(&source.as_str());
                (!is_own).then(|| (format!("@{source}").into_bytes(), line))
            });
            *place = at.flatten();
        }
    }

    /// Calls the host, and suspends or stops the script if the host requests it.
    fn follow_pace(&self) -> Result<()> {
        match self.host.pace() {
            Pace::GoOn => Ok(()),
            Pace::Suspend => self.pause().map(|_| ()),
            Pace::Stop => {
                self.stop.set(true);
                Err(stopped())
            }
        }
    }

    /// Suspends the script. Returns false if no script runs, because a library is being loaded.
    /// Returns an error if the script must not continue.
    fn pause(&self) -> Result<bool> {
        let paused = self.pauser.pause();
        if self.stop.get() { Err(stopped()) } else { Ok(paused) }
    }

    /// Suspends the script before it retries a command. The script may be killed while it is
    /// suspended, and takes no step that would detect that.
    pub(crate) fn wait(&self) -> Result<bool> {
        let paused = self.pause()?;
        self.follow_pace()?;
        Ok(paused)
    }
}

/// Lets long-running Rust code that works for a script yield as the script itself does.
pub(crate) struct Watch {
    lua: Lua,
    /// Absent in an interpreter without a host.
    state: Option<Rc<State>>,
    /// The length of the output when its growth last caused a call of the host.
    called_at: Cell<usize>,
}

impl Watch {
    pub(crate) fn of(lua: &Lua) -> Watch {
        let state = lua.app_data_ref::<Rc<State>>().map(|state| Rc::clone(&state));
        Watch { lua: lua.clone(), state, called_at: Cell::new(0) }
    }

    /// Called before each step, with the length that the output will then have. Returns an error if
    /// the script must not take another step.
    #[inline]
    pub(crate) fn step(&self, written: usize) -> Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        if written.saturating_sub(self.called_at.get()) >= BYTES_PER_HOST_CALL {
            self.called_at.set(written);
            state.steps.set(STEPS_PER_HOST_CALL);
        }
        state.step(&self.lua)
    }
}

/// The error that ends a stopped script. It is never shown.
pub(crate) fn stopped() -> mlua::Error {
    mlua::Error::runtime("script stopped")
}

/// The values that the prelude's `serve` yields at the end of a script: one of the numbers below,
/// and the string that the script returned, or else the value.
type Yielded = (i32, Option<BString>, Value);

/// A job that runs on the stack of scripts.
enum Job {
    /// Runs a script with KEYS and ARGV, unless they are EVAL's.
    Script { function: Function, words: Option<(Table, Table)> },
    /// Writes the reply for a value if that reply is long.
    Reply { value: Value, is_list: bool, conversion: Conversion },
}

/// The result of a job.
enum Made {
    Yielded(Result<Yielded>),
    Reply(Result<Vec<u8>>),
}

impl Job {
    fn run(self, thread: &Thread) -> Made {
        match self {
            Job::Script { function, words: None } => {
                Made::Yielded(thread.resume((&function, Bounded)))
            }
            Job::Script { function, words: Some((keys, argv)) } => {
                Made::Yielded(thread.resume((&function, keys, argv, Bounded)))
            }
            Job::Reply { value, is_list, conversion } => {
                let mut out = Vec::new();
                let written = to_reply::encode(&value, is_list, &conversion, &mut out);
                Made::Reply(written.map(|()| out))
            }
        }
    }
}

const FAILED: i32 = 1;
const ERROR_REPLY: i32 = 2;
const STATUS_REPLY: i32 = 3;
/// A table without a field that has a special meaning.
const LIST: i32 = 4;

/// A compiled script or function.
#[derive(Debug, Clone)]
pub struct Script {
    function: Function,
    /// True if it ends before the host would be called for the first time.
    is_brief: bool,
}

/// A function that a library registered.
#[derive(Debug)]
pub struct Registered {
    pub name: Vec<u8>,
    pub description: Option<Vec<u8>>,
    pub flags: ScriptFlags,
    pub function: Script,
}

/// The reason why a script failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The whole text, including the error code.
    pub text: Vec<u8>,
    pub at: Option<Place>,
    /// True if this is the error of a command, which was counted when the command ran.
    pub counted: bool,
}

/// `@user_script` or a similar chunk name, and the line.
pub type Place = (Vec<u8>, i64);

/// The result of a run of a script.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The script's reply is in the buffer.
    Replied,
    /// The script returned an error reply, or failed.
    Failed(Failure),
    /// The host stopped the script, at this position if the position is known.
    Stopped(Option<Place>),
    /// The script is suspended; [`Interpreter::go_on`] resumes it.
    Suspended,
}

/// An interpreter for scripts.
pub struct Interpreter {
    lua: Lua,
    runner: Function,
    load_library: Function,
    /// The globals of libraries.
    library_environment: Table,
    /// The coroutine that scripts run in, which uses the stack below. Absent until the first
    /// script.
    thread: Rc<RefCell<Option<Thread>>>,
    fiber: Fiber<Job, Made>,
    eval_words: EvalWords,
    state: Rc<State>,
    compiler: Compiler,
    /// True if much memory is in use even after a garbage collection.
    full: bool,
    /// True if the VM calls the interrupt at every step.
    watched: bool,
}

impl Interpreter {
    /// Creates an interpreter whose scripts act through `host`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(host: Rc<dyn Host>, version: &Version) -> Result<Interpreter> {
        let std = StdLib::COROUTINE
            | StdLib::TABLE
            | StdLib::STRING
            | StdLib::MATH
            | StdLib::BIT
            | StdLib::BUFFER
            | StdLib::OS
            | StdLib::DEBUG;
        let lua = Lua::new_with(std, LuaOptions::new())?;
        lua.set_memory_limit(MEMORY_BYTES_MAX)?;
        let thread = Rc::new(RefCell::new(None));
        let within: Rc<RefCell<Option<Thread>>> = Rc::clone(&thread);
        let fiber = Fiber::new(STACK_BYTES, |_| {
            move |job: Job| match &*within.borrow() {
                Some(thread) => job.run(thread),
                None => Made::Yielded(Err(stopped())),
            }
        })?;
        let state = Rc::new(State {
            host,
            texts: version.texts,
            pauser: Rc::clone(fiber.pauser()),
            collector: Collector::new(),
            stop: Cell::new(false),
            stopped_at: RefCell::default(),
            steps: Cell::new(0),
            begins: Cell::new(true),
            protocol: Cell::new(Protocol::Resp2),
            random: Cell::default(),
            words: RefCell::default(),
            reply: RefCell::default(),
        });
        lua.set_app_data(Rc::clone(&state));
        libraries::install_all(&lua)?;
        let host = api::host_table(&lua, &state, version)?;
        let prelude = lua.load(PRELUDE).set_name("@brisk").set_mode(ChunkMode::Text);
        let (runner, load_library, library_environment, renew): (_, _, _, Function) =
            prelude.call(host)?;
        lua.globals().set_safeenv(true);
        thread.replace(Some(waiting(&lua, &runner)?));
        let compiler = Compiler::new()
            .set_optimization_level(1)
            .set_debug_level(1)
            .set_mutable_globals(["KEYS", "ARGV"]);
        Ok(Interpreter {
            lua,
            runner,
            load_library,
            library_environment,
            thread,
            fiber,
            eval_words: EvalWords::new(renew)?,
            state,
            compiler,
            full: false,
            watched: false,
        })
    }

    /// Returns the memory that scripts use, in bytes.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Compiles a script without its header of `header_len` bytes. KEYS and ARGV are its
    /// parameters, which costs less than looking them up. They are also globals. For a text that
    /// may assign to them, they are only globals.
    ///
    /// # Errors
    /// The compiler's error message, with the line.
    pub fn compile(
        &mut self,
        source: &[u8],
        header_len: usize,
    ) -> std::result::Result<Script, String> {
        if std::mem::take(&mut self.full) {
            self.collect();
        }
        let translated = lua51::to_luau(&source[header_len..]);
        let text = translated.as_ref();
        let globals = self.lua.globals();
        // A script gets an error for an undefined name.
        let is_global =
            |name: &[u8]| globals.get(BString::from(name)).is_ok_and(|v: Value| !v.is_nil());
        let (parameters, is_brief) = if eval_words::may_assign(text) {
            (GLOBALS, false)
        } else {
            (PARAMETERS, brief::is_brief(text, is_global))
        };
        let source = [parameters, text].concat();
        let mut function = self.compile_named(source, "@user_script", None)?;
        // In Redis, a script's `...` is empty.
        if text.windows(3).any(|word| word == b"...") {
            let source =
                [parameters, b"return (function(...) ".as_slice(), text, b"\nend)()".as_slice()]
                    .concat();
            function = self.compile_named(source, "@user_script", None).unwrap_or(function);
        }
        Ok(Script { function, is_brief })
    }

    fn compile_named(
        &self,
        source: Vec<u8>,
        name: &str,
        environment: Option<&Table>,
    ) -> std::result::Result<Function, String> {
        let mut chunk = self.lua.load(source).set_name(name).set_mode(ChunkMode::Text);
        if let Some(environment) = environment {
            chunk = chunk.set_environment(environment.clone());
        }
        let compiled = chunk.set_compiler(self.compiler.clone()).into_function();
        compiled.map_err(|error| compile_error(&error))
    }

    /// Compiles a library, runs it, and returns the functions that it registered.
    ///
    /// # Errors
    /// A text for the client, without an error code.
    pub fn load_library(
        &mut self,
        code: &[u8],
        header_len: usize,
    ) -> std::result::Result<Vec<Registered>, Vec<u8>> {
        let library = self
            .compile_named(
                lua51::to_luau(&code[header_len..]).into_owned(),
                "@user_function",
                Some(&self.library_environment),
            )
            .map_err(|text| format!("Error compiling function: {text}").into_bytes())?;
        self.begin();
        self.watch(true);
        self.state.host.library_begins();
        let failed = |text: &[u8]| [b"Error registering functions: ", text].concat();
        let loaded: Result<(bool, Value)> = self.load_library.call(library);
        let result = match loaded {
            _ if self.state.stop.get() => Err(failed(b"ERR FUNCTION LOAD timeout")),
            Ok((true, Value::Table(list))) => {
                registered(&list).map_err(|error| failed(error.to_string().as_bytes()))
            }
            Ok((_, value)) => Err(failed(&failure(&value).text)),
            Err(error) => Err(failed(first_line(&error).as_bytes())),
        };
        if let Err(text) = &result {
            self.note_failure(text);
        }
        self.settle();
        result
    }

    /// Runs a script from its start. With `is_eval`, KEYS and ARGV are globals. Appends the reply
    /// to `out`, for a client that speaks `protocol`.
    pub fn run<'a>(
        &mut self,
        script: &Script,
        is_eval: bool,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        argv: impl ExactSizeIterator<Item = &'a [u8]>,
        protocol: Protocol,
        out: &mut Vec<u8>,
    ) -> Ended {
        self.begin();
        self.watch(!script.is_brief);
        let step = match self.hand_over(script, is_eval, keys, argv) {
            Ok(job) => self.fiber.run(job),
            Err(error) => Step::Done(Made::Yielded(Err(error))),
        };
        if matches!(step, Step::Done(Made::Yielded(Err(_)))) {
            // The script may have failed before its last argument was passed.
            let _ = room::bound(&self.lua);
        }
        self.ended(step, protocol, out)
    }

    /// Resumes a suspended script.
    pub fn go_on(&mut self, protocol: Protocol, out: &mut Vec<u8>) -> Ended {
        let step = self.fiber.go_on();
        self.ended(step, protocol, out)
    }

    /// Ends a suspended script.
    pub fn abandon(&mut self) {
        self.stop();
        self.settle();
    }

    fn stop(&mut self) {
        self.state.stop.set(true);
        // Every further step of the script is an error, so it ends.
        while self.fiber.is_paused() {
            drop(self.fiber.go_on());
        }
    }

    /// Enables or disables the interrupt. The setting stays until the next call.
    fn watch(&mut self, watched: bool) {
        if self.watched == watched {
            return;
        }
        self.watched = watched;
        if watched {
            let state = Rc::clone(&self.state);
            self.lua.set_interrupt(move |lua| state.interrupted(lua));
        } else {
            self.lua.remove_interrupt();
        }
    }

    fn begin(&mut self) {
        // The reply of the previous script was still in use when that script was settled.
        let state = &self.state;
        if state.collector.is_due(&self.lua) {
            state.collector.collect(&self.lua);
        }
        state.stop.set(false);
        state.stopped_at.take();
        state.steps.set(0);
        state.begins.set(true);
        state.protocol.set(Protocol::Resp2);
    }

    /// Passes a script's arguments to the VM. The memory limit is suspended until the VM has all of
    /// them.
    fn hand_over<'a>(
        &mut self,
        script: &Script,
        is_eval: bool,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        argv: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Job> {
        let unbounded = Unbounded::begin(&self.lua)?;
        unbounded.leave_to_bounded();
        let words = if is_eval {
            self.eval_words.fill(keys, argv)?;
            None
        } else {
            Some((table_of(&self.lua, keys)?, table_of(&self.lua, argv)?))
        };
        Ok(Job::Script { function: script.function.clone(), words })
    }

    fn ended(&mut self, step: Step<Made>, protocol: Protocol, out: &mut Vec<u8>) -> Ended {
        let mut made = match step {
            Step::Paused => return Ended::Suspended,
            Step::Done(made) => made,
        };
        if let Made::Yielded(Ok((kind, None, value))) = &made
            && !matches!(*kind, FAILED | ERROR_REPLY | STATUS_REPLY)
            && !self.state.stop.get()
        {
            match self.reply(value, *kind == LIST, protocol, out) {
                Step::Paused => return Ended::Suspended,
                Step::Done(reply) => made = reply,
            }
        }
        let has_failed = matches!(made, Made::Yielded(Err(_)));
        let ended = match made {
            _ if self.state.stop.get() => Ended::Stopped(self.state.stopped_at.take()),
            Made::Yielded(Ok((FAILED, _, value))) => Ended::Failed(failure(&value)),
            Made::Yielded(Ok((ERROR_REPLY, _, value))) => {
                let Failure { text, counted, .. } = failure(&value);
                Ended::Failed(Failure { text: error_text(&text).to_vec(), at: None, counted })
            }
            Made::Yielded(Ok((STATUS_REPLY, text, _))) => {
                encode::simple(out, c_string(&text.unwrap_or_default()));
                Ended::Replied
            }
            Made::Yielded(Ok((_, text, _))) => {
                encode::bulk(out, &text.unwrap_or_default());
                Ended::Replied
            }
            Made::Reply(Ok(reply)) => {
                if out.is_empty() {
                    // The reply may be long, so it is not copied.
                    *out = reply;
                } else {
                    out.extend_from_slice(&reply);
                }
                Ended::Replied
            }
            Made::Yielded(Err(error)) | Made::Reply(Err(error)) => {
                Ended::Failed(plain_failure(first_line(&error).as_bytes()))
            }
        };
        if has_failed {
            // The coroutine has failed together with the script.
            self.state.stop.set(true);
        }
        if let Ended::Failed(failure) = &ended {
            self.note_failure(&failure.text);
        }
        self.settle();
        ended
    }

    /// Writes the reply for a value, immediately if it is short. In that case the reply is in
    /// `out`, and the result is empty.
    fn reply(
        &mut self,
        value: &Value,
        is_list: bool,
        client: Protocol,
        out: &mut Vec<u8>,
    ) -> Step<Made> {
        let script = self.state.protocol.get();
        let begin = out.len();
        let allowance =
            Allowance::AtOnce { values: VALUES_AT_ONCE.into(), end: begin + BYTES_AT_ONCE };
        let mut conversion = Conversion { lua: self.lua.clone(), client, script, allowance };
        match to_reply::encode(value, is_list, &conversion, out) {
            Ok(()) => return Step::Done(Made::Reply(Ok(Vec::new()))),
            Err(_) if conversion.is_too_long() => out.truncate(begin),
            Err(error) => {
                out.truncate(begin);
                return Step::Done(Made::Reply(Err(error)));
            }
        }
        conversion.allowance = Allowance::Watched(Watch::of(&self.lua));
        self.fiber.run(Job::Reply { value: value.clone(), is_list, conversion })
    }

    /// Detects whether a script failed because of the memory limit.
    fn note_failure(&self, text: &[u8]) {
        // There may have been no memory left for the usual message. The last of these texts comes
        // from `mlua`, if the stack cannot grow.
        let says = ["not enough memory", "error in error handling", "out of Lua stack"];
        if says.iter().any(|part| text.windows(part.len()).any(|bytes| bytes == part.as_bytes())) {
            self.state.collector.hasten();
        }
    }

    /// Cleans up after a script.
    fn settle(&mut self) {
        if self.state.stop.replace(false) {
            self.state.steps.set(0);
            self.renew_coroutine();
        }
        if self.state.collector.is_due(&self.lua) {
            self.collect();
            self.full = self.lua.used_memory() > FULL_BYTES;
        }
    }

    /// Makes the next scripts run in a new coroutine.
    fn renew_coroutine(&mut self) {
        self.state.begins.set(true);
        // The old coroutine's data may occupy all the memory.
        let unbounded = Unbounded::begin(&self.lua);
        if let Ok(thread) = waiting(&self.lua, &self.runner) {
            self.thread.replace(Some(thread));
        }
        drop(unbounded);
        self.eval_words.forget();
    }

    /// Frees the memory that no compiled script, library or global refers to. O(memory)
    pub fn collect(&mut self) {
        if !self.fiber.is_paused() {
            // The coroutine holds the script that ran last, and its arguments.
            self.renew_coroutine();
        }
        self.state.collector.collect(&self.lua);
    }

    /// True if a script left so much memory in use that compiled scripts should be discarded. Luau may keep a closure
    /// that a script creates, and everything that the closure refers to, in the compiled script. Once the compiled
    /// scripts have been discarded, this memory is freed when the next script is compiled.
    pub fn is_full(&self) -> bool {
        self.full
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // The stack of a suspended script refers to values that are dropped now.
        self.stop();
    }
}

/// Creates a coroutine that waits for its first script.
fn waiting(lua: &Lua, runner: &Function) -> Result<Thread> {
    let thread = lua.create_thread(runner.clone())?;
    thread.resume::<()>(())?;
    Ok(thread)
}

/// Returns the functions in the list that `register_function` made: name, code, flags and
/// description of each.
fn registered(list: &Table) -> Result<Vec<Registered>> {
    let broken = || mlua::Error::runtime("the list of functions is broken");
    let mut functions = Vec::with_capacity(list.raw_len() / 4);
    let mut values = list.sequence_values::<Value>();
    while let Some(name) = values.next() {
        let mut next = || values.next().unwrap_or_else(|| Err(broken()));
        let (name, code, flags, description) = (name?, next()?, next()?, next()?);
        let (Value::String(name), Value::Function(function)) = (name, code) else {
            return Err(broken());
        };
        functions.push(Registered {
            name: name.as_bytes().to_vec(),
            description: description.as_string().map(|text| text.as_bytes().to_vec()),
            flags: ScriptFlags::from_bits_truncate(flags.as_u32().ok_or_else(broken)?),
            function: Script { function, is_brief: false },
        });
    }
    Ok(functions)
}

fn plain_failure(text: &[u8]) -> Failure {
    Failure { text: [b"ERR ", c_string(text)].concat(), at: None, counted: false }
}

/// Converts the error value of a script.
fn failure(value: &Value) -> Failure {
    let Value::Table(table) = value else {
        let text = match value {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Error(error) => first_line(error).into_bytes(),
            other => other.to_string().unwrap_or_default().into_bytes(),
        };
        return plain_failure(&text);
    };
    let text = |name: &str| match table.raw_get::<Value>(name) {
        Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
        Ok(Value::Integer(number)) => Some(number.to_string().into_bytes()),
        _ => None,
    };
    let mut whole = text("err").unwrap_or_else(|| b"ERR unknown error".to_vec());
    whole.truncate(c_string(&whole).len().min(ERROR_BYTES_MAX));
    let line = text("line").and_then(|line| String::from_utf8(line).ok()?.parse().ok());
    let counted =
        matches!(table.raw_get::<Value>("ignore_error_stats_update"), Ok(Value::Boolean(true)));
    Failure { text: whole, at: text("source").zip(line), counted }
}

/// Returns the compiler's error message.
pub(crate) fn compile_error(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => first_line(other),
    }
}

/// Returns an error's text without its traceback.
fn first_line(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
        mlua::Error::CallbackError { cause, .. } => return first_line(cause),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
