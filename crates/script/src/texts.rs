//! The error texts in which Redis 7 and Valkey 8 differ.

/// The texts of one of the two servers.
#[derive(Debug)]
pub struct Texts {
    /// The API's table, as errors name it. Scripts find it under both names, `redis` and `server`.
    pub(crate) api: &'static str,
    /// `call` without arguments.
    pub(crate) no_command: &'static str,
    /// `call` with a value that is neither a string nor a number.
    pub(crate) not_a_command: &'static str,
    /// `set_repl` without its argument.
    pub(crate) set_repl: &'static str,
    /// `log` with an invalid level.
    pub(crate) no_level: &'static str,
    /// The command does not exist; for hosts.
    pub unknown: &'static str,
    /// The command takes a different number of arguments; for hosts.
    pub arity: &'static str,
}

impl Texts {
    /// The texts of Redis 7.0.15.
    pub const REDIS: Texts = Texts {
        api: "redis",
        no_command: "Please specify at least one argument for this redis lib call",
        not_a_command: "Lua redis lib command arguments must be strings or integers",
        set_repl: "redis.set_repl() requires two arguments.",
        no_level: "Invalid debug level.",
        unknown: "Unknown Redis command called from script",
        arity: "Wrong number of args calling Redis command from script",
    };

    /// The texts of Valkey 8.0.1.
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
