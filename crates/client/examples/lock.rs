//! A lock for several programs: taken with a token by a script, extended and released by scripts that
//! look at the token.
//!
//! What it promises: while the server stays up and its holder is quick, one holds it. What it does not:
//!
//! - A holder that is held up for longer than the lock lasts (a pause, a slow disk) works on while another has it.
//!   So the token only grows: what the lock protects should remember the largest token it has seen, and refuse
//!   smaller ones, as `write` does here.
//! - A server that fails over before its replica has the lock may give it to two. Several independent servers make that
//!   rarer, and the token is still needed.
//! - It is in no order: who asks first need not get it first.
//!
//! `cargo run --example lock [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::{Client, Script};
use std::time::Duration;

/// How long it lasts unless it is extended.
const LASTS_MS: u64 = 2000;
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// The token is drawn by who gets the lock, in one step: else an older one could come after a newer one.
static ACQUIRE: Script = Script::new(
    "if redis.call('EXISTS', KEYS[1]) == 1 then return false end
    local token = redis.call('INCR', KEYS[2])
    redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
    return token",
);

static EXTEND: Script = Script::new(
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
);

static RELEASE: Script = Script::new(
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('DEL', KEYS[1])",
);

/// The protected value takes nothing from who has been overtaken.
static WRITE: Script = Script::new(
    "if tonumber(redis.call('HGET', KEYS[1], 'token') or '0') > tonumber(ARGV[1]) then return 0 end
    redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
    return 1",
);

/// The lock, held.
struct Lock<'a> {
    db: &'a Client,
    key: String,
    token: i64,
}

impl<'a> Lock<'a> {
    /// One attempt.
    async fn try_acquire(db: &'a Client, key: &str) -> brisk::Result<Option<Lock<'a>>> {
        // The braces make both keys of one slot, for clusters.
        let keys = [key.to_owned(), format!("{{{key}}}:tokens")];
        let token: Option<i64> = ACQUIRE.run(db, keys, [LASTS_MS]).await?;
        Ok(token.map(|token| Lock { db, key: key.to_owned(), token }))
    }

    async fn acquire(db: &'a Client, key: &str) -> brisk::Result<Lock<'a>> {
        loop {
            if let Some(lock) = Lock::try_acquire(db, key).await? {
                return Ok(lock);
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    /// For longer work; false if it was lost already.
    async fn extend(&self) -> brisk::Result<bool> {
        EXTEND.run(self.db, &self.key, (self.token, LASTS_MS)).await
    }

    /// False if it had been lost.
    async fn release(self) -> brisk::Result<bool> {
        RELEASE.run(self.db, &self.key, self.token).await
    }
}

async fn write(db: &Client, token: i64, value: i64) -> brisk::Result<bool> {
    WRITE.run(db, "example:protected", (token, value)).await
}

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    let keys = ["example:lock", "{example:lock}:tokens", "example:protected"];
    db.del(keys).await?;

    // Reading and writing apart would lose changes without the lock.
    let workers = (0..10).map(|_| {
        let db = db.clone();
        tokio::spawn(async move {
            for _ in 0..5 {
                let lock = Lock::acquire(&db, "example:lock").await?;
                let value: Option<i64> = db.hget("example:protected", "value").await?;
                assert!(lock.extend().await?);
                assert!(write(&db, lock.token, value.unwrap_or(0) + 1).await?);
                assert!(lock.release().await?);
            }
            brisk::Result::Ok(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("no panic")?;
    }
    assert_eq!(db.hget("example:protected", "value").await?, Some(50));

    // Who was held up for too long is told so, harms nobody, and does not take the lock from who has it.
    let late = Lock::acquire(&db, "example:lock").await?;
    db.del("example:lock").await?;
    let other = Lock::acquire(&db, "example:lock").await?;
    assert!(Lock::try_acquire(&db, "example:lock").await?.is_none());
    assert!(write(&db, other.token, 51).await?);
    assert!(!write(&db, late.token, 0).await?);
    assert!(!late.extend().await?);
    assert!(!late.release().await?);
    assert!(other.release().await?);
    assert_eq!(db.hget("example:protected", "value").await?, Some(51));
    println!("51 changes, none lost");

    db.del(keys).await?;
    Ok(())
}
