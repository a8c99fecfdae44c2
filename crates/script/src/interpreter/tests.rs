//! Tests of scripts with a host that echoes commands.

use super::*;
use crate::host::Called;
use std::time::{Duration, Instant};

/// Replies to `echo`, `fail` and `null`; suspends and stops scripts as a test requests.
#[derive(Default)]
struct Desk {
    pace: Cell<Option<Pace>>,
    log: RefCell<Vec<u8>>,
    pace_calls: Cell<u32>,
}

impl Host for Desk {
    fn call(&self, words: &Words, protocol: Protocol, reply: &mut Vec<u8>) -> Called {
        use brisk_resp::reply::encode;
        let list = words.spans.as_slice();
        let word = |at: usize| words.spans.bytes(&words.bytes, list[at]);
        match word(0) {
            b"echo" => encode::bulk(reply, word(1)),
            b"fail" => encode::error(reply, b"WRONGTYPE it is wrong"),
            b"null" => encode::null(reply, protocol),
            b"raw" => reply.extend_from_slice(word(1)),
            b"abandon" => return Called::Abandoned,
            _ => return Called::Refused("Unknown Redis command called from script".into()),
        }
        Called::Replied
    }
    fn may_call(&self, _: &Words) -> Option<bool> {
        Some(true)
    }
    fn logs(&self, level: u8) -> bool {
        level >= 2
    }
    fn log(&self, _: u8, line: &[u8]) {
        self.log.borrow_mut().extend_from_slice(line);
    }
    fn pace(&self) -> Pace {
        self.pace_calls.set(self.pace_calls.get() + 1);
        self.pace.get().unwrap_or(Pace::GoOn)
    }
}

const VERSION: Version = Version {
    redis: "7.2.4",
    redis_number: 0x0007_0204,
    name: "brisk",
    own: "0.1.0",
    own_number: 0x100,
    texts: &Texts::REDIS,
};

struct Bench {
    desk: Rc<Desk>,
    machine: Interpreter,
}

fn bench() -> Bench {
    let desk = Rc::new(Desk::default());
    let machine = Interpreter::new(Rc::clone(&desk) as Rc<dyn Host>, &VERSION).unwrap();
    Bench { desk, machine }
}

impl Bench {
    fn run(&mut self, source: &str, keys: &[&str], argv: &[&str]) -> (Ended, String) {
        let script = self.machine.compile(source.as_bytes(), 0).unwrap();
        let mut out = Vec::new();
        let keys = keys.iter().map(|key| key.as_bytes());
        let argv = argv.iter().map(|word| word.as_bytes());
        let ended = self.machine.run(&script, true, keys, argv, Protocol::Resp2, &mut out);
        (ended, String::from_utf8_lossy(&out).into_owned())
    }

    fn reply(&mut self, source: &str) -> String {
        let (ended, out) = self.run(source, &["k1", "k2"], &["a1"]);
        match ended {
            Ended::Replied => out,
            Ended::Failed(failure) => {
                let text = String::from_utf8_lossy(&failure.text).into_owned();
                match failure.at {
                    Some((source, line)) => {
                        format!("-{text} at {}:{line}", String::from_utf8_lossy(&source))
                    }
                    None => format!("-{text}"),
                }
            }
            other => format!("{other:?}"),
        }
    }
}

