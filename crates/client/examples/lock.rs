//! A distributed lock with a fencing token. One script acquires the lock and draws the token; the scripts that extend
//! and release the lock compare the token.
//!
//! Guarantee: while the server stays up and each holder finishes before the lock expires, at most one program holds the
//! lock. Limits:
//!
//! - A holder that is delayed for longer than the lock lasts (a pause, a slow disk) continues while another program
//!   holds the lock. Tokens only grow, so the protected resource should remember the largest token it has seen and
//!   reject smaller ones, as `write` does here.
//! - If the server fails over before its replica has the lock, two programs may hold it. Several independent servers
//!   make that less likely; the token is still needed.
//! - The lock is not fair: the first program to wait is not always the first to acquire it.
//!
//! `cargo run --example lock [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::{Client, Script};
use std::time::Duration;

/// The time after which the lock expires unless it is extended.
const LASTS_MS: u64 = 2000;
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// Acquires the lock and draws the token in one step; otherwise a later holder could have a smaller token.
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

/// The protected value rejects writes of holders with an outdated token.
static WRITE: Script = Script::new(
    "if tonumber(redis.call('HGET', KEYS[1], 'token') or '0') > tonumber(ARGV[1]) then return 0 end
    redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
    return 1",
);

/// A lock that is held.
struct Lock<'a> {
    db: &'a Client,
    key: String,
    token: i64,
}

impl<'a> Lock<'a> {
    /// Tries once to acquire the lock.
    async fn try_acquire(db: &'a Client, key: &str) -> brisk::Result<Option<Lock<'a>>> {
        // The braces put both keys into one slot, for clusters.
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

    /// Extends the lock, for longer work. False if the lock was lost.
    async fn extend(&self) -> brisk::Result<bool> {
        EXTEND.run(self.db, &self.key, (self.token, LASTS_MS)).await
    }

    /// Releases the lock. False if the lock was lost.
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

    // Without the lock, separate reads and writes would lose changes.
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

    // A delayed holder gets `false`, does no harm, and does not take the lock from the new holder.
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
