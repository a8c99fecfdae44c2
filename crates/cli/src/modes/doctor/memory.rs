//! The memory limit, evictions, and the server's own findings about memory.

use super::facts::ServerFacts;
use crate::amount::{bytes, counted, grouped};
use brisk_findings::rules::Setting;
use brisk_findings::{Finding, rules};

/// The percentage of `maxmemory` from which a server that does not evict is close to rejecting writes.
const NEARLY_FULL_PERCENT: f64 = 90.0;
/// Number of evictions that are reported, if they are also more than the server has keys.
const EVICTIONS_MIN: u64 = 100;

pub(super) fn check(facts: &ServerFacts, findings: &mut Vec<Finding>) {
    findings.extend(limit(facts));
    findings.extend(nearly_full(facts));
    findings.extend(nothing_to_evict(facts));
    findings.extend(evictions(facts));
    findings.extend(rejected(facts));
    let remarks = facts.memory_doctor.iter();
    findings.extend(remarks.map(|text| Finding::note("memory", format!("MEMORY DOCTOR: {text}"))));
}

fn limit(facts: &ServerFacts) -> Option<Finding> {
    let total = facts.info.get("total_system_memory")?.parse().ok();
    rules::maxmemory(facts.number("maxmemory"), total, Setting::Running)
}

/// The part of the limit that is used, if there is a limit and no key is evicted.
fn nearly_full(facts: &ServerFacts) -> Option<Finding> {
    let (used, max) = (facts.info.decimal("used_memory"), facts.info.decimal("maxmemory"));
    let percent = 100.0 * used / max;
    let is_kept = facts.info.is("maxmemory_policy", "noeviction");
    (max > 0.0 && is_kept && percent >= NEARLY_FULL_PERCENT).then(|| {
        let what = format!("{percent:.0} % of {} used, maxmemory-policy noeviction", bytes(max));
        let more = (max * 1.5 / 1024.0 / 1024.0).ceil().max(1.0);
        Finding::problem("maxmemory", what)
            .means(if percent < 100.0 {
                "At 100 %, writes fail with OOM."
            } else {
                "Writes fail with OOM."
            })
            .todo(format!(
                "CONFIG SET maxmemory {more:.0}mb, or CONFIG SET maxmemory-policy allkeys-lru"
            ))
    })
}

/// A policy that evicts only keys with a TTL, although no key has one.
fn nothing_to_evict(facts: &ServerFacts) -> Option<Finding> {
    let policy = facts.info.get("maxmemory_policy")?;
    let (keys, expires) = facts.keys();
    let applies = policy.starts_with("volatile-") && facts.number("maxmemory") > 0;
    (applies && keys > 0 && expires == 0).then(|| {
        let what =
            format!("maxmemory-policy {policy}, but none of {} has a TTL", counted(keys, "key"));
        Finding::problem("eviction", what)
            .means("No key can be evicted, so writes fail with OOM when maxmemory is reached.")
            .todo(format!(
                "CONFIG SET maxmemory-policy {}",
                policy.replacen("volatile-", "allkeys-", 1).replace("allkeys-ttl", "allkeys-lru")
            ))
    })
}

fn evictions(facts: &ServerFacts) -> Option<Finding> {
    let (evicted, (keys, _)) = (facts.number("evicted_keys"), facts.keys());
    (evicted >= EVICTIONS_MIN && evicted > keys).then(|| {
        let (hits, misses) = (facts.number("keyspace_hits"), facts.number("keyspace_misses"));
        let rate = match hits + misses {
            0 => String::new(),
            all => format!(", hit rate {:.0} %", 100.0 * hits as f64 / all as f64),
        };
        let what = format!("{} evicted, {} left{rate}", counted(evicted, "key"), grouped(keys));
        let more = (facts.info.decimal("maxmemory") * 1.5 / 1024.0 / 1024.0).ceil().max(1.0);
        Finding::warning("eviction", what)
            .means("The dataset does not fit into maxmemory.")
            .todo(format!("CONFIG SET maxmemory {more:.0}mb, or shorter TTLs; brisk-cli analyze shows what takes the memory"))
    })
}

/// Writes that were rejected because of the limit.
fn rejected(facts: &ServerFacts) -> Option<Finding> {
    let errors = facts.info.get("errorstat_OOM")?;
    let count: u64 = crate::info::part(errors, "count")?.parse().ok()?;
    (count > 0).then(|| {
        Finding::warning("maxmemory", format!("{} with OOM", counted(count, "rejected command")))
            .means("Clients have lost writes.")
            .todo("raise maxmemory as above; CONFIG RESETSTAT clears this count")
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::facts;
    use super::*;
    use brisk_findings::Severity;

    #[test]
    fn a_nearly_full_server_is_a_problem_only_if_it_does_not_evict() {
        let of = |policy: &str, used: u32| {
            nearly_full(&facts(
                &format!("used_memory:{used} maxmemory:104857600 maxmemory_policy:{policy}"),
                &[],
            ))
        };
        let found = of("noeviction", 99_614_720).unwrap();
        assert_eq!(
            (found.severity, found.what.as_str()),
            (Severity::Problem, "95 % of 100.0 MiB used, maxmemory-policy noeviction")
        );
        assert_eq!(
            found.todo,
            "CONFIG SET maxmemory 150mb, or CONFIG SET maxmemory-policy allkeys-lru"
        );
        assert_eq!((of("noeviction", 80_000_000), of("allkeys-lru", 104_000_000)), (None, None));
    }

    #[test]
    fn a_volatile_policy_needs_keys_with_a_ttl() {
        let of = |policy: &str, expires: u8| {
            nothing_to_evict(&facts(
                &format!("maxmemory:1 maxmemory_policy:{policy} db0:keys=5,expires={expires}"),
                &[],
            ))
        };
        assert_eq!(of("volatile-ttl", 0).unwrap().todo, "CONFIG SET maxmemory-policy allkeys-lru");
        assert_eq!(of("volatile-lfu", 0).unwrap().todo, "CONFIG SET maxmemory-policy allkeys-lfu");
        assert_eq!((of("volatile-lru", 1), of("allkeys-lru", 0)), (None, None));
    }

    #[test]
    fn evictions_are_compared_with_the_number_of_keys() {
        let of = |evicted: u32| {
            evictions(&facts(
                &format!(
                    "evicted_keys:{evicted} keyspace_hits:3 keyspace_misses:1 db0:keys=200,expires=0"
                ),
                &[],
            ))
        };
        assert_eq!(of(300).unwrap().what, "300 keys evicted, 200 left, hit rate 75 %");
        assert_eq!(of(200), None);
    }
}
