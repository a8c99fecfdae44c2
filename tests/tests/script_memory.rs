//! The memory of scripts and libraries: each worker has two interpreters, each with its own limit, and the script that
//! exceeds a limit gets an error.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, assert_reply, wait_until};
use brisk_tests::with_workers;
use std::time::Duration;

/// A library whose function retains 300 MB more with each call. The second call exceeds the limit.
const HOG: &str = "#!lua name=hog\nlocal kept = {}\nredis.register_function('hog', function() \
                   for i = 1, 300 do kept[#kept + 1] = string.rep('x', 1000000) .. #kept end return #kept end)";
/// A library whose function retains nothing, but creates 30 MB of garbage.
const MODEST: &str = "#!lua name=modest\nredis.register_function('modest', function() \
                      for i = 1, 30 do local s = string.rep('x', 1000000) .. i end return 'fine' end)";
const ALLOCATES: &str =
    "local t = {} for i = 1, 50 do t[i] = string.rep('x', 1000000) .. i end return #t";
const MIB: u64 = 1 << 20;

fn load(conn: &mut Conn, code: &str) {
    let reply = conn.call(&["FUNCTION", "LOAD", "REPLACE", code]);
    assert!(!reply.is_error(), "{reply}");
}

fn bytes(conn: &mut Conn, field: &str) -> u64 {
    conn.info(field).parse().unwrap()
}

/// Calls `hog` until its interpreter is full.
fn fill(conn: &mut Conn) {
    load(conn, HOG);
    assert_reply!(conn, "FCALL hog 0", "(integer) 300");
    let reply = conn.cmd("FCALL hog 0").to_string();
    assert!(reply.contains("not enough memory"), "{reply}");
}

#[test]
fn a_library_that_fills_its_interpreter_does_not_affect_scripts() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(1).start();
    let mut conn = server.connect();
    fill(&mut conn);
    for _ in 0..3 {
        assert_eq!(conn.call(&["EVAL", ALLOCATES, "0"]).integer(), 50);
        let reply = conn.cmd("FCALL hog 0").to_string();
        assert!(reply.contains("not enough memory"), "{reply}");
    }
    assert!(bytes(&mut conn, "used_memory_vm_functions") > 400 * MIB);
    assert!(bytes(&mut conn, "used_memory_vm_eval") < 100 * MIB);
    let total =
        bytes(&mut conn, "used_memory_vm_functions") + bytes(&mut conn, "used_memory_vm_eval");
    assert_eq!(bytes(&mut conn, "used_memory_vm_total"), total);
}

#[test]
fn a_script_that_fills_its_interpreter_does_not_affect_functions() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(1).start();
    let mut conn = server.connect();
    load(&mut conn, MODEST);
    let all = "local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end";
    for _ in 0..3 {
        let reply = conn.call(&["EVAL", all, "0"]).to_string();
        assert!(reply.contains("not enough memory"), "{reply}");
        assert_reply!(conn, "FCALL modest 0", "\"fine\"");
    }
    assert_reply!(conn, "SCRIPT FLUSH", "OK");
    assert!(bytes(&mut conn, "used_memory_vm_eval") < 16 * MIB);
}

/// The freed memory includes memory that the last executed function has retained.
#[test]
fn a_deleted_library_frees_its_memory() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(1).start();
    let mut conn = server.connect();
    load(&mut conn, MODEST);
    let without = payload_of(&mut conn);
    let ways: [(&str, Vec<&[u8]>); 4] = [
        ("deleted", vec![b"FUNCTION", b"DELETE", b"hog"]),
        ("replaced", vec![b"FUNCTION", b"LOAD", b"REPLACE", HOG.as_bytes()]),
        ("restored over", vec![b"FUNCTION", b"RESTORE", &without, b"FLUSH"]),
        ("flushed", vec![b"FUNCTION", b"FLUSH"]),
    ];
    for (way, words) in ways {
        fill(&mut conn);
        let reply = conn.call(&words);
        assert!(!reply.is_error(), "{way}: {reply}");
        let left = bytes(&mut conn, "used_memory_vm_functions");
        assert!(left < 16 * MIB, "{way}: {left}");
        if way == "flushed" {
            // The interpreter was dropped.
            assert_eq!(left, 0);
            assert_reply!(conn, "FCALL modest 0", "(error) ERR Function not found");
            load(&mut conn, MODEST);
        }
        assert_reply!(conn, "FCALL modest 0", "\"fine\"");
    }
}