#[test]
fn values_become_replies() {
    let mut bench = bench();
    for (source, reply) in [
        ("return 1", ":1\r\n"),
        ("return 3.99", ":3\r\n"),
        ("return -3.99", ":-3\r\n"),
        ("return 'x'", "$1\r\nx\r\n"),
        ("return true", ":1\r\n"),
        ("return false", "$-1\r\n"),
        ("return nil", "$-1\r\n"),
        ("return {1,'a',{2}}", "*3\r\n:1\r\n$1\r\na\r\n*1\r\n:2\r\n"),
        ("return {1,2,nil,4}", "*2\r\n:1\r\n:2\r\n"),
        ("return {ok='fine'}", "+fine\r\n"),
        ("return {err='bad'}", "-bad"),
        ("return {double=1.5}", "$3\r\n1.5\r\n"),
        ("return {map={a=1}}", "*2\r\n$1\r\na\r\n:1\r\n"),
        ("return {err='\\r\\n a\\nb\\r\\n'}", "-\r\n a\nb"),
        ("return {err='a\\0b'}", "-a"),
        ("return {{err='\\r\\na\\nb\\r\\n'}, {err='a\\0b'}}", "*2\r\n-  a b\r\n-a\r\n"),
        ("return {ok='\\r\\na\\r\\n'}", "+  a  \r\n"),
        ("return {{ok='a\\0b'}}", "*1\r\n+a\r\n"),
        ("return {verbatim_string={format='a\\0b',string='x\\0y'}}", "$3\r\nx\0y\r\n"),
        ("return {big_number='12'}", "$2\r\n12\r\n"),
        ("return redis.status_reply('x')", "+x\r\n"),
        ("return redis.error_reply('My Err')", "-My Err"),
        ("return redis.error_reply('My')", "-ERR My"),
        ("return KEYS[1]..ARGV[1]..#KEYS", "$5\r\nk1a12\r\n"),
        ("return loadstring('return KEYS[2]')()", "$2\r\nk2\r\n"),
        ("return redis.sha1hex('')", "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n"),
        ("return math.random(100)", ":40\r\n"),
        ("return redis.call('echo', 1.5)", "$3\r\n1.5\r\n"),
        ("return redis.call('echo', 3)", "$1\r\n3\r\n"),
        ("return type(redis.call('null'))", "$7\r\nboolean\r\n"),
        ("redis.setresp(3) return type(redis.call('null'))", "$3\r\nnil\r\n"),
        (
            "local ok, why = pcall(redis.call, 'fail') return why",
            "$21\r\nWRONGTYPE it is wrong\r\n",
        ),
        ("return redis.pcall('fail').err", "$21\r\nWRONGTYPE it is wrong\r\n"),
    ] {
        assert_eq!(bench.reply(source), reply, "{source}");
    }
}

#[test]
fn errors_say_where_they_happened() {
    let mut bench = bench();
    for (source, reply) in [
        ("error('x')", "-ERR user_script:1: x at @user_script:1"),
        ("\nerror('x',0)", "-ERR x at @user_script:2"),
        ("error({err='My Err'})", "-My Err at @user_script:1"),
        ("\n\nreturn redis.call('fail')", "-WRONGTYPE it is wrong at @user_script:3"),
        (
            "return redis.call('nope')",
            "-ERR Unknown Redis command called from script at @user_script:1",
        ),
        (
            "return redis.call()",
            "-ERR Please specify at least one argument for this redis lib call at @user_script:1",
        ),
        (
            "return redis.call({})",
            "-ERR Lua redis lib command arguments must be strings or integers at @user_script:1",
        ),
        (
            "return zzz",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'zzz' at \
             @user_script:1",
        ),
        ("a = 1", "-ERR user_script:1: Attempt to modify a readonly table at @user_script:1"),
        (
            "redis.call = 1",
            "-ERR user_script:1: Attempt to modify a readonly table at @user_script:1",
        ),
    ] {
        assert_eq!(bench.reply(source), reply, "{source}");
    }
}

#[test]
fn nothing_that_scripts_share_can_be_changed() {
    let mut bench = bench();
    for attempt in [
        "string.format = 1",
        "getmetatable('').__index = 1",
        "setmetatable(_G, {})",
        "rawset(_G, 'x', 1)",
        "_G.x = 1",
        "getmetatable(_G).__index = nil",
        "table.insert(redis, 1)",
        "redis.register_function = 1",
    ] {
        let reply = bench.reply(attempt);
        assert!(reply.contains("readonly table"), "{attempt}: {reply}");
    }
    assert_eq!(bench.reply("return type(io)"), bench.reply("return type(io)"));
    for absent in ["io", "require", "dofile", "print", "debug", "getfenv", "setfenv", "newproxy"] {
        let reply = bench.reply(&format!("return {absent}"));
        assert!(reply.contains("nonexistent global variable"), "{absent}: {reply}");
    }
}

