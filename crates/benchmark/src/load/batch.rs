//! The requests of one connection. They are written once and then patched in place, if possible.
//!
//! If a workload has one command, and its values have one size, requests differ only in digits. A batch is then written
//! once and only patched. Otherwise each batch is built from compiled commands.

use super::Workload;
use super::keys::KeySource;
use super::random::Random;
use super::tag::Tag;
use super::template::{DIGITS, Place, Places, pairs_below, write_digits};
use std::collections::VecDeque;
use std::sync::Arc;

/// Requests to be sent on one connection.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    places: Places,
    /// The hash tag in `bytes`, if requests have one.
    tag: Tag,
    /// Number of requests in `bytes`, if they only need to be patched.
    written: usize,
    pending: VecDeque<SentRequest>,
}

/// The facts about a request that decide whether its reply is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// Index of the command in its workload.
    pub command: usize,
    /// The first number drawn for it.
    pub number: Option<u64>,
}

impl Batch {
    /// The first `len` bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self, len: usize) -> &[u8] {
        &self.bytes[..len]
    }

    /// The hash tag of the requests.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        self.tag
    }

    /// Writes a hash tag to its places. Those before `from` already contain it.
    fn write_tag(&mut self, tag: Tag, from: usize) {
        self.tag = tag;
        for &at in &self.places.tags[from..] {
            if let Some(place) = self.bytes[at..].first_chunk_mut() {
                *place = tag.0;
            }
        }
    }

    /// The oldest request without a reply, if the source keeps requests.
    pub fn pop_pending(&mut self) -> Option<SentRequest> {
        self.pending.pop_front()
    }

    /// Discards requests whose replies will not arrive.
    pub fn forget(&mut self) {
        self.pending.clear();
    }
}

/// Writes the batches of one worker's connections.
#[derive(Debug)]
pub struct RequestSource {
    workload: Arc<Workload>,
    numbers: Numbers,
    weights: u64,
    remembers: bool,
}

/// Draws random numbers and writes them to their places.
#[derive(Debug)]
struct Numbers {
    keys: KeySource,
    random: Random,
    pairs: usize,
}

impl RequestSource {
    /// A source for worker `worker` of `workers`. If `remembers`, it keeps the requests in the batches.
    #[must_use]
    pub fn new(
        workload: Arc<Workload>,
        seed: u64,
        worker: usize,
        workers: usize,
        remembers: bool,
    ) -> RequestSource {
        let numbers = Numbers {
            keys: KeySource::new(workload.keys, workload.keyspace, worker, workers),
            // Workers must not draw the same numbers.
            random: Random::new(seed.wrapping_add((worker as u64) << 32)),
            pairs: pairs_below(workload.keyspace),
        };
        let weights = workload.commands.iter().map(|command| command.weight).sum();
        RequestSource { workload, numbers, weights, remembers }
    }

    /// Writes `count` requests with this hash tag to the batch and returns their length in bytes. O(count) if they are
    /// only patched, otherwise O(bytes).
    #[inline]
    pub fn fill(&mut self, batch: &mut Batch, count: usize, tag: Tag) -> usize {
        let numbers = &mut self.numbers;
        if let [command] = self.workload.commands.as_slice()
            && let Some((bytes, places)) = command.template.whole()
        {
            let tagged = if batch.tag == tag { batch.places.tags.len() } else { 0 };
            while batch.written < count {
                let random = &mut numbers.random;
                command.template.append(&mut batch.bytes, &mut batch.places, random);
                batch.written += 1;
            }
            if tagged < batch.places.tags.len() {
                batch.write_tag(tag, tagged);
            }
            numbers.write(batch, 0, places.numbers.len() * count);
            if self.remembers {
                remember_whole(batch, count, bytes.len(), &places.numbers);
            }
            return bytes.len() * count;
        }
        self.compose(batch, count, tag)
    }

    /// Builds the requests from commands that are drawn by weight.
    fn compose(&mut self, batch: &mut Batch, count: usize, tag: Tag) -> usize {
        batch.bytes.clear();
        batch.places.clear();
        let (commands, numbers) = (&self.workload.commands, &mut self.numbers);
        for _ in 0..count {
            let mut at = numbers.random.below(self.weights);
            let drawn = commands.iter().position(|command| {
                let is_chosen = at < command.weight;
                at = at.saturating_sub(command.weight);
                is_chosen
            });
            // The number is below the sum of all weights, so a command is always found.
            let command = drawn.unwrap_or(0);
            let first = batch.places.numbers.len();
            let template = &commands[command].template;
            template.append(&mut batch.bytes, &mut batch.places, &mut numbers.random);
            let number = numbers.write(batch, first, batch.places.numbers.len());
            if self.remembers {
                batch.pending.push_back(SentRequest { command, number });
            }
        }
        batch.write_tag(tag, 0);
        batch.bytes.len()
    }
}

