//! Tests of ACL rules and permission checks, without a server. Expected texts are those of redis-server 7.2 (ACL LIST,
//! ACL DRYRUN), which shows command rules as they were given.

#![allow(clippy::unwrap_used, reason = "a test stops at the first error")]

use brisk_acl::{
    Context, Entry, Journal, Reason, RuleError, SetError, User, Vocabulary, check, file, hash_of,
    hex, reads_every_key,
};
use brisk_config::choice::PubsubDefault;
use brisk_engine::table::CommandTable;
use std::sync::LazyLock;

static TABLE: LazyLock<CommandTable> =
    LazyLock::new(|| brisk_server::commands::table(&[]).unwrap().0);

fn vocabulary() -> Vocabulary<'static> {
    Vocabulary { table: &TABLE, channels: PubsubDefault::ResetChannels }
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

fn user(rules: &str) -> User {
    User::new(PubsubDefault::ResetChannels).changed(&words(rules), vocabulary()).unwrap()
}

fn refused(rules: &str) -> RuleError {
    match User::new(PubsubDefault::ResetChannels).changed(&words(rules), vocabulary()) {
        Err(SetError::Rule(_, error)) => error,
        other => panic!("{rules}: {other:?}"),
    }
}

fn shown(rules: &str) -> String {
    String::from_utf8(user(rules).describe()).unwrap()
}

/// Returns `ok`, or the reply of ACL DRYRUN for the user `u`.
fn dryrun(user: &User, command: &str) -> String {
    let words = words(command);
    let word = |at: usize| words[at];
    let row = TABLE.find(word(0)).unwrap();
    let row = words.get(1).and_then(|word| row.subcommand(word)).unwrap_or(row);
    match check(user, row, words.len(), &word) {
        Ok(()) => "ok".to_owned(),
        Err(denied) => {
            String::from_utf8(denied.text(b"u", row, Some(word(denied.arg_index)))).unwrap()
        }
    }
}

fn no_command(name: &str) -> String {
    format!("User u has no permissions to run the '{name}' command")
}

fn no_key(name: &str) -> String {
    format!("User u has no permissions to access the '{name}' key")
}

fn no_channel(name: &str) -> String {
    format!("User u has no permissions to access the '{name}' channel")
}

#[test]
fn a_new_user_may_do_nothing_and_the_default_one_everything() {
    let user = User::new(PubsubDefault::ResetChannels);
    assert_eq!(user.describe(), b"off sanitize-payload resetchannels -@all");
    assert_eq!(dryrun(&user, "get k"), no_command("get"));
    // Commands that open a connection need no permission.
    for command in ["auth x", "hello", "quit", "reset"] {
        assert_eq!(dryrun(&user, command), "ok");
    }
    let user = User::almighty(vocabulary());
    assert_eq!(user.describe(), b"on nopass sanitize-payload ~* &* +@all");
    assert!(user.is_unrestricted() && user.is_open());
    assert_eq!(shown("reset"), "off sanitize-payload resetchannels -@all");
}

#[test]
fn the_shown_rules_create_the_same_user_again() {
    for (rules, expected) in [
        (
            "on >a",
            "on #ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb sanitize-payload",
        ),
        (
            "on nopass ~a ~b %R~c %W~d &x &y +get",
            "on nopass sanitize-payload ~a ~b %R~c %W~d resetchannels &x &y -@all +get",
        ),
        ("%R~a %W~a %RW~b %wr~c", "off sanitize-payload ~a ~b ~c resetchannels -@all"),
        ("allkeys allchannels allcommands", "off sanitize-payload ~* &* +@all"),
        ("~a ~a &c &c", "off sanitize-payload ~a resetchannels &c -@all"),
        (
            "(~a +get) ( +set ~b )",
            "off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) (~b resetchannels -@all +set)",
        ),
        ("(~a +get) clearselectors", "off sanitize-payload resetchannels -@all"),
        ("skip-sanitize-payload", "off skip-sanitize-payload resetchannels -@all"),
    ] {
        let expected = match expected.strip_suffix(" sanitize-payload") {
            Some(start) if start.contains('#') => {
                let (state, hash) = start.split_once(' ').unwrap();
                format!("{state} sanitize-payload {hash} resetchannels -@all")
            }
            _ => expected.to_owned(),
        };
        assert_eq!(shown(rules), expected, "{rules}");
        assert_eq!(user(&shown(rules)), user(rules), "{rules}");
    }
}

