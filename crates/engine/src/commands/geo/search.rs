//! What all geo searches do: read their options, find places in the cells around a centre, sort
//! them, and answer or store them.

use super::{Unit, number_of_score, place_of_score, point, reply_distance, reply_point};
use crate::args::Args;
use crate::ctx::Ctx;
use crate::double::parse_f64;
use crate::error::{CommandError, Result};
use crate::keyspace::Key;
use crate::reply::{Outcome, Reply};
use crate::types::sorted_set::{AddRules, ScoreRange, SortedSet};
use crate::types::{Collection, EncodingLimits};
use brisk_structures::geohash::{Point, Shape};
use brisk_structures::listpack::Item;
use std::ops::ControlFlow;

/// Which words a command understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// GEORADIUS and GEORADIUSBYMEMBER: centre and radius come first, the result may be stored.
    Radius,
    /// Their read-only forms.
    RadiusReadOnly,
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE: the destination comes before the source.
    SearchStore,
}

impl Family {
    fn is_search(self) -> bool {
        matches!(self, Family::Search | Family::SearchStore)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Unsorted,
    Near,
    Far,
}

/// What is asked for.
#[derive(Debug)]
struct Wanted<'a> {
    /// `None` if it was to be a member of a key that does not exist.
    centre: Option<Point>,
    shape: Option<Shape>,
    unit: Unit,
    order: Order,
    /// 0 for all.
    count: usize,
    any: bool,
    with_distance: bool,
    with_number: bool,
    with_point: bool,
    store: Option<Key<'a>>,
    store_distance: bool,
}

impl Wanted<'_> {
    fn new() -> Wanted<'static> {
        Wanted {
            centre: None,
            shape: None,
            unit: Unit(1.0),
            order: Order::Unsorted,
            count: 0,
            any: false,
            with_distance: false,
            with_number: false,
            with_point: false,
            store: None,
            store_distance: false,
        }
    }
}

/// A place that was found.
struct Found<'a> {
    member: Item<'a>,
    /// Its number, or whatever ZADD put there.
    score: f64,
    /// In metres.
    distance: f64,
}

/// Takes a radius or a side and says what it must be if it is no number.
fn length(args: &mut Args<'_>, what: &str) -> Result<f64> {
    parse_f64(args.bytes()?).ok_or_else(|| CommandError::text(format!("ERR need numeric {what}")))
}

fn circle(args: &mut Args<'_>) -> Result<(Shape, Unit)> {
    let radius = length(args, "radius")?;
    if radius < 0.0 {
        return Err(CommandError::text("ERR radius cannot be negative"));
    }
    let unit = Unit::parse(args.bytes()?)?;
    Ok((Shape::Circle { radius_m: radius * unit.0 }, unit))
}

fn rectangle(args: &mut Args<'_>) -> Result<(Shape, Unit)> {
    let (width, height) = (length(args, "width")?, length(args, "height")?);
    if width < 0.0 || height < 0.0 {
        return Err(CommandError::text("ERR height or width cannot be negative"));
    }
    let unit = Unit::parse(args.bytes()?)?;
    Ok((Shape::Box { width_m: width * unit.0, height_m: height * unit.0 }, unit))
}

/// The place of a member; `None` if the whole set does not exist.
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
    family: Family,
) -> Result<Outcome> {
    let source = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let mut wanted = Wanted { centre: Some(point(args)?), ..Wanted::new() };
    let (shape, unit) = circle(args)?;
    (wanted.shape, wanted.unit) = (Some(shape), unit);
    options(args, family, set, &mut wanted)?;
    answer(ctx, family, &source, wanted)
}

/// GEORADIUSBYMEMBER and its read-only form.
pub(super) fn around_member(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    family: Family,
) -> Result<Outcome> {
    let source = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let mut wanted = Wanted { centre: place_of(set, args.bytes()?)?, ..Wanted::new() };
    if set.is_some() {
        let (shape, unit) = circle(args)?;
        (wanted.shape, wanted.unit) = (Some(shape), unit);
    } else {
        // Nobody looks at radius and unit then.
        args.bytes()?;
        args.bytes()?;
    }
    options(args, family, set, &mut wanted)?;
    answer(ctx, family, &source, wanted)
}

