//! Transfers between accounts: a transaction if the amount is known, and watched keys (optimistic locking) if the
//! amount depends on the balance.
//!
//! `cargo run --example transactions [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::{Client, Step, commands};
use futures_util::future::try_join_all;

const ANA: &str = "example:account:ana";
const BEN: &str = "example:account:ben";

/// Moves half of the balance, or nothing if that is less than 1. Returns whether it moved anything.
async fn move_half(db: &Client, from: &str, to: &str) -> brisk::Result<bool> {
    let done = db.watch([from, to], async |session| {
        let half = session.get::<i64>(from).await?.unwrap_or(0) / 2;
        Ok(match half {
            1.. => Step::Commit((commands::decrby(from, half), commands::incrby(to, half))),
            _ => Step::Abort,
        })
    });
    Ok(done.await?.is_some())
}

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    db.mset([(ANA, 1000), (BEN, 0)]).await?;

    // One round trip. No other client sees the money in both accounts or in neither.
    let (ana, ben) =
        db.transaction((commands::decrby(ANA, 200), commands::incrby(BEN, 200))).await?;
    assert_eq!((ana, ben), (800, 200));

    // If another client changes a watched key, the attempt is repeated.
    let moves = [(ANA, BEN), (BEN, ANA), (ANA, BEN)].map(|(from, to)| move_half(&db, from, to));
    assert_eq!(try_join_all(moves).await?, [true; 3]);
    let both: Vec<Option<i64>> = db.mget([ANA, BEN]).await?;
    println!("{both:?}");
    assert_eq!(both.into_iter().flatten().sum::<i64>(), 1000);

    // Without a balance to move, nothing is executed.
    db.set(ANA, 1).await?;
    assert!(!move_half(&db, ANA, BEN).await?);

    // If the server rejects one of the commands while queuing it, none of them is executed.
    let refused = db.transaction((commands::incr(ANA), commands::incr(ANA).arg("too much"))).await;
    assert!(refused.is_err());
    assert_eq!(db.get(ANA).await?, Some(1));

    db.del([ANA, BEN]).await?;
    Ok(())
}