#[test]
fn the_last_rule_about_each_command_is_kept() {
    for (rules, expected) in [
        ("+@all -@hash -@slow +hget", "+@all -@hash -@slow +hget"),
        ("+@all -@hash -@slow +hget -@hash", "+@all -@slow +hget -@hash"),
        ("-@all +@HASH +@hash +@HaSh", "-@all +@hash"),
        ("-@all +HGET +hget +hGeT", "-@all +hget"),
        ("+hget -hset +hset -hget", "-@all +hset -hget"),
        (
            "+client|list +client|list +config|get +config +acl|list -acl",
            "-@all +client|list +config -acl",
        ),
        ("+select|0 +select|0 +debug|segfault +debug", "-@all +select|0 +debug"),
        ("-@all -@dangerous", "-@all -@dangerous"),
        ("+config +config|get -config|set +config", "-@all +config"),
        ("+@all +client|id", "+@all +client|id"),
        ("-@string -@slow +@all", "+@all"),
    ] {
        let described = user(rules).selectors()[0].describe_commands();
        assert_eq!(String::from_utf8(described).unwrap(), expected, "{rules}");
    }
}

#[test]
fn errors_in_rules_are_described() {
    for (rules, error) in [
        ("+nosuch", RuleError::Unknown),
        ("-nosuch", RuleError::Unknown),
        ("+@nosuch", RuleError::Unknown),
        ("+", RuleError::Unknown),
        ("+config|nosuch", RuleError::Unknown),
        ("-get|key", RuleError::Unknown),
        ("+get|a|b", RuleError::Unknown),
        ("+config|get|x", RuleError::FirstArgOfSubcommand),
        ("+get|", RuleError::Syntax),
        ("nonsense", RuleError::Syntax),
        ("%~k", RuleError::Syntax),
        ("%", RuleError::Syntax),
        ("%RR~k", RuleError::Syntax),
        ("%Rk", RuleError::Syntax),
        ("~a\tb", RuleError::Syntax),
        ("allkeys ~a", RuleError::KeyAfterAll),
        ("~* %R~a", RuleError::KeyAfterAll),
        ("&* &a", RuleError::ChannelAfterAll),
        ("<no", RuleError::NoSuchPassword),
        ("#12", RuleError::BadHash),
        ("!G0", RuleError::BadHash),
        (")", RuleError::Syntax),
        ("(+nosuch)", RuleError::Unknown),
        ("(on)", RuleError::Syntax),
    ] {
        assert_eq!(refused(rules), error, "{rules}");
    }
    let unmatched = User::unprivileged().changed(&words("on (~a +get"), vocabulary());
    assert_eq!(unmatched, Err(SetError::Unmatched(b"(~a".to_vec())));
    // A list with an error is not applied at all.
    assert_eq!(User::unprivileged().changed(&words("on +get +nosuch"), vocabulary()).ok(), None);
}

#[test]
fn passwords_are_known_by_their_hashes() {
    let user = user("on >one >two >one");
    assert_eq!(user.passwords().len(), 2);
    assert!(user.admits_password(b"one") && user.admits_password(b"two"));
    for wrong in ["", "three", "One", "one "] {
        assert!(!user.admits_password(wrong.as_bytes()), "{wrong}");
    }
    let changed = |rules: &str| user.changed(&words(rules), vocabulary()).unwrap();
    assert!(!changed("<one").admits_password(b"one"));
    let hash = format!("!{}", hex(&hash_of(b"two")));
    assert!(!changed(&hash).admits_password(b"two"));
    assert!(changed("nopass").admits_password(b"anything"));
    assert!(!changed("nopass >three").admits_password(b"anything"));
    assert!(!changed("off").admits_password(b"one"));
    assert!(!changed("resetpass").admits_password(b"one"));
}

