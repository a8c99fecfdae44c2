//! Cases: batches, transactions, scripts, sessions, listeners.

use super::cases;
use brisk::commands::{get, incr, rpush, set};
use brisk::{Client, Code, Command, Event, Kind, Result, Script, Step};

pub(crate) const CASES: &[super::Case] = cases! {
    batches_give_each_reply_its_place
    transactions_are_whole_or_not_at_all
    scripts_run_by_their_digest
    sessions_keep_what_they_are
    sessions_wait_for_others
    watched_keys_change_under_nobodys_feet
    listeners_hear_what_is_published
};

async fn batches_give_each_reply_its_place(db: Client, key: String) -> Result<()> {
    let list = format!("{key}:list");
    let (stored, n, refused, pushed, none) = db
        .batch((
            set(&key, 1),
            incr(&key),
            rpush(&key, "x").reply_as::<Result<i64>>(),
            rpush(&list, ["a", "b"]),
            get::<String>(format!("{key}:none")),
        ))
        .await?;
    assert_eq!((stored, n, pushed, none), (true, 2, 2, None));
    assert_eq!(refused.map_err(|error| error.code()), Err(Some(Code::WrongType)));
    let many: Vec<Command<(), i64>> = (0..300).map(|_| incr(&key)).collect();
    assert!(db.batch(many).await?.into_iter().eq(3..303));
    Ok(())
}

async fn transactions_are_whole_or_not_at_all(db: Client, key: String) -> Result<()> {
    let (n, length) = db.transaction((incr(&key), rpush(format!("{key}:l"), "a"))).await?;
    assert_eq!((n, length), (1, 1));
    let unknown = Command::<(), ()>::new(brisk::Request::named("NOSUCHCOMMAND"));
    match db.transaction((incr(&key), unknown)).await {
        Err(error) if error.code() == Some(Code::Err) => {}
        Err(error) => return Err(error),
        Ok(_) => panic!("there is no such command"),
    }
    assert_eq!(db.get::<i64>(&key).await?, Some(1));
    Ok(())
}

async fn scripts_run_by_their_digest(db: Client, key: String) -> Result<()> {
    static ADD: Script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    static SAY: Script = Script::new("return {KEYS[1], ARGV[1], false, 7}");
    for round in 1..=3 {
        assert_eq!(ADD.run::<i64>(&db, [&key], [5]).await?, 5 * round);
    }
    type Said = (String, String, Option<String>, i64);
    let said: Said = SAY.run(&db, [&key], ["x"]).await?;
    assert_eq!(said, (key.clone(), "x".to_owned(), None, 7));
    Ok(())
}

async fn sessions_keep_what_they_are(db: Client, key: String) -> Result<()> {
    let session = db.session().await?;
    session.raw::<()>("CLIENT SETNAME").arg("mine").await?;
    assert_eq!(session.raw::<String>("CLIENT GETNAME").await?, "mine");
    session.watch(&key).await?;
    db.set(&key, "theirs").await?;
    match session.transaction((set(&key, "mine"),)).await {
        Err(error) if error.kind() == Kind::Aborted => {}
        Err(error) => return Err(error),
        Ok(_) => panic!("the key has changed"),
    }
    assert_eq!(session.get::<String>(&key).await?.as_deref(), Some("theirs"));
    Ok(())
}

async fn sessions_wait_for_others(db: Client, key: String) -> Result<()> {
    let session = db.session().await?;
    let none = session.blpop::<String, String>(format!("{key}:none"), 0.02).await?;
    assert_eq!(none, None);
    let popped = session.blpop::<String, String>(&key, 20);
    let (popped, pushed) = tokio::try_join!(popped, db.rpush(&key, "x"))?;
    assert!(pushed <= 1);
    assert_eq!(popped, Some((key, "x".to_owned())));
    Ok(())
}

async fn watched_keys_change_under_nobodys_feet(db: Client, key: String) -> Result<()> {
    let add = || async {
        db.watch(&key, async |session| {
            let n: Option<i64> = session.get(&key).await?;
            Ok(Step::Commit((set(&key, n.unwrap_or(0) + 1),)))
        })
        .await
    };
    let (one, two) = tokio::join!(add(), add());
    assert_eq!((one?, two?), (Some((true,)), Some((true,))));
    assert_eq!(db.get::<i64>(&key).await?, Some(2));
    Ok(())
}

async fn listeners_hear_what_is_published(db: Client, key: String) -> Result<()> {
    let mut news = db.subscriber().await?;
    news.subscribe([key.clone()]).await?;
    for n in 0..5 {
        db.publish(&key, format!("{n}:{}", "x".repeat(n * 40))).await?;
    }
    for n in 0..5 {
        match news.next().await {
            Some(Event::Message(message)) => {
                assert_eq!(message.channel, key);
                assert_eq!(message.payload, format!("{n}:{}", "x".repeat(n * 40)));
            }
            // Messages that were published while there was no connection may be lost; the case does not
            // wait for them.
            Some(Event::Gap) => return Ok(()),
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}