/// GEOSEARCH and GEOSEARCHSTORE.
pub(super) fn by_shape(
    ctx: &mut Ctx<'_, '_>,
    args: &mut Args<'_>,
    family: Family,
) -> Result<Outcome> {
    let store = if family == Family::SearchStore { Some(args.key()?) } else { None };
    let source = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&source)?;
    let mut wanted = Wanted { store, ..Wanted::new() };
    options(args, family, set, &mut wanted)?;
    answer(ctx, family, &source, wanted)
}

/// Takes all that follows; the options may come in any order.
fn options<'a>(
    args: &mut Args<'a>,
    family: Family,
    set: Option<&SortedSet>,
    wanted: &mut Wanted<'a>,
) -> Result<()> {
    let may_store = family == Family::Radius;
    let (mut from_member, mut from_point) = (false, false);
    let (mut by_circle, mut by_box) = (false, false);
    while args.remaining() > 0 {
        let behind = args.remaining() - 1;
        if args.take("WITHDIST") {
            wanted.with_distance = true;
        } else if args.take("WITHHASH") {
            wanted.with_number = true;
        } else if args.take("WITHCOORD") {
            wanted.with_point = true;
        } else if args.take("ANY") {
            wanted.any = true;
        } else if args.take("ASC") {
            wanted.order = Order::Near;
        } else if args.take("DESC") {
            wanted.order = Order::Far;
        } else if behind >= 1 && args.take("COUNT") {
            let count = args.integer()?;
            let positive = usize::try_from(count).ok().filter(|count| *count > 0);
            wanted.count = positive.ok_or_else(|| CommandError::text("ERR COUNT must be > 0"))?;
        } else if behind >= 1 && may_store && args.take("STORE") {
            (wanted.store, wanted.store_distance) = (Some(args.key()?), false);
        } else if behind >= 1 && may_store && args.take("STOREDIST") {
            (wanted.store, wanted.store_distance) = (Some(args.key()?), true);
        } else if family == Family::SearchStore && args.take("STOREDIST") {
            wanted.store_distance = true;
        } else if behind >= 1 && family.is_search() && !from_point && args.take("FROMMEMBER") {
            wanted.centre = place_of(set, args.bytes()?)?;
            from_member = true;
        } else if behind >= 2 && family.is_search() && !from_member && args.take("FROMLONLAT") {
            wanted.centre = Some(point(args)?);
            from_point = true;
        } else if behind >= 2 && family.is_search() && !by_box && args.take("BYRADIUS") {
            let (shape, unit) = circle(args)?;
            (wanted.shape, wanted.unit, by_circle) = (Some(shape), unit, true);
        } else if behind >= 3 && family.is_search() && !by_circle && args.take("BYBOX") {
            let (shape, unit) = rectangle(args)?;
            (wanted.shape, wanted.unit, by_box) = (Some(shape), unit, true);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    check(args, family, wanted, from_member || from_point, by_circle || by_box)
}

/// Options that exclude or need one another.
fn check(
    args: &Args<'_>,
    family: Family,
    wanted: &Wanted<'_>,
    has_centre: bool,
    has_shape: bool,
) -> Result<()> {
    let name = || String::from_utf8_lossy(args.word(0)).into_owned();
    let error = |text: String| Err(CommandError::text(text));
    let with = wanted.with_distance || wanted.with_number || wanted.with_point;
    if wanted.store.is_some() && with {
        let what = match family {
            Family::SearchStore => "GEOSEARCHSTORE",
            _ => "STORE option in GEORADIUS",
        };
        return error(format!(
            "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
        ));
    }
    if family.is_search() && !has_centre {
        let choice = "exactly one of FROMMEMBER or FROMLONLAT can be specified for";
        return error(format!("ERR {choice} {}", name()));
    }
    if family.is_search() && !has_shape {
        let choice = "exactly one of BYRADIUS and BYBOX can be specified for";
        return error(format!("ERR {choice} {}", name()));
    }
    if wanted.any && wanted.count == 0 {
        return error("ERR the ANY argument requires COUNT argument".to_owned());
    }
    Ok(())
}

fn answer(
    ctx: &mut Ctx<'_, '_>,
    family: Family,
    source: &Key<'_>,
    wanted: Wanted<'_>,
) -> Result<Outcome> {
    if let Some(store) = &wanted.store {
        // Of several STORE words the last counts, and only the first is locked beforehand.
        let db = ctx.keys.db();
        ctx.keys.lock_also(db, store)?;
    }
    let found = match ctx.keys.inspect(source).and_then(|entry| entry.get::<SortedSet>()) {
        Some(set) => search(set, &wanted),
        None => Vec::new(),
    };
    let Some(store) = &wanted.store else { return Ok(tell(&mut ctx.reply, &wanted, &found)) };
    let event = match family {
        Family::SearchStore => "geosearchstore",
        _ => "georadiusstore",
    };
    let (count, set) = (found.len(), kept(&wanted, &found, &ctx.keys.env().settings.limits)?);
    ctx.keys.put(store, set, event);
    // Redis counts each place as a change.
    ctx.keys.changed_all((count as u64).saturating_sub(1));
    Ok(ctx.reply.count(count))
}

/// The places within the shape, sorted and counted as wanted.
fn search<'a>(set: &'a SortedSet, wanted: &Wanted<'_>) -> Vec<Found<'a>> {
    let (Some(centre), Some(shape)) = (wanted.centre, wanted.shape) else { return Vec::new() };
    let enough = if wanted.any { wanted.count } else { usize::MAX };
    let around = shape.around(centre);
    let ranges = shape.cells(centre).into_iter().map(|cell| ScoreRange {
        min: cell.first() as f64,
        min_open: false,
        max: cell.end() as f64,
        max_open: true,
    });
    let within = |score: f64| around.distance_of_number(number_of_score(score));
    let mut found = Vec::new();
    let _ = set.select(ranges, within, |member, score, distance| {
        found.push(Found { member, score, distance });
        if found.len() < enough { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    // The nearest so many are meant, unless any will do.
    let order = match wanted.order {
        Order::Unsorted if wanted.count > 0 && !wanted.any => Order::Near,
        order => order,
    };
    match order {
        Order::Unsorted => {}
        Order::Near => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
        Order::Far => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
    }
    if wanted.count > 0 {
        found.truncate(wanted.count);
    }
    found
}

fn tell(reply: &mut Reply<'_>, wanted: &Wanted<'_>, found: &[Found<'_>]) -> Outcome {
    let parts = [wanted.with_distance, wanted.with_number, wanted.with_point];
    let parts = parts.into_iter().filter(|part| *part).count();
    reply.array(found.len());
    for place in found {
        if parts > 0 {
            reply.array(parts + 1);
        }
        reply.item(place.member);
        if wanted.with_distance {
            reply_distance(reply, place.distance / wanted.unit.0);
        }
        if wanted.with_number {
            reply.integer(place.score as i64);
        }
        if wanted.with_point {
            reply_point(reply, place_of_score(place.score));
        }
    }
    Outcome::Replied
}

/// What was found, as it is stored.
fn kept(wanted: &Wanted<'_>, found: &[Found<'_>], limits: &EncodingLimits) -> Result<SortedSet> {
    let mut digits = itoa::Buffer::new();
    let mut set = <SortedSet as Collection>::new(limits);
    for place in found {
        let score = match wanted.store_distance {
            true => place.distance / wanted.unit.0,
            false => place.score,
        };
        set.add(place.member.text(&mut digits), score, &AddRules::default(), limits)?;
    }
    Ok(set)
}
