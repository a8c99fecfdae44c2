//! Expected replies, events and effects are those of Redis 7.0.15.

use crate::testing::Db;

/// Palermo and Catania, the places of the Redis documentation.
fn sicily() -> Db {
    let mut db = Db::new();
    let add = "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";
    db.check(add, "(integer) 2");
    db
}

#[test]
fn places_are_scores_of_a_sorted_set() {
    let mut db = sicily();
    db.check("ZSCORE s Palermo", "\"3479099956230698\"");
    db.check("GEODIST s Palermo Catania", "\"166274.1516\"");
    db.check("GEODIST s Palermo Catania KM", "\"166.2742\"");
    db.check("GEODIST s Palermo nowhere", "(nil)");
    db.check("GEOHASH s Palermo nowhere", "1) \"sqc8b49rny0\"\n2) (nil)");
    let position = "1) 1) \"13.36138933897018433\"\n   2) \"38.11555639549629859\"\n2) (nil)";
    db.check("GEOPOS s Palermo nowhere", position);
}

#[test]
fn geoadd_obeys_its_options_and_is_propagated_as_zadd() {
    let mut db = sicily();
    db.check("GEOADD s NX 0 0 Palermo", "(integer) 0");
    db.check("GEOADD s XX 0 0 Rome", "(integer) 0");
    db.check("GEOADD s NX XX 0 0 Rome", "(error) ERR syntax error");
    let invalid = "(error) ERR invalid longitude,latitude pair 181.000000,0.000000";
    db.check("GEOADD s 181 0 Rome", invalid);
    db.effects("GEOADD s CH 13.361389 38.115556 Catania", &["ZADD s CH 3479099956230698 Catania"]);
    db.events("GEOADD s 13.361389 38.115556 Rome", &["zadd s"]);
}

#[test]
fn searches_find_what_lies_within() {
    let mut db = sicily();
    let both = "1) \"Palermo\"\n2) \"Catania\"";
    db.check("GEORADIUS s 15 37 200 km", both);
    db.check("GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km DESC", both);
    db.check("GEOSEARCH s FROMLONLAT 15 37 BYBOX 400 400 km COUNT 1", "1) \"Catania\"");
    db.check("GEORADIUSBYMEMBER s Palermo 10 km", "1) \"Palermo\"");
    let far = "1) 1) \"Catania\"\n   2) \"56.4413\"\n   3) (integer) 3479447370796909";
    db.check("GEORADIUS s 15 37 100 km WITHDIST WITHHASH", far);
    db.check(
        "GEORADIUSBYMEMBER s nowhere 10 km",
        "(error) ERR could not decode requested zset member",
    );
    db.check("GEOSEARCH nokey FROMLONLAT 15 37 BYRADIUS 200 km", "(empty array)");
    let exactly =
        "(error) ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH";
    db.check("GEOSEARCH s BYRADIUS 200 km ASC WITHDIST", exactly);
    db.check("GEORADIUS s 15 37 -1 km", "(error) ERR radius cannot be negative");
    db.check(
        "GEORADIUS s 15 37 1 ly",
        "(error) ERR unsupported unit provided. please use M, KM, FT, MI",
    );
    db.check("GEORADIUS s 15 37 1 km ANY", "(error) ERR the ANY argument requires COUNT argument");
}

#[test]
fn results_are_stored_as_places_or_distances() {
    let mut db = sicily();
    db.events("GEORADIUS s 15 37 200 km STORE t", &["georadiusstore t"]);
    db.check("ZRANGE t 0 -1", "1) \"Palermo\"\n2) \"Catania\"");
    let search = "GEOSEARCHSTORE t s FROMLONLAT 15 37 BYRADIUS 100 km STOREDIST";
    assert_eq!(db.run_counting(search), ("(integer) 1".into(), 1));
    assert!(db.run("ZSCORE t Catania").starts_with("\"56.441257870158"));
    db.events("GEOSEARCHSTORE t s FROMLONLAT 0 0 BYRADIUS 1 km", &["del t"]);
    let both = "GEORADIUS s 15 37 200 km STORE t WITHDIST";
    let clash =
        "STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
    db.check(both, &format!("(error) ERR {clash}"));
}