#[test]
fn commands_are_allowed_one_by_one_by_category_and_by_first_argument() {
    let user_of = |rules: &str| user(&format!("~* &* {rules}"));
    let user = user_of("+@read -get +config -config|set +select|0 +acl|whoami");
    for (command, expected) in [
        ("strlen k", "ok".to_owned()),
        ("get k", no_command("get")),
        ("set k v", no_command("set")),
        ("config get x", "ok".to_owned()),
        ("config set a b", no_command("config|set")),
        ("select 0", "ok".to_owned()),
        ("select 1", no_command("select")),
        ("acl whoami", "ok".to_owned()),
        ("acl list", no_command("acl|list")),
    ] {
        assert_eq!(dryrun(&user, command), expected, "{command}");
    }
    assert_eq!(dryrun(&user_of("+select|0 -select"), "select 0"), no_command("select"));
    assert_eq!(dryrun(&user_of("+client"), "client id"), "ok");
    assert!(!user_of("+@all -get").is_unrestricted());
}

#[test]
fn keys_need_permission_for_what_the_command_does_with_them() {
    let user = user("+@all &* ~rw:* %R~r:* %W~w:*");
    for (command, expected) in [
        ("get rw:k", "ok".to_owned()),
        ("get r:k", "ok".to_owned()),
        ("get w:k", no_key("w:k")),
        ("set w:k v", "ok".to_owned()),
        ("set r:k v", no_key("r:k")),
        ("set w:k v get", no_key("w:k")),
        ("copy r:k w:k", "ok".to_owned()),
        ("copy w:k r:k", no_key("w:k")),
        ("mget rw:a r:b x", no_key("x")),
        ("sort r:k by w*", "ok".to_owned()),
        ("sort r:k store w:k", "ok".to_owned()),
        ("bitfield r:k get u8 0", "ok".to_owned()),
        ("bitfield r:k set u8 0 1", no_key("r:k")),
        // Keys that Redis overlooks.
        ("sort r:k store store asc", no_key("store")),
        ("pfmerge other", no_key("other")),
        // These commands read only metadata, so any permission suffices.
        ("exists w:k", "ok".to_owned()),
        ("ping", "ok".to_owned()),
    ] {
        assert_eq!(dryrun(&user, command), expected, "{command}");
    }
}

#[test]
fn every_key_may_be_read_only_with_a_pattern_for_all() {
    let may = |rules: &str| {
        let words = words("sort k by w*");
        reads_every_key(&user(rules), TABLE.find(b"sort").unwrap(), 4, &|at| words[at])
    };
    assert!(may("+sort ~*"));
    assert!(may("+sort %R~* %W~k"));
    assert!(!may("+sort ~k ~w*"));
    assert!(!may("+sort %W~* %R~k"));
    assert!(may("(+sort ~*) +@all"));
    assert!(!may("+sort ~k (+get ~*)"));
}

#[test]
fn channels_match_patterns_and_patterns_match_only_themselves() {
    let user = user("+@all ~* &news:* &exact");
    for (command, expected) in [
        ("publish news:1 x", "ok".to_owned()),
        ("spublish other x", no_channel("other")),
        ("subscribe news:1 exact", "ok".to_owned()),
        ("subscribe news:1 other", no_channel("other")),
        ("ssubscribe other", no_channel("other")),
        ("psubscribe news:*", "ok".to_owned()),
        ("psubscribe news:1", no_channel("news:1")),
        // Unsubscribing is always allowed.
        ("unsubscribe other", "ok".to_owned()),
        ("punsubscribe other", "ok".to_owned()),
    ] {
        assert_eq!(dryrun(&user, command), expected, "{command}");
    }
}

#[test]
fn one_selector_must_allow_all_of_a_command() {
    let user = user("~a:* +get (~b:* +set) (%R~c:* +@read)");
    for (command, expected) in [
        ("get a:k", "ok".to_owned()),
        ("set b:k v", "ok".to_owned()),
        ("set a:k v", no_key("a:k")),
        ("get c:k", "ok".to_owned()),
        ("mget c:k a:k", no_key("a:k")),
        ("del a:k", no_command("del")),
    ] {
        assert_eq!(dryrun(&user, command), expected, "{command}");
    }
}

