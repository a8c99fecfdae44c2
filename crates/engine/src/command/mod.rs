//! The description of a command: a constant specification ([`Spec`]) and one function.
//!
//! Everything that can be derived from a row is derived: lookup, arity errors, COMMAND and its
//! subcommands, ACL categories, the slots to lock, statistics, the grammar of the differential
//! generator. Rows are at the end of the file that implements the commands.
//!
//! Names, arity, flags, key positions and argument trees are those of Redis 7.2. Tests compare them
//! row by row with a reference table. The summaries are our own.

pub mod args;
pub mod cursor;
pub mod keyspec;

use bitflags::bitflags;
use std::ops::Range;

/// One command: its specification, its function, and its subcommands if it is a container.
///
/// `R` is the type of the function. Data commands of this crate use [`crate::call::ctx::Handler`].
/// Commands that need a session or the server use a different function type, which a higher crate defines.
#[derive(Debug)]
pub struct CommandOf<R: 'static> {
    pub spec: Spec,
    /// Runs the command. For a container, it is called only if the container's arity allows a
    /// request without a subcommand.
    pub run: R,
    pub subcommands: &'static [CommandOf<R>],
}

/// The specification of a command.
#[derive(Debug)]
pub struct Spec {
    /// In lower case. For a subcommand, only its own name: `list`, not `client|list`.
    pub name: &'static str,
    pub group: Group,
    pub summary: &'static str,
    /// The version of `origin` in which the command appeared.
    pub since: &'static str,
    pub origin: Origin,
    /// Paragraphs for the command reference, in Markdown. Empty for Redis's commands, which Redis
    /// documents.
    pub details: &'static str,
    pub complexity: &'static str,
    /// Number of arguments including the name; negative means "at least". For subcommands the
    /// container's name counts too, as in COMMAND INFO.
    pub arity: i16,
    pub flags: Flags,
    /// ACL categories that neither the group nor the flags imply.
    pub categories: Categories,
    pub tips: &'static [&'static str],
    pub keys: &'static [KeySpec],
    /// The arguments that name elements of the first key's value.
    pub elements: ElementArgs,
    /// The arguments that are channels to publish or subscribe to.
    pub channels: Channels,
    /// The arguments of a data command that must not be shown, such as passwords.
    pub secrets: Option<SecretArgs>,
    pub args: &'static [Arg],
    /// Pairs of a version and what changed in it.
    pub history: &'static [(&'static str, &'static str)],
    pub deprecated: Option<Deprecated>,
    /// A system command, not meant for users (doc flag `syscmd`).
    pub syscmd: bool,
    pub scope: Scope,
    pub in_multi: InMulti,
}

impl Spec {
    /// The row on which others are based with `..Spec::EMPTY`.
    pub const EMPTY: Spec = Spec {
        name: "",
        group: Group::Generic,
        summary: "",
        since: "1.0.0",
        origin: Origin::Redis,
        details: "",
        complexity: "O(1)",
        arity: 1,
        flags: Flags::empty(),
        categories: Categories::empty(),
        tips: &[],
        keys: &[],
        elements: ElementArgs::NONE,
        channels: Channels::None,
        secrets: None,
        args: &[],
        history: &[],
        deprecated: None,
        syscmd: false,
        scope: Scope::Keys,
        in_multi: InMulti::Queued,
    };

    /// The flags of HELP subcommands.
    pub const HELP_FLAGS: Flags = Flags::LOADING.union(Flags::STALE);

    /// The row of a HELP subcommand.
    pub const fn help(group: Group, since: &'static str) -> Spec {
        let summary = "Lists the subcommands.";
        Spec {
            name: "help",
            group,
            summary,
            since,
            arity: 2,
            flags: Spec::HELP_FLAGS,
            ..Spec::EMPTY
        }
    }

    /// Reports whether `argc` arguments, including the name, satisfy the arity.
    #[inline]
    pub const fn arity_admits(&self, argc: usize) -> bool {
        if self.arity >= 0 {
            argc == self.arity as usize
        } else {
            argc >= self.arity.unsigned_abs() as usize
        }
    }

