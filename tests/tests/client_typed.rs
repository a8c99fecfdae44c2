//! The client's typed commands have the expected arguments, and a real Redis and our server return the same values
//! (C4).
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk::commands::types::*;
use brisk::commands::*;
use brisk::{Bytes, Client, Command, FromReply, Lanes, Value};
use brisk_testkit::{Kind, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// A real Redis and our server, which get the same requests.
struct Both {
    redis: Client,
    brisk: Client,
    _servers: [Server; 2],
}

fn connected(server: &Server, protocol: u8) -> Client {
    let url = format!("redis://{}", server.address());
    let builder = Client::builder(&url).lanes(Lanes::Count(1)).protocol(protocol);
    builder.connect_blocking().unwrap()
}

/// Runs the body with each protocol.
fn each_protocol(body: impl Fn(&Both)) {
    [3, 2].iter().for_each(|protocol| body(&Both::start(*protocol)));
}

impl Both {
    fn start(protocol: u8) -> Both {
        // On a loaded machine, any command may be slow.
        let launched = |kind: Kind| kind.launch().set("slowlog-log-slower-than", "-1").start();
        let servers = [launched(Kind::Redis), launched(Kind::Brisk)];
        let [redis, brisk] = [0, 1].map(|at: usize| connected(&servers[at], protocol));
        Both { redis, brisk, _servers: servers }
    }

    /// Asserts that the command has these arguments, and that both servers give the same reply, as the same type.
    #[track_caller]
    fn same<T, O>(&self, words: &str, command: impl Fn() -> Command<(), T, O>) -> T
    where
        T: FromReply + PartialEq + Debug,
    {
        let (redis, brisk) = self.both_replies(words, command);
        assert_eq!(brisk, redis, "{words}");
        redis
    }

    /// Like [`Both::same`], for replies that differ between servers.
    #[track_caller]
    fn both_replies<T: FromReply, O>(
        &self,
        words: &str,
        command: impl Fn() -> Command<(), T, O>,
    ) -> (T, T) {
        has_words(words, &command());
        let [redis, brisk] = [&self.redis, &self.brisk]
            .map(|client| command().on(client).wait().map_err(|e| format!("{words}: {e}")));
        (redis.unwrap(), brisk.unwrap())
    }

    /// Asserts that the command, which Redis 7.0 lacks, has these arguments. Returns our server's reply.
    #[track_caller]
    fn ours<T: FromReply, O>(&self, words: &str, command: Command<(), T, O>) -> T {
        has_words(words, &command);
        command.on(&self.brisk).wait().map_err(|e| format!("{words}: {e}")).unwrap()
    }
}

/// Asserts that the command has these arguments, which contain no spaces. `''` is an empty argument.
#[track_caller]
fn has_words<C, T, O>(words: &str, command: &Command<C, T, O>) {
    let own = command.request().arguments().map(|word| match word {
        b"" => "''".to_owned(),
        word => String::from_utf8_lossy(word).into_owned(),
    });
    assert_eq!(own.collect::<Vec<_>>().join(" "), words);
}

fn text(word: &str) -> String {
    word.to_owned()
}

type Words = Vec<String>;
type Entries = Vec<(String, Vec<(String, String)>)>;

#[test]
fn strings() {
    each_protocol(|db| {
        assert!(db.same("SET k v", || set("k", "v")));
        assert!(!db.same("SET k w NX", || set("k", "w").nx()));
        assert!(!db.same("SET none w XX", || set("none", "w").only_if_present()));
        let old = db.same("SET k w GET KEEPTTL", || set("k", "w").get::<String>().keep_ttl());
        assert_eq!(old, Some(text("v")));
        assert!(db.same("SET e v EX 60", || set("e", "v").ex(60)));
        assert!(db.same("SET e v PX 60000 XX", || set("e", "v").px(60_000).xx()));
        assert!(db.same("SET e v EXAT 9999999999", || { set("e", "v").ex_at(9_999_999_999) }));
        assert!(
            db.same("SET e v PXAT 9999999999000", || { set("e", "v").px_at(9_999_999_999_000) })
        );
        assert_eq!(db.same("GET k", || get::<String>("k")), Some(text("w")));
        assert_eq!(db.same("GET none", || get::<String>("none")), None);
        assert_eq!(db.same("GETEX e PERSIST", || getex::<String>("e").persist()), Some(text("v")));
        db.same("GETEX e EX 10", || getex::<String>("e").ex(10));
        assert_eq!(db.same("GETDEL e", || getdel::<String>("e")), Some(text("v")));
        assert_eq!(db.same("APPEND k abc", || append("k", "abc")), 4);
        assert_eq!(db.same("STRLEN k", || strlen("k")), 4);
        assert_eq!(db.same("GETRANGE k 1 -1", || getrange::<String>("k", 1, -1)), "abc");
        assert_eq!(db.same("SETRANGE k 0 xy", || setrange("k", 0, "xy")), 4);
        assert_eq!(db.same("INCR n", || incr("n")), 1);
        assert_eq!(db.same("INCRBY n 41", || incrby("n", 41)), 42);
        assert_eq!(db.same("DECRBY n 2", || decrby("n", 2)), 40);
        assert_eq!(db.same("DECR n", || decr("n")), 39);
        assert_eq!(db.same("INCRBYFLOAT n 0.5", || incrbyfloat("n", 0.5)), 39.5);
        db.same("MSET a 1 b 2", || mset([("a", 1), ("b", 2)]));
        assert!(!db.same("MSETNX b 3 c 4", || msetnx([("b", 3), ("c", 4)])));
        let found = db.same("MGET a none b", || mget::<i64>(["a", "none", "b"]));
        assert_eq!(found, [Some(1), None, Some(2)]);
        db.same("SETEX s 60 v", || setex("s", 60, "v"));
        db.same("PSETEX s 60000 v", || psetex("s", 60_000, "v"));
        assert!(!db.same("SETNX s w", || setnx("s", "w")));
        db.same("MSET x ohmytext y mynewtext", || mset([("x", "ohmytext"), ("y", "mynewtext")]));
        assert_eq!(db.same("LCS x y", || lcs::<String>("x", "y")), "mytext");
        assert_eq!(db.same("LCS x y LEN", || lcs_len("x", "y")), 6);
        db.same("LCS x y IDX MINMATCHLEN 4 WITHMATCHLEN", || {
            lcs_idx::<Value>("x", "y").min_match_len(4).with_match_len()
        });
    });
}

#[test]
fn keys_and_their_deadlines() {
    each_protocol(|db| {
        db.same("MSET a 1 b 2 c 3", || mset([("a", 1), ("b", 2), ("c", 3)]));
        assert_eq!(db.same("EXISTS a none b", || exists(["a", "none", "b"])), 2);
        assert_eq!(db.same("DEL a none", || del(["a", "none"])), 1);
        assert_eq!(db.same("UNLINK a", || unlink("a")), 0);
        assert_eq!(db.same("TOUCH b c", || touch(["b", "c"])), 2);
        assert!(db.same("EXPIRE b 100", || expire("b", 100)));
        assert!(!db.same("EXPIRE b 100 NX", || expire("b", 100).nx()));
        assert!(db.same("PEXPIRE b 200000 GT", || pexpire("b", 200_000).gt()));
        assert!(db.same("EXPIREAT b 9999999999", || expireat("b", 9_999_999_999)));
        assert_eq!(db.same("EXPIRETIME b", || expiretime("b")), 9_999_999_999);
        assert!(
            db.same("PEXPIREAT b 9999999999001 XX", || { pexpireat("b", 9_999_999_999_001).xx() })
        );
        assert_eq!(db.same("PEXPIRETIME b", || pexpiretime("b")), 9_999_999_999_001);
        assert!(db.same("PERSIST b", || persist("b")));
        assert_eq!(db.same("TTL b", || ttl("b")), -1);
        assert_eq!(db.same("TYPE b", || type_of("b")), "string");
        assert!(db.same("COPY b d REPLACE", || copy("b", "d").replace()));
        assert!(db.same("COPY b d DB 3", || copy("b", "d").db(3)));
        assert!(!db.same("MOVE d 3", || move_to("d", 3)));
        db.same("RENAME d e", || rename("d", "e"));
        assert!(!db.same("RENAMENX e b", || renamenx("e", "b")));
        let (cursor, found) = db.same("SCAN 0 MATCH e* COUNT 1000 TYPE string", || {
            scan::<String>(0).matching("e*").count(1000).of_type("string")
        });
        assert_eq!((cursor, found), (0, vec![text("e")]));
        assert_eq!(db.same("KEYS e*", || keys::<String>("e*")), ["e"]);
        db.same("RPUSH l 3 1 2", || rpush("l", [3, 1, 2]));
        let sorted = db.same("SORT l LIMIT 0 2 DESC", || sort::<i64>("l").limit(0, 2).desc());
        assert_eq!(sorted, [3, 2]);
        db.same("SORT l BY w_* GET # GET v_* ALPHA", || {
            sort::<Option<String>>("l").by("w_*").get("#").get("v_*").alpha()
        });
        assert_eq!(db.same("SORT l ASC STORE s", || sort_store("l", "s").asc()), 3);
        assert_eq!(db.same("SORT_RO l", || sort_ro::<i64>("l")), [1, 2, 3]);
        assert_eq!(db.same("OBJECT ENCODING b", || object_encoding("b")), Some(text("int")));
        assert_eq!(db.same("OBJECT REFCOUNT none", || object_refcount("none")), None);
        let (redis, brisk) = db.both_replies("DUMP b", || dump::<Bytes>("b"));
        assert!(redis.is_some() && brisk.is_some());
        has_words("RESTORE r 0 x REPLACE ABSTTL IDLETIME 5", &{
            restore("r", 0, "x").replace().abs_ttl().idle_time(5)
        });
        has_words("MIGRATE h 1 '' 0 10 COPY AUTH2 u p KEYS a b", &{
            migrate("h", 1, "", 0, 10).copy().auth2("u", "p").keys(["a", "b"])
        });
    });
}

#[test]
fn lists() {
    each_protocol(|db| {
        assert_eq!(db.same("RPUSH l a b c d", || rpush("l", ["a", "b", "c", "d"])), 4);
        assert_eq!(db.same("LPUSH l z", || lpush("l", "z")), 5);
        assert_eq!(db.same("RPUSHX none z", || rpushx("none", "z")), 0);
        assert_eq!(db.same("LPOP l", || lpop::<String>("l")), Some(text("z")));
        assert_eq!(db.same("LPOP l 2", || lpop::<String>("l").count(2)), ["a", "b"]);
        assert_eq!(db.same("LPOP none 2", || lpop::<String>("none").count(2)), Words::new());
        assert_eq!(db.same("LRANGE l 0 -1", || lrange::<String>("l", 0, -1)), ["c", "d"]);
        assert_eq!(db.same("LINDEX l 9", || lindex::<String>("l", 9)), None);
        db.same("LSET l 0 x", || lset("l", 0, "x"));
        assert_eq!(db.same("LINSERT l BEFORE d y", || linsert("l", Place::Before, "d", "y")), 3);
        assert_eq!(db.same("LPOS l y", || lpos("l", "y")), Some(1));
        let places = db.same("LPOS l y RANK -1 COUNT 0 MAXLEN 5", || {
            lpos("l", "y").rank(-1).count(0).max_len(5)
        });
        assert_eq!(places, [1]);
        assert_eq!(db.same("LREM l 1 y", || lrem("l", 1, "y")), 1);
        let moved =
            db.same("LMOVE l m LEFT RIGHT", || lmove::<String>("l", "m", Side::Left, Side::Right));
        assert_eq!(moved, Some(text("x")));
        let popped = db.same("LMPOP 2 l m LEFT COUNT 2", || {
            lmpop::<String, String>(["l", "m"], Side::Left).count(2)
        });
        assert_eq!(popped, Some((text("l"), vec![text("d")])));
        assert_eq!(
            db.same("LMPOP 1 none RIGHT", || lmpop::<String, String>("none", Side::Right)),
            None
        );
        db.same("LTRIM m 0 0", || ltrim("m", 0, 0));
        assert_eq!(db.same("LLEN m", || llen("m")), 1);
        has_words("BLPOP a b 0.5", &blpop::<String, String>(["a", "b"], 0.5));
        has_words("BLMPOP 1 2 a b RIGHT COUNT 3", &{
            blmpop::<String, Value>(1, ["a", "b"], Side::Right).count(3)
        });
        has_words("BLMOVE a b LEFT LEFT 0", &blmove::<String>("a", "b", Side::Left, Side::Left, 0));
    });
}

#[test]
fn blocking_pops_give_the_key_and_what_was_taken_from_it() {
    each_protocol(|db| {
        for client in [&db.redis, &db.brisk] {
            let session = brisk::wait(client.session()).unwrap();
            rpush("l", ["a", "b", "c", "d"]).on(client).wait().unwrap();
            let members = [(1.0, "a"), (2.5, "b"), (3.0, "c"), (4.0, "d")];
            zadd("z", members).on(client).wait().unwrap();

            let popped = session.blpop::<String, String>(["none", "l"], 1).wait().unwrap();
            assert_eq!(popped, Some((text("l"), text("a"))));
            let popped = session.brpop::<String, Bytes>("l", 1).wait().unwrap();
            assert_eq!(popped, Some((text("l"), Bytes::from_static(b"d"))));
            let popped = session.blmpop::<String, String>(1, ["none", "l"], Side::Left).count(5);
            assert_eq!(popped.wait().unwrap(), Some((text("l"), vec![text("b"), text("c")])));

            let popped = session.bzpopmin::<String, String>(["none", "z"], 1).wait().unwrap();
            assert_eq!(popped, Some((text("z"), text("a"), 1.0)));
            let popped = session.bzpopmax::<String, String>("z", 1).wait().unwrap();
            assert_eq!(popped, Some((text("z"), text("d"), 4.0)));
            let popped = session.bzmpop::<String, String>(1, "z", Extreme::Min).count(5);
            let members = vec![(text("b"), 2.5), (text("c"), 3.0)];
            assert_eq!(popped.wait().unwrap(), Some((text("z"), members)));

            let soon = 0.01;
            let none: Option<(String, String)> = session.blpop("none", soon).wait().unwrap();
            assert_eq!(none, None);
            assert_eq!(session.brpop::<String, i64>("none", soon).wait().unwrap(), None);
            let popped = session.blmpop::<String, i64>(soon, "none", Side::Right);
            assert_eq!(popped.wait().unwrap(), None);
            assert_eq!(session.bzpopmin::<String, i64>("none", soon).wait().unwrap(), None);
            assert_eq!(session.bzpopmax::<String, i64>("none", soon).wait().unwrap(), None);
            let popped = session.bzmpop::<String, i64>(soon, "none", Extreme::Max);
            assert_eq!(popped.wait().unwrap(), None);

            // An element that cannot be converted to the caller's type causes an error.
            rpush("words", "no number").on(client).wait().unwrap();
            let error = session.blpop::<String, i64>("words", 1).wait().unwrap_err();
            assert_eq!(error.kind(), brisk::Kind::UnexpectedReply);
        }
    });
}

#[test]
fn hashes() {
    each_protocol(|db| {
        assert_eq!(db.same("HSET h a 1 b 2", || hset("h", [("a", 1), ("b", 2)])), 2);
        assert_eq!(db.same("HSET h c 3", || hset("h", ("c", 3))), 1);
        assert_eq!(db.same("HGET h a", || hget::<i64>("h", "a")), Some(1));
        assert_eq!(db.same("HMGET h a z", || hmget::<i64>("h", ["a", "z"])), [Some(1), None]);
        let all = db.same("HGETALL h", || hgetall::<BTreeMap<String, i64>>("h"));
        assert_eq!(all.len(), 3);
        assert!(db.same("HEXISTS h a", || hexists("h", "a")));
        assert!(!db.same("HSETNX h a 9", || hsetnx("h", "a", 9)));
        assert_eq!(db.same("HINCRBY h a 4", || hincrby("h", "a", 4)), 5);
        assert_eq!(db.same("HINCRBYFLOAT h a 0.25", || hincrbyfloat("h", "a", 0.25)), 5.25);
        assert_eq!(db.same("HDEL h a c", || hdel("h", ["a", "c"])), 2);
        assert_eq!(db.same("HKEYS h", || hkeys::<String>("h")), ["b"]);
        assert_eq!(db.same("HVALS h", || hvals::<i64>("h")), [2]);
        assert_eq!(db.same("HSTRLEN h b", || hstrlen("h", "b")), 1);
        assert_eq!(db.same("HLEN h", || hlen("h")), 1);
        assert_eq!(db.same("HRANDFIELD h", || hrandfield::<String>("h")), Some(text("b")));
        let pairs = db.same("HRANDFIELD h 5 WITHVALUES", || {
            hrandfield::<(String, i64)>("h").count(5).with_values()
        });
        assert_eq!(pairs, [(text("b"), 2)]);
        let (cursor, found) = db.same("HSCAN h 0 MATCH b COUNT 10", || {
            hscan::<(String, i64)>("h", 0).matching("b").count(10)
        });
        assert_eq!((cursor, found), (0, vec![(text("b"), 2)]));
        assert_eq!(
            db.ours("HEXPIRE h 100 NX FIELDS 2 b z", hexpire("h", 100, ["b", "z"]).nx()),
            [1, -2]
        );
        assert_eq!(db.ours("HPERSIST h FIELDS 1 b", hpersist("h", "b")), [1]);
        assert_eq!(db.ours("HTTL h FIELDS 1 b", httl("h", ["b"])), [-1]);
        let set = hsetex("h", [("x", 1), ("y", 2)]).fnx().ex(50);
        assert!(db.ours("HSETEX h FNX EX 50 FIELDS 2 x 1 y 2", set));
        let read = hgetex::<i64>("h", ["x", "none"]).persist();
        assert_eq!(db.ours("HGETEX h PERSIST FIELDS 2 x none", read), [Some(1), None]);
        assert_eq!(db.ours("HGETDEL h FIELDS 1 x", hgetdel::<i64>("h", "x")), [Some(1)]);
        let fields = hscan::<String>("h", 0).no_values();
        assert_eq!(db.ours("HSCAN h 0 NOVALUES", fields).1.len(), 2);
    });
}

#[test]
fn sets() {
    each_protocol(|db| {
        assert_eq!(db.same("SADD s a b c", || sadd("s", ["a", "b", "c"])), 3);
        assert_eq!(db.same("SADD t b", || sadd("t", "b")), 1);
        assert!(db.same("SISMEMBER s a", || sismember("s", "a")));
        assert_eq!(db.same("SMISMEMBER s a z", || smismember("s", ["a", "z"])), [true, false]);
        let all = db.same("SMEMBERS s", || smembers::<BTreeSet<String>>("s"));
        assert_eq!(all.len(), 3);
        assert_eq!(db.same("SINTER s t", || sinter::<Words>(["s", "t"])), ["b"]);
        assert_eq!(db.same("SINTERCARD 2 s t LIMIT 5", || sintercard(["s", "t"]).limit(5)), 1);
        assert_eq!(db.same("SDIFFSTORE d s t", || sdiffstore("d", ["s", "t"])), 2);
        assert_eq!(db.same("SUNION s t", || sunion::<BTreeSet<String>>(["s", "t"])).len(), 3);
        assert!(db.same("SMOVE s t a", || smove("s", "t", "a")));
        assert_eq!(db.same("SREM s c", || srem("s", "c")), 1);
        assert_eq!(db.same("SRANDMEMBER s", || srandmember::<String>("s")), Some(text("b")));
        assert_eq!(db.same("SPOP s 4", || spop::<String>("s").count(4)), ["b"]);
        assert_eq!(db.same("SPOP s", || spop::<String>("s")), None);
        assert_eq!(db.same("SSCAN t 0 MATCH a", || sscan::<String>("t", 0).matching("a")).1, ["a"]);
        assert_eq!(db.same("SCARD t", || scard("t")), 2);
    });
}

#[test]
fn sorted_sets() {
    each_protocol(|db| {
        assert_eq!(db.same("ZADD z 1 a 2.5 b", || zadd("z", [(1.0, "a"), (2.5, "b")])), 2);
        assert_eq!(db.same("ZADD z XX GT CH 9 a", || zadd("z", (9, "a")).xx().gt().ch()), 1);
        assert_eq!(db.same("ZADD z INCR 1 a", || zadd("z", (1, "a")).incr()), Some(10.0));
        assert_eq!(db.same("ZADD z NX INCR 1 a", || zadd("z", (1, "a")).nx().incr()), None);
        assert_eq!(db.same("ZINCRBY z 0.5 a", || zincrby("z", 0.5, "a")), 10.5);
        assert_eq!(db.same("ZSCORE z a", || zscore("z", "a")), Some(10.5));
        assert_eq!(db.same("ZMSCORE z a x", || zmscore("z", ["a", "x"])), [Some(10.5), None]);
        assert_eq!(db.same("ZRANGE z 0 -1", || zrange::<String>("z", 0, -1)), ["b", "a"]);
        let scores = db.same("ZRANGE z (1 +inf BYSCORE LIMIT 0 5 WITHSCORES", || {
            zrange::<(String, f64)>("z", "(1", "+inf").by_score().limit(0, 5).with_scores()
        });
        assert_eq!(scores, [(text("b"), 2.5), (text("a"), 10.5)]);
        db.same("ZRANGE z [c [a BYLEX REV", || zrange::<String>("z", "[c", "[a").by_lex().rev());
        assert_eq!(db.same("ZRANK z a", || zrank("z", "a")), Some(1));
        let place = db.ours("ZRANK z a WITHSCORE", zrank("z", "a").with_score());
        assert_eq!(place, Some((1, 10.5)));
        assert_eq!(db.same("ZREVRANK z x", || zrevrank("z", "x")), None);
        assert_eq!(db.same("ZCOUNT z -inf (10.5", || zcount("z", f64::NEG_INFINITY, "(10.5")), 1);
        db.same("ZADD y 1 a", || zadd("y", (1, "a")));
        let union = db.same("ZUNION 2 z y WEIGHTS 1 2 AGGREGATE MAX WITHSCORES", || {
            zunion::<(String, f64)>(["z", "y"])
                .weights([1, 2])
                .aggregate(Aggregate::Max)
                .with_scores()
        });
        assert_eq!(union, [(text("b"), 2.5), (text("a"), 10.5)]);
        assert_eq!(db.same("ZINTERSTORE d 2 z y", || zinterstore("d", ["z", "y"])), 1);
        assert_eq!(db.same("ZINTERCARD 2 z y LIMIT 1", || zintercard(["z", "y"]).limit(1)), 1);
        assert_eq!(db.same("ZDIFF 2 z y", || zdiff::<String>(["z", "y"])), ["b"]);
        assert_eq!(db.same("ZRANGESTORE d z 0 0 REV", || zrangestore("d", "z", 0, 0).rev()), 1);
        let popped = db
            .same("ZMPOP 1 y MIN COUNT 2", || zmpop::<String, String>("y", Extreme::Min).count(2));
        assert_eq!(popped, Some((text("y"), vec![(text("a"), 1.0)])));
        assert_eq!(db.same("ZPOPMAX z", || zpopmax::<String>("z")), [(text("a"), 10.5)]);
        assert_eq!(db.same("ZPOPMIN z 3", || zpopmin::<String>("z").count(3)), [(text("b"), 2.5)]);
        assert_eq!(db.same("ZRANDMEMBER z", || zrandmember::<String>("z")), None);
        let random = db.same("ZRANDMEMBER d 2 WITHSCORES", || {
            zrandmember::<(String, f64)>("d").count(2).with_scores()
        });
        assert_eq!(random, [(text("a"), 10.5)]);
        let found = db.same("ZSCAN d 0", || zscan::<(String, f64)>("d", 0));
        assert_eq!(found, (0, vec![(text("a"), 10.5)]));
        assert_eq!(db.same("ZREMRANGEBYSCORE d 0 99", || zremrangebyscore("d", 0, 99)), 1);
        has_words(
            "BZMPOP 1.5 1 z MAX COUNT 2",
            &bzmpop::<String, Value>(1.5, "z", Extreme::Max).count(2),
        );
        has_words("BZPOPMIN a b 2", &bzpopmin::<String, String>(["a", "b"], 2));
    });
}

#[test]
fn streams() {
    each_protocol(|db| {
        assert_eq!(db.same("XADD x 1-1 a 1 b 2", || xadd("x", "1-1", [("a", 1), ("b", 2)])), "1-1");
        let none =
            db.same("XADD none NOMKSTREAM * a 1", || xadd("none", "*", ("a", 1)).no_mk_stream());
        assert_eq!(none, None);
        db.same("XADD x MAXLEN ~ 100 LIMIT 50 1-2 c 3", || {
            xadd("x", "1-2", ("c", 3)).max_len_about(100).limit(50)
        });
        db.same("XADD x MINID 1-1 1-3 d 4", || xadd("x", "1-3", ("d", 4)).min_id("1-1"));
        assert_eq!(db.same("XLEN x", || xlen("x")), 3);
        let entries: Entries = db.same("XRANGE x - + COUNT 1", || xrange("x", "-", "+").count(1));
        assert_eq!(entries[0].0, "1-1");
        assert_eq!(entries[0].1, [(text("a"), text("1")), (text("b"), text("2"))]);
        db.same("XREVRANGE x + -", || xrevrange::<(String, Words)>("x", "+", "-"));
        let read = db.same("XREAD COUNT 2 STREAMS x y 1-2 0", || {
            xread::<Vec<(String, Entries)>>(["x", "y"], ["1-2", "0"]).count(2)
        });
        assert_eq!(read[0].0, "x");
        assert_eq!(read[0].1[0].0, "1-3");
        db.same("XGROUP CREATE x g 0 MKSTREAM ENTRIESREAD 0", || {
            xgroup_create("x", "g", "0").mk_stream().entries_read(0)
        });
        assert!(db.same("XGROUP CREATECONSUMER x g c", || xgroup_createconsumer("x", "g", "c")));
        let read = db.same("XREADGROUP GROUP g c COUNT 2 STREAMS x >", || {
            xreadgroup::<Vec<(String, Entries)>>("g", "c", "x", ">").count(2)
        });
        assert_eq!(read[0].1.len(), 2);
        assert_eq!(db.same("XACK x g 1-1", || xack("x", "g", "1-1")), 1);
        db.same("XPENDING x g", || xpending::<(i64, String, String, Value)>("x", "g"));
        let pending = db.both_replies("XPENDING x g IDLE 0 - + 10 c", || {
            xpending_range::<(String, String, i64, i64)>("x", "g", "-", "+", 10)
                .idle(0)
                .consumer("c")
        });
        assert_eq!((pending.0.len(), pending.1.len()), (1, 1));
        let claimed = db.same("XCLAIM x g c 0 1-2 FORCE JUSTID", || {
            xclaim::<String>("x", "g", "c", 0, "1-2").force().just_id()
        });
        assert_eq!(claimed, ["1-2"]);
        db.same("XAUTOCLAIM x g c 0 0 COUNT 5 JUSTID", || {
            xautoclaim::<(String, Words, Words)>("x", "g", "c", 0, "0").count(5).just_id()
        });
        db.same("XINFO GROUPS x", || xinfo_groups::<Value>("x"));
        has_words("XINFO STREAM x FULL COUNT 5", &xinfo_stream::<Value>("x").full().count(5));
        assert_eq!(db.same("XDEL x 1-1 1-9", || xdel("x", ["1-1", "1-9"])), 1);
        assert_eq!(db.same("XTRIM x MAXLEN 1", || xtrim_max_len("x", 1)), 1);
        db.same("XTRIM x MINID ~ 1-1 LIMIT 10", || xtrim_min_id("x", "1-1").about().limit(10));
        has_words("XREAD COUNT 1 BLOCK 5 STREAMS x $", &xread_block::<Value>(5, "x", "$").count(1));
        assert!(xread_block::<Value>(5, "x", "$").request().traits().blocks);
        assert!(!xread::<Value>("x", "$").request().traits().blocks);
    });
}

#[test]
fn bitmaps_geo_and_hyperloglogs() {
    each_protocol(|db| {
        assert_eq!(db.same("SETBIT b 7 1", || setbit("b", 7, 1)), 0);
        assert_eq!(db.same("GETBIT b 7", || getbit("b", 7)), 1);
        assert_eq!(db.same("BITCOUNT b", || bitcount("b")), 1);
        assert_eq!(db.same("BITCOUNT b 0 -1 BIT", || bitcount("b").range(0, -1).bit()), 1);
        assert_eq!(db.same("BITPOS b 1 0 -1 BYTE", || bitpos("b", 1).start(0).end(-1).byte()), 7);
        assert_eq!(db.same("BITOP NOT d b", || bitop("NOT", "d", "b")), 1);
        let fields = db.same("BITFIELD b OVERFLOW FAIL INCRBY u2 0 9 GET u8 0 SET u4 0 3", || {
            bitfield("b").overflow(Overflow::Fail).incr_by("u2", 0, 9).get("u8", 0).set("u4", 0, 3)
        });
        assert_eq!(fields, [None, Some(1), Some(0)]);
        db.same("BITFIELD_RO b GET u4 0 GET u4 4", || bitfield_ro("b").get("u4", 0).get("u4", 4));
        assert!(db.same("PFADD p a b", || pfadd("p", ["a", "b"])));
        assert_eq!(db.same("PFCOUNT p none", || pfcount(["p", "none"])), 2);
        db.same("PFMERGE q p", || pfmerge("q", "p"));
        let places = [(13.361389, 38.115556, "Palermo"), (15.087269, 37.502669, "Catania")];
        assert_eq!(
            db.same("GEOADD g NX 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", || {
                geoadd("g", places).nx()
            }),
            2
        );
        let far =
            db.same("GEODIST g Palermo Catania KM", || geodist("g", "Palermo", "Catania").km());
        assert_eq!(far, Some(166.2742));
        db.same("GEOPOS g Palermo none", || geopos("g", ["Palermo", "none"]));
        db.same("GEOHASH g Palermo", || geohash::<String>("g", "Palermo"));
        let near = db.same("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 KM ASC COUNT 1 ANY", || {
            geosearch_from_lon_lat_by_radius::<String>("g", (15, 37), 200, Unit::Km)
                .asc()
                .count(1)
                .any()
        });
        assert_eq!(near.len(), 1);
        db.same("GEOSEARCH g FROMMEMBER Palermo BYBOX 400 400 KM DESC WITHDIST", || {
            geosearch_from_member_by_box::<(String, f64)>("g", "Palermo", 400, 400, Unit::Km)
                .desc()
                .with_dist()
        });
        let stored = db
            .same("GEOSEARCHSTORE s g FROMMEMBER Palermo BYRADIUS 1 KM STOREDIST", || {
                geosearchstore_from_member_by_radius("s", "g", "Palermo", 1, Unit::Km).store_dist()
            });
        assert_eq!(stored, 1);
    });
}

#[test]
fn scripts_and_channels() {
    each_protocol(|db| {
        let sum = db.same("EVAL return{KEYS[1],ARGV[1]} 1 k v", || {
            eval::<(String, String)>("return{KEYS[1],ARGV[1]}", "k").arg("v")
        });
        assert_eq!(sum, (text("k"), text("v")));
        assert_eq!(db.same("EVAL_RO return#KEYS 0", || eval_ro::<i64>("return#KEYS", NONE)), 0);
        let sha = db.same("SCRIPT LOAD return#KEYS", || script_load("return#KEYS"));
        let words = format!("EVALSHA {sha} 2 a b");
        assert_eq!(db.same(&words, || evalsha::<i64>(&sha, ["a", "b"])), 2);
        let words = format!("SCRIPT EXISTS {sha} x");
        assert_eq!(db.same(&words, || script_exists([sha.as_str(), "x"])), [true, false]);
        db.same("SCRIPT FLUSH ASYNC", || script_flush().asynchronous());
        has_words("FUNCTION LOAD REPLACE code", &function_load("code").replace());
        has_words("FUNCTION LIST LIBRARYNAME l* WITHCODE", &{
            function_list::<Value>().library_name("l*").with_code()
        });
        has_words("FCALL f 1 k a", &fcall::<Value>("f", "k").arg("a"));
        assert_eq!(db.same("PUBLISH c m", || publish("c", "m")), 0);
        db.same("PUBSUB CHANNELS c*", || pubsub_channels::<String>().pattern("c*"));
        let subscribers =
            db.same("PUBSUB NUMSUB a b", || pubsub_numsub::<Vec<(String, i64)>>(["a", "b"]));
        assert_eq!(subscribers.len(), 2);
        has_words("SUBSCRIBE a b", &subscribe::<Value>(["a", "b"]));
        has_words("UNSUBSCRIBE a", &unsubscribe::<Value>().channels("a"));
    });
}

#[test]
fn connections_and_transactions() {
    each_protocol(|db| {
        assert_eq!(db.same("PING", ping), "PONG");
        assert_eq!(db.same("PING hi", || ping().message("hi")), "hi");
        assert_eq!(db.same("ECHO hi", || echo::<String>("hi")), "hi");
        assert!(
            db.both_replies("CLIENT LIST TYPE NORMAL", || client_list()
                .of_type(ClientType::Normal))
                .0
                .contains("id=")
        );
        assert_eq!(
            db.same("CLIENT KILL ID 99999 SKIPME yes", || client_kill().id(99_999).skip_me("yes")),
            0
        );
        assert!(!db.same("CLIENT UNBLOCK 99999 ERROR", || { client_unblock(99_999).error() }));
        has_words("CLIENT TRACKING ON REDIRECT 5 PREFIX a PREFIX b BCAST", &{
            client_tracking(Switch::On).redirect(5).prefix("a").prefix("b").bcast()
        });
        assert!(client_tracking(Switch::On).request().traits().binds);
        has_words("AUTH user secret", &auth("secret").username("user"));
        has_words(
            "HELLO 3 AUTH u p SETNAME n",
            &hello::<Value>().protover(3).auth("u", "p").set_name("n"),
        );
        has_words("WATCH a b", &watch(["a", "b"]));
        assert!(watch("a").request().traits().binds && multi().request().traits().binds);
        has_words("MULTI", &multi());
        has_words("EXEC", &exec::<Value>());
    });
}

#[test]
fn servers_and_clusters() {
    each_protocol(|db| {
        let settings =
            db.same("CONFIG GET maxmemory", || config_get::<BTreeMap<String, String>>("maxmemory"));
        assert_eq!(settings["maxmemory"], "0");
        db.same("CONFIG SET maxmemory 100mb timeout 0", || {
            config_set([("maxmemory", "100mb"), ("timeout", "0")])
        });
        assert!(
            db.both_replies("INFO server", || info().sections("server"))
                .0
                .contains("redis_version")
        );
        has_words("REPLICAOF NO ONE", &replicaof_no_one());
        has_words("REPLICAOF host 6379", &replicaof("host", 6379));
        has_words(
            "FAILOVER TO host 1 FORCE TIMEOUT 5",
            &failover().to("host", 1).force().within_ms(5),
        );
        has_words("SHUTDOWN NOSAVE NOW", &shutdown().no_save().now());
        assert_eq!(
            db.same("ACL DRYRUN default GET k", || acl_dryrun("default", "GET").arg("k")),
            "OK"
        );
        db.same("ACL SETUSER u on +get", || acl_setuser("u", ["on", "+get"]));
        assert_eq!(db.same("ACL DELUSER u", || acl_deluser("u")), 1);
        let keys = db.same("COMMAND GETKEYS MSET a 1 b 2", || {
            command_getkeys::<String>(["MSET", "a", "1", "b", "2"])
        });
        assert_eq!(keys, ["a", "b"]);
        let listed = db.same("COMMAND LIST FILTERBY PATTERN xrev*", || {
            command_list::<String>().filter_by_pattern("xrev*")
        });
        assert_eq!(listed, ["xrevrange"]);
        assert_eq!(db.same("SLOWLOG LEN", slowlog_len), 0);
        assert!(
            db.both_replies("MEMORY USAGE none SAMPLES 0", || memory_usage("none").samples(0))
                .0
                .is_none()
        );
        let (seconds, _) = db.both_replies("TIME", time).0;
        assert!(seconds > 0);
        db.same("FLUSHALL ASYNC", || flushall().asynchronous());
        assert_eq!(db.same("DBSIZE", dbsize), 0);
        has_words("CLUSTER SETSLOT 5 MIGRATING node", &cluster_setslot_migrating(5, "node"));
        has_words("CLUSTER ADDSLOTSRANGE 0 5 7 9", &cluster_addslotsrange([(0, 5), (7, 9)]));
    });
}

/// An empty list of arguments.
const NONE: [&str; 0] = [];

#[test]
fn methods_of_a_client_are_the_same_commands() {
    each_protocol(|db| {
        let client = &db.brisk;
        assert!(client.set("k", "v").ex(60).nx().wait().unwrap());
        assert_eq!(client.get::<String>("k").required().wait().unwrap(), "v");
        assert_eq!(client.hset("h", [("a", 1)]).wait().unwrap(), 1);
        assert!(client.get::<String>("k").request().traits().reads_only);
        let error = client.hget::<String>("k", "f").wait().unwrap_err();
        assert_eq!(error.code(), Some(brisk::Code::WrongType));
    });
}
