//! SORT and SORT_RO: the elements of a list, set or sorted set in order, or what other keys tell of
//! them.
//!
//! The elements are copied first, since looking up the keys of BY and GET changes which slots are
//! held. All of these stay locked to the end: the reply shows one moment.

mod pattern;

use crate::args::Args;
use crate::command::{Arg, Categories, Flags, Group, KeyFlags, KeySpec, Scope, Spec, Words};
use crate::commands::iteration::before_nul;
use crate::ctx::{Command, Ctx};
use crate::double::parse_weight;
use crate::error::{CommandError, Result};
use crate::keyspace::{Key, Keys};
use crate::reply::Outcome;
use crate::types::list::{End, List};
use crate::types::set::{Member, Set};
use crate::types::sorted_set::SortedSet;
use crate::types::{Collection, Kind};
use pattern::Pattern;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

/// What the words ask for.
struct Wanted<'a> {
    descending: bool,
    /// By text instead of by number.
    alpha: bool,
    offset: i64,
    /// Below 0 for all.
    count: i64,
    by: Option<Pattern<'a>>,
    /// The order that the elements have already: some BY had no `*`.
    as_is: bool,
    get: SmallVec<[Pattern<'a>; 4]>,
    store: Option<Key<'a>>,
}

impl<'a> Wanted<'a> {
    fn parse(args: &mut Args<'a>, may_store: bool) -> Result<Wanted<'a>> {
        let mut wanted = Wanted {
            descending: false,
            alpha: false,
            offset: 0,
            count: -1,
            by: None,
            as_is: false,
            get: SmallVec::new(),
            store: None,
        };
        while args.remaining() > 0 {
            if args.take("ASC") {
                wanted.descending = false;
            } else if args.take("DESC") {
                wanted.descending = true;
            } else if args.take("ALPHA") {
                wanted.alpha = true;
            } else if args.remaining() > 2 && args.take("LIMIT") {
                (wanted.offset, wanted.count) = (args.integer()?, args.integer()?);
            } else if may_store && args.remaining() > 1 && args.take("STORE") {
                wanted.store = Some(args.key()?);
            } else if args.remaining() > 1 && args.take("BY") {
                let pattern = args.bytes()?;
                wanted.as_is |= !Pattern::has_star(pattern);
                wanted.by = Some(Pattern::new(pattern));
            } else if args.remaining() > 1 && args.take("GET") {
                wanted.get.push(Pattern::new(args.bytes()?));
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(wanted)
    }

    /// Which of `len` elements in order are wanted.
    fn window(&self, len: usize) -> Range<usize> {
        let within = |number: i64| usize::try_from(number).map_or(0, |number| number.min(len));
        let start = within(self.offset);
        let end = if self.count < 0 { len } else { (start + within(self.count)).min(len) };
        start..end
    }
}

/// Texts one behind the other.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.ranges.push(start..self.bytes.len());
    }

    fn push_member(&mut self, member: Member<'_>) {
        self.push(member.text(&mut itoa::Buffer::new()));
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator + Clone {
        self.ranges.iter().map(|range| &self.bytes[range.clone()])
    }
}

/// Reads the elements that are to be sorted, or those wanted if their order stays.
fn load(keys: &Keys<'_>, key: &Key<'_>, wanted: &mut Wanted<'_>) -> Result<Texts> {
    let mut texts = Texts::default();
    match keys.inspect(key).map(|entry| entry.kind()) {
        Some(Kind::List) => {
            let Some(list) = keys.open::<List>(key)? else { return Ok(texts) };
            let range = stretch(wanted, list.len());
            let end = range.end;
            list.walk(range.start, End::Front, |index, element| {
                if index >= end {
                    return ControlFlow::Break(());
                }
                texts.push_member(element);
                ControlFlow::Continue(())
            });
        }
        Some(Kind::SortedSet) => {
            let Some(set) = keys.open::<SortedSet>(key)? else { return Ok(texts) };
            for (member, _) in set.iter(stretch(wanted, set.len())) {
                texts.push_member(member);
            }
        }
        // Of a missing key, too, and of one of a wrong type.
        _ => {
            let Some(set) = keys.open::<Set>(key)? else { return Ok(texts) };
            if wanted.as_is && wanted.store.is_some() {
                // What is stored must not depend on the order of a hash table.
                (wanted.as_is, wanted.alpha, wanted.by) = (false, true, None);
            }
            set.each(|member| texts.push_member(member));
            if wanted.as_is {
                texts.ranges.truncate(wanted.window(set.len()).end);
                texts.ranges.drain(..wanted.window(set.len()).start);
            }
            return Ok(texts);
        }
    }
    if wanted.as_is && wanted.descending {
        texts.ranges.reverse();
    }
    Ok(texts)
}

/// Which elements of a list or sorted set of `len` to read.
fn stretch(wanted: &Wanted<'_>, len: usize) -> Range<usize> {
    let window = wanted.window(len);
    match (wanted.as_is, wanted.descending) {
        (false, _) => 0..len,
        (true, false) => window,
        (true, true) => len - window.end..len - window.start,
    }
}

/// Puts the elements in order and cuts out what is wanted.
fn arrange(keys: &mut Keys<'_>, texts: &mut Texts, wanted: &Wanted<'_>) -> Result<()> {
    let order = if wanted.alpha {
        by_text(keys, texts, wanted)?
    } else {
        by_number(keys, texts, wanted.by, wanted)?
    };
    texts.ranges = order.into_iter().map(|index| texts.ranges[index].clone()).collect();
    Ok(())
}

/// The indexes of the elements wanted, in the order of their numbers; of equals, of their texts.
fn by_number(
    keys: &mut Keys<'_>,
    texts: &Texts,
    by: Option<Pattern<'_>>,
    wanted: &Wanted<'_>,
) -> Result<Vec<usize>> {
    let mut weights = Vec::with_capacity(texts.ranges.len());
    let mut all_numbers = true;
    for element in texts.iter() {
        let weight = match by {
            None => parse_weight(element),
            // What has no weight weighs nothing.
            Some(by) => by.look_up(keys, element, |text| text.map_or(Some(0.0), parse_weight))?,
        };
        all_numbers &= weight.is_some();
        weights.push((weight.unwrap_or(0.0), weights.len()));
    }
    if !all_numbers {
        return Err(CommandError::text("ERR One or more scores can't be converted into double"));
    }
    let text = |index: usize| &texts.bytes[texts.ranges[index].clone()];
    Ok(sorted(weights, wanted, |(a, i), (b, j)| {
        a.partial_cmp(b).filter(|order| order.is_ne()).unwrap_or_else(|| text(*i).cmp(text(*j)))
    }))
}

/// The indexes of the elements wanted, in the order of texts. Without STORE these end at a NUL, as
/// for C's functions that know the order of a language.
fn by_text(keys: &mut Keys<'_>, texts: &Texts, wanted: &Wanted<'_>) -> Result<Vec<usize>> {
    let compared = if wanted.store.is_some() { whole } else { before_nul };
    let Some(by) = wanted.by else {
        let items = texts.iter().map(compared).enumerate().map(|(i, text)| (text, i)).collect();
        return Ok(sorted(items, wanted, |(a, _): &(&[u8], usize), (b, _)| a.cmp(b)));
    };
    let mut weights = Texts::default();
    let mut found = Vec::with_capacity(texts.ranges.len());
    for element in texts.iter() {
        found.push(by.look_up(keys, element, |text| {
            weights.push(text.map(compared).unwrap_or_default());
            text.is_some()
        })?);
    }
    // What has no weight comes first.
    let items = found.iter().zip(weights.iter()).enumerate();
    let items = items.map(|(i, (found, text))| (found.then_some(text), i)).collect();
    Ok(sorted(items, wanted, |(a, _): &(Option<&[u8]>, usize), (b, _)| a.cmp(b)))
}

fn whole(text: &[u8]) -> &[u8] {
    text
}

/// Sorts weights with their indexes and returns the indexes of the elements wanted.
fn sorted<W>(
    mut items: Vec<(W, usize)>,
    wanted: &Wanted<'_>,
    compare: impl Fn(&(W, usize), &(W, usize)) -> Ordering,
) -> Vec<usize> {
    let order = |a: &(W, usize), b: &(W, usize)| {
        if wanted.descending { compare(b, a) } else { compare(a, b) }
    };
    let window = wanted.window(items.len());
    if window.end < items.len() {
        // What lies behind the window needs no order.
        items.select_nth_unstable_by(window.end, order);
        items.truncate(window.end);
    }
    items.sort_by(order);
    items.drain(window).map(|(_, index)| index).collect()
}

fn sort(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let may_store = ctx.spec.flags.contains(Flags::WRITE);
    let mut wanted = Wanted::parse(args, may_store)?;
    let mut texts = load(ctx.keys, &key, &mut wanted)?;
    if !wanted.as_is {
        arrange(ctx.keys, &mut texts, &wanted)?;
    }
    match wanted.store {
        Some(destination) => store(ctx, &texts, &wanted.get, &destination),
        None => reply(ctx, &texts, &wanted.get),
    }
}

fn reply(ctx: &mut Ctx<'_, '_>, texts: &Texts, get: &[Pattern<'_>]) -> Result<Outcome> {
    let reply = &mut ctx.reply;
    reply.array(texts.ranges.len() * get.len().max(1));
    for element in texts.iter() {
        if get.is_empty() {
            reply.bulk(element);
        }
        for pattern in get {
            pattern.look_up(ctx.keys, element, |found| match found {
                Some(text) => reply.bulk(text),
                None => reply.null(),
            })?;
        }
    }
    Ok(Outcome::Replied)
}

fn store(
    ctx: &mut Ctx<'_, '_>,
    texts: &Texts,
    get: &[Pattern<'_>],
    destination: &Key<'_>,
) -> Result<Outcome> {
    let mut found = Texts::default();
    for element in texts.iter().take_while(|_| !get.is_empty()) {
        for pattern in get {
            // What is not there is stored as an empty element.
            pattern.look_up(ctx.keys, element, |text| found.push(text.unwrap_or_default()))?;
        }
    }
    let stored = if get.is_empty() { texts } else { &found };
    let limits = &ctx.keys.env().settings.limits;
    let mut list = List::new(limits);
    list.push(End::Back, stored.iter(), limits);
    let len = list.len();
    ctx.keys.put_counting(destination, list, len as u64, "sortstore");
    Ok(ctx.reply.count(len))
}

/// The key of STORE: the last one counts.
fn destination(argc: usize, word: Words<'_, '_>) -> Option<usize> {
    let (mut found, mut index) = (None, 2);
    while index < argc {
        let is = |name: &str| word(index).eq_ignore_ascii_case(name.as_bytes());
        if is("LIMIT") {
            index += 2;
        } else if is("GET") || is("BY") {
            index += 1;
        } else if is("STORE") && index + 1 < argc {
            found = Some(index + 1);
            index += 1;
        }
        index += 1;
    }
    found
}

const CATEGORIES: Categories = Categories::SET
    .union(Categories::SORTED_SET)
    .union(Categories::LIST)
    .union(Categories::DANGEROUS);

const COMPLEXITY: &str = "O(N+M*log(M)) with N the number of elements and M the number of those returned; O(N) if their order stays.";

const SOURCE: KeySpec = KeySpec::at(1).read_only(KeyFlags::ACCESS);

const PATTERNS: KeySpec = KeySpec::unknown()
    .read_only(KeyFlags::ACCESS)
    .noted("The keys after BY and GET are made of the elements of the first key.");

const SORT: Command = Command {
    spec: Spec {
        name: "sort",
        group: Group::Generic,
        summary: "Sorts the elements of a list, set or sorted set, and may store the result.",
        complexity: COMPLEXITY,
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        categories: CATEGORIES,
        keys: &[
            SOURCE,
            PATTERNS,
            KeySpec::unknown()
                .overwrite(KeyFlags::UPDATE)
                .found_by(destination)
                .noted("STORE may stand anywhere."),
        ],
        args: &[
            Arg::key("key"),
            BY,
            LIMIT,
            GET,
            ORDER,
            ALPHA,
            Arg::key("destination").spec(2).after("STORE").optional(),
        ],
        scope: Scope::MoreKeys,
        ..Spec::EMPTY
    },
    run: sort,
    subcommands: &[],
};

const SORT_RO: Command = Command {
    spec: Spec {
        name: "sort_ro",
        group: Group::Generic,
        summary: "Sorts the elements of a list, set or sorted set.",
        since: "7.0.0",
        complexity: COMPLEXITY,
        arity: -2,
        flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
        categories: CATEGORIES,
        keys: &[SOURCE, PATTERNS],
        args: &[Arg::key("key"), BY, LIMIT, GET, ORDER, ALPHA],
        scope: Scope::MoreKeys,
        ..Spec::EMPTY
    },
    run: sort,
    subcommands: &[],
};

const BY: Arg = Arg::pattern("pattern").spec(1).after("BY").optional();
const LIMIT: Arg = Arg::block("offset_count", &[Arg::integer("offset"), Arg::integer("count")])
    .after("LIMIT")
    .optional();
const GET: Arg =
    Arg::pattern("pattern").spec(1).after("GET").optional().multiple().multiple_token();
const ORDER: Arg =
    Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")]).optional();
const ALPHA: Arg = Arg::token("sorting", "ALPHA").optional();

pub(super) const COMMANDS: &[Command] = &[SORT, SORT_RO];

#[cfg(test)]
mod tests;
