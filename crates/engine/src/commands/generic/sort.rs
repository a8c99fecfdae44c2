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
use crate::long::View;
use crate::reply::Outcome;
use crate::types::list::{End, List};
use crate::types::set::{Member, Set};
use crate::types::sorted_set::SortedSet;
use crate::types::{Collection, EncodingLimits, Kind, Value};
use pattern::Pattern;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

/// What the words ask for.
struct Wanted<'a> {
    order: Order,
    by: Option<Pattern<'a>>,
    get: SmallVec<[Pattern<'a>; 4]>,
    store: Option<Key<'a>>,
}

/// In which order, and which of the elements in order.
#[derive(Clone, Copy)]
struct Order {
    descending: bool,
    /// By text instead of by number.
    alpha: bool,
    /// The order that the elements have already: some BY had no `*`.
    as_is: bool,
    offset: i64,
    /// Below 0 for all.
    count: i64,
    stored: bool,
    /// It must not depend on the order of a hash table.
    reproducible: bool,
}

impl<'a> Wanted<'a> {
    fn parse(args: &mut Args<'a>, may_store: bool, denied: bool) -> Result<Wanted<'a>> {
        let mut order = Order {
            descending: false,
            alpha: false,
            as_is: false,
            offset: 0,
            count: -1,
            stored: false,
            reproducible: false,
        };
        let (mut by, mut get, mut store) = (None, SmallVec::new(), None);
        while args.remaining() > 0 {
            if args.take("ASC") {
                order.descending = false;
            } else if args.take("DESC") {
                order.descending = true;
            } else if args.take("ALPHA") {
                order.alpha = true;
            } else if args.remaining() > 2 && args.take("LIMIT") {
                (order.offset, order.count) = (args.integer()?, args.integer()?);
            } else if may_store && args.remaining() > 1 && args.take("STORE") {
                store = Some(args.key()?);
            } else if args.remaining() > 1 && args.take("BY") {
                let pattern = args.bytes()?;
                if Pattern::has_star(pattern) {
                    may_look_up(denied, "BY")?;
                } else {
                    order.as_is = true;
                }
                by = Some(Pattern::new(pattern));
            } else if args.remaining() > 1 && args.take("GET") {
                may_look_up(denied, "GET")?;
                get.push(Pattern::new(args.bytes()?));
            } else {
                return Err(CommandError::Syntax);
            }
        }
        order.stored = store.is_some();
        Ok(Wanted { order, by, get, store })
    }
}

/// Keys made of elements may be any: who looks them up must be allowed to read all.
fn may_look_up(denied: bool, option: &str) -> Result<()> {
    if denied {
        let text =
            format!("ERR {option} option of SORT denied due to insufficient ACL permissions.");
        return Err(CommandError::text(text));
    }
    Ok(())
}

impl Order {
    /// Which of `len` elements in order are wanted.
    fn window(&self, len: usize) -> Range<usize> {
        let within = |number: i64| usize::try_from(number).map_or(0, |number| number.min(len));
        let start = within(self.offset);
        let end = if self.count < 0 { len } else { (start + within(self.count)).min(len) };
        start..end
    }

