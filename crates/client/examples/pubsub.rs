//! A subscriber to channels and patterns, on its own connection. The subscriber receives an event if messages may be
//! missing.
//!
//! `cargo run --example pubsub [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::{Client, Event};

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    let mut news = db.subscriber().await?;
    news.subscribe(["example:news"]).await?;
    news.psubscribe(["example:sport:*"]).await?;

    // The server has confirmed both subscriptions, so none of the following messages is missed.
    assert_eq!(db.publish("example:news", "rain").await?, 1);
    db.publish("example:sport:chess", "draw").await?;
    db.publish("example:weather", "nobody hears this").await?;
    db.publish("example:news", "over").await?;

    let mut heard = Vec::new();
    while let Some(event) = news.next().await {
        match event {
            Event::Message(message) => {
                let text = String::from_utf8_lossy(&message.payload).into_owned();
                println!("{}: {text}", String::from_utf8_lossy(&message.channel));
                let is_last = text == "over";
                heard.push(text);
                if is_last {
                    break;
                }
            }
            // The connection was lost, or this subscriber was too slow.
            Event::Gap => println!("some may be missing"),
            Event::Overflow { lost } => println!("{lost} are missing"),
            _ => {}
        }
    }
    assert_eq!(heard, ["rain", "draw", "over"]);

    news.unsubscribe(["example:news"]).await?;
    assert_eq!(db.publish("example:news", "nobody").await?, 0);
    Ok(())
}
