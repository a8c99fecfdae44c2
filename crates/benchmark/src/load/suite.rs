//! The tests of redis-benchmark, in the same order, with the same names, titles and keys.

use super::tag::TAG_WORD;
use super::template::{NUMBER_WORD, Placeholders};
use super::verify::Expect;

/// A test of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// The names for `-t`. Several tests may share a name.
    pub names: &'static [&'static str],
    /// The title in reports.
    pub title: &'static str,
    /// The arguments of the command. An empty list is the inline `PING`.
    pub words: &'static [&'static str],
    /// The expected reply.
    pub expect: Expect,
}

const MSET: [&str; 21] = {
    let mut words = ["MSET"; 21];
    let mut i = 1;
    while i < 21 {
        words[i] = "key:__rand_int__";
        words[i + 1] = "__data__";
        i += 2;
    }
    words
};

/// All tests, in the order in which they run.
pub const SUITE: &[Test] = &[
    Test {
        names: &["ping_inline", "ping"],
        title: "PING_INLINE",
        words: &[],
        expect: Expect::Simple("PONG"),
    },
    Test {
        names: &["ping_mbulk", "ping"],
        title: "PING_MBULK",
        words: &["PING"],
        expect: Expect::Simple("PONG"),
    },
    Test {
        names: &["set"],
        title: "SET",
        words: &["SET", "key:__rand_int__", "__data__"],
        expect: Expect::Simple("OK"),
    },
    Test {
        names: &["get"],
        title: "GET",
        words: &["GET", "key:__rand_int__"],
        expect: Expect::ValueOfKey,
    },
    Test {
        names: &["incr"],
        title: "INCR",
        words: &["INCR", "counter:__rand_int__"],
        expect: Expect::Integer(1, i64::MAX),
    },
    Test {
        names: &["lpush"],
        title: "LPUSH",
        words: &["LPUSH", "mylist", "__data__"],
        expect: Expect::Integer(1, i64::MAX),
    },
    Test {
        names: &["rpush"],
        title: "RPUSH",
        words: &["RPUSH", "mylist", "__data__"],
        expect: Expect::Integer(1, i64::MAX),
    },
    Test { names: &["lpop"], title: "LPOP", words: &["LPOP", "mylist"], expect: Expect::Value },
    Test { names: &["rpop"], title: "RPOP", words: &["RPOP", "mylist"], expect: Expect::Value },
    Test {
        names: &["sadd"],
        title: "SADD",
        words: &["SADD", "myset", "element:__rand_int__"],
        expect: Expect::Integer(0, 1),
    },
    Test {
        names: &["hset"],
        title: "HSET",
        words: &["HSET", "myhash", "element:__rand_int__", "__data__"],
        expect: Expect::Integer(0, 1),
    },
    Test { names: &["spop"], title: "SPOP", words: &["SPOP", "myset"], expect: Expect::Element },
    Test {
        names: &["zadd"],
        title: "ZADD",
        // Without a keyspace the score is 0; see `words_of`.
        words: &["ZADD", "myzset", "__rand_int__", "element:__rand_int__"],
        expect: Expect::Integer(0, 1),
    },
    Test {
        names: &["zpopmin"],
        title: "ZPOPMIN",
        words: &["ZPOPMIN", "myzset"],
        expect: Expect::ElementWithScore,
    },
    Test {
        names: &["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"],
        title: "LPUSH (needed to benchmark LRANGE)",
        words: &["LPUSH", "mylist", "__data__"],
        expect: Expect::Integer(1, i64::MAX),
    },
    Test {
        names: &["lrange_100", "lrange"],
        title: "LRANGE_100 (first 100 elements)",
        words: &["LRANGE", "mylist", "0", "99"],
        expect: Expect::Values(100),
    },
    Test {
        names: &["lrange_300", "lrange"],
        title: "LRANGE_300 (first 300 elements)",
        words: &["LRANGE", "mylist", "0", "299"],
        expect: Expect::Values(300),
    },
    Test {
        names: &["lrange_500", "lrange"],
        title: "LRANGE_500 (first 500 elements)",
        words: &["LRANGE", "mylist", "0", "499"],
        expect: Expect::Values(500),
    },
    Test {
        names: &["lrange_600", "lrange"],
        title: "LRANGE_600 (first 600 elements)",
        words: &["LRANGE", "mylist", "0", "599"],
        expect: Expect::Values(600),
    },
    Test { names: &["mset"], title: "MSET (10 keys)", words: &MSET, expect: Expect::Simple("OK") },
];

impl Test {
    /// The arguments of the command, for these placeholders. If hash tags are replaced, keys contain one:
    /// `key:{tag}:__rand_int__`, `mylist:{tag}`.
    #[must_use]
    pub fn words_of(&self, replaced: Placeholders) -> Vec<String> {
        let word = |(at, word): (usize, &&str)| match *word {
            // A score must be a number.
            NUMBER_WORD if !replaced.numbers => "0".to_owned(),
            key if replaced.tags && self.is_key(at) => {
                let name = key.find(':').unwrap_or(key.len());
                format!("{}:{TAG_WORD}{}", &key[..name], &key[name..])
            }
            word => word.to_owned(),
        };
        self.words.iter().enumerate().map(word).collect()
    }

