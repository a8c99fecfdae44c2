//! The distribution of the keys in requests: uniform, Zipf, a hot set, or sequential.

use super::random::Random;
use std::str::FromStr;

/// How key numbers are drawn from `0..keyspace`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum KeyChoice {
    /// All keys are equally frequent.
    #[default]
    Uniform,
    /// The frequency of key `k` is proportional to `(k + 1)^-exponent`, so key 0 is the most frequent.
    Zipf {
        /// Above 0. The YCSB benchmark uses 0.99.
        exponent: f64,
    },
    /// The first keys, a fraction `keys` of all keys, get a fraction `requests` of all requests.
    Hot {
        /// Fraction of the keyspace that is hot, above 0 and below 1.
        keys: f64,
        /// Fraction of requests that use hot keys.
        requests: f64,
    },
    /// 0, 1, 2 … and then from the start again. With n workers, worker i takes the keys i, i + n, i + 2n …
    Sequential,
}

impl FromStr for KeyChoice {
    type Err = String;

    /// Parses `uniform`, `sequential`, `zipf`, `zipf:1.2`, or `hot:1:90` (percent of keys and of requests).
    fn from_str(text: &str) -> Result<KeyChoice, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Result<Vec<f64>, _> = words.map(f64::from_str).collect();
        let numbers = numbers.map_err(|_| format!("not a number in \"{text}\""))?;
        match (name, numbers.as_slice()) {
            ("uniform", []) => Ok(KeyChoice::Uniform),
            ("sequential", []) => Ok(KeyChoice::Sequential),
            ("zipf", []) => Ok(KeyChoice::Zipf { exponent: 0.99 }),
            ("zipf", &[exponent]) if exponent > 0.0 && exponent <= 10.0 => {
                Ok(KeyChoice::Zipf { exponent })
            }
            ("hot", &[keys, requests])
                if keys > 0.0 && keys < 100.0 && (0.0..=100.0).contains(&requests) =>
            {
                Ok(KeyChoice::Hot { keys: keys / 100.0, requests: requests / 100.0 })
            }
            _ => Err(format!(
                "unknown key distribution \"{text}\": uniform, sequential, zipf[:exponent] or \
                 hot:<percent of keys>:<percent of requests>"
            )),
        }
    }
}

/// Draws key numbers for one worker.
#[derive(Clone, Debug)]
pub struct KeySource {
    keyspace: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf),
    Hot { hot: u64, requests: f64 },
    Sequential { next: u64, step: u64 },
}

impl KeySource {
    /// Keys for worker `worker` of `workers` (at least 1) from `0..keyspace`. A keyspace of 0 has only the key 0.
    #[must_use]
    pub fn new(choice: KeyChoice, keyspace: u64, worker: usize, workers: usize) -> KeySource {
        let keyspace = keyspace.max(1);
        let kind = match choice {
            KeyChoice::Uniform => Kind::Uniform,
            KeyChoice::Zipf { exponent } => Kind::Zipf(Zipf::new(keyspace, exponent)),
            KeyChoice::Hot { keys, requests } => {
                let hot = ((keyspace as f64 * keys) as u64).clamp(1, keyspace);
                Kind::Hot { hot, requests }
            }
            KeyChoice::Sequential => {
                Kind::Sequential { next: worker as u64 % keyspace, step: workers as u64 }
            }
        };
        KeySource { keyspace, kind }
    }

