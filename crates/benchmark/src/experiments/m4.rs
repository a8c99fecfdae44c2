//! M4: a key per user, compared with hashes of a thousand users each (sharding by hand).

use super::finding::Measurement;
use super::stage::{Filler, MIB, Stage, growth_bytes};
use super::{Experiment, Found};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m4",
    title: "Plain keys compared with sharded hashes",
    what: "A million users (300,000 short), each with a number: as keys `user:N`, in hashes of \
           1,000 fields selected by number, and in hashes selected by CRC32 of the key \
           (`shard_key`), with `hash-max-listpack-entries 1024`. One team reduced its memory from \
           70 GB to 3 GB this way, by a factor of 23.",
    run,
};

const SHARD_SIZE: usize = 1000;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let settings = [("hash-max-listpack-entries", "1024")];
    type Write = fn(&mut Filler, usize, usize) -> Result<(), String>;
    let layouts: [(&str, Write); 3] = [
        ("plain keys", |filler, user, _| {
            filler.add(&["SET", &format!("user:{user}"), &number(user)])
        }),
        ("hashes by number", |filler, user, users| {
            let shard = shard_key("user", &user.to_string(), users, SHARD_SIZE);
            filler.add(&["HSET", &shard, &user.to_string(), &number(user)])
        }),
        ("hashes by CRC32", |filler, user, users| {
            let key = format!("user{user}");
            let shard = shard_key("user", &key, users, SHARD_SIZE);
            filler.add(&["HSET", &shard, &key, &number(user)])
        }),
    ];
    let mut rows = Vec::new();
    for (what, write) in layouts {
        rows.extend(stage.alone(&settings, |subject, size, _| {
            let users = size.pick(300_000, 1_000_000);
            let rss =
                |subject: &crate::subject::Subject| subject.usage().map(|usage| usage.rss_bytes);
            let before = rss(subject);
            let bytes = growth_bytes(subject, |filler| {
                (0..users).try_for_each(|user| write(filler, user, users))
            })?;
            let grown = rss(subject).zip(before);
            let grown = grown.map(|(after, before)| after.saturating_sub(before) as f64 / MIB);
            Ok(vec![
                Measurement::less(what, "bytes/user", bytes / users as f64),
                Measurement::less(format!("{what}: process"), "MiB", grown),
            ])
        })?);
    }
    if let [plain, _, by_number, ..] = rows.as_slice() {
        let factors = plain.values.iter().zip(&by_number.values);
        let values = factors.map(|(plain, sharded)| Some((*plain)? / (*sharded)?)).collect();
        rows.push(super::finding::Row {
            what: "memory reduction by sharding by number".to_owned(),
            unit: "×".to_owned(),
            better: super::finding::Better::Neither,
            article: Some(70.0 / 3.0),
            values,
            details: Vec::new(),
        });
    }
    Ok(rows.into())
}

/// The value that is stored for a user.
fn number(user: usize) -> String {
    (user * 7919 % 1_000_000).to_string()
}

/// The rule in the articles: the shard of a number is the number divided by the shard size. The shard of any other key
/// is its CRC32, modulo twice the number of shards that would be full.
fn shard_key(base: &str, key: &str, total_elements: usize, shard_size: usize) -> String {
    let shard = match key.parse::<usize>() {
        Ok(number) => number / shard_size,
        Err(_) => crc32(key.as_bytes()) as usize % (2 * total_elements / shard_size).max(1),
    };
    format!("{base}:{shard}")
}

/// CRC-32 as in zlib.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let step = |crc: u32, _| (crc >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(crc & 1));
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_sharded_as_in_the_article() {
        // The check value of the algorithm.
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(shard_key("user", "999", 1_000_000, 1000), "user:0");
        assert_eq!(shard_key("user", "1000", 1_000_000, 1000), "user:1");
        assert_eq!(shard_key("u", "123456789x", 1000, 1000).split(':').count(), 2);
        let named = shard_key("u", "a:b", 10_000, 1000);
        assert_eq!(named, format!("u:{}", crc32(b"a:b") % 20));
    }
}