    /// Reports whether the argument at this position is a key.
    fn is_key(&self, at: usize) -> bool {
        at == 1 || (at % 2 == 1 && self.words[0] == "MSET")
    }
}

/// The tests in a comma-separated list of names, each once, in the suite's order, and the unknown names. Without a
/// list, all tests.
#[must_use]
pub fn selected(list: Option<&str>) -> (Vec<&'static Test>, Vec<String>) {
    let Some(list) = list else { return (SUITE.iter().collect(), Vec::new()) };
    let wanted: Vec<String> = list.split(',').map(str::to_lowercase).collect();
    let is = |test: &Test| wanted.iter().any(|name| test.names.contains(&name.as_str()));
    let known = |name: &String| SUITE.iter().any(|test| test.names.contains(&name.as_str()));
    let unknown = wanted.iter().filter(|name| !name.is_empty() && !known(name)).cloned().collect();
    (SUITE.iter().filter(|test| is(test)).collect(), unknown)
}

/// All names, for the error text about an unknown test.
#[must_use]
pub fn names() -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in SUITE.iter().flat_map(|test| test.names) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// The main test with this name. For `ping`, it is the test that uses RESP.
#[must_use]
pub fn test_named(name: &str) -> Option<&'static Test> {
    let name = name.to_lowercase();
    let first = SUITE.iter().find(|test| test.names[0] == name);
    first.or_else(|| SUITE.iter().rev().find(|test| test.names.contains(&name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(list: &str) -> Vec<&'static str> {
        selected(Some(list)).0.iter().map(|test| test.title).collect()
    }

    #[test]
    fn names_select_the_same_tests_as_in_redis_benchmark() {
        assert_eq!(titles("get,SET"), ["SET", "GET"]);
        assert_eq!(titles("ping"), ["PING_INLINE", "PING_MBULK"]);
        assert_eq!(titles("ping_mbulk"), ["PING_MBULK"]);
        let needs_a_list = "LPUSH (needed to benchmark LRANGE)";
        assert_eq!(titles("lrange_300"), [needs_a_list, "LRANGE_300 (first 300 elements)"]);
        assert_eq!(titles("lrange").len(), 5);
        assert_eq!(titles("lrange_100,lpush")[0], "LPUSH");
        assert_eq!(selected(None).0.len(), SUITE.len());
        assert_eq!(selected(Some("get,nonsense")).1, ["nonsense"]);
        let all = names();
        assert_eq!(selected(Some(&all.replace(", ", ","))), (SUITE.iter().collect(), Vec::new()));
        assert_eq!(all.matches("lrange_100").count(), 1, "{all}");
    }

    #[test]
    fn a_name_with_several_tests_has_one_main_test() {
        let title = |name| test_named(name).map(|test| test.title);
        assert_eq!(title("lrange_100"), Some("LRANGE_100 (first 100 elements)"));
        assert_eq!(title("ping"), Some("PING_MBULK"));
        assert_eq!(title("SET"), Some("SET"));
        assert_eq!(title("nonsense"), None);
    }

    #[test]
    fn a_score_is_a_number_with_and_without_a_keyspace() {
        let zadd = test_named("zadd").unwrap();
        let numbers = |numbers| Placeholders { numbers, tags: false };
        assert_eq!(zadd.words_of(numbers(false))[2], "0");
        assert_eq!(zadd.words_of(numbers(true))[2], "__rand_int__");
        assert_eq!(zadd.words_of(numbers(false))[3], "element:__rand_int__");
    }

    #[test]
    fn keys_have_a_hash_tag_in_cluster_mode_and_members_have_none() {
        let words = |name: &str| {
            let replaced = Placeholders { numbers: true, tags: true };
            test_named(name).unwrap().words_of(replaced).join(" ")
        };
        // The commands are those that MONITOR shows for redis-benchmark 7.0.15.
        assert_eq!(words("set"), "SET key:{tag}:__rand_int__ __data__");
        assert_eq!(words("incr"), "INCR counter:{tag}:__rand_int__");
        assert_eq!(words("lrange_100"), "LRANGE mylist:{tag} 0 99");
        assert_eq!(words("sadd"), "SADD myset:{tag} element:__rand_int__");
        assert_eq!(words("hset"), "HSET myhash:{tag} element:__rand_int__ __data__");
        assert_eq!(words("zadd"), "ZADD myzset:{tag} __rand_int__ element:__rand_int__");
        assert_eq!(words("mset").matches(" key:{tag}:__rand_int__ __data__").count(), 10);
        assert_eq!(words("ping"), "PING");
    }

    #[test]
    fn mset_has_ten_pairs() {
        let mset = test_named("mset").unwrap();
        assert_eq!(mset.words.len(), 21);
        assert_eq!(mset.words[0], "MSET");
        assert_eq!(mset.words[19..], ["key:__rand_int__", "__data__"]);
    }
}
