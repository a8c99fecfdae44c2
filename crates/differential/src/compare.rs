//! Compares two replies under a rule.

use super::rules::How;
use super::values;
use brisk_testkit::reply::Reply;

/// Reports whether `ours` is equivalent to `theirs` under the rule. Errors must be equal under every rule but
/// [`How::Refused`], [`How::RefusedAs`], [`How::Younger`] and [`How::OrRange`].
pub fn same(how: How, ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    if let How::OrRange(how) = how {
        return theirs == OUT_OF_RANGE || same(*how, ours, theirs);
    }
    let (Ok(Some((ours, _))), Ok(Some((theirs, _)))) = (Reply::parse(ours), Reply::parse(theirs))
    else {
        return false;
    };
    if how == How::Refused {
        return ours.is_error();
    }
    if let How::RefusedAs(text) = how {
        return ours.is_error() && ours.text() == text;
    }
    if how == How::Younger && theirs.is_error() {
        return true;
    }
    if ours.is_error() || theirs.is_error() {
        return false;
    }
    match how {
        How::Exact | How::Younger | How::OrRange(_) => false,
        How::Refused | How::RefusedAs(_) => false,
        How::Unordered => unordered(ours) == unordered(theirs),
        How::Pairs => pairs(ours) == pairs(theirs),
        How::Count => {
            kind(&ours) == kind(&theirs) && ours.elements().len() == theirs.elements().len()
        }
        How::ToNul => to_nul(&ours, &theirs),
        How::Kind => kind(&ours) == kind(&theirs),
        How::Near(tolerance) => near(&ours, &theirs, tolerance),
        How::Deadline(tolerance) => {
            let absolute = matches!(theirs, Reply::Integer(n) if values::is_deadline(n));
            !absolute && near(&ours, &theirs, tolerance)
        }
        How::Fields(names, tolerance) => fields(&ours, &theirs, names, tolerance),
        How::Column(column, tolerance) => {
            rows(&ours, &theirs, |at, a, b| a == b || at == column && near(a, b, tolerance))
        }
        How::Moments(tolerance) => moments(&ours, &theirs, tolerance),
        How::Grown(more, names, tolerance) => grown(&ours, &theirs, more, names, tolerance),
        How::Notes => without_notes(ours) == without_notes(theirs),
        How::Encoding => encodings(&ours, &theirs),
        How::Shared => {
            matches!((ours, theirs), (Reply::Integer(SHARED), Reply::Integer(1)))
        }
    }
}

/// A reply in readable form.
pub fn shown(bytes: &[u8]) -> String {
    match Reply::parse(bytes) {
        Ok(Some((reply, _))) => reply.to_string(),
        _ => brisk_testkit::words::quoted(bytes),
    }
}

fn to_nul(ours: &Reply, theirs: &Reply) -> bool {
    match (ours, theirs) {
        (Reply::Array(ours), Reply::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| to_nul(a, b))
        }
        (Reply::Bulk(ours), Reply::Bulk(theirs)) => {
            let is_nul = |byte: &u8| *byte == 0;
            ours.split(is_nul).next() == theirs.split(is_nul).next()
        }
        _ => ours == theirs,
    }
}

fn unordered(reply: Reply) -> Reply {
    match reply {
        Reply::Array(mut items) => {
            items.sort();
            Reply::Array(items)
        }
        Reply::Set(mut items) => {
            items.sort();
            Reply::Set(items)
        }
        Reply::Map(mut pairs) => {
            pairs.sort();
            Reply::Map(pairs)
        }
        other => other,
    }
}

/// Like [`unordered`], for a map that RESP2 sends as alternating keys and values.
fn pairs(reply: Reply) -> Reply {
    match reply {
        Reply::Array(items) if items.len() % 2 == 0 => {
            let mut pairs = Vec::with_capacity(items.len() / 2);
            let mut items = items.into_iter();
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                pairs.push((key, value));
            }
            pairs.sort();
            Reply::Map(pairs)
        }
        other => unordered(other),
    }
}

fn kind(reply: &Reply) -> std::mem::Discriminant<Reply> {
    std::mem::discriminant(reply)
}

