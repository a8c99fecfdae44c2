//! First steps: values, counters, hashes, batches and errors.
//!
//! `cargo run --example quick_start [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::{Client, Code, commands};
use std::collections::HashMap;

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    db.del(["example:name", "example:hits", "example:user"]).await?;

    // Options are methods. The requested type determines how the reply is converted.
    db.set("example:name", "ana").ex(60).await?;
    let name: Option<String> = db.get("example:name").await?;
    assert_eq!(name.as_deref(), Some("ana"));
    let nobody: Option<String> = db.get("example:nobody").await?;
    assert_eq!(nobody, None);

    // Many tasks share a few connections, and the client pipelines their commands automatically.
    let tasks = (0..100).map(|_| {
        let db = db.clone();
        tokio::spawn(async move { db.incr("example:hits").await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic")?;
    }
    assert_eq!(db.get("example:hits").await?, Some(100));

    db.hset("example:user", [("name", "ana"), ("city", "Lima")]).await?;
    let user: HashMap<String, String> = db.hgetall("example:user").await?;
    assert_eq!(user["city"], "Lima");

    // A batch: several commands in one round trip, each with its own reply type.
    let (name, hits) = db
        .batch((commands::get::<String>("example:name"), commands::incrby("example:hits", 11)))
        .await?;
    println!("{name:?} {hits}");
    assert_eq!(hits, 111);

    // An error says what happened, and whether the command may have been executed.
    let error = db.incr("example:name").await.expect_err("it is no number");
    assert_eq!(error.code(), Some(Code::Err));
    assert!(!error.maybe_applied());
    println!("{error}");

    db.del(["example:name", "example:hits", "example:user"]).await?;
    Ok(())
}
