//! Strings of several megabytes: commands have the same results as on a real Redis, and their cost depends on the
//! accessed part, not on the length. (M8)

use brisk_testkit::{Conn, Launch, Server, assert_reply, each_backend, each_config};

/// The size of the chunks in which long strings are stored. Errors are most likely at chunk boundaries.
const CHUNK: u64 = 65_536;
const MIB: u64 = 1 << 20;

fn used_memory(server: &Server) -> u64 {
    server.info("used_memory").parse().expect("INFO shows a number")
}

/// A pseudorandom number below `bound`.
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// A position near the end of a chunk, or anywhere.
fn place(state: &mut u64, bound: u64) -> u64 {
    if draw(state, 3) == 0 {
        return draw(state, bound);
    }
    let edge = CHUNK * draw(state, bound.div_ceil(CHUNK));
    (edge + draw(state, 24)).saturating_sub(12).min(bound - 1)
}

/// A command on one of a few long strings.
fn call(state: &mut u64) -> String {
    let span = 5 * CHUNK;
    let (key, other) = (draw(state, 4), draw(state, 4));
    let at = place(state, span);
    let bit = 8 * at + draw(state, 8);
    let end = place(state, span);
    let text = "x7\u{7f}y".repeat(1 + draw(state, 9) as usize);
    match draw(state, 16) {
        0 => format!("SETRANGE k{key} {at} {text}"),
        1 => format!("APPEND k{key} {text}"),
        2 => format!("APPEND k{key} {}", text.repeat(draw(state, 6000) as usize + 1)),
        3 => format!("SETBIT k{key} {bit} {}", draw(state, 2)),
        4 => format!("GETBIT k{key} {bit}"),
        5 => format!("GETRANGE k{key} {at} {end}"),
        6 => format!("GETRANGE k{key} -{at} -{end}"),
        7 => format!("BITCOUNT k{key} {at} {end}"),
        8 => format!("BITCOUNT k{key} {bit} {} BIT", 8 * end),
        9 => format!("BITPOS k{key} {} {at} {end}", draw(state, 2)),
        10 => format!("BITPOS k{key} {} {bit} {} BIT", draw(state, 2), 8 * end),
        11 => {
            let width = 1 + draw(state, 63);
            format!(
                "BITFIELD k{key} GET u{width} {bit} INCRBY i{width} {bit} 77 SET u{width} {} 5",
                8 * end
            )
        }
        12 => {
            let operation = ["AND", "OR", "XOR"][draw(state, 3) as usize];
            format!("BITOP {operation} k{key} k{other} k{} k{key}", draw(state, 5))
        }
        13 => format!("BITOP NOT k{key} k{other}"),
        14 => format!("COPY k{key} k{other} REPLACE"),
        _ => format!("SET k{key} {}", text.repeat(1 + draw(state, 30_000) as usize)),
    }
}

#[test]
fn every_change_and_every_part_is_as_in_a_real_server() {
    let redis = Launch::redis().start();
    each_config(|server| {
        let (mut ours, mut theirs) = (server.connect(), redis.connect());
        assert_reply!(theirs, "FLUSHALL", "OK");
        let mut state = 3;
        for number in 0..1500 {
            let line = call(&mut state);
            let (got, expected) = (ours.cmd(&line), theirs.cmd(&line));
            let shown: String = line.chars().take(120).collect();
            assert!(got == expected, "call {number}, {shown}: not the reply of a real server");
        }
        for key in 0..4 {
            for line in [format!("GET k{key}"), format!("STRLEN k{key}")] {
                assert!(ours.cmd(&line) == theirs.cmd(&line), "{line}");
            }
            same_after_dump(&mut ours, &mut theirs, &format!("k{key}"));
        }
    });
}

/// Each server restores the other's dump.
fn same_after_dump(ours: &mut Conn, theirs: &mut Conn, key: &str) {
    for way in 0..2 {
        let (from, to) =
            if way == 0 { (&mut *ours, &mut *theirs) } else { (&mut *theirs, &mut *ours) };
        let brisk_testkit::reply::Reply::Bulk(payload) = from.cmd(&format!("DUMP {key}")) else {
            continue;
        };
        let restored = to.call(&[b"RESTORE", &b"restored"[..], b"0", &payload, b"REPLACE"]);
        assert_eq!(restored.to_string(), "OK");
        assert!(to.cmd("GET restored") == from.cmd(&format!("GET {key}")));
    }
}

#[test]
fn one_more_byte_evicts_nothing() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        conn.cmd(&format!("SETRANGE s {} x", 60 * MIB - 1));
        // Write all bytes, because zeros would take no memory.
        assert_reply!(conn, "BITOP NOT s s", format!("(integer) {}", 60 * MIB));
        for number in 0..100 {
            conn.cmd(&format!("SET k{number} v"));
        }
        assert_reply!(conn, "CONFIG SET maxmemory-policy allkeys-lru", "OK");
        assert_reply!(conn, "CONFIG SET maxmemory 100mb", "OK");
        assert_reply!(conn, "APPEND s y", format!("(integer) {}", 60 * MIB + 1));
        assert_reply!(conn, "SETBIT s 5 1", "(integer) 1");
        assert_reply!(conn, "DBSIZE", "(integer) 101");
        assert_eq!(server.info("evicted_keys"), "0");
    });
}

