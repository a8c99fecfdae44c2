//! The words of errors in which Redis 7 and Valkey 8 differ.

/// The words of one of them.
#[derive(Debug)]
pub struct Texts {
    /// The table of the API, as errors name it. Scripts find it under both names.
    pub(crate) api: &'static str,
    /// `call` without arguments.
    pub(crate) no_command: &'static str,
    /// `call` with something that is no string or number.
    pub(crate) not_a_command: &'static str,
    /// `set_repl` without its argument.
    pub(crate) set_repl: &'static str,
    /// `log` with a level that there is not.
    pub(crate) no_level: &'static str,
    /// There is no such command; for hosts.
    pub unknown: &'static str,
    /// The command takes another number of words; for hosts.
    pub arity: &'static str,
}

impl Texts {
    /// Those of Redis 7.0.15.
    pub const REDIS: Texts = Texts {
        api: "redis",
        no_command: "Please specify at least one argument for this redis lib call",
        not_a_command: "Lua redis lib command arguments must be strings or integers",
        set_repl: "redis.set_repl() requires two arguments.",
        no_level: "Invalid debug level.",
        unknown: "Unknown Redis command called from script",
        arity: "Wrong number of args calling Redis command from script",
    };

    /// Those of Valkey 8.0.1.
    pub const VALKEY: Texts = Texts {
        api: "server",
        no_command: "Please specify at least one argument for this call",
        not_a_command: "Command arguments must be strings or integers",
        set_repl: "server.set_repl() requires one argument.",
        no_level: "Invalid log level.",
        unknown: "Unknown command called from script",
        arity: "Wrong number of args calling command from script",
    };
}
