//! Compiling, running, suspending and stopping scripts.
//!
//! All scripts of an interpreter run in one coroutine, whose body is `runner` of the prelude: it
//! waits for a script, is resumed with one, and yields when the script has ended. A script that was
//! stopped takes the coroutine with it; the next gets another.
//!
//! Coroutine and machine run on a stack of their own, which an interrupt leaves to suspend the
//! script: so that is possible wherever the script is, also in what `table.sort` calls.

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

/// With more than this in use behind a script, compiled ones are to be forgotten.
const FULL_BYTES: usize = MEMORY_BYTES_MAX / 4;
/// Steps of Rust code that works for a script between two questions to the host. Steps of the script
/// itself (calls, returns, turns of loops) are counted in Luau: `LUA51_STEPS` in `.cargo/config.toml`.
const STEPS_PER_QUESTION: u32 = 64;
/// The same for what is written meanwhile: long strings are much work and few steps.
const BYTES_PER_QUESTION: usize = 256 * 1024;
/// Values of a reply that are written without giving way, and bytes.
const VALUES_AT_ONCE: u32 = 10_000;
const BYTES_AT_ONCE: usize = 64 * 1024;
/// The stack of scripts, as large as a thread's. The machine counts the calls that need it.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of an error's text, at most.
const ERROR_BYTES_MAX: usize = 4096;

/// What stands before each script of EVAL.
const PARAMETERS: &[u8] = b"local KEYS,ARGV=... ";
/// The same for scripts that may assign to them. The compiler learns that they are not constant:
/// else it would look them up once and for all.
const GLOBALS: &[u8] = b"if false then KEYS,ARGV=nil end ";
/// The chunks that are not the script's: the prelude's, and what libraries bring along.
pub(crate) const OWN_CHUNKS: [&str; 2] = ["brisk", "libraries"];
const PRELUDE: &str = include_str!("../prelude.luau");

/// What scripts can learn about the server.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The version of Redis whose behaviour this is, and the same as `0x00MMmmpp`.
    pub redis: &'static str,
    pub redis_number: u32,
    pub name: &'static str,
    pub own: &'static str,
    pub own_number: u32,
    /// The words of errors.
    pub texts: &'static Texts,
}

/// What the functions of a script share with their interpreter.
pub(crate) struct State {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) texts: &'static Texts,
    pauser: Rc<Pauser>,
    collector: Collector,
    /// The script is to run no further step.
    pub(crate) stop: Cell<bool>,
    /// Where it was stopped first, unless that is not known.
    stopped_at: RefCell<Option<Place>>,
    steps: Cell<u32>,
    /// The next interrupt asks nothing, because a script begins: Luau's count of steps is that of the script
    /// before, and may end at once.
    begins: Cell<bool>,
    /// The protocol that the script chose for replies.
    pub(crate) protocol: Cell<Protocol>,
    pub(crate) random: Cell<Random>,
    /// Kept for the next command.
    pub(crate) words: RefCell<Words>,
    pub(crate) reply: RefCell<Vec<u8>>,
}

impl State {
    /// A larger buffer is given back.
    pub(crate) const REPLY_KEPT_MAX: usize = 64 * 1024;

    /// Called at every step of Rust code that works for the script.
    fn step(&self, lua: &Lua) -> Result<()> {
        if self.stop.get() {
            return Err(stopped());
        }
        let steps = self.steps.get() + 1;
        if steps < STEPS_PER_QUESTION {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.begins.set(false);
        self.interrupted(lua).map(|_| ())
    }

    /// Called by the machine once in some steps of the script, and at every step once the script is
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
        self.ask().inspect_err(|_| self.note_place(lua))?;
        Ok(VmState::Continue)
    }