#[test]
fn keys_and_argv_are_not_affected_by_the_previous_script() {
    let mut bench = bench();
    let look = "local n = 0 for _ in pairs(KEYS) do n = n + 1 end \
                return {n, #KEYS, #ARGV, KEYS[1], KEYS[2], ARGV[1], tostring(KEYS.x), \
                tostring(KEYS[7]), tostring(getmetatable(KEYS)), tostring(getmetatable(ARGV))}";
    let expected = bench.reply(look);
    let nils = "$3\r\nnil\r\n".repeat(4);
    let words = "$2\r\nk1\r\n$2\r\nk2\r\n$2\r\na1\r\n";
    assert_eq!(expected, format!("*10\r\n:2\r\n:2\r\n:1\r\n{words}{nils}"));
    for mischief in [
        "KEYS[1] = 'z' KEYS[7] = 1 KEYS.x = 1 ARGV[2] = {}",
        "KEYS[1] = nil ARGV[1] = nil",
        "setmetatable(KEYS, {__index = function() return 'm' end}) setmetatable(ARGV, {}) KEYS.x = 1",
        "for i = 1, 1000 do KEYS[i] = i ARGV['x' .. i] = KEYS end error('enough')",
        "return KEYS",
        "redis.call('abandon')",
    ] {
        bench.reply(mischief);
        assert_eq!(bench.reply(look), expected, "{mischief}");
    }
    // More runs than the tables are used for.
    for _ in 0..600 {
        assert_eq!(bench.reply("KEYS.x = 1 return {#KEYS, KEYS[2]}"), "*2\r\n:2\r\n$2\r\nk2\r\n");
    }
}

#[test]
fn a_script_is_suspended_and_continues() {
    let mut bench = bench();
    bench.desk.pace.set(Some(Pace::Suspend));
    let source = "local n = 0 for i = 1, 1000 do n = n + 1 end return n";
    let script = bench.machine.compile(source.as_bytes(), 0).unwrap();
    let mut out = Vec::new();
    let none = || std::iter::empty::<&[u8]>();
    let mut ended = bench.machine.run(&script, true, none(), none(), Protocol::Resp2, &mut out);
    let mut times = 0;
    while ended == Ended::Suspended {
        times += 1;
        ended = bench.machine.go_on(Protocol::Resp2, &mut out);
    }
    assert!(times > 5, "{times}");
    assert_eq!((ended, out), (Ended::Replied, b":1000\r\n".to_vec()));
}

#[test]
fn suspension_reaches_through_the_coroutines_of_a_script() {
    let mut bench = bench();
    bench.desk.pace.set(Some(Pace::Suspend));
    let source = "local co = coroutine.wrap(function(a) for i = 1, 500 do a = a + 1 end \
                  a = coroutine.yield(a) for i = 1, 500 do a = a + 1 end return a end) \
                  return {co(1), co(1000)}";
    let script = bench.machine.compile(source.as_bytes(), 0).unwrap();
    let mut out = Vec::new();
    let none = || std::iter::empty::<&[u8]>();
    let mut ended = bench.machine.run(&script, true, none(), none(), Protocol::Resp2, &mut out);
    while ended == Ended::Suspended {
        ended = bench.machine.go_on(Protocol::Resp2, &mut out);
    }
    assert_eq!((ended, out), (Ended::Replied, b"*2\r\n:501\r\n:1500\r\n".to_vec()));
}

