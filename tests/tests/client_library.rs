//! A widely used client library performs its everyday operations over both protocols.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::{Config, each_config};
use redis::{Commands, Connection, ErrorKind, InfoDict, RedisResult, ServerErrorKind, SetExpiry};
use redis::{ExistenceCheck, SetOptions};
use std::collections::{BTreeSet, HashMap};

fn connect(server: &Config) -> Connection {
    let address = format!("redis://{}/?protocol=resp{}", server.address(), server.resp());
    redis::Client::open(address).unwrap().get_connection().unwrap()
}

#[test]
fn values_are_written_read_and_counted() {
    each_config(|server| {
        let mut conn = connect(server);
        let _: () = conn.set("text", "héllo").unwrap();
        let _: () = conn.set("bytes", &[0u8, 13, 10, 255][..]).unwrap();
        assert_eq!(conn.get::<_, String>("text").unwrap(), "héllo");
        assert_eq!(conn.get::<_, Vec<u8>>("bytes").unwrap(), [0, 13, 10, 255]);
        assert_eq!(conn.get::<_, Option<String>>("none").unwrap(), None);
        assert_eq!(conn.incr::<_, _, i64>("n", 41).unwrap(), 41);
        assert_eq!(conn.incr::<_, _, i64>("n", 1).unwrap(), 42);
        assert_eq!(conn.incr::<_, _, f64>("n", 0.5).unwrap(), 42.5);
        let _: () = conn.mset(&[("a", "1"), ("b", "2")]).unwrap();
        let read: Vec<Option<i64>> = conn.mget(&["a", "none", "b"]).unwrap();
        assert_eq!(read, [Some(1), None, Some(2)]);
        assert_eq!(conn.append::<_, _, usize>("a", "23").unwrap(), 3);
        assert_eq!(conn.getrange::<_, String>("a", 1, -1).unwrap(), "23");
        assert_eq!(conn.exists::<_, usize>(&["a", "b", "none"]).unwrap(), 2);
        assert_eq!(conn.del::<_, usize>(&["a", "b", "none"]).unwrap(), 2);
    });
}

#[test]
fn ttls_are_set_read_and_removed() {
    each_config(|server| {
        let mut conn = connect(server);
        let _: () = conn.set_ex("k", "v", 100).unwrap();
        assert!((90..=100).contains(&conn.ttl::<_, i64>("k").unwrap()));
        assert!(conn.persist::<_, bool>("k").unwrap());
        assert_eq!(conn.ttl::<_, i64>("k").unwrap(), -1);
        assert!(conn.expire::<_, bool>("k", 1_000).unwrap());
        assert!(conn.pttl::<_, i64>("k").unwrap() > 900_000);
        assert!(!conn.expire::<_, bool>("none", 1_000).unwrap());
        let only_new = SetOptions::default()
            .conditional_set(ExistenceCheck::NX)
            .with_expiration(SetExpiry::PX(60_000));
        let refused: Option<String> = conn.set_options("k", "w", only_new.clone()).unwrap();
        assert_eq!(refused, None);
        let _: () = conn.set_options("new", "w", only_new).unwrap();
        assert!(conn.pttl::<_, i64>("new").unwrap() <= 60_000);
    });
}

#[test]
fn a_pipeline_of_ten_thousand_commands_gets_all_replies() {
    each_config(|server| {
        let mut conn = connect(server);
        let mut pipeline = redis::pipe();
        for i in 0..10_000 {
            pipeline.set(format!("key:{i}"), i).ignore();
        }
        for i in 0..10_000 {
            pipeline.get(format!("key:{i}"));
        }
        let read: Vec<i64> = pipeline.query(&mut conn).unwrap();
        assert!(read.into_iter().eq(0..10_000));
    });
}

#[test]
fn an_iteration_finds_every_key_that_matches() {
    each_config(|server| {
        let mut conn = connect(server);
        let pairs: Vec<(String, i32)> = (0..1_000)
            .flat_map(|i| [(format!("user:{i}"), i), (format!("other:{i}"), i)])
            .collect();
        let _: () = conn.mset(&pairs).unwrap();
        let found: RedisResult<BTreeSet<String>> =
            conn.scan_match::<_, String>("user:*").unwrap().collect();
        let wanted: BTreeSet<String> = (0..1_000).map(|i| format!("user:{i}")).collect();
        assert_eq!(found.unwrap(), wanted);
    });
}

#[test]
fn info_configuration_and_names_are_understood() {
    each_config(|server| {
        let mut conn = connect(server);
        let info: InfoDict = redis::cmd("INFO").query(&mut conn).unwrap();
        assert_eq!(info.get::<u16>("tcp_port"), Some(server.port()));
        assert_eq!(info.get::<String>("role").as_deref(), Some("master"));
        let _: () =
            redis::cmd("CONFIG").arg(&["SET", "maxmemory", "100mb"]).query(&mut conn).unwrap();
        let settings: HashMap<String, String> =
            redis::cmd("CONFIG").arg(&["GET", "maxmemory*"]).query(&mut conn).unwrap();
        assert_eq!(settings["maxmemory"], "104857600");
        assert_eq!(conn.client_getname::<Option<String>>().unwrap(), None);
        let _: () = conn.client_setname("worker").unwrap();
        assert_eq!(conn.client_getname::<Option<String>>().unwrap().as_deref(), Some("worker"));
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut conn).unwrap();
        assert!(list.lines().any(|line| line.contains(" name=worker ")), "{list}");
    });
}

#[test]
fn refusals_arrive_as_errors_and_leave_the_connection_usable() {
    each_config(|server| {
        let mut conn = connect(server);
        let _: () = conn.set("text", "no number").unwrap();
        let error = conn.incr::<_, _, i64>("text", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
        assert_eq!(error.detail(), Some("value is not an integer or out of range"));
        assert_eq!(conn.get::<_, String>("text").unwrap(), "no number");
        let mut second = connect(server);
        assert_eq!(second.get::<_, String>("text").unwrap(), "no number");
    });
}