#[test]
fn a_changed_user_keeps_its_subscribers_if_it_loses_no_channel_rule() {
    let old = user("&a &b* (&c)");
    assert!(user("&a &b* &c &d").keeps_channels_of(&old));
    assert!(user("&*").keeps_channels_of(&old));
    assert!(!user("&a &b*").keeps_channels_of(&old));
    assert!(!user("&a &b* &c").keeps_channels_of(&user("&*")));
    assert!(user("&b*").may_keep_listening(b"b1", false));
    assert!(!user("&b*").may_keep_listening(b"b1", true));
}

#[test]
fn an_aclfile_is_loaded_completely_or_not_at_all() {
    let parse = |text: &str| file::parse(b"users.acl", text.as_bytes(), vocabulary());
    let users = parse("\nuser alice on >x ~a (+get ~b)\n\n user bob\r\n").unwrap();
    assert_eq!(users.len(), 2);
    let text = file::write(users.iter().map(|(name, user)| (&**name, user)));
    assert_eq!(parse(std::str::from_utf8(&text).unwrap()).unwrap(), users);
    let tail = "WARNING: ACL errors detected, no change to the previously active ACL rules was \
        performed";
    for (text, error) in [
        ("alice on", "users.acl:1 should start with user keyword followed by the username. "),
        ("user", "users.acl:1 should start with user keyword followed by the username. "),
        ("user a\tb on", "'users.acl:1: username 'a\tb' contains invalid characters. "),
        ("user a\nuser a", "WARNING: Duplicate user 'a' found on line 2. "),
        (
            "\nuser a +nosuch on >",
            "users.acl:2: Error in applying operation '+nosuch': Unknown \
            command or category name in ACL. ",
        ),
        ("user a bad worse", "users.acl:1: Syntax error. "),
        ("user a (+get", "users.acl:1: Unmatched parenthesis in selector definition."),
        ("# users", "users.acl:1 should start with user keyword followed by the username. "),
    ] {
        let got = parse(text).unwrap_err();
        assert_eq!(String::from_utf8(got).unwrap(), format!("{error}{tail}"), "{text}");
    }
}

#[test]
fn configuration_lines_are_quoted_where_it_is_needed() {
    let user = user("on ~a\"b (~c +get)");
    assert_eq!(
        user.config_words(),
        "on sanitize-payload \"~a\\\"b\" resetchannels -@all (~c resetchannels -@all +get)"
    );
    let read = brisk_config::split_words(user.config_words().as_bytes()).unwrap();
    let read: Vec<&[u8]> = read.iter().map(Vec::as_slice).collect();
    assert_eq!(User::new(PubsubDefault::ResetChannels).changed(&read, vocabulary()), Ok(user));
}

#[test]
fn the_journal_counts_denials_that_are_soon_repeated() {
    let entry = |object: &str, now_ms: u64| {
        let client = format!("at {now_ms}");
        Entry::new(Reason::Key, Context::TopLevel, object.as_bytes(), b"u", client, now_ms)
    };
    let mut journal = Journal::default();
    let shown = |journal: &Journal| -> Vec<(String, u64, u64)> {
        let text = |entry: &Entry| String::from_utf8(entry.object.clone()).unwrap();
        journal.entries().map(|e| (text(e), e.count, e.id)).collect()
    };
    journal.add(entry("a", 1_000), 3);
    journal.add(entry("b", 2_000), 3);
    journal.add(entry("a", 3_000), 3);
    assert_eq!(shown(&journal), [("a".into(), 2, 0), ("b".into(), 1, 1)]);
    let first = journal.entries().next().unwrap();
    assert_eq!((first.created_ms, first.updated_ms, &*first.client), (1_000, 3_000, "at 3000"));
    journal.add(entry("a", 63_001), 3);
    journal.add(entry("c", 63_001), 3);
    assert_eq!(shown(&journal), [("c".into(), 1, 3), ("a".into(), 1, 2), ("a".into(), 2, 0)]);
    // With length zero nothing is recorded, and existing entries are removed.
    journal.add(entry("d", 63_001), 0);
    assert_eq!(shown(&journal), []);
}