/// Rust code that processes a small table may also take a long time.
#[test]
fn conversions_of_large_values_yield_and_can_be_stopped() {
    let mut bench = bench();
    let flat = "local t = {} for i = 1, 20000 do t[i] = i end ";
    let listed: String = (1..=20_000).map(|i| format!(":{i}\r\n")).collect();
    for (source, reply) in [
        ("return t", format!("*20000\r\n{listed}")),
        ("return #cjson.encode(t)", ":108895\r\n".to_owned()),
        ("return #cmsgpack.pack(t)", ":59621\r\n".to_owned()),
    ] {
        let source = format!("{flat}{source}");
        let script = bench.machine.compile(source.as_bytes(), 0).unwrap();
        let (mut out, mut times) = (Vec::new(), 0);
        let none = || std::iter::empty::<&[u8]>();
        bench.desk.pace.set(Some(Pace::Suspend));
        let mut ended = bench.machine.run(&script, true, none(), none(), Protocol::Resp2, &mut out);
        while ended == Ended::Suspended {
            times += 1;
            ended = bench.machine.go_on(Protocol::Resp2, &mut out);
        }
        assert_eq!((ended, out), (Ended::Replied, reply.into_bytes()));
        // Half of the interrupts are in the script itself.
        assert!(times > 550, "{source}: {times}");
    }
    for make in ["return t", "return cjson.encode(t)", "return cmsgpack.pack(t)"] {
        let source = format!("local t = {{}} for i = 1, 15 do t = {{t, t, t, t, t, t}} end {make}");
        let script = bench.machine.compile(source.as_bytes(), 0).unwrap();
        let none = || std::iter::empty::<&[u8]>();
        bench.desk.pace.set(Some(Pace::Suspend));
        let mut out = Vec::new();
        let ended = bench.machine.run(&script, true, none(), none(), Protocol::Resp2, &mut out);
        assert_eq!(ended, Ended::Suspended, "{source}");
        bench.desk.pace.set(Some(Pace::Stop));
        let ended = bench.machine.go_on(Protocol::Resp2, &mut out);
        assert!(matches!(ended, Ended::Stopped(_)) && out.is_empty(), "{source}: {ended:?}");
    }
}

#[test]
fn an_error_after_a_suspension_still_has_its_position() {
    let mut bench = bench();
    bench.desk.pace.set(Some(Pace::Suspend));
    let source = "for i = 1, 500 do end\nerror('late')";
    let script = bench.machine.compile(source.as_bytes(), 0).unwrap();
    let mut out = Vec::new();
    let none = || std::iter::empty::<&[u8]>();
    let mut ended = bench.machine.run(&script, true, none(), none(), Protocol::Resp2, &mut out);
    while ended == Ended::Suspended {
        ended = bench.machine.go_on(Protocol::Resp2, &mut out);
    }
    let Ended::Failed(failure) = ended else { panic!("{ended:?}") };
    assert_eq!(failure.text, b"ERR user_script:2: late");
    assert_eq!(failure.at, Some((b"@user_script".to_vec(), 2)));
}

#[test]
fn a_stopped_script_cannot_continue_by_catching_the_error() {
    let mut bench = bench();
    bench.desk.pace.set(Some(Pace::Stop));
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(pcall, function() while true do end end) end",
        "local co = coroutine.wrap(function() while true do end end) co()",
        "return string.gsub(string.rep('a', 1000), '.', function() while true do end end)",
        "local t = {} for i = 1, 100 do t[i] = i end \
         table.sort(t, function() while true do end end)",
        "return string.rep('a', 100000):find(string.rep('a?', 10000) .. string.rep('a', 100000))",
    ] {
        let begin = Instant::now();
        let (ended, _) = bench.run(source, &[], &[]);
        assert!(matches!(ended, Ended::Stopped(_) | Ended::Failed(_)), "{source}: {ended:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{source}");
    }
    bench.desk.pace.set(None);
    assert_eq!(bench.reply("return 1"), ":1\r\n");
}

#[test]
fn a_stopped_script_says_where_it_was() {
    let mut bench = bench();
    bench.desk.pace.set(Some(Pace::Stop));
    for (source, line) in [
        ("while true do end", 1),
        ("local n = 0\nwhile true do n = n + 1 end", 2),
        ("local function f()\nwhile true do end\nend\nf()", 2),
        ("pcall(function()\n\nwhile true do end end)", 3),
        ("local co = coroutine.wrap(function()\nwhile true do end end) co()", 2),
        ("local t = {} for i = 1, 9999 do t[i] = i end\nreturn cjson.encode({t, t, t, t, t})", 1),
    ] {
        let (ended, _) = bench.run(source, &[], &[]);
        let Ended::Stopped(Some((chunk, at))) = ended else { panic!("{source}: {ended:?}") };
        assert_eq!((chunk, at), (b"@user_script".to_vec(), line), "{source}");
    }
}