    /// All ACL categories: the listed ones, and those that the group and the flags imply.
    pub const fn all_categories(&self) -> Categories {
        let flags = self.flags;
        // A container has no flags, and the category of its group applies only to its subcommands.
        let of_group = if flags.is_empty() { Categories::empty() } else { self.group.categories() };
        let mut all = self.categories.union(of_group);
        if flags.contains(Flags::WRITE) {
            all = all.union(Categories::WRITE);
        }
        // EVAL_RO and FCALL_RO read nothing themselves.
        if flags.contains(Flags::READONLY) && !matches!(self.group, Group::Scripting) {
            all = all.union(Categories::READ);
        }
        if flags.contains(Flags::ADMIN) {
            all = all.union(Categories::ADMIN).union(Categories::DANGEROUS);
        }
        if flags.contains(Flags::PUBSUB) {
            all = all.union(Categories::PUBSUB);
        }
        if flags.contains(Flags::BLOCKING) {
            all = all.union(Categories::BLOCKING);
        }
        all.union(if flags.contains(Flags::FAST) { Categories::FAST } else { Categories::SLOW })
    }
}

/// The project in which a command first appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Redis,
    Valkey,
    Brisk,
}

impl Origin {
    /// The project's name.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Redis => "Redis",
            Origin::Valkey => "Valkey",
            Origin::Brisk => "Brisk",
        }
    }
}

/// The arguments of a command that name channels, for access control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    None,
    /// Argument 1.
    First,
    /// All arguments, starting with argument 1.
    Names,
    /// Like `Names`, but the arguments are channel patterns.
    Patterns,
}

/// The part of the keyspace that a command uses, which determines what is locked while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The slots of its keys, as given by the key specifications; none if there are no keys.
    Keys,
    /// The slots of its keys, and others that only the running command can determine and that it
    /// then locks ([`crate::keyspace::Keys::lock_also`]): MOVE, SORT with patterns.
    MoreKeys,
    /// One slot after the other. The handler locks each slot while it reads the slot, and the
    /// command itself holds no slot: KEYS, SCAN.
    EachSlot,
    /// The whole keyspace. The command runs while all workers are quiesced between two commands:
    /// FLUSHALL, SWAPDB.
    Quiescent,
}

/// How a command is treated between MULTI and EXEC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InMulti {
    /// Queued, and run by EXEC.
    Queued,
    /// Like [`InMulti::Queued`]. Its first argument is the database of the commands queued after
    /// it.
    Selects,
    /// Run immediately, to return an error: MULTI and WATCH.
    Rejects,
    /// Run immediately; ends the transaction: DISCARD, RESET, QUIT.
    Ends,
    /// Runs the queued commands: EXEC. The checks that apply to queued commands apply to EXEC too.
    Executes,
}

impl InMulti {
    /// Reports whether the command is queued.
    pub const fn is_queued(self) -> bool {
        matches!(self, InMulti::Queued | InMulti::Selects)
    }
}

/// The group in COMMAND DOCS. Most groups also imply an ACL category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    PubSub,
    Transactions,
    Connection,
    Server,
    Scripting,
    HyperLogLog,
    Cluster,
    Geo,
    Stream,
    Bitmap,
}

impl Group {
    /// The group's name in COMMAND DOCS.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::List => "list",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Hash => "hash",
            Group::PubSub => "pubsub",
            Group::Transactions => "transactions",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
            Group::HyperLogLog => "hyperloglog",
            Group::Cluster => "cluster",
            Group::Geo => "geo",
            Group::Stream => "stream",
            Group::Bitmap => "bitmap",
        }
    }

    /// The categories of every command of this group that has keys. Groups with different commands
    /// (generic, connection, server, scripting …) imply none; their rows list them.
    const fn categories(self) -> Categories {
        match self {
            Group::String => Categories::STRING,
            Group::List => Categories::LIST,
            Group::Set => Categories::SET,
            Group::SortedSet => Categories::SORTED_SET,
            Group::Hash => Categories::HASH,
            Group::HyperLogLog => Categories::HYPERLOGLOG,
            Group::Geo => Categories::GEO,
            Group::Stream => Categories::STREAM,
            Group::Bitmap => Categories::BITMAP,
            _ => Categories::empty(),
        }
    }
}