    /// Where the script is that was stopped.
    #[cold]
    pub(crate) fn note_place(&self, lua: &Lua) {
        /// Functions of ours between a script and the host:
        /// as deep as calls of these can be nested.
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

    /// Does what the host wants of the script now.
    fn ask(&self) -> Result<()> {
        match self.host.pace() {
            Pace::GoOn => Ok(()),
            Pace::Suspend => self.pause().map(|_| ()),
            Pace::Stop => {
                self.stop.set(true);
                Err(stopped())
            }
        }
    }

    /// Suspends the script; false if none runs, but a library is being loaded. An error if it is
    /// not to go on.
    fn pause(&self) -> Result<bool> {
        let paused = self.pauser.pause();
        if self.stop.get() { Err(stopped()) } else { Ok(paused) }
    }

    /// Suspends the script before it asks for something again. It may have been killed meanwhile,
    /// and takes no step that would tell.
    pub(crate) fn wait(&self) -> Result<bool> {
        let paused = self.pause()?;
        self.ask()?;
        Ok(paused)
    }
}

/// How Rust code that does much for a script gives way as the script itself does.
pub(crate) struct Watch {
    lua: Lua,
    /// Absent in an interpreter that has no host.
    state: Option<Rc<State>>,
    /// How much had been written when the host was last asked for that reason.
    asked_at: Cell<usize>,
}

impl Watch {
    pub(crate) fn of(lua: &Lua) -> Watch {
        let state = lua.app_data_ref::<Rc<State>>().map(|state| Rc::clone(&state));
        Watch { lua: lua.clone(), state, asked_at: Cell::new(0) }
    }

    /// Called at every step, with how much will be written behind it.
    /// An error if there is to be no other.
    #[inline]
    pub(crate) fn step(&self, written: usize) -> Result<()> {
        let Some(state) = &self.state else { return Ok(()) };
        if written.saturating_sub(self.asked_at.get()) >= BYTES_PER_QUESTION {
            self.asked_at.set(written);
            state.steps.set(STEPS_PER_QUESTION);
        }
        state.step(&self.lua)
    }
}

/// The error that ends a script which was stopped; nobody reads it.
pub(crate) fn stopped() -> mlua::Error {
    mlua::Error::runtime("script stopped")
}

/// What the prelude's `serve` yields at the end of a script: one of the numbers below, the text
/// that the script returned, or else the value.
type Yielded = (i32, Option<BString>, Value);

/// What is done on the stack of scripts.
enum Job {
    /// To run a script with KEYS and ARGV, unless they are EVAL's.
    Script { function: Function, words: Option<(Table, Table)> },
    /// To write the reply that a value makes, which is long.
    Reply { value: Value, is_list: bool, conversion: Conversion },
}

/// What came of it.
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
/// A table without a field that has a meaning.
const LIST: i32 = 4;

/// A compiled script or function.
#[derive(Debug, Clone)]
pub struct Script {
    function: Function,
    /// It ends before the host would be asked for the first time.
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

/// Why a script failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The whole text, code word included.
    pub text: Vec<u8>,
    pub at: Option<Place>,
    /// It is the error of a command and was counted when that ran.
    pub counted: bool,
}

/// `@user_script` or the like, and the line.
pub type Place = (Vec<u8>, i64);

/// How a run of a script ended, if it did.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its reply is in the buffer.
    Replied,
    /// It returned an error reply, or failed.
    Failed(Failure),
    /// The host stopped it, as far as is known in this place.
    Stopped(Option<Place>),
    /// It is suspended; [`Interpreter::go_on`] lets it go on.
    Suspended,
}

/// A machine for scripts.
pub struct Interpreter {
    lua: Lua,
    runner: Function,
    load_library: Function,
    /// What libraries find as globals.
    library_environment: Table,
    /// The coroutine that scripts run in, and the stack that it runs on. Absent until the first.
    thread: Rc<RefCell<Option<Thread>>>,
    fiber: Fiber<Job, Made>,
    eval_words: EvalWords,
    state: Rc<State>,
    compiler: Compiler,
    /// Much is in use, though garbage was collected.
    full: bool,
    /// The machine asks at every step how to go on.
    watched: bool,
}

impl Interpreter {
    /// An interpreter whose scripts act through `host`.
    ///
    /// # Errors
    /// If there is not enough memory.
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

