//! The city of each user, stored in hashes of a hundred elements: the API of a map, with a fraction of the memory of
//! one key per user.
//!
//! `cargo run --example sharded_map [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::recipes::ShardedMap;
use brisk::{Client, commands};

const USERS: u64 = 5000;
const CITIES: [&str; 4] = ["Lima", "Oslo", "Accra", "Hanoi"];

fn city_of(user: u64) -> &'static str {
    CITIES[(user % 4) as usize]
}

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    // 100 is below the default `hash-max-listpack-entries` of all servers.
    let cities = ShardedMap::new(&db, "example:city", USERS, 100)?;
    let shards: Vec<String> = (0..cities.shards()).map(|n| format!("example:city:{n}")).collect();
    db.del(&shards).await?;

    cities.mset((0..USERS).map(|user| (user, city_of(user)))).await?;
    assert_eq!(cities.len().await?, USERS);
    assert_eq!(cities.get(4711).await?, Some(city_of(4711).to_owned()));
    let some: Vec<Option<String>> = cities.mget([1, 2500, 4999]).await?;
    assert_eq!(some[2].as_deref(), Some(city_of(4999)));
    // Keys that are not integers are spread by their CRC32.
    assert!(cities.set("ana", "Lima").await?);
    assert!(cities.remove("ana").await?);

    let mut in_lima = 0;
    let mut pages = cities.scan::<u64, String>();
    while let Some(page) = pages.next().await? {
        in_lima += page.iter().filter(|(_, city)| city == "Lima").count();
    }
    assert_eq!(in_lima, 1250);

    let sizes = db.batch(shards.iter().map(commands::memory_usage).collect::<Vec<_>>()).await?;
    let bytes: i64 = sizes.into_iter().flatten().sum();
    db.set("example:plain:1", city_of(1)).await?;
    let plain = db.memory_usage("example:plain:1").await?.unwrap_or(0) * USERS as i64;
    println!("{USERS} users: {bytes} bytes; as plain keys about {plain}");
    assert!(bytes < plain);

    db.del(&shards).await?;
    db.del("example:plain:1").await?;
    Ok(())
}
