//! SORT and SORT_RO: the elements of a list, set or sorted set in order, or the values of other
//! keys for them.
//!
//! The elements are copied first, because lookups of the keys of BY and GET change which slots are
//! held. All these slots stay locked until the command ends, so the reply shows a single point in
//! time. Another thread does long sorts; see `gather`.

mod elements;
mod gather;
mod pattern;

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::{Command, Ctx};
use crate::call::long::{ATTEMPTS_MAX, discard_views};
use crate::command::args::Args;
use crate::command::cursor::Cursor;
use crate::command::{Arg, ArgLookup, Categories, Flags, Group, KeyFlags, KeySpec, Scope, Spec};
use crate::keyspace::Key;
use crate::reply::Outcome;
use crate::types::View;
use crate::types::list::{End, List};
use crate::types::{Collection, EncodingLimits};
use elements::{SortSource, Texts};
use gather::{Gathered, LookupContext, SortOutput, SortRequest};
use pattern::Pattern;
use smallvec::SmallVec;
use std::ops::Range;

/// Index of the first option.
const OPTIONS_AT: usize = 2;

/// The arguments of the request.
struct Options<'a> {
    order: SortOrder,
    by: Option<&'a [u8]>,
    get: SmallVec<[&'a [u8]; 4]>,
    store: Option<Key<'a>>,
}

/// The order, and the range of elements wanted.
#[derive(Clone, Copy)]
struct SortOrder {
    descending: bool,
    /// True to sort by text, not by number.
    alpha: bool,
    /// True to keep the order that the elements have, because BY has no `*`.
    as_is: bool,
    offset: i64,
    /// Number of elements; negative for all.
    count: i64,
    stored: bool,
    /// True if the result must not depend on the order of a hash table.
    reproducible: bool,
}

/// One option, with the arguments that belong to it.
enum SortOption<'w> {
    Ascending,
    Descending,
    Alpha,
    Limit([&'w [u8]; 2]),
    /// Index of the key under which the result is stored.
    Store(usize),
    By(&'w [u8]),
    Get(&'w [u8]),
    Unknown,
}

/// Takes an option. The options may come in any order, and their arguments may look like options.
fn next_option<'w>(
    words: &mut Cursor<impl Fn(usize) -> &'w [u8]>,
    may_store: bool,
) -> Option<SortOption<'w>> {
    let word = words.optional()?;
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let option = if is("ASC") {
        Some(SortOption::Ascending)
    } else if is("DESC") {
        Some(SortOption::Descending)
    } else if is("ALPHA") {
        Some(SortOption::Alpha)
    } else if is("LIMIT") {
        words.take().map(SortOption::Limit)
    } else if may_store && is("STORE") {
        words.take_range(1).map(|key| SortOption::Store(key.start))
    } else if is("BY") {
        words.optional().map(SortOption::By)
    } else if is("GET") {
        words.optional().map(SortOption::Get)
    } else {
        None
    };
    Some(option.unwrap_or(SortOption::Unknown))
}

/// The key of STORE; if STORE is repeated, the last key. As in Redis, the key is also found if SORT
/// rejects the arguments.
fn destination(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    let mut words = Cursor::new(word, argc, OPTIONS_AT);
    let mut found = 0..0;
    while let Some(option) = next_option(&mut words, true) {
        if let SortOption::Store(at) = option {
            found = at..at + 1;
        }
    }
    Some(found)
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>, may_store: bool, lookups: Lookups) -> Result<Options<'a>> {
        let mut order = SortOrder {
            descending: false,
            alpha: false,
            as_is: false,
            offset: 0,
            count: -1,
            stored: false,
            reproducible: false,
        };
        let (mut by, mut get, mut store_at) = (None, SmallVec::new(), None);
        let integer = |word: &[u8]| parse_i64(word).ok_or(CommandError::NotAnInteger);
        let mut words = args.cursor();
        while let Some(option) = next_option(&mut words, may_store) {
            match option {
                SortOption::Ascending => order.descending = false,
                SortOption::Descending => order.descending = true,
                SortOption::Alpha => order.alpha = true,
                SortOption::Limit([offset, count]) => {
                    (order.offset, order.count) = (integer(offset)?, integer(count)?);
                }
                SortOption::Store(at) => store_at = Some(at),
                SortOption::By(pattern) => {
                    if Pattern::has_star(pattern) {
                        lookups.check("BY")?;
                    } else {
                        order.as_is = true;
                    }
                    by = Some(pattern);
                }
                SortOption::Get(pattern) => {
                    lookups.check("GET")?;
                    get.push(pattern);
                }
                SortOption::Unknown => return Err(CommandError::Syntax),
            }
        }
        let store = store_at.map(|at| args.key_at(at)).transpose()?;
        order.stored = store.is_some();
        Ok(Options { order, by, get, store })
    }
}

