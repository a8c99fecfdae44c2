//! A Bloom filter of the pages that a crawler has seen: about ten bits per page, regardless of the length of its URL,
//! shared by all crawlers.
//!
//! `cargo run --example bloom [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::Client;
use brisk::recipes::Bloom;

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    let seen = Bloom::new(&db, "example:seen", 5000, 0.01)?;
    seen.clear().await?;
    println!("{} bits, {} for each page", seen.bits(), seen.hashes());

    let page = |n: u32| format!("https://example.org/page/{n}");
    let are_new = seen.add_all((0..5000).map(page)).await?;
    assert!(are_new[0]);
    // A page that was added is never reported as new.
    assert!(!seen.add(page(0)).await?);
    assert!(seen.contains_all((0..5000).map(page)).await?.into_iter().all(|found| found));
    // About one in a hundred other pages is reported as seen.
    let others = seen.contains_all((5000..10_000).map(page)).await?;
    let mistakes = others.into_iter().filter(|found| *found).count();
    println!("{mistakes} of 5000 others; about {} pages", seen.estimated_len().await?);
    assert!(mistakes < 100);

    seen.clear().await?;
    Ok(())
}
