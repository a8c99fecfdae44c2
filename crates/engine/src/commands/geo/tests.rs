//! Replies are those of a real server.

use crate::testing::Db;

fn sicily() -> Db {
    let mut db = Db::new();
    db.check(
        "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.583333 37.316667 Agrigento",
        "(integer) 3",
    );
    db
}

#[test]
fn points_are_members_with_geohash_numbers() {
    let mut db = sicily();
    db.check("ZSCORE s Palermo", "\"3479099956230698\"");
    db.check("GEODIST s Palermo Catania", "\"166274.1516\"");
    db.check("GEODIST s Palermo Catania KM", "\"166.2742\"");
    db.check("GEODIST s Palermo nowhere", "(nil)");
    db.check("GEOHASH s Palermo nowhere", "1) \"sqc8b49rny0\"\n2) (nil)");
    db.check(
        "GEOPOS s Palermo nowhere",
        "1) 1) \"13.36138933897018433\"\n   2) \"38.11555639549629859\"\n2) (nil)",
    );
    db.check("GEOADD s XX CH 13.4 38.1 Palermo 1 1 other", "(integer) 1");
    db.check(
        "GEOADD s 200 1 far",
        "(error) ERR invalid longitude,latitude pair 200.000000,1.000000",
    );
}

#[test]
fn searches_find_the_members_within() {
    let mut db = sicily();
    db.check(
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHDIST",
        "1) 1) \"Catania\"\n   2) \"56.4413\"\n2) 1) \"Agrigento\"\n   2) \"130.4235\"\n\
         3) 1) \"Palermo\"\n   2) \"190.4424\"",
    );
    db.check(
        "GEOSEARCH s FROMMEMBER Catania BYBOX 300 60 km DESC",
        "1) \"Agrigento\"\n2) \"Catania\"",
    );
    db.check("GEORADIUS s 15 37 200 km COUNT 1", "1) \"Catania\"");
    db.check(
        "GEORADIUSBYMEMBER_RO s Catania 1 m WITHHASH",
        "1) 1) \"Catania\"\n   2) (integer) 3479447370796909",
    );
    db.check(
        "GEOSEARCH s FROMMEMBER nowhere BYRADIUS 1 m",
        "(error) ERR could not decode requested zset member",
    );
}

#[test]
fn searches_find_the_same_in_both_encodings() {
    let (mut packed, mut tree) = (Db::new(), Db::new());
    packed.settings().limits.zset_max_listpack_entries = 1000;
    tree.settings().limits.zset_max_listpack_entries = 0;
    for i in 0..200 {
        let (east, north) = (i * 7919 % 10_000, i * 104_729 % 10_000);
        let line = format!("GEOADD k {}.{east:04} {}.{north:04} p{i}", 2 + i % 4, 46 + i / 4 % 4);
        assert_eq!(packed.run(&line), tree.run(&line));
    }
    for radius in [0, 10, 50, 100, 300, 5000] {
        for more in ["", "ASC", "COUNT 7 ANY", "COUNT 5 DESC", "WITHHASH WITHDIST"] {
            let line = format!("GEOSEARCH k FROMLONLAT 4 48 BYRADIUS {radius} km {more}");
            assert_eq!(packed.run(&line), tree.run(&line), "{line}");
        }
    }
}

#[test]
fn a_stored_search_is_a_sorted_set_and_an_empty_result_deletes_the_key() {
    let mut db = sicily();
    db.events("GEOSEARCHSTORE d s FROMLONLAT 15 37 BYRADIUS 150 km", &["geosearchstore d"]);
    db.check("ZRANGE d 0 -1", "1) \"Agrigento\"\n2) \"Catania\"");
    // The last of several destinations counts, although only the first is locked beforehand.
    db.check("GEORADIUS s 15 37 150 km STORE d STOREDIST e", "(integer) 2");
    db.check("ZRANGE e 0 0 WITHSCORES", "1) \"Catania\"\n2) \"56.441257870158204\"");
    db.events("GEORADIUS s 0 0 1 m STORE d", &["del d"]);
    db.check("EXISTS d", "(integer) 0");
}

#[test]
fn points_are_propagated_as_geohash_numbers() {
    let mut db = Db::new();
    db.effects("GEOADD s NX 13.361389 38.115556 Palermo", &["ZADD s NX 3479099956230698 Palermo"]);
    db.effects("GEOADD s NX 1 1 Palermo", &[]);
}