    /// The next key number.
    #[inline]
    pub fn draw(&mut self, random: &mut Random) -> u64 {
        match &mut self.kind {
            Kind::Uniform => random.below(self.keyspace),
            Kind::Zipf(zipf) => zipf.draw(random),
            Kind::Hot { hot, requests } => {
                if *hot == self.keyspace || random.unit() < *requests {
                    random.below(*hot)
                } else {
                    *hot + random.below(self.keyspace - *hot)
                }
            }
            Kind::Sequential { next, step } => {
                let key = *next;
                *next = (key + *step) % self.keyspace;
                key
            }
        }
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger 1996). It takes O(1) per number, and needs no table, for a
/// keyspace of any size. The area under the continuous hat function `x^-exponent` is inverted. If the bar of a number
/// is lower than the hat at this point, the number is rejected and drawn again, which is rare.
#[derive(Clone, Debug)]
struct Zipf {
    exponent: f64,
    count: f64,
    area_first: f64,
    area_last: f64,
    /// Numbers this close above the hat's abscissa are accepted without further checks.
    squeeze: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Zipf {
        let count = count as f64;
        let mut zipf = Zipf { exponent, count, area_first: 0.0, area_last: 0.0, squeeze: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(count + 0.5);
        zipf.squeeze = 2.0 - zipf.abscissa(zipf.area(2.5) - 2f64.powf(-exponent));
        zipf
    }

    /// Integral of the hat from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 { x.ln() } else { (power * x.ln()).exp_m1() / power }
    }

    /// Inverse of `area`.
    fn abscissa(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            area.exp()
        } else {
            ((power * area).max(-1.0).ln_1p() / power).exp()
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        // In practice there are only a few iterations. The limit only ensures that the loop ends.
        for _ in 0..1000 {
            let area = self.area_last + random.unit() * (self.area_first - self.area_last);
            let x = self.abscissa(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.squeeze || area >= self.area(rank + 0.5) - rank.powf(-self.exponent)
            {
                return rank as u64 - 1;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(choice: &str, keyspace: u64, draws: u64) -> Vec<u64> {
        let mut source = KeySource::new(choice.parse().unwrap(), keyspace, 0, 1);
        let mut random = Random::new(1);
        let mut counts = vec![0; keyspace as usize];
        (0..draws).for_each(|_| counts[source.draw(&mut random) as usize] += 1);
        counts
    }

    #[test]
    fn zipf_follows_the_power_law() {
        for exponent in ["0.5", "0.99", "1", "1.5"] {
            let power: f64 = exponent.parse().unwrap();
            let draws = 1_000_000;
            let seen = counts(&format!("zipf:{exponent}"), 1000, draws);
            let total: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-power)).sum();
            for rank in [1u32, 2, 3, 10, 100, 1000] {
                let wanted = draws as f64 * f64::from(rank).powf(-power) / total;
                let got = seen[rank as usize - 1] as f64;
                // The tolerance is five standard deviations.
                assert!(
                    (got - wanted).abs() < 5.0 * wanted.sqrt() + 1.0,
                    "exponent {exponent}, rank {rank}: {got} instead of {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_hot_set_gets_its_share() {
        let seen = counts("hot:10:90", 100, 100_000);
        let hot: u64 = seen[..10].iter().sum();
        assert!((89_000..91_000).contains(&hot), "{hot}");
        assert!(seen.iter().all(|&count| count > 0));
    }

    #[test]
    fn workers_that_go_in_order_share_the_keyspace() {
        let mut random = Random::new(1);
        let mut all: Vec<u64> = Vec::new();
        for worker in 0..3 {
            let mut source = KeySource::new(KeyChoice::Sequential, 9, worker, 3);
            all.extend((0..3).map(|_| source.draw(&mut random)));
        }
        all.sort_unstable();
        assert_eq!(all, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn uniform_is_uniform() {
        let seen = counts("uniform", 50, 100_000);
        assert!(seen.iter().all(|&count| (1750..2250).contains(&count)), "{seen:?}");
    }

    #[test]
    fn nonsense_is_rejected_with_the_possible_values() {
        for text in ["", "zipf:0", "zipf:x", "hot:1", "hot:0:50", "hot:101:50", "uniform:3"] {
            assert!(text.parse::<KeyChoice>().is_err(), "{text}");
        }
        let error = "gauss".parse::<KeyChoice>().unwrap_err();
        assert!(error.contains("zipf[:exponent]"), "{error}");
    }
}