#[test]
fn an_abandoned_script_is_dropped() {
    let mut bench = bench();
    let (ended, _) = bench.run("pcall(redis.call, 'abandon') redis.call('echo', 1)", &[], &[]);
    assert_eq!(ended, Ended::Stopped(Some((b"@user_script".to_vec(), 1))));
    assert_eq!(bench.reply("return redis.call('echo', 'x')"), "$1\r\nx\r\n");
}

#[test]
fn a_script_that_allocates_endlessly_fails_and_its_memory_is_freed() {
    let mut bench = bench();
    for source in [
        "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1000) .. i end",
        "local s = 'x' for i = 1, 64 do s = s .. s end",
        "local t = {} while true do pcall(function() while true do t[#t+1] = {1} end end) \
         error('done') end",
        "return string.rep('x', 900000000)",
    ] {
        let (ended, _) = bench.run(source, &[], &[]);
        assert!(matches!(ended, Ended::Failed(_)), "{source}: {ended:?}");
        let _ = bench.run("return 1", &[], &[]);
        bench.machine.lua.gc_collect().unwrap();
        assert!(bench.machine.memory() < 4 << 20, "{source}: {}", bench.machine.memory());
    }
}

/// A small table whose reply would be endless.
#[test]
fn a_reply_is_bounded_even_if_the_value_is_small() {
    let mut bench = bench();
    let too_long = "-ERR the reply is longer than 2097152 bytes";
    for source in [
        "local t = 'x' for i = 1, 40 do t = {t, t} end return t",
        "local t = 'x' for i = 1, 40 do t = {map = {[1] = t, [2] = t}} end return t",
        "local t = 'x' for i = 1, 40 do t = {t, t} end return {set = {[t] = true}}",
    ] {
        assert_eq!(bench.reply(source), too_long, "{source}");
    }
    // A single element may be longer than the longest string of a library.
    let long = bench.reply("return {string.rep('x', 1500000), 1}");
    assert!(long.starts_with("*2\r\n$1500000\r\nx"), "{}", &long[..40]);
}

/// A few values may have many bytes, and writing them must not delay other clients either.
#[test]
fn the_host_is_consulted_after_many_bytes_as_after_many_steps() {
    let mut bench = bench();
    let long = "local t, s = {}, string.rep('x', 100000) for i = 1, 8 do t[i] = s end ";
    for writer in ["return t", "return #cjson.encode(t)", "return #cmsgpack.pack(t)"] {
        let script = |end: &str| format!("{long} {end}");
        bench.reply(&script("return 0"));
        let before = bench.desk.pace_calls.get();
        bench.reply(&script("return 0"));
        let without = bench.desk.pace_calls.get() - before;
        bench.reply(&script(writer));
        let with = bench.desk.pace_calls.get() - before - without;
        assert!(with > without, "{writer}: asked {with} times, {without} without");
    }
}

/// A short reply is written in one pass; a long one counts its elements first.
#[test]
fn long_replies_look_like_short_ones() {
    let mut bench = bench();
    for value in [
        "{1, 'a', {2, {}}, {1, 2, nil, 4}}",
        "{map = {a = {1, 2}}}",
        "{set = {a = true}}",
        "{ok = 'fine'}",
        "{double = 0.5}",
        "{verbatim_string = {format = 'txt', string = 'x'}}",
    ] {
        for protocol in ["", "redis.setresp(3) "] {
            let reply = |bench: &mut Bench, pad: usize| {
                bench.reply(&format!("{protocol}return {{string.rep('x', {pad}), {value}}}"))
            };
            let short = reply(&mut bench, 9);
            let long = reply(&mut bench, 100_000);
            let [short, long] =
                [short, long].map(|text| text.split_once("x\r\n").unwrap().1.to_owned());
            assert_eq!(long, short, "{value}");
        }
    }
    for (open, close, begin) in [("", "", "*1\r\n"), ("map = {a = ", "}", "*2\r\n$1\r\na\r\n")] {
        let nest = format!("for i = 1, 999 do t = {{{open}t{close}}} end return t");
        for long in [10, 100_000] {
            let reply = bench.reply(&format!("local t = string.rep('x', {long}) {nest}"));
            let end = format!("${long}\r\n{}\r\n", "x".repeat(long));
            assert!(reply == begin.repeat(999) + &end, "{open}{long}: {} bytes", reply.len());
        }
    }
}

