//! Two rate limiters, each one script: a fixed window and a token bucket.
//!
//! The fixed window is one counter. Around the end of a window, it may allow twice as many calls as the limit. The
//! token bucket stores two numbers, and allows a burst and then a steady rate. Both use the server's clock, so the
//! clocks of callers do not matter. This example passes the time to the bucket as an argument, so that its results are
//! predictable.
//!
//! `cargo run --example rate_limiter [url]`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use brisk::{Client, Script};

/// Counts a call. Returns whether it is one of the first `ARGV[1]` calls in a window of `ARGV[2]` milliseconds. The
/// counter expires with its window.
static WINDOW: Script = Script::new(
    "local calls = redis.call('INCR', KEYS[1])
    if calls == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
    return calls <= tonumber(ARGV[1]) and 1 or 0",
);

/// Takes a token from a bucket of `ARGV[1]` tokens, which gains `ARGV[2]` tokens per second. Returns 0, or the number
/// of milliseconds until a token is available. `ARGV[3]` is the time in milliseconds; if it is empty, the script uses
/// the server's clock.
static BUCKET: Script = Script::new(
    "local size, each_second, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
    if not now then
        local time = redis.call('TIME')
        now = time[1] * 1000 + math.floor(time[2] / 1000)
    end
    local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
    local tokens = tonumber(kept[1]) or size
    local at = tonumber(kept[2]) or now
    tokens = math.min(size, tokens + math.max(0, now - at) * each_second / 1000)
    local wait = 0
    if tokens >= 1 then
        tokens = tokens - 1
    else
        wait = math.ceil((1 - tokens) * 1000 / each_second)
    end
    redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', now)
    -- A full bucket need not be kept.
    redis.call('PEXPIRE', KEYS[1], math.ceil(size * 1000 / each_second))
    return wait",
);

async fn within_window(db: &Client, who: &str, calls: u32, ms: u32) -> brisk::Result<bool> {
    WINDOW.run(db, format!("example:window:{who}"), (calls, ms)).await
}

/// Returns 0 if the call is allowed, or the number of milliseconds to wait.
async fn bucket(db: &Client, who: &str, now_ms: Option<u64>) -> brisk::Result<u64> {
    let now = now_ms.map_or_else(String::new, |now| now.to_string());
    BUCKET.run(db, format!("example:bucket:{who}"), (10, 5, now)).await
}

#[tokio::main]
async fn main() -> brisk::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1".to_owned());
    let db = Client::connect(&url).await?;
    let keys =
        ["example:window:ana", "example:window:ben", "example:bucket:ana", "example:bucket:ben"];
    db.del(keys).await?;

    let mut allowed = 0;
    for _ in 0..20 {
        allowed += u32::from(within_window(&db, "ana", 5, 60_000).await?);
    }
    assert_eq!(allowed, 5);
    assert!(within_window(&db, "ben", 5, 60_000).await?);
    assert!(db.pttl("example:window:ana").await? > 0);

    // A burst of ten calls, then one call per 200 ms.
    let mut waits = Vec::new();
    for _ in 0..11 {
        waits.push(bucket(&db, "ana", Some(1_000_000)).await?);
    }
    assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200]);
    assert_eq!(bucket(&db, "ana", Some(1_000_150)).await?, 50);
    assert_eq!(bucket(&db, "ana", Some(1_000_200)).await?, 0);
    assert_eq!(bucket(&db, "ana", Some(1_000_200)).await?, 200);
    // After a long pause the bucket is full, and does not exceed its size.
    let mut burst = 0;
    while bucket(&db, "ana", Some(9_000_000)).await? == 0 {
        burst += 1;
    }
    assert_eq!(burst, 10);
    assert_eq!(bucket(&db, "ben", None).await?, 0);
    println!("{allowed} of 20 within the window, bursts of {burst} from the bucket");

    db.del(keys).await?;
    Ok(())
}
