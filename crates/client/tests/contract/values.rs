//! Cases: commands of each type, with the expected replies.

use super::cases;
use brisk::commands::types::Place;
use brisk::{Client, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) const CASES: &[super::Case] = cases! {
    strings counters expiry hashes lists sets sorted_sets streams bitmaps hyperloglogs places copies
    many_keys
};

async fn strings(db: Client, key: String) -> Result<()> {
    assert!(db.set(&key, "héllo").await?);
    assert_eq!(db.get::<String>(&key).await?.as_deref(), Some("héllo"));
    assert_eq!(db.append(&key, " world").await?, 12);
    assert_eq!(db.strlen(&key).await?, 12);
    assert_eq!(db.getrange::<String>(&key, -5, -1).await?, "world");
    assert_eq!(db.get::<String>(&key).await?.as_deref(), Some("héllo world"));
    assert!(db.set(&key, 7).xx().await?);
    assert_eq!(db.getdel::<u16>(&key).await?, Some(7));
    assert_eq!(db.get::<String>(&key).await?, None);
    Ok(())
}

async fn counters(db: Client, key: String) -> Result<()> {
    for n in 1..=20 {
        assert_eq!(db.incr(&key).await?, n);
    }
    assert_eq!(db.incrby(&key, i64::MAX - 20).await?, i64::MAX);
    assert!(db.set(&key, 1).await?);
    assert!((db.incrbyfloat(&key, 0.5).await? - 1.5).abs() < 1e-9);
    Ok(())
}

async fn expiry(db: Client, key: String) -> Result<()> {
    db.set(&key, 1).ex(1000).await?;
    assert!((990..=1000).contains(&db.ttl(&key).await?));
    assert!(db.persist(&key).await?);
    assert_eq!(db.ttl(&key).await?, -1);
    assert!(db.expire(&key, 0).await?);
    assert_eq!(db.ttl(&key).await?, -2);
    assert_eq!(db.exists(&key).await?, 0);
    Ok(())
}

async fn hashes(db: Client, key: String) -> Result<()> {
    let fields = BTreeMap::from([("a", "1"), ("b", ""), ("c", "x y")]);
    assert_eq!(db.hset(&key, &fields).await?, 3);
    let read: HashMap<String, String> = db.hgetall(&key).await?;
    assert_eq!(read.len(), 3);
    assert!(fields.iter().all(|(field, value)| read.get(*field).is_some_and(|own| own == value)));
    assert_eq!(db.hmget::<String>(&key, ["c", "none"]).await?, [Some("x y".to_owned()), None]);
    assert_eq!(db.hincrby(&key, "a", 41).await?, 42);
    assert_eq!(db.hget::<i64>(&key, "a").await?, Some(42));
    assert_eq!(db.hdel(&key, ["a", "b", "none"]).await?, 2);
    assert_eq!(db.hkeys::<String>(&key).await?, ["c"]);
    Ok(())
}

async fn lists(db: Client, key: String) -> Result<()> {
    assert_eq!(db.rpush(&key, ["a", "b", "c"]).await?, 3);
    assert_eq!(db.linsert(&key, Place::Before, "b", "ab").await?, 4);
    db.lset(&key, -1, "d").await?;
    assert_eq!(db.lrange::<String>(&key, 0, -1).await?, ["a", "ab", "b", "d"]);
    assert_eq!(db.lindex::<String>(&key, 9).await?, None);
    assert_eq!(db.lpop::<String>(&key).await?.as_deref(), Some("a"));
    assert_eq!(db.llen(&key).await?, 3);
    Ok(())
}

async fn sets(db: Client, key: String) -> Result<()> {
    let other = format!("{key}:other");
    assert_eq!(db.sadd(&key, [1_i64, 2, 3, 4, 5]).await?, 5);
    assert_eq!(db.sadd(&other, [4_i64, 5, 6]).await?, 3);
    assert!(db.sismember(&key, 3).await?);
    assert_eq!(db.sinter::<BTreeSet<i64>>([&key, &other]).await?, BTreeSet::from([4, 5]));
    assert_eq!(db.srem(&key, [1_i64, 2, 9]).await?, 2);
    assert_eq!(db.smembers::<BTreeSet<i64>>(&key).await?, BTreeSet::from([3, 4, 5]));
    Ok(())
}