/// The depths are those to which Redis 7.0.15 allows values to be nested in each way. They were
/// determined by experiment.
#[test]
fn values_can_be_nested_as_deeply_as_the_stack_of_lua_allows() {
    let mut bench = bench();
    for (table, deepest) in [
        ("{t}", 7994),
        ("{1, t}", 7994),
        ("{map = {a = t}}", 2664),
        ("{map = {[t] = 1}}", 1998),
        ("{set = {[t] = 1}}", 2664),
        ("{{map = {a = t}}}", 1998),
        ("{{set = {[t] = 1}}}", 1998),
        ("{map = {a = {set = {[t] = 1}}}}", 1332),
    ] {
        for inner in ["7", "{}"] {
            for (depth, is_too_deep) in [(deepest, false), (deepest + 1, true)] {
                let reply = bench.reply(&format!(
                    "local t = {inner} for i = 1, {depth} do t = {table} end return t"
                ));
                let refused = reply.contains("-ERR reached lua stack limit\r\n");
                assert_eq!(refused, is_too_deep, "{inner} in {table}, {depth} deep");
            }
        }
    }
}

/// The pairs of maps and sets are not copied into the memory of scripts, and only some of them are
/// copied into other memory.
#[test]
fn maps_and_sets_that_fill_the_memory_are_written() {
    let mut bench = bench();
    let (count, fill) = (60_000, "local t = {} for i = 1, 60000 do t[i] = i end");
    for (kind, header) in [("map", 2 * count), ("set", count)] {
        let reply = bench.reply(&format!("{fill} return {{{kind} = t}}"));
        assert!(reply.starts_with(&format!("*{header}\r\n:")), "{kind}: {}", &reply[..40]);
        let mut numbers: Vec<u32> =
            reply[1..].split("\r\n:").skip(1).map(|n| n.trim_end().parse().unwrap()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{kind}");
    }
    // Each level has its own iteration.
    let nested = "local t = {} for i = 1, 9000 do t[i] = i end local u = {map = t} \
                  for i = 1, 3 do local v = {u} for j = 2, 9000 do v[j] = j end u = {map = v} end return u";
    let reply = bench.reply(nested);
    assert_eq!(reply.matches("\r\n").count(), 4 * (2 * 9000 + 1) - 3, "{}", &reply[..40]);
}

/// A few steps can allocate a lot of memory from a small value. The limit also applies after
/// commands, whose replies suspend it for a moment.
#[test]
fn memory_is_bounded_for_every_kind_of_allocation() {
    let mut bench = bench();
    for source in [
        "local s = string.rep('x', 1000) while true do s = s .. s end",
        "local s = string.rep('x', 10000) while true do s = string.gsub(s, '.', s) end",
        "local s = string.rep('x', 1e6) local t = {} for i = 1, 1000 do t[i] = s end \
         return table.concat(t)",
        "local s = string.rep('x', 1e8) return string.format('%s%s%s%s%s%s%s', s, s, s, s, s, s, s)",
        "local s = string.rep('x', 1e8) local a, b, c = s .. 1, s .. 2, s .. 3 local d = s .. 4 \
         local e, f = s .. 5, s .. 6 return #a + #b + #c + #d + #e + #f",
        "local s = redis.call('echo', 'x') for i = 1, 64 do s = s .. s end",
        "local s = redis.pcall('fail').err for i = 1, 64 do s = s .. s end",
        "local ok, s = pcall(redis.call, 'nope') for i = 1, 64 do s = s .. s end",
        "local s = string.rep('x', 1e7) local t = {} \
         for i = 1, 1000 do t[i] = redis.call('echo', s .. i) end",
        "local t = {} for i = 1, 1e9 do t[i] = redis.call('raw', '*3\\r\\n*0\\r\\n*0\\r\\n*0\\r\\n') end",
        "local s = '*9000000\\r\\n' .. string.rep('*0\\r\\n', 9000000) \
         return #redis.call('raw', s)",
    ] {
        let (ended, _) = bench.run(source, &[], &[]);
        let Ended::Failed(failure) = ended else { panic!("{source}: {ended:?}") };
        let text = String::from_utf8_lossy(&failure.text).into_owned();
        // There may be no memory left for the usual message.
        let says = ["not enough memory", "error in error handling"];
        assert!(says.iter().any(|part| text.contains(part)), "{source}: {text}");
        bench.machine.lua.gc_collect().unwrap();
        assert!(bench.machine.memory() < 4 << 20, "{source}: {}", bench.machine.memory());
    }
    assert_eq!(bench.reply("return redis.call('echo', 'x')"), "$1\r\nx\r\n");
}

/// Redis itself takes the lower 32 bits of the first count, and creates 1,410,065,408 bytes in 40
/// s.
#[test]
fn strings_with_too_many_repetitions_are_rejected_before_they_are_created() {
    let mut bench = bench();
    for (count, error) in [
        ("1e10", "resulting string too large"),
        ("2^62", "resulting string too large"),
        ("2^31", "resulting string too large"),
        ("2^30 + 1", "resulting string too large"),
        ("2^30", "not enough memory"),
        ("2^29", "not enough memory"),
    ] {
        let reply = bench.reply(&format!("return #string.rep('x', {count})"));
        assert!(reply.contains(error), "{count}: {reply}");
        let parts = format!("return #string.rep(string.rep('x', 1024), {count})");
        assert!(bench.reply(&parts).contains("resulting string too large"), "{count}");
        assert!(bench.machine.memory() < 4 << 20, "{count}: {}", bench.machine.memory());
    }
    assert_eq!(bench.reply("return #string.rep('', 2^31)"), ":0\r\n");
    assert_eq!(bench.reply("return #string.rep('x', 2^28)"), ":268435456\r\n");
}

#[test]
fn arguments_and_replies_of_any_bytes_arrive() {
    let mut bench = bench();
    let script = "return {KEYS[1], ARGV[1], #ARGV, redis.call('echo', ARGV[1]), \
                  redis.call('echo', ARGV[2])}";
    let script = bench.machine.compile(script.as_bytes(), 0).unwrap();
    let long = vec![b'l'; 1000];
    let many: Vec<&[u8]> =
        [b"\xff\x00".as_slice(), &long].into_iter().chain([&b"w"[..]; 100]).collect();
    for count in [2, 20, 102] {
        let mut out = Vec::new();
        let keys = [b"\xfek".as_slice()].into_iter();
        let argv = many[..count].iter().copied();
        let ended = bench.machine.run(&script, true, keys, argv, Protocol::Resp2, &mut out);
        assert_eq!(ended, Ended::Replied);
        let mut expected = b"*5\r\n$2\r\n\xfek\r\n$2\r\n\xff\x00\r\n".to_vec();
        expected.extend_from_slice(format!(":{count}\r\n").as_bytes());
        expected.extend_from_slice(b"$2\r\n\xff\x00\r\n$1000\r\n");
        expected.extend_from_slice(&long);
        expected.extend_from_slice(b"\r\n");
        assert_eq!(out, expected, "{count}");
    }
}

#[test]
fn each_run_of_a_script_reads_its_own_keys_and_argv() {
    let mut bench = bench();
    // Judging by its text, the script may assign to KEYS and ARGV.
    let source = b"return {select('#', KEYS, ARGV), KEYS[1], #ARGV}";
    let script = bench.machine.compile(source, 0).unwrap();
    for run in 0..100 {
        let (key, mut out) = (run.to_string(), Vec::new());
        let keys = std::iter::once(key.as_bytes());
        let argv = std::iter::empty();
        let ended = bench.machine.run(&script, true, keys, argv, Protocol::Resp2, &mut out);
        assert_eq!(ended, Ended::Replied);
        let expected = format!("*3\r\n:2\r\n${}\r\n{key}\r\n:0\r\n", key.len());
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

#[test]
fn recursion_is_bounded() {
    let mut bench = bench();
    let reply = bench.reply("local function f() return 1 + f() end return f()");
    assert!(reply.contains("stack overflow"), "{reply}");
    let reply = bench.reply("local a = {} a[1] = a return a");
    assert!(reply.ends_with("-ERR reached lua stack limit\r\n"), "{}", reply.len());
}

#[test]
fn libraries_register_functions() {
    let mut bench = bench();
    let code = b"#!lua name=l\nlocal function f(keys, argv) return {keys[1], argv[1]} end\n\
                 redis.register_function('f', f)\n\
                 redis.register_function{function_name='g', callback=f, flags={'no-writes'}, \
                 description='d'}";
    let functions = bench.machine.load_library(code, 12).unwrap();
    let names: Vec<&[u8]> = functions.iter().map(|f| f.name.as_slice()).collect();
    assert_eq!(names, [b"f", b"g"]);
    assert_eq!(functions[1].flags, ScriptFlags::NO_WRITES);
    let mut out = Vec::new();
    let one = |word: &'static [u8]| std::iter::once(word);
    let ended = bench.machine.run(
        &functions[0].function,
        false,
        one(b"k"),
        one(b"a"),
        Protocol::Resp2,
        &mut out,
    );
    assert_eq!((ended, out), (Ended::Replied, b"*2\r\n$1\r\nk\r\n$1\r\na\r\n".to_vec()));
    for (code, text) in [
        ("redis.call('echo', 1)", "nonexistent global variable 'call'"),
        ("redis.setresp(3)", "nonexistent global variable 'setresp'"),
        ("redis.register_function('f', 1)", "second argument to redis.register_function must be a"),
        ("redis.register_function('f-x', function() end)", "Library names can only contain"),
        ("return pairs", "nonexistent global variable 'pairs'"),
        ("foo(", "Error compiling function: user_function:1:"),
    ] {
        let error = bench.machine.load_library(code.as_bytes(), 0).unwrap_err();
        let error = String::from_utf8_lossy(&error).into_owned();
        assert!(error.contains(text), "{code}: {error}");
    }
    let reply = bench.reply("redis.register_function('f', function() end)");
    assert!(reply.contains("attempt to call a nil value"), "{reply}");
}

#[test]
fn functions_of_libraries_find_the_table_arg() {
    let mut bench = bench();
    let code = b"local function count(...) return arg.n end redis.register_function(
        'f' .. count(1, nil), function(keys, args) return count(nil, 2, nil) end)";
    let loaded = bench.machine.load_library(code, 0).unwrap();
    assert_eq!(loaded[0].name, b"f2");
    let (none, mut out) = (std::iter::empty::<&[u8]>, Vec::new());
    let function = &loaded[0].function;
    bench.machine.run(function, false, none(), none(), Protocol::Resp2, &mut out);
    assert_eq!(out, b":3\r\n");
}

#[test]
fn the_steps_to_load_a_library_are_proportional_to_its_functions() {
    let pace_calls = |functions: usize| {
        let mut bench = bench();
        let code: Vec<String> = (0..functions)
            .map(|at| format!("redis.register_function('f{at}', function() return {at} end)\n"))
            .collect();
        let loaded = bench.machine.load_library(code.concat().as_bytes(), 0).unwrap();
        assert_eq!(loaded.len(), functions);
        bench.desk.pace_calls.get()
    };
    let (once, twice) = (pace_calls(1000), pace_calls(2000));
    assert!(twice < 3 * once, "{twice} for 2,000 functions, {once} for 1,000");
    let mut bench = bench();
    let code = "local function f() end for _, name in {'a', 'b', 'a'} do \
                redis.register_function(name, f) end";
    let refused = bench.machine.load_library(code.as_bytes(), 0).unwrap_err();
    let refused = String::from_utf8_lossy(&refused).into_owned();
    assert!(refused.contains("Function already exists in the library"), "{refused}");
    let code = code.replace("'b', 'a'", "'b', 'c'");
    assert_eq!(bench.machine.load_library(code.as_bytes(), 0).unwrap().len(), 3);
}
