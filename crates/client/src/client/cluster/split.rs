//! Commands with keys in several slots: six commands are split by slot, and the replies to their parts are merged.

use crate::error::{Error, IN_PART};
use crate::request::Request;
use brisk_resp::reply::encode;
use brisk_resp::reply::read::{Part, ReplyReader};
use brisk_resp::slot::key_slot;

/// How the replies to the parts of a command are merged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// There is only one part.
    Only,
    /// Integers are added.
    Sum,
    /// Each value comes from a part, at an index within that part.
    Values(Vec<(u32, u32)>),
    /// All parts have the same reply.
    First,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitKind {
    Sum,
    Values,
    First,
}

/// How a request can be split, and the number of arguments per key.
fn splits(request: &Request) -> Option<(SplitKind, usize)> {
    let name = request.verb();
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    // Compare the length first, because most commands are none of these.
    match name.len() {
        3 if is("DEL") => Some((SplitKind::Sum, 1)),
        4 if is("MGET") => Some((SplitKind::Values, 1)),
        4 if is("MSET") => Some((SplitKind::First, 2)),
        5 if is("TOUCH") => Some((SplitKind::Sum, 1)),
        6 if is("EXISTS") || is("UNLINK") => Some((SplitKind::Sum, 1)),
        _ => None,
    }
}

/// The server's error for keys in several slots.
pub(crate) fn cross_slot_error() -> Error {
    Error::server(b"CROSSSLOT Keys in request don't hash to the same slot")
}

/// The slots that a request belongs to.
#[derive(Debug)]
pub(crate) enum SlotRouting {
    /// Its keys are in one slot, or it has no keys.
    OneSlot(Option<u16>),
    /// Its keys are in several slots; these are its parts.
    Split(Merge, Vec<(u16, Request)>),
    /// Its keys are in several slots, and it cannot be split.
    CrossSlot,
}

/// The slots of a request's keys. O(bytes of the keys).
pub(crate) fn slot_routing(request: &Request) -> SlotRouting {
    let Some(first) = request.routing_key() else { return SlotRouting::OneSlot(None) };
    let slot = key_slot(first);
    if request.argument_count() < 3 {
        return SlotRouting::OneSlot(Some(slot));
    }
    if let Some((how, step)) = splits(request) {
        let args = request.arguments().count() - 1;
        let mut keys = request.arguments().skip(1).step_by(step);
        if !args.is_multiple_of(step) || keys.all(|key| key_slot(key) == slot) {
            return SlotRouting::OneSlot(Some(slot));
        }
        let (merge, parts) = split(request, how, step);
        return SlotRouting::Split(merge, parts);
    }
    match request.later_keys().all(|key| key_slot(key) == slot) {
        true => SlotRouting::OneSlot(Some(slot)),
        false => SlotRouting::CrossSlot,
    }
}

fn split(request: &Request, how: SplitKind, step: usize) -> (Merge, Vec<(u16, Request)>) {
    let name = std::str::from_utf8(request.verb()).unwrap_or_default();
    let mut parts: Vec<(u16, Request)> = Vec::new();
    // The index of each slot's part. There are usually fewer slots than keys.
    let mut places = std::collections::HashMap::new();
    let mut order = Vec::new();
    let mut args = request.arguments().skip(1);
    while let Some(key) = args.next() {
        let slot = key_slot(key);
        let at = *places.entry(slot).or_insert_with(|| {
            parts.push((slot, Request::new(name, request.traits())));
            parts.len() - 1
        });
        let part = &mut parts[at].1;
        order.push((at as u32, part.argument_count() - 1));
        part.key(key);
        for _ in 1..step {
            args.next().into_iter().for_each(|arg| part.arg(arg));
        }
    }
    let merge = match how {
        SplitKind::Sum => Merge::Sum,
        SplitKind::Values => Merge::Values(order),
        SplitKind::First => Merge::First,
    };
    (merge, parts)
}

impl Merge {
    /// Appends the combined reply to `out`. If a part failed, its error becomes the reply. If other parts have changed
    /// data, the error says so. O(bytes).
    pub(crate) fn write(&self, parts: &[&[u8]], reads_only: bool, out: &mut Vec<u8>) {
        let is_error = |part: &&&[u8]| matches!(part.first(), Some(b'-' | b'!'));
        if let Some(error) = parts.iter().find(is_error) {
            let reads_only = reads_only || matches!(self, Merge::Values(_));
            let text = match ReplyReader::new(error).part() {
                Ok(Part::Error(text))
                    if !reads_only && !parts.iter().all(|part| is_error(&part)) =>
                {
                    text
                }
                _ => return out.extend_from_slice(error),
            };
            // The error has a length prefix, since some error texts contain newlines.
            let head = format!("!{}\r\n", text.len() + IN_PART.len());
            let parts = [head.as_bytes(), text, IN_PART.as_bytes(), b"\r\n"];
            return parts.iter().for_each(|part| out.extend_from_slice(part));
        }
        let merged = match self {
            Merge::Only | Merge::First => parts.first().map(|part| out.extend_from_slice(part)),
            Merge::Sum => sum(parts).map(|sum| encode::integer(out, sum)),
            Merge::Values(order) => values(parts, order, out),
        };
        if merged.is_none() {
            out.extend_from_slice(
                b"-ERR the parts of a command have replies of different types\r\n",
            );
        }
    }
}

fn sum(parts: &[&[u8]]) -> Option<i64> {
    parts.iter().try_fold(0_i64, |sum, part| match ReplyReader::new(part).part() {
        Ok(Part::Integer(number)) => Some(sum.saturating_add(number)),
        _ => None,
    })
}

