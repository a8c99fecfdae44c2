//! Tests that apply the advice: data is written to a real Redis, its RDB file is analyzed, and the advice is applied to
//! the same data. The actual savings in `used_memory` are within 10% of the estimates, in Redis and in a Brisk with the
//! same data, with one exception. (M4, M8)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use crate::harness::*;
use brisk_analyze::Report;
use brisk_analyze::advice::{Advice, Means};
use brisk_analyze::source::live::{Server as _, Words};
use brisk_testkit::{Launch, Server};

const PART: f64 = 0.10;

/// A server with data, and the advice for it.
struct Before {
    server: Server,
    bytes: f64,
    brisk: f64,
    report: Report,
}

impl Before {
    fn new(server: Server, requests: impl IntoIterator<Item = Words>) -> Before {
        fill(&server, requests);
        reload(&server);
        let file = saved(&server);
        let report = Report::new(analyzed(&file, classes(&server)));
        let brisk = used_by_data(&brisk_with(&file), &EMPTY_BRISK);
        Before { bytes: used_by_data(&server, &EMPTY_REDIS), brisk, server, report }
    }

    /// The advice for a pattern.
    fn advice_for(&self, means: Means, pattern: &str) -> Advice {
        let is = |advice: &&Advice| advice.means == means && advice.pattern == pattern;
        match self.report.advice.iter().find(is) {
            Some(advice) => advice.clone(),
            None => panic!("no advice for {pattern}: {:#?}", self.report.advice),
        }
    }

    /// Compares the estimate with the savings of a server that has the data in the advised form.
    #[track_caller]
    fn compare(&self, after: &Server, advice: &Advice) {
        self.compare_within(after, advice, PART);
    }

    #[track_caller]
    fn compare_within(&self, after: &Server, advice: &Advice, brisk_part: f64) {
        reload(after);
        let saved_redis = self.bytes - used_by_data(after, &EMPTY_REDIS);
        let what = advice.means.title();
        assert_close(&format!("{what}, Redis"), saved_redis, advice.saved.redis, PART);
        let saved_brisk = self.brisk - used_by_data(&brisk_with(&saved(after)), &EMPTY_BRISK);
        assert_close(&format!("{what}, Brisk"), saved_brisk, advice.saved.brisk, brisk_part);
    }
}

fn uuid(random: &mut Random) -> String {
    let mut hex = |digits: usize| -> String {
        (0..digits).map(|_| char::from(b"0123456789abcdef"[random.below(16) as usize])).collect()
    };
    format!("{}-{}-{}-{}-{}", hex(8), hex(4), hex(4), hex(4), hex(12))
}

#[test]
fn shorter_keys_save_as_much_as_estimated() {
    let requests = |user: &'static str, name: &'static str| {
        let mut random = Random::new();
        (0..60_000).map(move |n| {
            let value = random.text(30);
            vec![b"SET".to_vec(), format!("{user}:{n}:{name}").into_bytes(), value]
        })
    };
    let before = Before::new(redis(), requests("customer", "display-name"));
    let advice = before.advice_for(Means::ShorterKeys, "customer:<n>:display-name");
    assert_eq!(advice.how, "rename customer:<n>:display-name to c:<n>:d-n");
    let after = redis();
    fill(&after, requests("c", "d-n"));
    // The savings in Brisk also depend on how these names fill the slots' tables, which no model can predict.
    before.compare_within(&after, &advice, 0.25);
}

/// Keys are packed by number, with the rule from the advice.
#[test]
fn packing_neighbors_saves_as_much_as_estimated() {
    let value = |n: u64| format!("city {}", n % 977);
    let plain = (0..100_000).map(|n| words_of(&["SET", &format!("user:{n}"), &value(n)]));
    let before = Before::new(redis(), plain);
    let advice = before.advice_for(Means::ShardKey, "user:<n>");
    assert!(advice.how.starts_with("HSET user:(number / 512)"), "{}", advice.how);
    let after = redis();
    let packed = (0..100_000)
        .map(|n| words_of(&["HSET", &format!("user:{}", n / 512), &n.to_string(), &value(n)]));
    fill(&after, packed);
    before.compare(&after, &advice);
}

