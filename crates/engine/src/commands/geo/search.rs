//! The common part of all geo searches: parse options, find members in the cells around a center,
//! sort them, and reply with them or store them.

use super::{Unit, number_of_score, place_of_score, point, reply_distance, reply_point};
use crate::base::double::parse_f64;
use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::base::steps::LONG_STEPS_MIN;
use crate::call::ctx::Ctx;
use crate::command::ArgLookup;
use crate::command::args::Args;
use crate::command::cursor::Cursor;
use crate::keyspace::Key;
use crate::reply::{Outcome, Reply};
use crate::types::View;
use crate::types::sorted_set::{AddRules, ScoreRange, SortedSet};
use crate::types::{Collection, EncodingLimits, Value};
use brisk_structures::geohash::{Point, Shape};
use brisk_structures::listpack::Item;
use std::ops::{ControlFlow, Range};

/// The form of a command, which determines its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchForm {
    /// GEORADIUS and GEORADIUSBYMEMBER: the center and the radius come first, and the result may be
    /// stored.
    Radius,
    /// The read-only forms of GEORADIUS and GEORADIUSBYMEMBER.
    RadiusReadOnly,
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE: the destination comes before the source.
    SearchStore,
}

impl SearchForm {
    fn is_search(self) -> bool {
        matches!(self, SearchForm::Search | SearchForm::SearchStore)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Unsorted,
    Near,
    Far,
}

/// The arguments of the request.
#[derive(Debug)]
struct Options<'a> {
    search: Search,
    store: Option<Key<'a>>,
}

/// The parameters of the search, and the form of its result.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// The center; `None` if it is a member of a key that does not exist.
    center: Option<Point>,
    shape: Option<Shape>,
    unit: Unit,
    order: Order,
    /// Maximum number of members in the result; 0 for all.
    count: usize,
    any: bool,
    with_distance: bool,
    with_number: bool,
    with_point: bool,
    store_distance: bool,
}

impl Options<'_> {
    fn around(center: Option<Point>) -> Options<'static> {
        let search = Search {
            center,
            shape: None,
            unit: Unit(1.0),
            order: Order::Unsorted,
            count: 0,
            any: false,
            with_distance: false,
            with_number: false,
            with_point: false,
            store_distance: false,
        };
        Options { search, store: None }
    }
}

/// A member that was found.
struct Match<'a> {
    member: Item<'a>,
    /// The member's geohash number, or any score that ZADD has set.
    score: f64,
    /// In meters.
    distance: f64,
}

/// The result in the form in which it is stored.
struct StoredResult {
    /// Number of members found. Members in overlapping cells count twice.
    count: usize,
    set: SortedSet,
}

/// Parses a radius or a side. If it is not a number, the error calls it `what`.
fn length(word: &[u8], what: &str) -> Result<f64> {
    parse_f64(word).ok_or_else(|| CommandError::text(format!("ERR need numeric {what}")))
}

fn circle([radius, unit]: [&[u8]; 2]) -> Result<(Shape, Unit)> {
    let radius = length(radius, "radius")?;
    if radius < 0.0 {
        return Err(CommandError::text("ERR radius cannot be negative"));
    }
    let unit = Unit::parse(unit)?;
    Ok((Shape::Circle { radius_m: radius * unit.0 }, unit))
}

fn rectangle([width, height, unit]: [&[u8]; 3]) -> Result<(Shape, Unit)> {
    let (width, height) = (length(width, "width")?, length(height, "height")?);
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::text("ERR height or width cannot be negative"));
    }
    let unit = Unit::parse(unit)?;
    Ok((Shape::Box { width_m: width * unit.0, height_m: height * unit.0 }, unit))
}

/// The point of a member; `None` if the set itself does not exist.
fn place_of(set: Option<&SortedSet>, member: &[u8]) -> Result<Option<Point>> {
    let Some(set) = set else { return Ok(None) };
    let unknown = || CommandError::text("ERR could not decode requested zset member");
    let score = set.score(member).ok_or_else(unknown)?;
    Ok(Some(place_of_score(score)))
}

/// GEORADIUS and its read-only form.
pub(super) fn around_point(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    family: SearchForm,
) -> Result<Outcome> {
    let source = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let mut wanted = Options::around(Some(point(args.array()?)?));
    let (shape, unit) = circle(args.array()?)?;
    (wanted.search.shape, wanted.search.unit) = (Some(shape), unit);
    options(args, family, set, &mut wanted)?;
    reply_or_store(ctx, args, family, &source, wanted)
}

