//! Cache-aside: on a cache miss, the caller loads the value from the database and stores it in the cache. If many
//! callers miss at the same time, one loads the value and the others wait for it.
//!
//! Limitation: a change to the database deletes the old value from the cache. A caller that read the old value before
//! the change may still store it afterwards. The cache then contains the old value until the TTL ends. Keep the TTL
//! short.
//!
//! `cargo run --example cache_aside [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The maximum time for which a value may be stale.
const TTL_S: u64 = 60;
/// How long one caller may take to load the value, in milliseconds. If that caller disappears, another one loads the
/// value afterwards.
const LOADING_MS: u64 = 2000;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A slow database that counts its queries.
#[derive(Default)]
struct Database {
    queries: AtomicUsize,
}

impl Database {
    async fn load(&self, user: u64) -> String {
        self.queries.fetch_add(1, Ordering::Relaxed);
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
            // Another caller may have finished between the GET and the SET.
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
    assert_eq!(database.queries.load(Ordering::Relaxed), 1);
    assert!(db.ttl("example:user:7").await? > 0);

    // After a change to the database, the old value must be deleted from the cache.
    db.del("example:user:7").await?;
    user(&db, &database, 7).await?;
    assert_eq!(database.queries.load(Ordering::Relaxed), 2);
    println!("201 callers, {} loads", database.queries.load(Ordering::Relaxed));

    db.del("example:user:7").await?;
    Ok(())
}