/// Lookups of keys whose names contain elements, as BY and GET request them.
#[derive(Clone, Copy)]
struct Lookups {
    /// True if the user may not read all keys, because any keys may be looked up.
    are_denied: bool,
    /// True in cluster mode, where other nodes may have the keys.
    in_cluster: bool,
}

impl Lookups {
    fn check(self, option: &str) -> Result<()> {
        let reason = if self.in_cluster {
            "in Cluster mode."
        } else if self.are_denied {
            "due to insufficient ACL permissions."
        } else {
            return Ok(());
        };
        Err(CommandError::text(format!("ERR {option} option of SORT denied {reason}")))
    }
}

fn sort(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let may_store = ctx.spec.flags.contains(Flags::WRITE);
    let env = ctx.keys.env();
    let lookups =
        Lookups { are_denied: env.lookups_denied.take(), in_cluster: env.settings.in_cluster };
    let Options { mut order, by, get, store: destination } =
        Options::parse(args, may_store, lookups)?;
    // Required for stored results, and for scripts.
    order.reproducible = order.stored || ctx.keys.env().in_script.get();
    // The weight does not matter if the order is kept, or if a set is stored in the order of its
    // texts.
    let by = by.filter(|_| !order.as_is);
    let elements = SortSource::open(ctx.keys, &key)?;
    let (read, wanted) = elements.counts(order);
    let weighed = if by.is_some() { read } else { 0 };
    let lookups = weighed + wanted * get.len();
    let elements = if ctx.is_long(read.max(lookups)) {
        if by.is_none() && get.is_empty() {
            return sort_elsewhere(ctx, args, &key, order, destination);
        }
        // The thread that holds the slots publishes the events for missing keys.
        if !ctx.keys.notifies_misses() {
            let request = SortRequest {
                order,
                by: by.map(<[u8]>::to_vec),
                get: get.iter().map(|pattern| pattern.to_vec()).collect(),
                protocol: ctx.reply.protocol(),
                limits: ctx.keys.env().settings.limits,
            };
            if let Some(outcome) = sort_with_others(ctx, args, &key, request, destination)? {
                return Ok(outcome);
            }
        }
        SortSource::of_entry(ctx.keys.inspect(&key))
    } else {
        elements
    };
    let get: SmallVec<[Pattern<'_>; 4]> = get.into_iter().map(Pattern::new).collect();
    let texts = match by {
        None => elements.sorted(order)?,
        Some(by) => {
            let texts = elements.load(&mut order);
            SortSource::sorted_by(ctx.keys, texts, Pattern::new(by), order)?
        }
    };
    match destination {
        Some(destination) => store(ctx, &texts, &get, &destination),
        None => reply(ctx, &texts, &get),
    }
}

/// A sort that needs no keys other than the one with the elements.
fn sort_elsewhere(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    key: &Key<'_>,
    order: SortOrder,
    destination: Option<Key<'_>>,
) -> Result<Outcome> {
    let Some(destination) = destination else {
        let view = ctx.keys.view(key);
        return Ok(ctx.reply_elsewhere(args, move |_, reply| {
            let texts = SortSource::of(&view).sorted(order)?;
            reply.array(texts.len());
            texts.iter().for_each(|element| _ = reply.bulk(element));
            Ok(Outcome::Replied)
        }));
    };
    let limits = ctx.keys.env().settings.limits;
    let make = move |views: &[View]| {
        let texts = SortSource::of(&views[0]).sorted(order)?;
        Ok(list_of(&texts, &limits))
    };
    match ctx.result_elsewhere::<Result<List>>(args, &[*key], make) {
        Some(list) => Ok(put(ctx, list?, &destination)),
        None => Ok(Outcome::Elsewhere),
    }
}

/// A sort that needs the keys that the elements name. `None` if these keys have repeatedly changed
/// faster than they could be read.
fn sort_with_others(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    key: &Key<'_>,
    request: SortRequest,
    destination: Option<Key<'_>>,
) -> Result<Option<Outcome>> {
    let views = ctx.keys.views(&[*key]);
    let (mut attempt, mut earlier) = ctx.made_of::<Gathered>(&views);
    if let Some(gathered) = &mut earlier {
        if let Some(output) = gathered.result(ctx.keys) {
            discard_views(ctx.keys.env(), views);
            return Ok(Some(match (output?, destination) {
                (SortOutput::List(list), Some(destination)) => put(ctx, list, &destination),
                (SortOutput::Reply(written), None) => ctx.reply.append(written),
                _ => unreachable!("the same request wants the same"),
            }));
        }
        attempt += 1;
    }
    if attempt >= ATTEMPTS_MAX {
        discard_views(ctx.keys.env(), views);
        return Ok(None);
    }
    if attempt > 0 {
        let named = earlier.iter().flat_map(|gathered| gathered.slots()).copied();
        named.chain([key.slot]).for_each(|slot| ctx.keys.freeze(slot));
    }
    let reader = LookupContext::of(ctx.keys);
    Ok(Some(ctx.make_elsewhere(args, views, attempt, move |keyspace, views| match earlier {
        Some(gathered) => gathered.again(keyspace),
        None => Gathered::new(request, reader, keyspace, &views[0]).complete(keyspace),
    })))
}

fn reply(ctx: &mut Ctx<'_, '_>, texts: &Texts, get: &[Pattern<'_>]) -> Result<Outcome> {
    let reply = &mut ctx.reply;
    reply.array(texts.len() * get.len().max(1));
    let mut name = Vec::new();
    for element in texts.iter() {
        if get.is_empty() {
            reply.bulk(element);
        }
        for pattern in get {
            pattern.look_up(ctx.keys, element, &mut name, |found| match found {
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
    let (mut found, mut name) = (Texts::default(), Vec::new());
    for element in texts.iter().take_while(|_| !get.is_empty()) {
        for pattern in get {
            // A missing text is stored as an empty element.
            let push = |text: Option<&[u8]>| found.push(text.unwrap_or_default());
            pattern.look_up(ctx.keys, element, &mut name, push)?;
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

const CATEGORIES: Categories = Categories::SET
    .union(Categories::SORTED_SET)
    .union(Categories::LIST)
    .union(Categories::DANGEROUS);

const COMPLEXITY: &str =
    "O(N+M*log(M)) for N elements, M of which are returned; O(N) if the elements are not sorted.";

const SOURCE: KeySpec = KeySpec::at(1).read_only(KeyFlags::ACCESS);

const PATTERNS: KeySpec = KeySpec::unknown()
    .read_only(KeyFlags::ACCESS)
    .noted("The keys after BY and GET are made of the elements of the first key.");

const SORT: Command = Command {
    spec: Spec {
        name: "sort",
        group: Group::Generic,
        summary: "Sorts the elements of a list, set or sorted set, and optionally stores the result.",
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
                .noted("STORE may be at any position."),
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
        summary: "Returns the sorted elements of a list, set or sorted set.",
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