bitflags! {
    /// Properties that the server must know before it runs a command.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Flags: u32 {
        const WRITE = 1;
        const READONLY = 1 << 1;
        const DENYOOM = 1 << 2;
        const ADMIN = 1 << 3;
        const PUBSUB = 1 << 4;
        const NOSCRIPT = 1 << 5;
        const BLOCKING = 1 << 6;
        const LOADING = 1 << 7;
        const STALE = 1 << 8;
        const SKIP_MONITOR = 1 << 9;
        const SKIP_SLOWLOG = 1 << 10;
        const ASKING = 1 << 11;
        const FAST = 1 << 12;
        const NO_AUTH = 1 << 13;
        const MOVABLEKEYS = 1 << 14;
        const NO_ASYNC_LOADING = 1 << 15;
        const NO_MULTI = 1 << 16;
        const ALLOW_BUSY = 1 << 17;
        const NO_MANDATORY_KEYS = 1 << 18;
        /// Rejected unless `enable-debug-command` allows it.
        const DEBUG = 1 << 19;
        /// Rejected unless `enable-module-command` allows it.
        const MODULE = 1 << 20;
        /// Runs while the dataset is being loaded, as in Valkey. Redis rejects the command then and has no such flag.
        const LOADING_OF_VALKEY = 1 << 21;
        /// Allowed for RESP2 sessions with subscriptions.
        const WHILE_SUBSCRIBED = 1 << 24;
        /// Unsubscribes, so it has no effect for sessions without subscriptions.
        const UNSUBSCRIBES = 1 << 28;
        /// Does not reset the state that CLIENT CACHING sets for the next command.
        const KEEPS_CACHING = 1 << 27;
        /// Not a write, but it may have to be repeated on replicas.
        const MAY_REPLICATE = 1 << 25;
        /// Its effects depend on the script that it runs.
        const RUNS_SCRIPT = 1 << 26;
        /// Clients use it to check the server's health, so it is rejected whenever writes are
        /// rejected.
        const HEALTH_CHECK = 1 << 29;
        /// Scripts may run it in the Valkey dialect. Redis 7.0 does not allow it in scripts.
        const SCRIPTS_OF_VALKEY = 1 << 30;
    }
}

impl Flags {
    /// Commands that are rejected unless the configuration allows them.
    pub const PROTECTED: Flags = Flags::DEBUG.union(Flags::MODULE);

    /// Flag names in the order COMMAND INFO lists them (Redis 7.0); internal flags have none.
    pub const NAMES: &'static [(Flags, &'static str)] = &[
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::ASKING, "asking"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::MOVABLEKEYS, "movablekeys"),
        (Flags::ALLOW_BUSY, "allow_busy"),
    ];
}

bitflags! {
    /// ACL categories.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Categories: u32 {
        const KEYSPACE = 1;
        const READ = 1 << 1;
        const WRITE = 1 << 2;
        const SET = 1 << 3;
        const SORTED_SET = 1 << 4;
        const LIST = 1 << 5;
        const HASH = 1 << 6;
        const STRING = 1 << 7;
        const BITMAP = 1 << 8;
        const HYPERLOGLOG = 1 << 9;
        const GEO = 1 << 10;
        const STREAM = 1 << 11;
        const PUBSUB = 1 << 12;
        const ADMIN = 1 << 13;
        const FAST = 1 << 14;
        const SLOW = 1 << 15;
        const BLOCKING = 1 << 16;
        const DANGEROUS = 1 << 17;
        const CONNECTION = 1 << 18;
        const TRANSACTION = 1 << 19;
        const SCRIPTING = 1 << 20;
    }
}