fn values(parts: &[&[u8]], order: &[(u32, u32)], out: &mut Vec<u8>) -> Option<()> {
    let parts: Option<Vec<Vec<&[u8]>>> = parts.iter().map(|part| elements(part)).collect();
    let parts = parts?;
    let value = |(part, at): &(u32, u32)| parts.get(*part as usize)?.get(*at as usize).copied();
    let all: Option<Vec<&[u8]>> = order.iter().map(value).collect();
    let all = all?;
    encode::array(out, all.len());
    all.iter().for_each(|value| out.extend_from_slice(value));
    Some(())
}

/// The encoded elements of an array.
fn elements(reply: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = ReplyReader::new(reply);
    if !matches!(reader.part(), Ok(Part::Array(_))) {
        return None;
    }
    cut(reader.rest())
}

/// Splits consecutive replies.
pub(crate) fn cut(replies: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = ReplyReader::new(replies);
    let mut all = Vec::new();
    while !reader.is_at_end() {
        let rest = reader.rest();
        reader.skip().ok()?;
        all.push(&rest[..rest.len() - reader.rest().len()]);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::reply::Reply;
    use crate::request::Traits;

    fn request(args: &[&str]) -> Request {
        let mut request = Request::named(args[0]);
        request.keys(&args[1..]);
        request
    }

    fn shown(request: &Request) -> String {
        let args: Vec<_> = request.arguments().map(String::from_utf8_lossy).collect();
        args.join(" ")
    }

    fn parts(args: &[&str]) -> (Merge, Vec<String>) {
        match slot_routing(&request(args)) {
            SlotRouting::Split(merge, parts) => {
                (merge, parts.iter().map(|(_, part)| shown(part)).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn merged(merge: &Merge, parts: &[&str]) -> String {
        let parts: Vec<_> = parts.iter().map(|part| part.replace('|', "\r\n")).collect();
        let parts: Vec<_> = parts.iter().map(|part| part.as_bytes()).collect();
        let mut out = Vec::new();
        merge.write(&parts, false, &mut out);
        String::from_utf8_lossy(&out).replace("\r\n", "|")
    }

    #[test]
    fn keys_of_a_slot_stay_together_and_values_come_in_the_order_of_the_keys() {
        let (merge, parts) = parts(&["mget", "{a}1", "{b}1", "{a}2", "{b}1"]);
        assert_eq!(parts, ["mget {a}1 {a}2", "mget {b}1 {b}1"]);
        let replies = ["*2|$1|1|_|", "*2|$1|3|$1|3|"];
        assert_eq!(merged(&merge, &replies), "*4|$1|1|$1|3|_|$1|3|");
        assert_eq!(merged(&merge, &["*1|:1|", "*2|:1|:2|"])[..5], *"-ERR ");
        assert_eq!(merged(&merge, &["*2|:1|:2|", "-LOADING x|"]), "-LOADING x|");
        for merge in [Merge::Sum, Merge::First] {
            assert_eq!(merged(&merge, &["-LOADING x|", "-LOADING y|"]), "-LOADING x|");
            let in_part = merged(&merge, &[":1|", "-LOADING x|"]);
            let error =
                Reply::shared(in_part.replace('|', "\r\n").into()).read::<()>().unwrap_err();
            assert!(error.maybe_applied() && error.code() == Some(Code::Loading), "{error}");
        }
    }

    #[test]
    fn pairs_stay_pairs_and_counts_are_added() {
        let (merge, pairs) = parts(&["MSET", "a", "1", "b", "2"]);
        assert_eq!(pairs, ["MSET a 1", "MSET b 2"]);
        assert_eq!(merged(&merge, &["+OK|", "+OK|"]), "+OK|");
        for name in ["DEL", "UNLINK", "EXISTS", "TOUCH"] {
            let (merge, parts) = parts(&[name, "a", "b", "a"]);
            assert_eq!(parts, [format!("{name} a a"), format!("{name} b")]);
            assert_eq!(merged(&merge, &[":2|", ":1|"]), ":3|");
        }
    }

    #[test]
    fn requests_for_one_slot_stay_whole_and_unsplittable_ones_are_reported() {
        let whole =
            |args: &[&str]| matches!(slot_routing(&request(args)), SlotRouting::OneSlot(Some(_)));
        assert!(whole(&["MGET", "{a}1", "{a}2"]));
        assert!(whole(&["MSET", "a", "1", "b"]), "an error that the server knows better");
        assert!(whole(&["SINTER", "{a}1", "{a}2"]));
        assert!(matches!(slot_routing(&request(&["SINTER", "a", "b"])), SlotRouting::CrossSlot));
        let mut rename = Request::named("RENAME");
        rename.key("a");
        rename.key("b");
        assert!(matches!(slot_routing(&rename), SlotRouting::CrossSlot));
        let mut msetnx = Request::new("MSETNX", Traits::default());
        msetnx.keys([("{a}1", "x"), ("{a}2", "y")]);
        assert!(matches!(slot_routing(&msetnx), SlotRouting::OneSlot(Some(_))));
        assert!(matches!(slot_routing(&request(&["PING"])), SlotRouting::OneSlot(None)));
        let mut message = Request::named("SPUBLISH");
        message.args(["news", "x"]);
        let slot = key_slot(b"news");
        assert!(
            matches!(slot_routing(&message), SlotRouting::OneSlot(Some(found)) if found == slot)
        );
    }
}
