//! Cases: errors, missing and empty values, binary and large values.

use super::cases;
use brisk::{Bytes, Client, Code, Kind, Result, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const CASES: &[super::Case] = cases! {
    errors_have_their_codes_and_harm_no_other_caller
    nothing_is_not_empty
    lists_of_nothing_are_empty
    any_bytes_are_a_key_and_a_value
    large_values_arrive_complete
    replies_of_another_type_are_an_error_and_shift_nothing
};

/// The code of the server's error reply. Any other error ends the case.
fn refused<T: std::fmt::Debug>(reply: Result<T>) -> Result<Code> {
    match reply {
        Err(error) => error.code().ok_or(error),
        Ok(reply) => panic!("it is no error: {reply:?}"),
    }
}

async fn errors_have_their_codes_and_harm_no_other_caller(db: Client, key: String) -> Result<()> {
    db.set(&key, "text").await?;
    assert_eq!(refused(db.rpush(&key, "a").await)?, Code::WrongType);
    assert_eq!(refused(db.incr(&key).await)?, Code::Err);
    assert_eq!(refused(db.raw::<()>("NOSUCHCOMMAND").key(&key).await)?, Code::Err);
    assert_eq!(refused(db.raw::<()>("GET").key(&key).arg("too many").await)?, Code::Err);
    assert_eq!(refused(db.evalsha::<()>("0".repeat(40), &key).await)?, Code::NoScript);
    let none = format!("{key}:none");
    assert_eq!(refused(db.xreadgroup::<()>("none", "me", &none, ">").await)?, Code::NoGroup);
    assert_eq!(db.get::<String>(&key).await?.as_deref(), Some("text"));
    Ok(())
}

async fn nothing_is_not_empty(db: Client, key: String) -> Result<()> {
    assert_eq!(db.get::<String>(&key).await?, None);
    assert_eq!(db.get::<Bytes>(&key).await?, None);
    match db.get::<String>(&key).required().await {
        Err(error) if error.kind() == Kind::Missing => {}
        Err(error) => return Err(error),
        Ok(value) => panic!("there is none: {value}"),
    }
    db.set(&key, "").await?;
    assert_eq!(db.get::<String>(&key).await?, Some(String::new()));
    assert_eq!(db.get::<Bytes>(&key).await?, Some(Bytes::new()));
    assert_eq!(db.strlen(&key).await?, 0);
    let hash = format!("{key}:hash");
    db.hset(&hash, ("", "")).await?;
    assert_eq!(db.hmget::<String>(&hash, ["", "none"]).await?, [Some(String::new()), None]);
    Ok(())
}

async fn lists_of_nothing_are_empty(db: Client, key: String) -> Result<()> {
    assert!(db.lrange::<String>(&key, 0, -1).await?.is_empty());
    assert!(db.hgetall::<BTreeMap<String, String>>(&key).await?.is_empty());
    assert!(db.smembers::<BTreeSet<String>>(&key).await?.is_empty());
    assert_eq!(db.lpop::<String>(&key).await?, None);
    assert_eq!(db.spop::<String>(&key).await?, None);
    let nothing: Value = db.raw("GET").key(&key).await?;
    assert!(nothing.is_null(), "{nothing:?}");
    Ok(())
}

async fn any_bytes_are_a_key_and_a_value(db: Client, key: String) -> Result<()> {
    let all: Vec<u8> = (0..=255).chain(*b"\r\n$-1\r\n*3\r\n\0").collect();
    let binary = [key.as_bytes(), &all].concat();
    db.set(&binary, &all).await?;
    assert_eq!(db.get::<Vec<u8>>(&binary).await?.as_ref(), Some(&all));
    assert_eq!(db.exists(&key).await?, 0);
    let list = format!("{key}:list");
    db.rpush(&list, [&b"\r\n"[..], b"", b"+OK\r\n", &all]).await?;
    let read: Vec<Bytes> = db.lrange(&list, 0, -1).await?;
    assert_eq!(read, [&b"\r\n"[..], b"", b"+OK\r\n", &all]);
    Ok(())
}

async fn large_values_arrive_complete(db: Client, key: String) -> Result<()> {
    let large: Vec<u8> = (0..200_000_u32).flat_map(|n| [n as u8, (n >> 7) as u8]).collect();
    let bulk = db.bulk();
    bulk.set(&key, &large).await?;
    let (read, small) = tokio::join!(bulk.get::<Bytes>(&key), db.strlen(&key));
    assert_eq!(small?, 400_000);
    assert!(read?.is_some_and(|read| read == large));
    let list = format!("{key}:list");
    let items: Vec<String> = (0..3000).map(|n| format!("item {n}")).collect();
    assert_eq!(db.rpush(&list, &items).await?, 3000);
    assert_eq!(db.lrange::<String>(&list, 0, -1).await?, items);
    Ok(())
}

async fn replies_of_another_type_are_an_error_and_shift_nothing(
    db: Client,
    key: String,
) -> Result<()> {
    db.rpush(&key, ["a", "b"]).await?;
    match db.raw::<i64>("LRANGE").key(&key).args([0, -1]).await {
        Err(error) if error.kind() == Kind::UnexpectedReply => {}
        Err(error) => return Err(error),
        Ok(number) => panic!("it is a list: {number}"),
    }
    assert_eq!(db.llen(&key).await?, 2);
    Ok(())
}