async fn sorted_sets(db: Client, key: String) -> Result<()> {
    assert_eq!(db.zadd(&key, [(1.5, "a"), (f64::INFINITY, "c"), (2.0, "b")]).await?, 3);
    assert_eq!(db.zrange::<String>(&key, 0, -1).await?, ["a", "b", "c"]);
    assert_eq!(db.zscore(&key, "c").await?, Some(f64::INFINITY));
    assert_eq!(db.zscore(&key, "none").await?, None);
    assert_eq!(db.zrange::<String>(&key, "(1.5", "+inf").by_score().await?, ["b", "c"]);
    assert!((db.zincrby(&key, 0.25, "a").await? - 1.75).abs() < 1e-9);
    assert_eq!(db.zrank(&key, "b").await?, Some(1));
    assert_eq!(db.zrem(&key, ["a", "b"]).await?, 2);
    Ok(())
}

async fn streams(db: Client, key: String) -> Result<()> {
    type Entries = Vec<(String, BTreeMap<String, String>)>;
    for n in 1..=3 {
        assert_eq!(db.xadd(&key, format!("{n}-0"), ("n", n)).await?, format!("{n}-0"));
    }
    assert_eq!(db.xlen(&key).await?, 3);
    let read: Entries = db.xrange(&key, "2", "+").await?;
    let entry = |n: i64| (format!("{n}-0"), BTreeMap::from([("n".to_owned(), n.to_string())]));
    assert_eq!(read, [entry(2), entry(3)]);
    db.xgroup_create(&key, "group", "0").await?;
    let taken: BTreeMap<String, Entries> = db.xreadgroup("group", "me", &key, ">").await?;
    assert_eq!(taken.get(&key).map(Vec::len), Some(3));
    assert_eq!(db.xack(&key, "group", ["1-0", "3-0", "9-0"]).await?, 2);
    Ok(())
}

async fn bitmaps(db: Client, key: String) -> Result<()> {
    assert_eq!(db.setbit(&key, 1000, 1).await?, 0);
    assert_eq!(db.setbit(&key, 1000, 1).await?, 1);
    assert_eq!((db.getbit(&key, 1000).await?, db.getbit(&key, 1001).await?), (1, 0));
    assert_eq!(db.bitcount(&key).await?, 1);
    Ok(())
}

async fn hyperloglogs(db: Client, key: String) -> Result<()> {
    assert!(db.pfadd(&key, ["a", "b", "c"]).await?);
    assert!(!db.pfadd(&key, ["a", "b"]).await?);
    assert_eq!(db.pfcount(&key).await?, 3);
    Ok(())
}

async fn places(db: Client, key: String) -> Result<()> {
    assert_eq!(db.geoadd(&key, (13.361389, 38.115556, "Palermo")).await?, 1);
    assert_eq!(db.geoadd(&key, (15.087269, 37.502669, "Catania")).await?, 1);
    let meters = db.geodist(&key, "Palermo", "Catania").await?;
    assert!(meters.is_some_and(|meters| (meters - 166_274.15).abs() < 1.0), "{meters:?}");
    let found = db.geopos(&key, ["Palermo", "none"]).await?;
    assert!(found[0].is_some_and(|(east, _)| (east - 13.361389).abs() < 1e-4));
    assert_eq!(found[1], None);
    Ok(())
}

async fn copies(db: Client, key: String) -> Result<()> {
    let (copy, restored) = (format!("{key}:copy"), format!("{key}:restored"));
    db.rpush(&key, ["a", "b"]).await?;
    assert!(db.copy(&key, &copy).await?);
    let dump: Vec<u8> = db.dump(&copy).required().await?;
    db.restore(&restored, 0, dump).await?;
    assert_eq!(db.lrange::<String>(&restored, 0, -1).await?, ["a", "b"]);
    db.rename(&restored, &copy).await?;
    assert_eq!(db.exists([&key, &copy, &restored]).await?, 2);
    assert_eq!(db.del([&key, &copy, &restored]).await?, 2);
    Ok(())
}

async fn many_keys(db: Client, key: String) -> Result<()> {
    let names: Vec<String> = (0..200).map(|n| format!("{key}:{n}")).collect();
    let pairs: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(0..).collect();
    db.mset(&pairs).await?;
    let mut wanted: Vec<Option<usize>> = (0..200).map(Some).collect();
    wanted.push(None);
    let mut requested = names.clone();
    requested.push(format!("{key}:none"));
    assert_eq!(db.mget::<usize>(&requested).await?, wanted);
    Ok(())
}
