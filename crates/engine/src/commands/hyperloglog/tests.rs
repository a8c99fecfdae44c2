//! Compares replies, bytes, effects and events of HyperLogLog commands with those recorded from a
//! real server.

use crate::testing::Db;

#[test]
fn replies_and_bytes_are_those_of_a_real_server() {
    Db::new().replay(include_str!("tests/transcript.txt")).invariants();
}

#[test]
fn only_changes_publish_events() {
    let mut db = Db::new();
    db.events("PFADD h", &["pfadd h"]).effects("PFADD h", &[]);
    assert_eq!(db.run_counting("PFADD h a b").1, 2);
    assert_eq!(db.run_counting("PFADD new a b").1, 3);
    db.events("PFADD h a b", &[]).events("PFADD h c", &["pfadd h"]);
    db.effects("PFCOUNT h", &["PFCOUNT h"]).effects("PFCOUNT h", &[]);
    db.check("PFADD h d", "(integer) 1").events("PFCOUNT h", &[]);
    db.effects("PFCOUNT h new", &[]);
    db.events("PFMERGE m", &["pfadd m"]).effects("PFMERGE m h", &["PFMERGE m h"]);
    db.events("PFDEBUG TODENSE h", &[]).effects("PFDEBUG GETREG new", &["PFDEBUG GETREG new"]);
}

#[test]
fn a_ttl_survives_additions_and_merges() {
    let mut db = Db::new();
    db.check("PFADD h a", "(integer) 1").check("EXPIRE h 100", "(integer) 1");
    db.check("PFADD h b", "(integer) 1").check("PFMERGE h h", "OK").check("TTL h", "(integer) 100");
}