/// Keys are packed by CRC32, with the rule of the client library.
#[test]
fn packing_by_checksum_saves_as_much_as_estimated() {
    let keys = 60_000;
    let mut random = Random::new();
    let ids: Vec<String> = (0..keys).map(|_| uuid(&mut random)).collect();
    let plain = ids.iter().map(|id| words_of(&["SET", &format!("session:{id}"), "1234567"]));
    let before = Before::new(redis(), plain);
    let advice = before.advice_for(Means::ShardKey, "session:<uuid>");
    let rule = format!("HSET shard_key(\"session\", key, {keys}, 512)");
    assert!(advice.how.starts_with(&rule), "{}", advice.how);
    let after = redis();
    let shards = 2 * keys / 512;
    let packed = ids.iter().map(|id| {
        let shard = crc32(id.as_bytes()) % shards;
        words_of(&["HSET", &format!("session:{shard}"), id, "1234567"])
    });
    fill(&after, packed);
    before.compare(&after, &advice);
}

/// The CRC-32 of zlib, as in `shard_key`.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(crc & 1));
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn words_of(words: &[&str]) -> Words {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn raised_limits_save_as_much_as_estimated() {
    for (command, pattern) in [("HSET", "hash:<n>"), ("ZADD", "board:<n>"), ("SADD", "set:<n>")] {
        let mut random = Random::new();
        let name = pattern.trim_end_matches("<n>");
        let requests: Vec<Words> = (0..400)
            .map(|n| {
                let mut request = words_of(&[command, &format!("{name}{n}")]);
                // A server hashes a field equally in all hashes. With the same fields, all tables would split at the
                // same sizes, and the measured memory would depend on the hash key of the process.
                for element in (n * 1000..).take(700 + random.below(200) as usize) {
                    match command {
                        "HSET" => {
                            request.push(format!("field:{element}").into_bytes());
                            request.push(random.text(12));
                        }
                        "ZADD" => {
                            request.push(random.below(10_000).to_string().into_bytes());
                            request.push(format!("player:{element}").into_bytes());
                        }
                        _ => request.push((element * 1000).to_string().into_bytes()),
                    }
                }
                request
            })
            .collect();
        let before = Before::new(redis(), requests.clone());
        let advice = before.advice_for(Means::RaiseLimit, pattern);
        let (settings, _) = advice.how.split_once(", then").unwrap();
        let [_, _, setting, value] = settings.split(' ').collect::<Vec<_>>()[..] else {
            panic!("more than one setting: {settings}");
        };
        assert_eq!(before.server.connect().cmd(settings).to_string(), "OK");
        reload(&before.server);
        let saved = before.bytes - used_by_data(&before.server, &EMPTY_REDIS);
        assert_close(&format!("{settings}, Redis"), saved, advice.saved.redis, PART);
        // A Brisk that has this limit from the start, so that it packs the data that it receives.
        let brisk = brisk().set(setting, value).start();
        fill(&brisk, requests);
        let saved = before.brisk - used_by_data(&brisk, &EMPTY_BRISK);
        assert_close(&format!("{settings}, Brisk"), saved, advice.saved.brisk, PART);
    }
}

#[test]
fn compressed_lists_save_as_much_as_estimated() {
    let mut random = Random::new();
    let mut requests = Vec::new();
    for n in 0..1500 {
        let mut request = words_of(&["RPUSH", &format!("jobs:{}", n % 30)]);
        for job in 0..100 {
            let user = random.below(100_000);
            request.push(format!("{{\"job\":{job},\"user\":{user},\"state\":\"waiting\"}}").into());
        }
        requests.push(request);
    }
    let before = Before::new(redis(), requests.clone());
    let advice = before.advice_for(Means::CompressLists, "jobs:<n>");
    let command = "CONFIG SET list-compress-depth 1";
    assert!(advice.how.starts_with(command), "{}", advice.how);
    assert_eq!(before.server.connect().cmd(command).to_string(), "OK");
    reload(&before.server);
    let saved = before.bytes - used_by_data(&before.server, &EMPTY_REDIS);
    assert_close("compressed lists, Redis", saved, advice.saved.redis, PART);
    let brisk = brisk().set("list-compress-depth", "1").start();
    fill(&brisk, requests);
    let saved = before.brisk - used_by_data(&brisk, &EMPTY_BRISK);
    assert_close("compressed lists, Brisk", saved, advice.saved.brisk, PART);
}

#[test]
fn numbers_as_ids_save_as_much_as_estimated() {
    let mut random = Random::new();
    let by_id: Vec<Words> = (0..60_000)
        .map(|_| words_of(&["SET", &format!("cart:{}", uuid(&mut random)), "a book and a pen"]))
        .collect();
    let before = Before::new(redis(), by_id);
    let advice = before.advice_for(Means::IntegerKeys, "cart:<uuid>");
    let after = redis();
    let by_number =
        (0..60_000).map(|n| words_of(&["SET", &format!("cart:{n}"), "a book and a pen"]));
    fill(&after, by_number);
    before.compare(&after, &advice);
}

#[test]
fn integer_members_save_as_much_as_estimated() {
    let sets = |member: fn(u64) -> String| {
        (0..1500).map(move |n| {
            let mut random = Random::new();
            let mut request = words_of(&["SADD", &format!("likes:{n}")]);
            request.extend((0..200).map(|_| member(random.below(1_000_000)).into_bytes()));
            request
        })
    };
    let before = Before::new(redis(), sets(|number| format!("article-{number:07}")));
    let advice = before.advice_for(Means::IntegerMembers, "likes:<n>");
    let after = redis();
    fill(&after, sets(|number| number.to_string()));
    before.compare(&after, &advice);
}

#[test]
fn compressed_values_save_as_much_as_estimated() {
    let mut random = Random::new();
    let mut value = |n: u64| {
        let words = (0..60)
            .map(|_| ["red ", "green ", "blue ", "large ", "small "][random.below(5) as usize]);
        format!("{{\"id\":{n},\"text\":\"{}\"}}", words.collect::<String>()).into_bytes()
    };
    let values: Vec<Vec<u8>> = (0..20_000).map(&mut value).collect();
    let set =
        |n: usize, value: Vec<u8>| vec![b"SET".to_vec(), format!("page:{n}").into_bytes(), value];
    let plain = values.iter().enumerate().map(|(n, value)| set(n, value.clone()));
    let before = Before::new(redis(), plain);
    let advice = before.advice_for(Means::CompressValues, "page:<n>");
    let after = redis();
    let mut zstd = zstd::bulk::Compressor::new(3).unwrap();
    let packed = values.iter().enumerate().map(|(n, value)| set(n, zstd.compress(value).unwrap()));
    fill(&after, packed);
    before.compare(&after, &advice);
}

/// Redis preserves the idle time of a key in RESTORE and, with an LRU policy, in its RDB file.
#[test]
fn forgotten_keys_take_as_much_as_estimated() {
    let server = Launch::redis()
        .set("save", "")
        .set("enable-debug-command", "yes")
        .set("maxmemory", "1gb")
        .set("maxmemory-policy", "allkeys-lru")
        .start();
    fill(&server, [words_of(&["SET", "model", &"x".repeat(100)])]);
    let dump = TestConnection::new(&server).request_all(&[words("DUMP model")]).unwrap();
    let brisk_resp::Value::Bulk(dump) = &dump[0] else { panic!("{dump:?}") };
    let restore = |n: u64| {
        // Half of the keys were used today.
        let idle = if n.is_multiple_of(2) { 5_000_000 } else { 600 };
        let mut request = words_of(&["RESTORE", &format!("visit:{n}"), "0"]);
        request.extend([dump.clone(), b"IDLETIME".to_vec(), idle.to_string().into_bytes()]);
        request
    };
    let before = Before::new(server, (0..40_000).map(restore));
    let advice = before.advice_for(Means::MissingTtl, "visit:<n>");
    assert_eq!(advice.keys, 20_000);
    let deletions = (0..40_000).step_by(2).map(|n| words(&format!("DEL visit:{n}")));
    fill(&before.server, deletions);
    reload(&before.server);
    let saved = before.bytes - used_by_data(&before.server, &EMPTY_REDIS);
    assert_close("forgotten keys, Redis", saved, advice.saved.redis, PART);
}
