//! Tests of the tools that check replicas: every kind of difference is found, and the writers cover all types.

use brisk_testkit::digest::{Holder, first_difference};
use brisk_testkit::writers::{DATABASES, Writers, wait_until_nothing_expires};
use brisk_testkit::{Kind, Server};
use std::collections::BTreeSet;

fn holder(server: &Server) -> Holder {
    Holder::new(Kind::Redis, &server.address())
}

const CODE: &str = "'#!lua name=lib\nredis.register_function(\"f\", function() return 1 end)'";

#[test]
fn each_difference_is_found_and_named() {
    let servers = [(); 2].map(|()| Kind::Redis.launch().start());
    let [mut one, mut other] = servers.each_ref().map(Server::connect);
    let found = || first_difference(&holder(&servers[0]), &holder(&servers[1]));
    let load = format!("FUNCTION LOAD {CODE}");
    for line in [
        "SET k v",
        "HSET h f v",
        "RPUSH l a b",
        "SADD s a 1",
        "ZADD z 1.5 a",
        "XADD x 1-1 f v",
        "XADD x 1-2 f v",
        "XGROUP CREATE x g 1-1",
        &load,
    ] {
        one.cmd(line);
        other.cmd(line);
    }
    assert_eq!(found(), None);
    for (change, back, names) in [
        ("SET k w", "SET k v", "database 0, key \"k\""),
        ("PEXPIREAT k 4000000000000", "PERSIST k", "PEXPIRETIME"),
        ("SET new 1", "DEL new", "key \"new\": the second has it alone"),
        ("HSET h f w", "HSET h f v", "key \"h\""),
        ("LSET l 0 c", "LSET l 0 a", "key \"l\""),
        ("SMOVE s t a", "SMOVE t s a", "key \""),
        ("ZADD z 1.25 a", "ZADD z 1.5 a", "key \"z\""),
        ("XGROUP SETID x g 1-2", "XGROUP SETID x g 1-1", "groups"),
        ("XGROUP CREATECONSUMER x g c", "XGROUP DELCONSUMER x g c", "groups"),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS x >", "XGROUP DELCONSUMER x g c", "groups"),
        ("XGROUP SETID x g 1-1", "XGROUP SETID x g 1-1", ""),
        ("XSETID x 9-9", "XSETID x 1-2", "last-generated-id"),
        ("MOVE k 5", "SELECT 5", "key \"k\""),
        ("MOVE k 0", "SELECT 0", ""),
        ("FUNCTION FLUSH", &load, "libraries"),
    ] {
        other.cmd(change);
        if !names.is_empty() {
            let difference = found().unwrap_or_default();
            assert!(difference.contains(names), "{change}: {difference}");
        }
        other.cmd(back);
    }
    assert_eq!(found(), None);
}

#[test]
fn writers_write_every_type_into_several_databases_and_leave_stable_data() {
    let server = Kind::Redis.launch().start();
    let mut conn = server.connect();
    let mut types = BTreeSet::new();
    let mut used = [false; DATABASES];
    // The writers occasionally delete everything.
    for round in 0..6 {
        let written = Writers::to(&server.address(), round).run(2, |step| step < 300);
        assert!(written.errors * 5 < written.commands, "{written:?}");
        for (db, used) in used.iter_mut().enumerate() {
            conn.cmd(&format!("SELECT {db}"));
            for key in conn.cmd("KEYS *").elements() {
                types.insert(conn.call(&["TYPE", &key.text()]).text());
                *used = true;
            }
        }
    }
    assert_eq!(used, [true; DATABASES]);
    types.remove("none"); // just expired
    assert_eq!(Vec::from_iter(types), ["hash", "list", "set", "stream", "string", "zset"]);
    wait_until_nothing_expires(&server.address());
    let digest = holder(&server).digest();
    assert_eq!(holder(&server).digest(), digest);
}