impl Numbers {
    /// Draws numbers for these places and writes them. Returns the first.
    #[inline]
    fn write(&mut self, batch: &mut Batch, from: usize, to: usize) -> Option<u64> {
        let (mut number, mut first) = (0, None);
        for &Place { at, drawn } in &batch.places.numbers[from..to] {
            if drawn {
                number = self.keys.draw(&mut self.random);
                first = first.or(Some(number));
            }
            if let Some(digits) = batch.bytes[at..].first_chunk_mut::<DIGITS>() {
                write_digits(digits, number, self.pairs);
            }
        }
        first
    }
}

/// Reads the numbers back from the bytes. Only verification needs them.
fn remember_whole(batch: &mut Batch, count: usize, stride: usize, places: &[Place]) {
    let first = places.iter().find(|place| place.drawn);
    for i in 0..count {
        let number = first.map(|place| {
            let at = i * stride + place.at;
            let digits = &batch.bytes[at..at + DIGITS];
            digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
        });
        batch.pending.push_back(SentRequest { command: 0, number });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ingredient, Material, suite};
    use super::*;

    fn source(material: &Material, test: &str, remembers: bool) -> RequestSource {
        let workload = material.test(suite::test_named(test).unwrap());
        RequestSource::new(Arc::new(workload), 1, 0, 1, remembers)
    }

    fn requests(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split('*').skip(1).map(|request| request.replace("\r\n", " ")).collect()
    }

    #[test]
    fn each_request_of_each_batch_gets_its_own_number() {
        let material = Material { keyspace: Some(1_000_000), ..Material::default() };
        let mut source = source(&material, "get", false);
        let mut batch = Batch::default();
        let mut seen = Vec::new();
        for count in [3, 1, 5] {
            let len = source.fill(&mut batch, count, Tag::default());
            let requests = requests(batch.bytes(len));
            assert_eq!(requests.len(), count);
            seen.extend(requests);
        }
        assert!(seen.iter().all(|request| request.starts_with("2 $3 GET $16 key:000000")));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 9);
    }

    #[test]
    fn every_request_has_the_tag_of_its_batch_even_after_a_change() {
        for sizes in ["16", "12-40"] {
            let material = Material {
                keyspace: Some(500),
                sizes: sizes.parse().unwrap(),
                tagged: true,
                ..Material::default()
            };
            let mut source = source(&material, "mset", false);
            let mut batch = Batch::default();
            for (tag, count) in [(b"aaa", 2), (b"aaa", 5), (b"bbb", 1), (b"bbb", 7), (b"tag", 7)] {
                let len = source.fill(&mut batch, count, Tag(*tag));
                assert_eq!(batch.tag(), Tag(*tag));
                let key = format!("key:{{{}}}:000000000", String::from_utf8_lossy(tag));
                for request in requests(batch.bytes(len)) {
                    assert_eq!(request.matches(&key).count(), 10, "{request}");
                }
            }
        }
    }

    #[test]
    fn the_recorded_requests_are_those_written() {
        for sizes in ["16", "12-40"] {
            let material = Material {
                keyspace: Some(500),
                sizes: sizes.parse().unwrap(),
                verified: true,
                ..Material::default()
            };
            let mut source = source(&material, "set", true);
            let mut batch = Batch::default();
            let len = source.fill(&mut batch, 4, Tag::default());
            for request in requests(batch.bytes(len)) {
                let sent = batch.pop_pending().unwrap();
                let digits = format!("{:012}", sent.number.unwrap());
                assert!(request.contains(&format!("key:{digits} ")), "{request}");
                // The value is marked with the same number.
                assert_eq!(request.matches(&digits).count(), 2, "{request}");
            }
            assert_eq!(batch.pop_pending(), None);
        }
    }

    #[test]
    fn commands_are_mixed_by_weight() {
        let material = Material { keyspace: Some(10), ..Material::default() };
        let parts = [
            (Ingredient::Test(suite::test_named("get").unwrap()), 9),
            (Ingredient::Test(suite::test_named("set").unwrap()), 1),
            (Ingredient::Own(vec![b"DEL".to_vec()]), 0),
        ];
        let workload = material.mix("mix".to_owned(), &parts).unwrap();
        let mut source = RequestSource::new(Arc::new(workload), 1, 0, 1, true);
        let mut batch = Batch::default();
        let len = source.fill(&mut batch, 10_000, Tag::default());
        let requests = requests(batch.bytes(len));
        let sets = requests.iter().filter(|request| request.contains("SET")).count();
        assert!((850..1150).contains(&sets), "{sets}");
        for request in requests {
            let sent = batch.pop_pending().unwrap();
            assert_eq!(request.contains("SET"), sent.command == 1);
        }
    }

    #[test]
    fn a_mix_without_weight_is_rejected() {
        let parts = [(Ingredient::Own(vec![b"DEL".to_vec()]), 0)];
        assert!(Material::default().mix("mix".to_owned(), &parts).is_err());
    }
}