impl Categories {
    /// Names without the `@`, in the order ACL CAT and COMMAND INFO list them.
    pub const NAMES: &'static [(Categories, &'static str)] = &[
        (Categories::KEYSPACE, "keyspace"),
        (Categories::READ, "read"),
        (Categories::WRITE, "write"),
        (Categories::SET, "set"),
        (Categories::SORTED_SET, "sortedset"),
        (Categories::LIST, "list"),
        (Categories::HASH, "hash"),
        (Categories::STRING, "string"),
        (Categories::BITMAP, "bitmap"),
        (Categories::HYPERLOGLOG, "hyperloglog"),
        (Categories::GEO, "geo"),
        (Categories::STREAM, "stream"),
        (Categories::PUBSUB, "pubsub"),
        (Categories::ADMIN, "admin"),
        (Categories::FAST, "fast"),
        (Categories::SLOW, "slow"),
        (Categories::BLOCKING, "blocking"),
        (Categories::DANGEROUS, "dangerous"),
        (Categories::CONNECTION, "connection"),
        (Categories::TRANSACTION, "transaction"),
        (Categories::SCRIPTING, "scripting"),
    ];
}

/// When a command was deprecated and what to use instead.
#[derive(Debug, Clone, Copy)]
pub struct Deprecated {
    pub since: &'static str,
    pub replaced_by: &'static str,
}

/// The arguments that name elements (fields, members) of the first key's value. Their lookups are
/// prefetched if there are many. This is a hint: an argument that is not an element costs a useless
/// prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementArgs {
    /// The index of the first element; 0 if there are none.
    pub first: u16,
    /// The distance between elements; 0 if there is only one.
    pub step: u16,
    /// True if the argument before each element is its new score.
    pub scored: bool,
}

impl ElementArgs {
    pub const NONE: ElementArgs = ElementArgs { first: 0, step: 0, scored: false };
    /// Only the argument after the key.
    pub const ONE: ElementArgs = ElementArgs { first: 2, step: 0, scored: false };
    /// All arguments after the key.
    pub const ALL: ElementArgs = ElementArgs { first: 2, step: 1, scored: false };

    #[inline]
    pub const fn is_none(self) -> bool {
        self.first == 0
    }

    /// The indices of the elements in a request with `argc` arguments.
    #[inline]
    pub fn words(self, argc: usize) -> impl Iterator<Item = usize> {
        let (first, step) = (usize::from(self.first), usize::from(self.step));
        let end = if step == 0 { argc.min(first + 1) } else { argc };
        (first..end).step_by(step.max(1))
    }
}

/// The positions of keys among the arguments, and how the command uses these keys.
#[derive(Debug)]
pub struct KeySpec {
    pub flags: KeyFlags,
    pub begin: Begin,
    pub find: Find,
    /// The actual flags of the key in a request, if the flags are variable.
    pub flags_by_args: Option<FlagsByArgs>,
    /// Finds the keys, if only the command's own parser knows where they are.
    pub finder: Option<Finder>,
    pub notes: &'static str,
}

/// The arguments of a request, by index; 0 is the command's name.
pub type ArgLookup<'a, 'w> = &'a dyn Fn(usize) -> &'w [u8];

/// The flags of a key in a request with `argc` arguments.
pub type FlagsByArgs = fn(argc: usize, word: ArgLookup<'_, '_>) -> KeyFlags;

