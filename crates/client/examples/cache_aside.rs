//! A cache beside a database: who finds nothing loads, and leaves it for others. Of many who find nothing at the same
//! time one loads, and the others wait for it.
//!
//! What it does not promise: after a change the old value is gone from the cache, but one that was read
//! from the database before the change may be put there after it, and stay for its time to live. Keep
//! that short.
//!
//! `cargo run --example cache_aside [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a value may be old.
const TTL_S: u64 = 60;
/// Longer than loading takes; if who loads is gone, another does after this.
const LOADING_MS: u64 = 2000;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Something slow that counts how often it is asked.
#[derive(Default)]
struct Database {
    asked: AtomicUsize,
}

impl Database {
    async fn load(&self, user: u64) -> String {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
        format!("user number {user}")
    }
}

async fn user(db: &Client, database: &Database, user: u64) -> brisk::Result<String> {
    let key = format!("example:user:{user}");
    let loading = format!("{key}:loading");
    loop {
        if let Some(found) = db.get(&key).await? {
            return Ok(found);
        }
        if db.set(&loading, 1).only_if_absent().px(LOADING_MS).await? {
            // Another may have come to its end between the two.
            if let Some(found) = db.get(&key).await? {
                db.del(&loading).await?;
                return Ok(found);
            }
            let loaded = database.load(user).await;
            db.set(&key, &loaded).ex(TTL_S).await?;
            db.del(&loading).await?;
            return Ok(loaded);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    db.del(["example:user:7", "example:user:7:loading"]).await?;
    let database = Arc::new(Database::default());

    let callers = (0..200).map(|_| {
        let (db, database) = (db.clone(), Arc::clone(&database));
        tokio::spawn(async move { user(&db, &database, 7).await })
    });
    for caller in callers.collect::<Vec<_>>() {
        assert_eq!(caller.await.expect("no panic")?, "user number 7");
    }
    assert_eq!(database.asked.load(Ordering::Relaxed), 1);
    assert!(db.ttl("example:user:7").await? > 0);

    // Who changes the database takes the old value out of the cache, afterwards.
    db.del("example:user:7").await?;
    user(&db, &database, 7).await?;
    assert_eq!(database.asked.load(Ordering::Relaxed), 2);
    println!("201 callers, {} loads", database.asked.load(Ordering::Relaxed));

    db.del("example:user:7").await?;
    Ok(())
}
