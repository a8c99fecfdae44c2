//! M5: the same addresses in three layouts.

use super::finding::Measurement;
use super::stage::{Filler, Stage, connect, growth_bytes, measure, request};
use super::{Experiment, Found};
use crate::engine::plan::{End, Plan};
use crate::load::Material;
use crate::requester::text_of;
use crate::subject::Subject;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m5",
    title: "Addresses in three layouts",
    what: "Province, city and district of 500,000 users (100,000 short) as one key per field, as \
           one hash per user, and as a code of six digits per user in one string with three \
           dictionaries, read by a Lua script. Memory per user, and server CPU for reading one \
           address in pipelines of 16. The article gives no numbers.",
    run,
};

/// 30 provinces with 20 cities each, with 15 districts each. Their numbers have two digits.
const PLACES: [usize; 3] = [30, 20, 15];
const FIELDS: [&str; 3] = ["province", "city", "district"];
const SCRIPT: &str = "\
    local at = tonumber(ARGV[1]) * 6 \
    local code = redis.call('GETRANGE', KEYS[1], at, at + 5) \
    return {redis.call('HGET', KEYS[2], string.sub(code, 1, 2)), \
            redis.call('HGET', KEYS[3], string.sub(code, 1, 4)), \
            redis.call('HGET', KEYS[4], code)}";
/// Number of codes written together.
const CODES: usize = 1000;

fn run(stage: &mut Stage<'_>) -> Result<Found, String> {
    let mut rows = Vec::new();
    for layout in [Layout::Keys, Layout::Hashes, Layout::Codes] {
        rows.extend(stage.alone(&[], |subject, size, _| {
            let users = size.pick(100_000, 500_000);
            let bytes = growth_bytes(subject, |filler| layout.fill(filler, users))?;
            let words = layout.read(subject)?;
            let material = Material { keyspace: Some(users as u64), ..Material::default() };
            let plan = Plan {
                clients: 10,
                pipeline: 16,
                end: End::Requests(size.pick(50_000, 300_000)),
                ..size.plan(material.own("address".to_owned(), &words), &subject.target)
            };
            let measured = measure(&plan, subject)?;
            let what = layout.what();
            Ok(vec![
                Measurement::less(format!("{what}: memory"), "bytes/user", bytes / users as f64),
                Measurement::less(format!("{what}: server CPU"), "us/address", measured.cpu_us),
            ])
        })?);
    }
    Ok(rows.into())
}

#[derive(Clone, Copy)]
enum Layout {
    Keys,
    Hashes,
    Codes,
}

/// The address of a user: the numbers of the province, the city and the district.
fn address(user: usize) -> [usize; 3] {
    PLACES.map(|places| user * 7919 / 13 % places)
}

/// The names in an address, as long as real names.
fn names([province, city, district]: [usize; 3]) -> [String; 3] {
    [
        format!("Province of {province:02}"),
        format!("City {province:02}-{city:02}"),
        format!("District {province:02}-{city:02}-{district:02}"),
    ]
}

impl Layout {
    const fn what(self) -> &'static str {
        match self {
            Layout::Keys => "a key per field",
            Layout::Hashes => "a hash per user",
            Layout::Codes => "codes and dictionaries",
        }
    }

    fn fill(self, filler: &mut Filler, users: usize) -> Result<(), String> {
        match self {
            Layout::Keys => (0..users).try_for_each(|user| {
                let fields = FIELDS.iter().zip(names(address(user)));
                fields.into_iter().try_for_each(|(field, name)| {
                    filler.add(&["SET", &format!("user:{user:012}:{field}"), &name])
                })
            }),
            Layout::Hashes => (0..users).try_for_each(|user| {
                let [province, city, district] = names(address(user));
                let [a, b, c] = FIELDS;
                let key = format!("user:{user:012}");
                filler.add(&["HSET", &key, a, &province, b, &city, c, &district])
            }),
            Layout::Codes => fill_codes(filler, users),
        }
    }

    /// The command that reads the address of a user.
    fn read(self, subject: &Subject) -> Result<Vec<String>, String> {
        Ok(match self {
            Layout::Keys => {
                let keys = FIELDS.map(|field| format!("user:__rand_int__:{field}"));
                std::iter::once("MGET".to_owned()).chain(keys).collect()
            }
            Layout::Hashes => {
                let words = [&["HMGET", "user:__rand_int__"][..], &FIELDS].concat();
                words.into_iter().map(str::to_owned).collect()
            }
            Layout::Codes => {
                let mut requester = connect(subject)?;
                let sha = text_of(&request(&mut requester, &["SCRIPT", "LOAD", SCRIPT])?);
                let sha = sha.ok_or("SCRIPT LOAD returned no digest")?;
                let keys = [&["4", "codes"][..], &FIELDS].concat();
                let mut words = vec!["EVALSHA".to_owned(), sha];
                words.extend(keys.into_iter().map(str::to_owned));
                words.push("__rand_int__".to_owned());
                check(&mut requester, &words)?;
                words
            }
        })
    }
}

/// Checks that the script returns the same as the other layouts.
fn check(requester: &mut crate::requester::Requester, words: &[String]) -> Result<(), String> {
    const USER: usize = 1234;
    let words: Vec<String> =
        words.iter().map(|word| word.replace("__rand_int__", &USER.to_string())).collect();
    let wanted = names(address(USER));
    match request(requester, &words)? {
        brisk_resp::Value::Array(found)
            if found.iter().map(text_of).eq(wanted.iter().cloned().map(Some)) =>
        {
            Ok(())
        }
        found => Err(format!("the script found {found:?} instead of {wanted:?}")),
    }
}

fn fill_codes(filler: &mut Filler, users: usize) -> Result<(), String> {
    for first in (0..users).step_by(CODES) {
        let codes: String = (first..(first + CODES).min(users))
            .map(|user| address(user).map(|place| format!("{place:02}")).concat())
            .collect();
        filler.add(&["SETRANGE", "codes", &(first * 6).to_string(), &codes])?;
    }
    let [provinces, cities, districts] = PLACES;
    for province in 0..provinces {
        let [name, _, _] = names([province, 0, 0]);
        filler.add(&["HSET", FIELDS[0], &format!("{province:02}"), &name])?;
        for city in 0..cities {
            let [_, name, _] = names([province, city, 0]);
            filler.add(&["HSET", FIELDS[1], &format!("{province:02}{city:02}"), &name])?;
            for district in 0..districts {
                let [_, _, name] = names([province, city, district]);
                let code = format!("{province:02}{city:02}{district:02}");
                filler.add(&["HSET", FIELDS[2], &code, &name])?;
            }
        }
    }
    Ok(())
}