/// GEORADIUSBYMEMBER and its read-only form.
pub(super) fn around_member(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    family: SearchForm,
) -> Result<Outcome> {
    let source = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let mut wanted = Options::around(place_of(set, args.bytes()?)?);
    let words = args.array()?;
    // If the key does not exist, radius and unit are not checked.
    if set.is_some() {
        let (shape, unit) = circle(words)?;
        (wanted.search.shape, wanted.search.unit) = (Some(shape), unit);
    }
    options(args, family, set, &mut wanted)?;
    reply_or_store(ctx, args, family, &source, wanted)
}

/// GEOSEARCH and GEOSEARCHSTORE.
pub(super) fn by_shape(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    family: SearchForm,
) -> Result<Outcome> {
    let store = if family == SearchForm::SearchStore { Some(args.key()?) } else { None };
    let source = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let mut wanted = Options { store, ..Options::around(None) };
    options(args, family, set, &mut wanted)?;
    reply_or_store(ctx, args, family, &source, wanted)
}

/// One option, with the arguments that belong to it.
enum GeoOption<'w> {
    WithDistance,
    WithNumber,
    WithPoint,
    Any,
    Order(Order),
    Count(&'w [u8]),
    /// Index of the key under which the result is stored, and whether distances are stored.
    Store(usize, bool),
    /// STOREDIST of GEOSEARCHSTORE, whose destination key is a separate argument.
    StoreDistance,
    FromMember(&'w [u8]),
    FromPoint([&'w [u8]; 2]),
    ByCircle([&'w [u8]; 2]),
    ByBox([&'w [u8]; 3]),
}

/// Takes an option. The options may come in any order, and their arguments may look like options.
fn next_option<'w>(
    words: &mut Cursor<impl Fn(usize) -> &'w [u8]>,
    family: SearchForm,
) -> Result<GeoOption<'w>> {
    let word = words.optional().ok_or(CommandError::Syntax)?;
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let (stores, searches) = (family == SearchForm::Radius, family.is_search());
    let option = if is("WITHDIST") {
        Some(GeoOption::WithDistance)
    } else if is("WITHHASH") {
        Some(GeoOption::WithNumber)
    } else if is("WITHCOORD") {
        Some(GeoOption::WithPoint)
    } else if is("ANY") {
        Some(GeoOption::Any)
    } else if is("ASC") {
        Some(GeoOption::Order(Order::Near))
    } else if is("DESC") {
        Some(GeoOption::Order(Order::Far))
    } else if is("COUNT") {
        words.optional().map(GeoOption::Count)
    } else if stores && (is("STORE") || is("STOREDIST")) {
        words.take_range(1).map(|key| GeoOption::Store(key.start, is("STOREDIST")))
    } else if family == SearchForm::SearchStore && is("STOREDIST") {
        Some(GeoOption::StoreDistance)
    } else if searches && is("FROMMEMBER") {
        words.optional().map(GeoOption::FromMember)
    } else if searches && is("FROMLONLAT") {
        words.take().map(GeoOption::FromPoint)
    } else if searches && is("BYRADIUS") {
        words.take().map(GeoOption::ByCircle)
    } else if searches && is("BYBOX") {
        words.take().map(GeoOption::ByBox)
    } else {
        None
    };
    option.ok_or(CommandError::Syntax)
}

/// Index of the key under which GEORADIUS stores its result. The options begin at `from`. The last
/// STORE or STOREDIST counts. The range is empty if there is neither, or if the last one is not the
/// kind that `with_distances` selects.
pub(super) fn find_store_key(
    argc: usize,
    word: ArgLookup<'_, '_>,
    from: usize,
    with_distances: bool,
) -> Option<Range<usize>> {
    let mut words = Cursor::new(word, argc, from);
    let mut found = None;
    while words.remaining() > 0 {
        if let GeoOption::Store(at, distances) = next_option(&mut words, SearchForm::Radius).ok()? {
            found = Some((at, distances));
        }
    }
    let found = found.filter(|(_, distances)| *distances == with_distances);
    Some(found.map_or(0..0, |(at, _)| at..at + 1))
}

/// Takes all remaining arguments.
fn options<'a>(
    args: &Args<'a>,
    family: SearchForm,
    set: Option<&SortedSet>,
    wanted: &mut Options<'a>,
) -> Result<()> {
    let Options { search, .. } = &mut *wanted;
    let mut store_at = None;
    let (mut from_member, mut from_point) = (false, false);
    let (mut by_circle, mut by_box) = (false, false);
    let mut words = args.cursor();
    while words.remaining() > 0 {
        match next_option(&mut words, family)? {
            GeoOption::WithDistance => search.with_distance = true,
            GeoOption::WithNumber => search.with_number = true,
            GeoOption::WithPoint => search.with_point = true,
            GeoOption::Any => search.any = true,
            GeoOption::Order(order) => search.order = order,
            GeoOption::Count(count) => {
                let count = parse_i64(count).ok_or(CommandError::NotAnInteger)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                let not_positive = || CommandError::text("ERR COUNT must be > 0");
                search.count = count.ok_or_else(not_positive)?;
            }
            GeoOption::Store(at, distances) => {
                (store_at, search.store_distance) = (Some(at), distances);
            }
            GeoOption::StoreDistance => search.store_distance = true,
            GeoOption::FromMember(member) if !from_point => {
                search.center = place_of(set, member)?;
                from_member = true;
            }
            GeoOption::FromPoint(degrees) if !from_member => {
                search.center = Some(point(degrees)?);
                from_point = true;
            }
            GeoOption::ByCircle(words) if !by_box => {
                let (shape, unit) = circle(words)?;
                (search.shape, search.unit, by_circle) = (Some(shape), unit, true);
            }
            GeoOption::ByBox(words) if !by_circle => {
                let (shape, unit) = rectangle(words)?;
                (search.shape, search.unit, by_box) = (Some(shape), unit, true);
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    if let Some(at) = store_at {
        wanted.store = Some(args.key_at(at)?);
    }
    check(args, family, wanted, from_member || from_point, by_circle || by_box)
}

/// Checks options that exclude or require one another.
fn check(
    args: &Args<'_>,
    family: SearchForm,
    wanted: &Options<'_>,
    has_center: bool,
    has_shape: bool,
) -> Result<()> {
    let name = || String::from_utf8_lossy(args.argument(0)).into_owned();
    let error = |text: String| Err(CommandError::text(text));
    let Options { search, store } = wanted;
    let with = search.with_distance || search.with_number || search.with_point;
    if store.is_some() && with {
        let what = match family {
            SearchForm::SearchStore => "GEOSEARCHSTORE",
            _ => "STORE option in GEORADIUS",
        };
        return error(format!(
            "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
        ));
    }
    if family.is_search() && !has_center {
        let choice = "exactly one of FROMMEMBER or FROMLONLAT can be specified for";
        return error(format!("ERR {choice} {}", name()));
    }
    if family.is_search() && !has_shape {
        let choice = "exactly one of BYRADIUS and BYBOX can be specified for";
        return error(format!("ERR {choice} {}", name()));
    }
    if search.any && search.count == 0 {
        return error("ERR the ANY argument requires COUNT argument".to_owned());
    }
    Ok(())
}

fn reply_or_store(
    ctx: &mut Ctx<'_, '_>,
    args: &Args<'_>,
    family: SearchForm,
    source: &Key<'_>,
    wanted: Options<'_>,
) -> Result<Outcome> {
    let Options { search, store } = wanted;
    let set = ctx.keys.inspect(source).and_then(|entry| entry.get::<SortedSet>());
    let found = set.map_or_else(|| Some(Vec::new()), |set| search.find_at_once(ctx, set));
    let limits = ctx.keys.env().settings.limits;
    match (found, store) {
        (Some(found), None) => Ok(search.reply(&mut ctx.reply, &found)),
        (Some(found), Some(store)) => {
            let kept = search.keep(&found, &limits)?;
            Ok(put(ctx, family, &store, kept))
        }
        (None, None) => {
            let view = ctx.keys.view(source);
            Ok(ctx.reply_elsewhere(args, move |_, reply| {
                Ok(search.reply(reply, &search.find_in(&view)))
            }))
        }
        (None, Some(store)) => {
            let make = move |views: &[View]| search.keep(&search.find_in(&views[0]), &limits);
            match ctx.result_elsewhere::<Result<StoredResult>>(args, &[*source], make) {
                Some(kept) => Ok(put(ctx, family, &store, kept?)),
                None => Ok(Outcome::Elsewhere),
            }
        }
    }
}

fn put(ctx: &mut Ctx<'_, '_>, family: SearchForm, store: &Key<'_>, kept: StoredResult) -> Outcome {
    let event = match family {
        SearchForm::SearchStore => "geosearchstore",
        _ => "georadiusstore",
    };
    let StoredResult { count, set } = kept;
    ctx.keys.put(store, set, event);
    // Redis counts each member as a change.
    ctx.keys.changed_all((count as u64).saturating_sub(1));
    ctx.reply.count(count)
}

impl Search {
    /// The members within the shape, sorted and limited as requested.
    fn find<'a>(&self, set: &'a SortedSet) -> Vec<Match<'a>> {
        self.find_among(set, usize::MAX).expect("a set has no more members than that")
    }

    /// Like [`Search::find`], in a view.
    fn find_in<'a>(&self, view: &'a View) -> Vec<Match<'a>> {
        match view {
            Some(Value::SortedSet(set)) => self.find(set),
            _ => Vec::new(),
        }
    }

    /// Like [`Search::find`]; `None` if another thread has to do it.
    fn find_at_once<'a>(&self, ctx: &Ctx<'_, '_>, set: &'a SortedSet) -> Option<Vec<Match<'a>>> {
        // For sets that are not large this costs only a comparison.
        if !ctx.is_long(set.len()) || !ctx.is_long(self.members_in_cells(set)) {
            return Some(self.find(set));
        }
        // With ANY, enough members are often found quickly in a large area.
        if self.any { self.find_among(set, LONG_STEPS_MIN) } else { None }
    }

    /// Number of members in the cells. O(log n).
    fn members_in_cells(&self, set: &SortedSet) -> usize {
        let (Some(center), Some(shape)) = (self.center, self.shape) else { return 0 };
        ranges(shape, center).map(|range| set.score_ranks(&range).len()).sum()
    }

    /// The members found, unless more than `most` members would have to be checked.
    fn find_among<'a>(&self, set: &'a SortedSet, most: usize) -> Option<Vec<Match<'a>>> {
        let (Some(center), Some(shape)) = (self.center, self.shape) else {
            return Some(Vec::new());
        };
        let enough = if self.any { self.count } else { usize::MAX };
        let around = shape.around(center);
        let (mut found, mut left, mut is_over) = (Vec::new(), most, true);
        let pick = |score: f64| {
            if left == 0 {
                return Some(None);
            }
            left -= 1;
            around.distance_of_number(number_of_score(score)).map(Some)
        };
        let _ = set.select(ranges(shape, center), pick, |member, score, distance| {
            let Some(distance) = distance else {
                is_over = false;
                return ControlFlow::Break(());
            };
            found.push(Match { member, score, distance });
            if found.len() < enough { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if !is_over {
            return None;
        }
        // COUNT means the nearest members, unless ANY is given.
        let order = match self.order {
            Order::Unsorted if self.count > 0 && !self.any => Order::Near,
            order => order,
        };
        match order {
            Order::Unsorted => {}
            Order::Near => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
            Order::Far => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
        }
        if self.count > 0 {
            found.truncate(self.count);
        }
        Some(found)
    }

    fn reply(&self, reply: &mut Reply<'_>, found: &[Match<'_>]) -> Outcome {
        let parts = [self.with_distance, self.with_number, self.with_point];
        let parts = parts.into_iter().filter(|part| *part).count();
        reply.array(found.len());
        for place in found {
            if parts > 0 {
                reply.array(parts + 1);
            }
            reply.item(place.member);
            if self.with_distance {
                reply_distance(reply, place.distance / self.unit.0);
            }
            if self.with_number {
                reply.integer(place.score as i64);
            }
            if self.with_point {
                reply_point(reply, place_of_score(place.score));
            }
        }
        Outcome::Replied
    }

    fn keep(&self, found: &[Match<'_>], limits: &EncodingLimits) -> Result<StoredResult> {
        let mut digits = itoa::Buffer::new();
        let mut set = <SortedSet as Collection>::new(limits);
        for place in found {
            let score = match self.store_distance {
                true => place.distance / self.unit.0,
                false => place.score,
            };
            set.add(place.member.text(&mut digits), score, &AddRules::default(), limits)?;
        }
        Ok(StoredResult { count: found.len(), set })
    }
}

/// The scores of the points in the cells around a center.
fn ranges(shape: Shape, center: Point) -> impl Iterator<Item = ScoreRange> {
    shape.cells(center).into_iter().map(|cell| ScoreRange {
        min: cell.first() as f64,
        min_open: false,
        max: cell.end() as f64,
        max_open: true,
    })
}