    /// Which elements of a list or sorted set of `len` to read.
    fn stretch(&self, len: usize) -> Range<usize> {
        let window = self.window(len);
        match (self.as_is, self.descending) {
            (false, _) => 0..len,
            (true, false) => window,
            (true, true) => len - window.end..len - window.start,
        }
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

    /// Keeps those of these indexes, in their order.
    fn take(&mut self, indexes: &[usize]) {
        self.ranges = indexes.iter().map(|index| self.ranges[*index].clone()).collect();
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator + Clone {
        self.ranges.iter().map(|range| &self.bytes[range.clone()])
    }
}

/// What is sorted.
#[derive(Clone, Copy)]
enum Elements<'k> {
    None,
    List(&'k List),
    Set(&'k Set),
    SortedSet(&'k SortedSet),
}

impl<'k> Elements<'k> {
    fn open(keys: &'k Keys<'_>, key: &Key<'_>) -> Result<Elements<'k>> {
        let found = match keys.inspect(key).map(|entry| entry.kind()) {
            Some(Kind::List) => keys.open::<List>(key)?.map(Elements::List),
            Some(Kind::SortedSet) => keys.open::<SortedSet>(key)?.map(Elements::SortedSet),
            // Of a missing key, too, and of one of a wrong type.
            _ => keys.open::<Set>(key)?.map(Elements::Set),
        };
        Ok(found.unwrap_or(Elements::None))
    }

    fn of(view: &View) -> Elements<'_> {
        match view {
            Some(Value::List(list)) => Elements::List(list),
            Some(Value::Set(set)) => Elements::Set(set),
            Some(Value::SortedSet(set)) => Elements::SortedSet(set),
            _ => Elements::None,
        }
    }

    fn len(self) -> usize {
        match self {
            Elements::None => 0,
            Elements::List(list) => list.len(),
            Elements::Set(set) => set.len(),
            Elements::SortedSet(set) => set.len(),
        }
    }

    /// Reads the elements that are to be sorted, or those wanted if their order stays.
    fn load(self, order: &mut Order) -> Texts {
        let mut texts = Texts::default();
        match self {
            Elements::None => {}
            Elements::List(list) => {
                let range = order.stretch(list.len());
                let end = range.end;
                list.walk(range.start, End::Front, |index, element| {
                    if index >= end {
                        return ControlFlow::Break(());
                    }
                    texts.push_member(element);
                    ControlFlow::Continue(())
                });
            }
            Elements::SortedSet(set) => {
                for (member, _) in set.iter(order.stretch(set.len())) {
                    texts.push_member(member);
                }
            }
            Elements::Set(set) => {
                if order.as_is && order.reproducible {
                    (order.as_is, order.alpha) = (false, true);
                }
                set.each(|member| texts.push_member(member));
                if order.as_is {
                    texts.ranges.truncate(order.window(set.len()).end);
                    texts.ranges.drain(..order.window(set.len()).start);
                }
                return texts;
            }
        }
        if order.as_is && order.descending {
            texts.ranges.reverse();
        }
        texts
    }

    /// The elements wanted, in order, without asking other keys.
    fn sorted(self, mut order: Order) -> Result<Texts> {
        let mut texts = self.load(&mut order);
        if !order.as_is {
            let found = if order.alpha {
                order.by_text(&texts)
            } else {
                order.by_number(&texts, texts.iter().map(parse_weight))?
            };
            texts.take(&found);
        }
        Ok(texts)
    }

    /// The same with weights from other keys.
    fn sorted_by(
        keys: &mut Keys<'_>,
        mut texts: Texts,
        by: Pattern<'_>,
        order: Order,
    ) -> Result<Texts> {
        let found = if order.alpha {
            order.by_text_of(keys, &texts, by)?
        } else {
            let mut weights = Vec::with_capacity(texts.ranges.len());
            for element in texts.iter() {
                // What has no weight weighs nothing.
                let weight = by.look_up(keys, element, |text| text.map_or(Some(0.0), parse_weight));
                weights.push(weight?);
            }
            order.by_number(&texts, weights.into_iter())?
        };
        texts.take(&found);
        Ok(texts)
    }
}

impl Order {
    /// The indexes of the elements wanted, in the order of their numbers; of equals, of their texts.
    fn by_number(
        &self,
        texts: &Texts,
        weights: impl Iterator<Item = Option<f64>>,
    ) -> Result<Vec<usize>> {
        let mut all_numbers = true;
        let weights = weights.enumerate().map(|(index, weight)| {
            all_numbers &= weight.is_some();
            (weight.unwrap_or(0.0), index)
        });
        let weights: Vec<(f64, usize)> = weights.collect();
        if !all_numbers {
            let text = "ERR One or more scores can't be converted into double";
            return Err(CommandError::text(text));
        }
        let text = |index: usize| &texts.bytes[texts.ranges[index].clone()];
        Ok(self.arrange(weights, |(a, i), (b, j)| {
            a.partial_cmp(b).filter(|order| order.is_ne()).unwrap_or_else(|| text(*i).cmp(text(*j)))
        }))
    }

    /// What of a text is compared. Without STORE it ends at a NUL, as for C's functions that know
    /// the order of a language.
    fn compared(&self) -> fn(&[u8]) -> &[u8] {
        if self.stored { |text| text } else { before_nul }
    }

    /// The indexes of the elements wanted, in the order of texts.
    fn by_text(&self, texts: &Texts) -> Vec<usize> {
        let compared = self.compared();
        let items = texts.iter().map(compared).enumerate().map(|(i, text)| (text, i)).collect();
        self.arrange(items, |(a, _): &(&[u8], usize), (b, _)| a.cmp(b))
    }

    /// The same for texts that other keys have.
    fn by_text_of(
        &self,
        keys: &mut Keys<'_>,
        texts: &Texts,
        by: Pattern<'_>,
    ) -> Result<Vec<usize>> {
        let compared = self.compared();
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
        Ok(self.arrange(items, |(a, _): &(Option<&[u8]>, usize), (b, _)| a.cmp(b)))
    }

    /// Sorts weights with their indexes and returns the indexes of the elements wanted.
    fn arrange<W>(
        &self,
        mut items: Vec<(W, usize)>,
        compare: impl Fn(&(W, usize), &(W, usize)) -> Ordering,
    ) -> Vec<usize> {
        let order = |a: &(W, usize), b: &(W, usize)| {
            if self.descending { compare(b, a) } else { compare(a, b) }
        };
        let window = self.window(items.len());
        if window.end < items.len() {
            // What lies behind the window needs no order.
            items.select_nth_unstable_by(window.end, order);
            items.truncate(window.end);
        }
        items.sort_by(order);
        items.drain(window).map(|(_, index)| index).collect()
    }
}

fn sort(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let may_store = ctx.spec.flags.contains(Flags::WRITE);
    let denied = ctx.keys.env().lookups_denied.take();
    let Wanted { mut order, by, get, store: destination } = Wanted::parse(args, may_store, denied)?;
    // So it is for what is stored, and for what a script goes by.
    order.reproducible = order.stored || ctx.keys.env().in_script.get();
    // Where the order stays, or a set is stored in the order of its texts, it plays no part.
    let by = by.filter(|_| !order.as_is);
    let elements = Elements::open(ctx.keys, &key)?;
    if by.is_none() && get.is_empty() && ctx.is_long(elements.len()) {
        return sort_elsewhere(ctx, args, &key, order, destination);
    }
    let texts = match by {
        None => elements.sorted(order)?,
        Some(by) => {
            let texts = elements.load(&mut order);
            Elements::sorted_by(ctx.keys, texts, by, order)?
        }
    };
    match destination {
        Some(destination) => store(ctx, &texts, &get, &destination),
        None => reply(ctx, &texts, &get),
    }
}

/// What needs no other keys than that of the elements.
fn sort_elsewhere(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    key: &Key<'_>,
    order: Order,
    destination: Option<Key<'_>>,
) -> Result<Outcome> {
    let Some(destination) = destination else {
        let view = ctx.keys.view(key);
        return Ok(ctx.answer_elsewhere(args, move |_, reply| {
            let texts = Elements::of(&view).sorted(order)?;
            reply.array(texts.ranges.len());
            texts.iter().for_each(|element| _ = reply.bulk(element));
            Ok(Outcome::Replied)
        }));
    };
    let limits = ctx.keys.env().settings.limits;
    let make = move |views: &[View]| {
        let texts = Elements::of(&views[0]).sorted(order)?;
        Ok(list_of(&texts, &limits))
    };
    match ctx.result_elsewhere::<Result<List>>(args, &[*key], make) {
        Some(list) => Ok(put(ctx, list?, &destination)),
        None => Ok(Outcome::Elsewhere),
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
    let list = list_of(stored, &ctx.keys.env().settings.limits);
    Ok(put(ctx, list, destination))
}

fn list_of(texts: &Texts, limits: &EncodingLimits) -> List {
    let mut list = List::new(limits);
    list.push(End::Back, texts.iter(), limits);
    list
}

fn put(ctx: &mut Ctx<'_, '_>, list: List, destination: &Key<'_>) -> Outcome {
    let len = list.len();
    ctx.keys.put_counting(destination, list, len as u64, "sortstore");
    ctx.reply.count(len)
}

/// The key of STORE: the last one counts.
fn destination(argc: usize, word: Words<'_, '_>) -> Range<usize> {
    let (mut found, mut index) = (0..0, 2);
    while index < argc {
        let is = |name: &str| word(index).eq_ignore_ascii_case(name.as_bytes());
        if is("LIMIT") {
            index += 2;
        } else if is("GET") || is("BY") {
            index += 1;
        } else if is("STORE") && index + 1 < argc {
            found = index + 1..index + 2;
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