/// The keys among the `argc` arguments of a request, as the parser of the command's handler finds
/// them. `None` if the parser rejects the arguments: then the handler uses none of these keys, and
/// the specification says which arguments look like keys.
pub type Finder = fn(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>>;

/// The indices of arguments that must not be shown, such as passwords.
pub type SecretArgs = fn(argc: usize, word: ArgLookup<'_, '_>) -> Vec<usize>;

impl KeySpec {
    /// One key at argument `index` (the command name is 0).
    pub const fn at(index: u16) -> KeySpec {
        KeySpec::range(index, 0, 1)
    }

    /// Keys starting at argument `index`. `last` counts from `index`, or from the end if it is
    /// negative (-1 is the last argument). Every `step`-th argument is a key.
    pub const fn range(index: u16, last: i16, step: u16) -> KeySpec {
        KeySpec {
            flags: KeyFlags::empty(),
            begin: Begin::Index(index),
            find: Find::Range { last, step, limit: 0 },
            flags_by_args: None,
            finder: None,
            notes: "",
        }
    }

    /// `numkeys` at argument `index`, then that many keys.
    pub const fn counted(index: u16) -> KeySpec {
        KeySpec {
            flags: KeyFlags::empty(),
            begin: Begin::Index(index),
            find: Find::KeyNum { count_at: 0, first: 1, step: 1 },
            flags_by_args: None,
            finder: None,
            notes: "",
        }
    }

    /// Keys at positions that only the command's own logic knows.
    pub const fn unknown() -> KeySpec {
        KeySpec {
            flags: KeyFlags::empty(),
            begin: Begin::Unknown,
            find: Find::Unknown,
            flags_by_args: None,
            finder: None,
            notes: "",
        }
    }

    pub const fn read_only(self, uses: KeyFlags) -> KeySpec {
        self.with(KeyFlags::RO.union(uses))
    }
    pub const fn read_write(self, uses: KeyFlags) -> KeySpec {
        self.with(KeyFlags::RW.union(uses))
    }
    pub const fn overwrite(self, uses: KeyFlags) -> KeySpec {
        self.with(KeyFlags::OW.union(uses))
    }
    pub const fn remove(self, uses: KeyFlags) -> KeySpec {
        self.with(KeyFlags::RM.union(uses))
    }
    pub const fn with(mut self, flags: KeyFlags) -> KeySpec {
        self.flags = self.flags.union(flags);
        self
    }
    /// Makes the flags depend on the arguments. The flags given so far must include all that may
    /// apply.
    pub const fn varying(mut self, flags: FlagsByArgs) -> KeySpec {
        self.flags_by_args = Some(flags);
        self.with(KeyFlags::VARIABLE_FLAGS)
    }
    /// All arguments after the argument `keyword`, which is searched for from argument `from` on
    /// (if negative: backward from the end).
    pub const fn after_keyword(keyword: &'static str, from: i16) -> KeySpec {
        KeySpec {
            begin: Begin::Keyword { keyword, from },
            find: Find::Range { last: -1, step: 1, limit: 0 },
            ..KeySpec::unknown()
        }
    }

    /// Adds keys that `finder` finds. COMMAND INFO still shows the specification, which is enough
    /// for clients to find the keys of ordinary requests.
    pub const fn found_by(mut self, finder: Finder) -> KeySpec {
        self.finder = Some(finder);
        self
    }
    pub const fn noted(mut self, notes: &'static str) -> KeySpec {
        self.notes = notes;
        self
    }
}

/// The start of the search for keys.
#[derive(Debug, Clone, Copy)]
pub enum Begin {
    Index(u16),
    /// After the argument `keyword`, which is searched for from argument `from` on (if negative:
    /// backward from the end).
    Keyword {
        keyword: &'static str,
        from: i16,
    },
    Unknown,
}

/// The positions of keys relative to the start of the search.
#[derive(Debug, Clone, Copy)]
pub enum Find {
    /// `limit`: 0 or 1 means all remaining arguments; n means only the first 1/n of them.
    Range {
        last: i16,
        step: u16,
        limit: u16,
    },
    KeyNum {
        count_at: u16,
        first: u16,
        step: u16,
    },
    Unknown,
}

bitflags! {
    /// How a command uses a key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct KeyFlags: u16 {
        /// Only reads the value or its metadata.
        const RO = 1;
        /// Reads and may change the value.
        const RW = 1 << 1;
        /// Replaces the value without using the old one.
        const OW = 1 << 2;
        /// Removes the key.
        const RM = 1 << 3;
        /// User data is returned or copied, or it influences the result.
        const ACCESS = 1 << 4;
        /// Existing data may be changed.
        const UPDATE = 1 << 5;
        /// Data is added, but existing data is not changed.
        const INSERT = 1 << 6;
        /// Data may be deleted.
        const DELETE = 1 << 7;
        /// Not a key name, although it looks like one to cluster clients.
        const NOT_KEY = 1 << 8;
        /// There may be keys that this specification does not find.
        const INCOMPLETE = 1 << 9;
        /// The flags depend on the arguments.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeyFlags {
    /// Names in the order COMMAND INFO lists them.
    pub const NAMES: &'static [(KeyFlags, &'static str)] = &[
        (KeyFlags::RO, "RO"),
        (KeyFlags::RW, "RW"),
        (KeyFlags::OW, "OW"),
        (KeyFlags::RM, "RM"),
        (KeyFlags::ACCESS, "access"),
        (KeyFlags::UPDATE, "update"),
        (KeyFlags::INSERT, "insert"),
        (KeyFlags::DELETE, "delete"),
        (KeyFlags::NOT_KEY, "not_key"),
        (KeyFlags::INCOMPLETE, "incomplete"),
        (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
    ];
}