/// A reply without "notes" and its text.
fn without_notes(reply: Reply) -> Reply {
    let is_notes = |key: &Reply| matches!(key, Reply::Bulk(word) if word == b"notes");
    match reply {
        Reply::Array(mut items) => {
            if let Some(at) = items.iter().position(is_notes).filter(|at| at + 1 < items.len()) {
                items.drain(at..at + 2);
            }
            Reply::Array(items.into_iter().map(without_notes).collect())
        }
        Reply::Map(mut pairs) => {
            pairs.retain(|(key, _)| !is_notes(key));
            Reply::Map(pairs.into_iter().map(|(k, v)| (k, without_notes(v))).collect())
        }
        Reply::Set(items) => Reply::Set(items.into_iter().map(without_notes).collect()),
        other => other,
    }
}

/// The reply of SORT for elements that are not numbers.
const OUT_OF_RANGE: &[u8] = b"-ERR One or more scores can't be converted into double\r\n";

/// The reply of OBJECT REFCOUNT for an integer object that all keys share.
const SHARED: i64 = i32::MAX as i64;

/// Reports whether a set or list may have the one encoding in Brisk and the other in Redis 7.0. Redis 7.0 has no
/// listpack encoding for them. When it adds members, it considers only how many a set has, not how many are added
/// together.
fn encodings(ours: &Reply, theirs: &Reply) -> bool {
    let (Reply::Bulk(ours), Reply::Bulk(theirs)) = (ours, theirs) else { return false };
    matches!(
        (&ours[..], &theirs[..]),
        (b"listpack", b"hashtable" | b"intset" | b"quicklist") | (b"hashtable", b"intset")
    )
}

/// A Unix time in milliseconds in the year 2001. No count or length is this large.
const OLDEST_MOMENT: i64 = 1_000_000_000_000;

fn near(ours: &Reply, theirs: &Reply, tolerance: i64) -> bool {
    match (ours, theirs) {
        // -1 means "no TTL" and -2 means "no key". The tolerance does not apply to them.
        (Reply::Integer(a), Reply::Integer(b)) => {
            *a >= 0 && *b >= 0 && a.abs_diff(*b) <= tolerance.unsigned_abs()
        }
        _ => false,
    }
}

/// Reports whether two arrays of arrays are the same under `cell`, whose first argument is the column.
fn rows(ours: &Reply, theirs: &Reply, cell: impl Fn(usize, &Reply, &Reply) -> bool) -> bool {
    let (Reply::Array(ours), Reply::Array(theirs)) = (ours, theirs) else { return false };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(a, b)| match (a, b) {
            (Reply::Array(a), Reply::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).enumerate().all(|(at, (a, b))| cell(at, a, b))
            }
            (a, b) => a == b,
        })
}

/// Reports whether lists of maps are the same, except that integers under `names` may differ within the tolerance.
fn fields(ours: &Reply, theirs: &Reply, names: &[&str], tolerance: i64) -> bool {
    let (Reply::Array(ours), Reply::Array(theirs)) = (ours, theirs) else { return false };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(a, b)| {
            let (fields, others) = (a.elements(), b.elements());
            kind(a) == kind(b)
                && fields.len() == others.len()
                && fields.chunks(2).zip(others.chunks(2)).all(|(a, b)| {
                    a == b
                        || a[0] == b[0]
                            && a.len() == 2
                            && names.contains(&a[0].text().as_str())
                            && near(a[1], b[1], tolerance)
                })
        })
}

fn moments(ours: &Reply, theirs: &Reply, tolerance: i64) -> bool {
    if let (Reply::Integer(a), Reply::Integer(b)) = (ours, theirs) {
        let are_near = *a.min(b) >= OLDEST_MOMENT && near(ours, theirs, tolerance);
        return a == b || are_near;
    }
    let (parts, others) = (ours.elements(), theirs.elements());
    if parts.is_empty() && others.is_empty() {
        return ours == theirs;
    }
    kind(ours) == kind(theirs)
        && parts.len() == others.len()
        && parts.into_iter().zip(others).all(|(a, b)| moments(a, b, tolerance))
}