fn payload_of(conn: &mut Conn) -> Vec<u8> {
    match conn.cmd("FUNCTION DUMP") {
        brisk_testkit::reply::Reply::Bulk(bytes) => bytes,
        other => panic!("{other}"),
    }
}

#[test]
fn garbage_does_not_make_functions_fail() {
    let server = with_workers(1).start();
    let mut conn = server.connect();
    load(&mut conn, HOG);
    load(&mut conn, MODEST);
    assert_reply!(conn, "FCALL hog 0", "(integer) 300");
    // Test garbage in one call and in many calls.
    let much = "#!lua name=much\nredis.register_function('much', function() \
                for i = 1, 600 do local s = string.rep('x', 1000000) .. i end return 'fine' end)";
    load(&mut conn, much);
    assert_reply!(conn, "FCALL much 0", "\"fine\"");
    for _ in 0..20 {
        assert_reply!(conn, "FCALL modest 0", "\"fine\"");
    }
}

#[test]
fn info_separates_scripts_and_functions() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    assert_eq!(bytes(&mut conn, "number_of_cached_scripts"), 0);
    assert_reply!(conn, "EVAL 'return 1' 0", "(integer) 1");
    let [eval, functions] =
        ["used_memory_vm_eval", "used_memory_vm_functions"].map(|field| bytes(&mut conn, field));
    let counts = ["number_of_cached_scripts", "number_of_functions", "number_of_libraries"];
    assert_eq!(counts.map(|field| bytes(&mut conn, field)), [1, 0, 0]);
    let before = bytes(&mut conn, "used_memory_functions");
    let code = "#!lua name=keeps\nlocal t = {} for i = 1, 20000 do t[i] = i .. 'th' end\n\
                redis.register_function('f', function() return #t end)\n\
                redis.register_function('g', function() return #t end)";
    load(&mut conn, code);
    assert_eq!(counts.map(|field| bytes(&mut conn, field)), [1, 2, 1]);
    assert!(bytes(&mut conn, "used_memory_functions") > before);
    assert!(bytes(&mut conn, "used_memory_vm_functions") > functions + 500_000);
    assert!(bytes(&mut conn, "used_memory_vm_eval") < eval + 100_000);
    assert_eq!(bytes(&mut conn, "used_memory_lua"), bytes(&mut conn, "used_memory_vm_eval"));
    for (sum, parts) in [
        ("used_memory_vm_total", ["used_memory_vm_eval", "used_memory_vm_functions"]),
        ("used_memory_scripts", ["used_memory_scripts_eval", "used_memory_functions"]),
    ] {
        let parts: u64 = parts.map(|field| bytes(&mut conn, field)).iter().sum();
        assert_eq!(bytes(&mut conn, sum), parts, "{sum}");
    }
}

/// A worker has two interpreters, but runs only one script or function at a time.
#[test]
fn scripts_wait_for_a_function_that_is_suspended() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(1).set("busy-reply-threshold", "20").start();
    let [mut runner, mut conn] = server.connections();
    let code = "#!lua name=slow\nlocal kept = {'kept'}\n\
                redis.register_function('forever', function() while kept[1] == 'kept' do end end)\n\
                redis.register_function('quick', function() return kept[1] end)";
    let busy = "(error) BUSY Redis is busy running a script. You can only call FUNCTION KILL or \
                SHUTDOWN NOSAVE.";
    for _ in 0..3 {
        load(&mut conn, code);
        assert_reply!(conn, "EVAL 'return 1' 0", "(integer) 1");
        runner.send("FCALL forever 1 k");
        // A script with other keys gets BUSY.
        wait_until("the function is slow", || {
            conn.cmd("EVAL 'return 2' 1 other").to_string() == busy
        });
        assert_reply!(conn, "FUNCTION KILL", "OK");
        assert!(runner.has_reply_within(Duration::from_secs(10)));
        assert!(runner.reply().to_string().contains("killed by user"));
        assert_reply!(conn, "EVAL 'return 2' 1 other", "(integer) 2");
        assert_reply!(conn, "FCALL quick 0", "\"kept\"");
        assert_reply!(conn, "FUNCTION FLUSH", "OK");
    }
}
