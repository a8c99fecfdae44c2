//! The names of functions, methods, parameters and types.

/// Protocol tokens that consist of several words.
const TOKENS: &[(&str, &str)] = &[
    ("ABSTTL", "abs_ttl"),
    ("ACLCAT", "acl_cat"),
    ("ASYNC", "asynchronous"),
    ("BYBOX", "by_box"),
    ("BYLEX", "by_lex"),
    ("BYRADIUS", "by_radius"),
    ("BYSCORE", "by_score"),
    ("ENTRIESADDED", "entries_added"),
    ("ENTRIESREAD", "entries_read"),
    ("EXAT", "ex_at"),
    ("FILTERBY", "filter_by"),
    ("FROMLONLAT", "from_lon_lat"),
    ("FROMMEMBER", "from_member"),
    ("IDLETIME", "idle_time"),
    ("INCRBY", "incr_by"),
    ("JUSTID", "just_id"),
    ("KEEPTTL", "keep_ttl"),
    ("LASTID", "last_id"),
    ("LIBRARYNAME", "library_name"),
    ("MATCH", "matching"),
    ("MAXAGE", "max_age"),
    ("MAXDELETEDID", "max_deleted_id"),
    ("MAXLEN", "max_len"),
    ("MINID", "min_id"),
    ("MINMATCHLEN", "min_match_len"),
    ("MKSTREAM", "mk_stream"),
    ("NOACK", "no_ack"),
    ("NOLOOP", "no_loop"),
    ("NOMKSTREAM", "no_mk_stream"),
    ("NOSAVE", "no_save"),
    ("NOSCORES", "no_scores"),
    ("NOVALUES", "no_values"),
    ("OPTIN", "opt_in"),
    ("OPTOUT", "opt_out"),
    ("PXAT", "px_at"),
    ("RETRYCOUNT", "retry_count"),
    ("SETNAME", "set_name"),
    ("SKIPME", "skip_me"),
    ("STOREDIST", "store_dist"),
    ("SYNC", "synchronous"),
    ("TYPE", "of_type"),
    ("WITHCODE", "with_code"),
    ("WITHCOORD", "with_coord"),
    ("WITHDIST", "with_dist"),
    ("WITHHASH", "with_hash"),
    ("WITHMATCHLEN", "with_match_len"),
    ("WITHSCORE", "with_score"),
    ("WITHSCORES", "with_scores"),
    ("WITHVALUES", "with_values"),
    ("~", "about"),
];

/// Commands whose names are Rust keywords.
const FUNCTIONS: &[(&str, &str)] = &[("move", "move_to"), ("type", "type_of")];

/// Parameters that need a different name from that in the row.
const PARAMETERS: &[(&str, &str)] = &[
    ("categoryname", "category"),
    ("capability", "capabilities"),
    ("consumername", "consumer"),
    ("data", "field_value"),
    ("destkey", "destination"),
    ("dst", "destination"),
    ("groupname", "group"),
    ("index_unit", "unit"),
    ("key_or_empty_string", "key"),
    ("libname", "name"),
    ("libver", "version"),
    ("longitude_latitude", "position"),
    ("longitude_latitude_member", "places"),
    ("newkey", "new_key"),
    ("shardchannel", "channel"),
    ("sourcekey", "source"),
    ("src", "source"),
    ("start-slot_end-slot", "slot_range"),
    ("type", "kind"),
    ("where", "side"),
    ("wherefrom", "from"),
    ("whereto", "to"),
];

/// Options whose names are already in use or not specific enough. Row, name, better name.
const METHODS: &[(&str, &str, &str)] = &[
    // Every command has a method with this name.
    ("client|durability", "timeout", "within_ms"),
    ("client|unblock", "timeout", "as_timeout"),
    ("failover", "timeout", "within_ms"),
    ("module|loadex", "args", "module_args"),
    ("bitcount", "index", "range"),
];

