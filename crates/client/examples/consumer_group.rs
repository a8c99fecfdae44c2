//! Two members of a consumer group share the orders of a stream. Some orders fail at first. One fails in every attempt
//! and moves to the dead-letter stream.
//!
//! `cargo run --example consumer_group [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::consumer::{Event, Message};
use brisk::{Client, commands};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const ORDERS: usize = 200;

/// Order 13 always fails. Every tenth order succeeds on the second attempt.
async fn bill(m: Message) -> Result<(), String> {
    let order: usize = m.field("order").map_err(|error| error.to_string())?;
    match order {
        13 => Err("nobody can bill this".to_owned()),
        _ if order.is_multiple_of(10) && m.deliveries() == 1 => Err("the bank is busy".to_owned()),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    db.del(["example:orders", "example:dead"]).await?;
    let orders = (0..ORDERS).map(|order| {
        commands::xadd("example:orders", "*", [("order", order), ("user", order % 7)])
    });
    db.batch(orders.collect::<Vec<_>>()).await?;

    let settled = Arc::new(AtomicUsize::new(0));
    let (all_settled, wait) = watch::channel(false);
    let all_settled = Arc::new(all_settled);
    let members = ["one", "two"].map(|name| {
        let (settled, all_settled, mut wait) =
            (Arc::clone(&settled), Arc::clone(&all_settled), wait.clone());
        let member = db
            .consumer("example:orders")
            .group("billing")
            .member(name)
            .parallel(16)
            .attempts(3)
            .retry(Duration::from_millis(10), Duration::from_millis(100))
            .dead_letter("example:dead")
            .in_order_by("user")
            .observe(move |event| {
                if matches!(event, Event::Handled { .. } | Event::Dead { .. })
                    && settled.fetch_add(1, Ordering::SeqCst) + 1 == ORDERS
                {
                    all_settled.send_replace(true);
                }
            })
            .until(async move {
                let _ = wait.wait_for(|is_over| *is_over).await;
            });
        tokio::spawn(member.run(bill))
    });
    let (mut handled, mut failed, mut dead) = (0, 0, 0);
    for member in members {
        let summary = member.await.expect("no panic")?;
        handled += summary.handled;
        failed += summary.failed;
        dead += summary.dead;
    }
    println!("{handled} orders billed, {failed} failures, {dead} dead");
    assert_eq!((handled, failed, dead), (199, 20 + 3, 1));
    let letters: Vec<(String, HashMap<String, String>)> =
        db.xrange("example:dead", "-", "+").await?;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].1["order"], "13");
    assert_eq!(letters[0].1["dead:error"], "nobody can bill this");

    db.del(["example:orders", "example:dead"]).await?;
    Ok(())
}