    /// Bytes of memory that scripts take.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Compiles a script whose header of `header_len` bytes is left out. KEYS and ARGV are its
    /// parameters, which costs less than looking them up; they are globals as well, and nothing
    /// else for a text that may assign to them.
    ///
    /// # Errors
    /// The text of the compiler, with the line.
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
        // An error is what a script gets for a name without a meaning.
        let is_global =
            |name: &[u8]| globals.get(BString::from(name)).is_ok_and(|v: Value| !v.is_nil());
        let (parameters, is_brief) = if eval_words::may_assign(text) {
            (GLOBALS, false)
        } else {
            (PARAMETERS, brief::is_brief(text, is_global))
        };
        let source = [parameters, text].concat();
        let mut function = self.compile_named(source, "@user_script", None)?;
        // In Redis a script has no arguments: `...` is empty.
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

    /// Compiles a library, runs it, and gives the functions that it registered.
    ///
    /// # Errors
    /// A text for the client, without its code word.
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

    /// Runs a script from its start. `is_eval`: KEYS and ARGV are globals. The reply for a client
    /// that speaks `protocol` is appended to `out`.
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
            // It may have come to nothing before the last word was handed over.
            let _ = room::bound(&self.lua);
        }
        self.ended(step, protocol, out)
    }

    /// Lets a suspended script go on.
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
        // Every step of it is an error from here on, so it comes to its end.
        while self.fiber.is_paused() {
            drop(self.fiber.go_on());
        }
    }

    /// Has the machine ask at every step, or not. It stays so until somebody wants it otherwise.
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
        // The answer of the script before this one was still in use when that was settled.
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

    /// Hands a script's words over. The bound is lifted until the machine has them all.
    fn hand_over<'a>(
        &mut self,
        script: &Script,
        is_eval: bool,
        keys: impl ExactSizeIterator<Item = &'a [u8]>,
        argv: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Job> {
        let unbounded = Unbounded::begin(&self.lua)?;
        unbounded.until_answered();
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
                    // It may be long.
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
            // So has the coroutine.
            self.state.stop.set(true);
        }
        if let Ended::Failed(failure) = &ended {
            self.note_failure(&failure.text);
        }
        self.settle();
        ended
    }

    /// Writes the reply for a value, at once if it is short. What was written is in `out` then, and
    /// the result without content.
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

    /// Looks whether a script failed for want of memory.
    fn note_failure(&self, text: &[u8]) {
        // There may have been none left to say so. The last text is `mlua`'s if the stack cannot grow.
        let says = ["not enough memory", "error in error handling", "out of Lua stack"];
        if says.iter().any(|part| text.windows(part.len()).any(|bytes| bytes == part.as_bytes())) {
            self.state.collector.hasten();
        }
    }

    /// After a script: what it left is made good.
    fn settle(&mut self) {
        if self.state.stop.replace(false) {
            self.state.steps.set(0);
            self.begin_anew();
        }
        if self.state.collector.is_due(&self.lua) {
            self.collect();
            self.full = self.lua.used_memory() > FULL_BYTES;
        }
    }

    /// Scripts run in another coroutine from here on.
    fn begin_anew(&mut self) {
        self.state.begins.set(true);
        // What the old one holds may be all the memory there is.
        let unbounded = Unbounded::begin(&self.lua);
        if let Ok(thread) = waiting(&self.lua, &self.runner) {
            self.thread.replace(Some(thread));
        }
        drop(unbounded);
        self.eval_words.forget();
    }

    /// Frees what no compiled script, library or global refers to any more. O(memory)
    pub fn collect(&mut self) {
        if !self.fiber.is_paused() {
            // The coroutine holds the script that ran last, and its words.
            self.begin_anew();
        }
        self.state.collector.collect(&self.lua);
    }

    /// Whether so much is left behind a script that compiled ones are to be forgotten: a closure
    /// that a script makes may be kept with its code, and with it what the closure uses. It is
    /// collected when the next script is compiled.
    pub fn is_full(&self) -> bool {
        self.full
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // What is on the stack of a script that is suspended refers to what goes now.
        self.stop();
    }
}

/// A coroutine that waits for its first script.
fn waiting(lua: &Lua, runner: &Function) -> Result<Thread> {
    let thread = lua.create_thread(runner.clone())?;
    thread.resume::<()>(())?;
    Ok(thread)
}

/// The functions in the list that `register_function` made: name, code, flags and description of each.
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

/// What the error value of a script says.
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

/// What the compiler complains about.
pub(crate) fn compile_error(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => first_line(other),
    }
}

/// An error without the trace of calls below it.
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
