//! Two replies under a rule.

use super::rules::How;
use crate::reply::Reply;

/// Whether `ours` is as good as `theirs`. Errors must be equal under every rule.
pub fn same(how: How, ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    let (Ok(Some((ours, _))), Ok(Some((theirs, _)))) = (Reply::parse(ours), Reply::parse(theirs))
    else {
        return false;
    };
    if ours.is_error() || theirs.is_error() {
        return false;
    }
    match how {
        How::Exact => false,
        How::Unordered => unordered(ours) == unordered(theirs),
        How::Pairs => pairs(ours) == pairs(theirs),
        How::Count => {
            kind(&ours) == kind(&theirs) && ours.elements().len() == theirs.elements().len()
        }
        How::Kind => kind(&ours) == kind(&theirs),
        How::Near(tolerance) => near(&ours, &theirs, tolerance),
    }
}

/// A reply for people.
pub fn shown(bytes: &[u8]) -> String {
    match Reply::parse(bytes) {
        Ok(Some((reply, _))) => reply.to_string(),
        _ => crate::words::quoted(bytes),
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

/// As [`unordered`], for a map that RESP2 sends as keys and values in turn.
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

fn near(ours: &Reply, theirs: &Reply, tolerance: i64) -> bool {
    match (ours, theirs) {
        (Reply::Integer(a), Reply::Integer(b)) => {
            // -1 and -2 say "no deadline" and "no key"; no tolerance turns one into the other.
            a == b || (*a >= 0 && *b >= 0 && a.abs_diff(*b) <= tolerance.unsigned_abs())
        }
        (Reply::Array(a), Reply::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b, tolerance))
        }
        (Reply::Map(a), Reply::Map(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((k, v), (l, w))| k == l && near(v, w, tolerance))
        }
        _ => ours == theirs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_equal_or_different_whatever_the_rule() {
        for how in [How::Kind, How::Count, How::Unordered, How::Near(1000)] {
            assert!(!same(how, b"-ERR a\r\n", b"-ERR b\r\n"));
            assert!(!same(how, b"*0\r\n", b"-ERR b\r\n"));
        }
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
    fn values_stay_with_their_fields() {
        let one = b"*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n";
        assert!(same(How::Pairs, one, b"*4\r\n+b\r\n:2\r\n+a\r\n:1\r\n"));
        assert!(!same(How::Pairs, one, b"*4\r\n+a\r\n:2\r\n+b\r\n:1\r\n"));
    }

    #[test]
    fn times_may_be_near_but_no_deadline_is_not_near_any() {
        assert!(same(How::Near(5), b":100\r\n", b":104\r\n"));
        assert!(!same(How::Near(5), b":100\r\n", b":106\r\n"));
        assert!(!same(How::Near(5), b":-1\r\n", b":1\r\n"));
    }
}