/// Reports whether two replies are the same, except for pairs that only ours contains, and numbers within the
/// tolerance.
fn grown(ours: &Reply, theirs: &Reply, more: &[&str], names: &[&str], tolerance: i64) -> bool {
    let (parts, others) = (ours.elements(), theirs.elements());
    if parts.is_empty() && others.is_empty() {
        return moments(ours, theirs, tolerance);
    }
    let mut kept = Vec::with_capacity(parts.len());
    let mut left = parts.into_iter();
    while let Some(part) = left.next() {
        if matches!(part, Reply::Bulk(_)) && more.contains(&part.text().as_str()) {
            left.next();
        } else {
            kept.push(part);
        }
    }
    let (mut is_named, mut is_lag) = (false, false);
    kind(ours) == kind(theirs)
        && kept.len() == others.len()
        && kept.into_iter().zip(others).all(|(a, b)| {
            let same = grown(a, b, more, names, tolerance)
                || is_named && near(a, b, tolerance)
                || is_lag && is_later_lag(a, b);
            let name = if let Reply::Bulk(_) = a { a.text() } else { String::new() };
            (is_named, is_lag) = (names.contains(&name.as_str()), name == "lag");
            same
        })
}

/// True for a consumer group's lag (the number of entries left to read) that only later versions compute. Redis 7.0
/// also counts entries that were trimmed, subtracts an ENTRIESREAD above the number of entries, or does not know the
/// lag of an empty stream.
const fn is_later_lag(ours: &Reply, theirs: &Reply) -> bool {
    matches!((ours, theirs), (Reply::Integer(0..), Reply::Integer(_) | Reply::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_must_be_equal_under_every_rule() {
        for how in [How::Kind, How::Count, How::Unordered, How::Near(1000)] {
            assert!(!same(how, b"-ERR a\r\n", b"-ERR b\r\n"));
            assert!(!same(how, b"*0\r\n", b"-ERR b\r\n"));
        }
    }

    #[test]
    fn the_lag_of_a_group_may_differ_but_is_a_number() {
        let lag = |value: &str| format!("*1\r\n%2\r\n$3\r\nlag\r\n{value}\r\n$1\r\na\r\n:1\r\n");
        let is_same = |ours: &str, theirs: &str| {
            same(How::Grown(&[], &[], 0), lag(ours).as_bytes(), lag(theirs).as_bytes())
        };
        assert!(is_same(":1", ":1") && is_same(":1", ":-1") && is_same(":0", "_"));
        assert!(!is_same(":-1", ":1") && !is_same("_", ":1"));
        assert!(!same(How::Grown(&[], &[], 0), b"*1\r\n:1\r\n", b"*1\r\n:2\r\n"));
    }

    #[test]
    fn members_in_another_order_are_the_same_set_but_not_another_set() {
        assert!(same(
            How::Unordered,
            b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            b"*2\r\n$1\r\nb\r\n$1\r\na\r\n"
        ));
        assert!(!same(
            How::Unordered,
            b"*2\r\n$1\r\na\r\n$1\r\na\r\n",
            b"*2\r\n$1\r\nb\r\n$1\r\na\r\n"
        ));
        assert!(!same(
            How::Exact,
            b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            b"*2\r\n$1\r\nb\r\n$1\r\na\r\n"
        ));
    }

    #[test]
    fn texts_can_differ_after_a_nul_but_not_before_it() {
        let one = b"*2\r\n$0\r\n\r\n$3\r\na\0b\r\n";
        assert!(same(How::ToNul, one, b"*2\r\n$2\r\n\0b\r\n$2\r\na\0\r\n"));
        assert!(!same(How::ToNul, one, b"*2\r\n$1\r\nb\r\n$3\r\na\0b\r\n"));
        assert!(!same(How::ToNul, one, b"*1\r\n$0\r\n\r\n"));
        assert!(!same(How::ToNul, b":1\r\n", b":2\r\n"));
        assert!(!same(How::ToNul, one, b"*2\r\n$-1\r\n$3\r\na\0b\r\n"));
    }

    #[test]
    fn values_stay_with_their_fields() {
        let one = b"*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n";
        assert!(same(How::Pairs, one, b"*4\r\n+b\r\n:2\r\n+a\r\n:1\r\n"));
        assert!(!same(How::Pairs, one, b"*4\r\n+a\r\n:2\r\n+b\r\n:1\r\n"));
    }

    #[test]
    fn times_may_be_near_but_a_missing_ttl_is_not_near_a_short_one() {
        let below = How::RefusedAs("ERR below");
        assert!(same(below, b"-ERR below\r\n", b"+OK\r\n"));
        assert!(same(below, b"-ERR below\r\n", b"-ERR above\r\n"));
        assert!(!same(below, b"-ERR above\r\n", b"+OK\r\n"));
        assert!(same(How::Near(5), b":100\r\n", b":104\r\n"));
        assert!(!same(How::Near(5), b":100\r\n", b":106\r\n"));
        assert!(!same(How::Near(5), b":-1\r\n", b":1\r\n"));
    }

    #[test]
    fn an_absolute_deadline_must_be_kept_to_the_millisecond() {
        let how = How::Deadline(5_000);
        assert!(!same(how, b":4102444800001\r\n", b":4102444800000\r\n"));
        assert!(!same(how, b":2147483647001\r\n", b":2147483647000\r\n"));
        assert!(same(how, b":1795264200001\r\n", b":1795264200000\r\n"));
    }

    #[test]
    fn only_the_times_in_a_table_may_be_near() {
        let row = |idle: u32, count: u32| {
            format!("*1\r\n*4\r\n$1\r\na\r\n$1\r\nc\r\n:{idle}\r\n:{count}\r\n").into_bytes()
        };
        let how = How::Column(2, 100);
        assert!(same(how, &row(10, 1), &row(20, 1)));
        assert!(!same(how, &row(10, 1), &row(10, 2)));
        assert!(!same(how, b"*1\r\n:1\r\n", b"*1\r\n:2\r\n"));
    }

    #[test]
    fn only_the_named_fields_may_be_near() {
        let map = |idle: u32, pending: u32| {
            format!("*1\r\n*4\r\n+pending\r\n:{pending}\r\n+idle\r\n:{idle}\r\n").into_bytes()
        };
        let how = How::Fields(&["idle"], 100);
        assert!(same(how, &map(10, 1), &map(20, 1)));
        assert!(!same(how, &map(10, 1), &map(10, 2)));
        assert!(!same(how, &map(10, 1), &map(1000, 1)));
    }

    #[test]
    fn only_moments_may_be_near_not_counts() {
        let how = How::Moments(100);
        assert!(same(how, b"*2\r\n:1\r\n:1795264200001\r\n", b"*2\r\n:1\r\n:1795264200009\r\n"));
        assert!(!same(how, b"*2\r\n:1\r\n:5\r\n", b"*2\r\n:2\r\n:5\r\n"));
    }

    #[test]
    fn a_set_can_be_a_listpack_but_not_the_reverse() {
        let (packed, table) = (b"$8\r\nlistpack\r\n", b"$9\r\nhashtable\r\n");
        assert!(same(How::Encoding, packed, table));
        assert!(!same(How::Encoding, table, packed));
        assert!(!same(How::Encoding, b"$6\r\nintset\r\n", table));
    }

    #[test]
    fn sharing_more_is_allowed_but_sharing_less_is_not() {
        assert!(same(How::Shared, b":2147483647\r\n", b":1\r\n"));
        assert!(!same(How::Shared, b":1\r\n", b":2147483647\r\n"));
        assert!(!same(How::Shared, b":2\r\n", b":1\r\n"));
    }

    #[test]
    fn notes_are_ignored_and_their_neighbors_compared() {
        let noted = b"*4\r\n$5\r\nnotes\r\n$1\r\na\r\n+flags\r\n+RW\r\n";
        assert!(same(How::Notes, b"*2\r\n+flags\r\n+RW\r\n", noted));
        assert!(!same(How::Notes, b"*2\r\n+flags\r\n+RO\r\n", noted));
    }
}