/// Options with a second, more descriptive name. Function, method, second name.
pub(super) const ALIASES: &[(&str, &str, &str)] =
    &[("set", "nx", "only_if_absent"), ("set", "xx", "only_if_present")];

/// The enumerations: tokens, name, description.
pub(super) const CHOICES: &[(&[&str], &str, &str)] = &[
    (&["LEFT", "RIGHT"], "Side", "An end of a list"),
    (&["MIN", "MAX"], "Extreme", "The end of a sorted set from which members are popped"),
    (&["BEFORE", "AFTER"], "Place", "The position of a new element, relative to an existing one"),
    (&["M", "KM", "FT", "MI"], "Unit", "A unit of length"),
    (
        &["SUM", "MIN", "MAX"],
        "Aggregate",
        "How the scores of a member in several sorted sets are combined",
    ),
    (&["WRAP", "SAT", "FAIL"], "Overflow", "The effect of an overflow"),
    (&["YES", "NO"], "YesNo", "Yes or no"),
    (&["ON", "OFF"], "Switch", "On or off"),
    (&["ON", "OFF", "SKIP"], "Replies", "Which replies the server sends to the connection"),
    (&["YES", "SYNC", "NO"], "ScriptDebugging", "How scripts are debugged"),
    (
        &["MEMORY", "LOG", "DISK", "DEFAULT"],
        "Durability",
        "How safe a write must be before the server replies to it",
    ),
    (&["NORMAL", "MASTER", "REPLICA", "PUBSUB"], "ClientType", "The type of the clients to list"),
    (
        &["NORMAL", "MASTER", "SLAVE", "REPLICA", "PUBSUB"],
        "KilledType",
        "The type of the clients to disconnect",
    ),
];

fn found(table: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(row, _)| *row == name).map(|(_, better)| *better)
}

fn snake(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(letter).collect()
}

/// The function of a row.
pub(super) fn function(row: &str) -> String {
    found(FUNCTIONS, row).map_or_else(|| snake(row), str::to_owned)
}

/// A protocol token as part of a name.
pub(super) fn token(word: &str) -> String {
    found(TOKENS, word).map_or_else(|| snake(word), str::to_owned)
}

/// The name of a parameter for a single argument.
pub(super) fn parameter(name: &str) -> String {
    found(PARAMETERS, name).map_or_else(|| snake(name), str::to_owned)
}

/// The name of a parameter for any number of arguments.
pub(super) fn parameters(name: &str) -> String {
    let one = parameter(name);
    if one.ends_with('s') { one } else { one + "s" }
}

/// The method of an option.
pub(super) fn method(row: &str, name: String) -> String {
    let better = METHODS.iter().find(|(of, own, _)| *of == row && *own == name);
    better.map_or(name, |(_, _, better)| (*better).to_owned())
}

/// The name of the enumeration with these tokens.
///
/// # Panics
/// If there is no such enumeration.
pub(super) fn choice(words: &[&str]) -> &'static str {
    let choice = CHOICES.iter().find(|(choices, ..)| *choices == words);
    choice.unwrap_or_else(|| panic!("the choice {words:?} has no name")).1
}

/// A function name such as `client_list` as a type name.
pub(super) fn type_name(function: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    function.split('_').map(capital).collect()
}

/// The module for a command group.
pub(super) fn module(group: &str) -> &'static str {
    match group {
        "string" => "strings",
        "list" => "lists",
        "hash" => "hashes",
        "set" => "sets",
        "sorted-set" => "sorted_sets",
        "stream" => "streams",
        "generic" => "generic",
        "geo" => "geo",
        "hyperloglog" => "hyperloglog",
        "bitmap" => "bitmap",
        "scripting" => "scripting",
        "pubsub" => "pubsub",
        "transactions" => "transactions",
        "connection" => "connection",
        "server" => "server",
        "cluster" => "cluster",
        other => panic!("the group {other} has no module"),
    }
}