/// One node of a command's argument tree, as COMMAND DOCS shows it.
#[derive(Debug)]
pub struct Arg {
    pub name: &'static str,
    pub kind: ArgKind,
    /// The token before the argument, or the token itself for a pure token.
    pub token: &'static str,
    pub since: &'static str,
    pub deprecated_since: &'static str,
    pub optional: bool,
    pub multiple: bool,
    /// The token is repeated with each occurrence.
    pub multiple_token: bool,
    /// The key specification that finds this argument.
    pub key_spec: Option<u8>,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy)]
pub enum ArgKind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    Token,
    OneOf(&'static [Arg]),
    Block(&'static [Arg]),
}

impl Arg {
    const fn new(name: &'static str, kind: ArgKind) -> Arg {
        Arg {
            name,
            kind,
            token: "",
            since: "",
            deprecated_since: "",
            optional: false,
            multiple: false,
            multiple_token: false,
            key_spec: None,
        }
    }
    pub const fn string(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::String)
    }
    pub const fn integer(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Integer)
    }
    pub const fn double(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Double)
    }
    pub const fn pattern(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Pattern)
    }
    pub const fn unix_time(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::UnixTime)
    }
    /// A key found by key specification 0; see [`Arg::spec`] for others.
    pub const fn key(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Key).spec(0)
    }
    /// A literal token.
    pub const fn token(name: &'static str, word: &'static str) -> Arg {
        let mut arg = Arg::new(name, ArgKind::Token);
        arg.token = word;
        arg
    }
    pub const fn one_of(name: &'static str, choices: &'static [Arg]) -> Arg {
        Arg::new(name, ArgKind::OneOf(choices))
    }
    pub const fn block(name: &'static str, parts: &'static [Arg]) -> Arg {
        Arg::new(name, ArgKind::Block(parts))
    }
    /// Puts the token `token` before the argument.
    pub const fn after(mut self, token: &'static str) -> Arg {
        self.token = token;
        self
    }
    pub const fn optional(mut self) -> Arg {
        self.optional = true;
        self
    }
    pub const fn multiple(mut self) -> Arg {
        self.multiple = true;
        self
    }
    pub const fn multiple_token(mut self) -> Arg {
        self.multiple_token = true;
        self
    }
    pub const fn since(mut self, version: &'static str) -> Arg {
        self.since = version;
        self
    }
    pub const fn deprecated(mut self, version: &'static str) -> Arg {
        self.deprecated_since = version;
        self
    }
    pub const fn spec(mut self, index: u8) -> Arg {
        self.key_spec = Some(index);
        self
    }
}