#[test]
fn a_change_of_a_copy_takes_a_chunk() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        conn.cmd(&format!("SETRANGE s {} x", 64 * MIB - 1));
        assert_reply!(conn, "BITOP NOT s s", format!("(integer) {}", 64 * MIB));
        let before = used_memory(server);
        assert!(before >= 64 * MIB, "{before}");
        assert_reply!(conn, "COPY s c", "(integer) 1");
        assert_reply!(conn, "SETBIT c 100000000 0", "(integer) 1");
        assert_reply!(conn, "APPEND c tail", format!("(integer) {}", 64 * MIB + 4));
        assert_reply!(conn, "SETRANGE c 30000000 part", format!("(integer) {}", 64 * MIB + 4));
        assert_reply!(conn, "BITFIELD c SET u8 #1000000 7", "1) (integer) 255");
        let grown = used_memory(server) - before;
        assert!(grown < MIB, "four changes of a copy took {grown} bytes");
        assert_reply!(conn, "BITCOUNT s", format!("(integer) {}", 8 * 64 * MIB - 4));
        assert_reply!(conn, "STRLEN s", format!("(integer) {}", 64 * MIB));
    });
}

#[test]
fn memory_is_that_of_the_content() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        let check = |conn: &mut Conn, key: &str, len: u64, before: u64| {
            let takes = used_memory(server) - before;
            let most = len + len / 20;
            assert!(takes <= most, "{key}: {len} bytes take {takes}");
            let usage = conn.cmd(&format!("MEMORY USAGE {key}")).integer() as u64;
            assert!((len..=most).contains(&usage), "{key}: MEMORY USAGE of {len} bytes is {usage}");
        };
        for len in [MIB, MIB + 1, 3 * MIB / 2 + 77, 10 * MIB, 33 * MIB + 12_345] {
            let value = vec![b'v'; len as usize];
            // The first commands let the input buffer and similar memory grow to their final size.
            conn.call(&[b"SET", &b"warm"[..], &value]);
            conn.cmd("DEL warm");
            server.wait_for_info("lazyfree_pending_objects", |pending| pending == "0");
            let before = used_memory(server);
            conn.call(&[b"SET", &b"set"[..], &value]);
            check(&mut conn, "set", len, before);
            conn.cmd("DEL set");
            server.wait_for_info("lazyfree_pending_objects", |pending| pending == "0");
            let before = used_memory(server);
            // Append small pieces, so that the value is measured rather than the request's buffer.
            for piece in value.chunks(8_000) {
                conn.call(&[b"APPEND", &b"appended"[..], piece]);
            }
            check(&mut conn, "appended", len, before);
            conn.cmd("DEL appended");
            server.wait_for_info("lazyfree_pending_objects", |pending| pending == "0");
        }
    });
}

#[test]
fn unwritten_parts_of_a_string_take_no_memory() {
    each_backend(Launch::subject, |server| {
        let mut conn = server.connect();
        let before = used_memory(server);
        assert_reply!(conn, "SETBIT far 4294967295 1", "(integer) 0");
        assert_reply!(conn, "STRLEN far", "(integer) 536870912");
        assert_reply!(conn, "BITCOUNT far", "(integer) 1");
        assert_reply!(conn, "BITPOS far 1", "(integer) 4294967295");
        let takes = used_memory(server) - before;
        assert!(takes < MIB, "512 MiB of zeros take {takes} bytes");
    });
}

#[test]
fn long_strings_in_transactions_and_scripts_are_complete() {
    each_config(|server| {
        let mut conn = server.connect();
        let value: Vec<u8> = (0..3 * CHUNK + 100).map(|at| (at * 7 % 253) as u8).collect();
        conn.call(&[b"SET", &b"k"[..], &value]);
        for line in ["MULTI", "STRLEN k", "GET k", "GETRANGE k 65530 131080"] {
            conn.cmd(line);
        }
        conn.send("EXEC");
        conn.expect_bytes(format!("*3\r\n:{0}\r\n${0}\r\n", value.len()).as_bytes());
        assert!(conn.bytes(value.len()) == value);
        conn.expect_bytes(b"\r\n$65551\r\n");
        assert!(conn.bytes(65_551) == value[65_530..=131_080]);
        conn.expect_bytes(b"\r\n");
        let length = r#"EVAL "return #redis.call('GET', KEYS[1])" 1 k"#;
        assert_reply!(conn, length, format!("(integer) {}", value.len()));
        let part = r#"EVAL "return redis.call('GETRANGE', KEYS[1], 65530, 65540)" 1 k"#;
        conn.send(part);
        conn.expect_bytes(b"$11\r\n");
        assert!(conn.bytes(11) == value[65_530..=65_540]);
        conn.expect_bytes(b"\r\n");
        assert_reply!(
            conn,
            "PFCOUNT k",
            "(error) WRONGTYPE Key is not a valid HyperLogLog string value."
        );
        assert_reply!(conn, "INCR k", "(error) ERR value is not an integer or out of range");
        conn.assert_in_step();
    });
}
