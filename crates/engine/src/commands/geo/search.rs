//! GEOSEARCH, GEOSEARCHSTORE and the older GEORADIUS, GEORADIUSBYMEMBER: places in a circle or box.

use super::{place_of, point, reply_distance, reply_point, stored_after, unit_m};
use crate::args::Args;
use crate::command::{Arg, Deprecated, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::ctx::{Command, Ctx};
use crate::double::parse_f64;
use crate::error::{CommandError, Result};
use crate::keyspace::Key;
use crate::reply::{Outcome, Reply};
use crate::types::SortedSet;
use crate::types::sorted_set::ScoreRange;
use brisk_structures::geohash::{Point, Shape};

/// What a command's name decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Centre and shape stand among the options.
    Search,
    SearchStore,
    /// Longitude, latitude and radius stand behind the key.
    Radius {
        may_store: bool,
    },
    /// A member and a radius stand behind the key.
    RadiusByMember {
        may_store: bool,
    },
}

impl Form {
    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    /// Whether STORE and STOREDIST name a key.
    fn takes_store(self) -> bool {
        matches!(self, Form::Radius { may_store: true } | Form::RadiusByMember { may_store: true })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sorting {
    None,
    Nearest,
    Farthest,
}

/// What is wanted.
struct Wanted<'a> {
    centre: Option<Point>,
    /// The centre was named, even if there is no set to find it in.
    from_member: bool,
    from_point: bool,
    shape: Option<Shape>,
    unit_m: f64,
    with_distance: bool,
    with_hash: bool,
    with_point: bool,
    any: bool,
    /// 0 for all.
    count: usize,
    sorting: Sorting,
    target: Option<Key<'a>>,
    stores_distance: bool,
}

/// A place found.
struct Found {
    member: Vec<u8>,
    distance_m: f64,
    score: f64,
    point: Point,
}

fn geosearch(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    search(ctx, args, Form::Search)
}

fn geosearchstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    search(ctx, args, Form::SearchStore)
}

fn georadius(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    search(ctx, args, Form::Radius { may_store: true })
}

fn georadius_ro(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    search(ctx, args, Form::Radius { may_store: false })
}

fn georadiusbymember(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    search(ctx, args, Form::RadiusByMember { may_store: true })
}

fn georadiusbymember_ro(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    search(ctx, args, Form::RadiusByMember { may_store: false })
}

fn search(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>, form: Form) -> Result<Outcome> {
    let target = if form == Form::SearchStore { Some(args.key()?) } else { None };
    let key = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    let mut wanted = Wanted::of_target(target);
    wanted.parse(args, form, set)?;
    wanted.check(args.word(0), form)?;
    let found = set.map_or_else(Vec::new, |set| wanted.find(set));
    let Some(target) = wanted.target else {
        wanted.reply(&mut ctx.reply, &found);
        return Ok(Outcome::Replied);
    };
    let limits = ctx.keys.env().settings.limits;
    let mut members = SortedSet::new_tree(&limits);
    for place in &found {
        let distance = place.distance_m / wanted.unit_m;
        members.insert(&place.member, if wanted.stores_distance { distance } else { place.score });
    }
    // The key may stand where no key specification looks: the last STORE counts.
    ctx.keys.lock_also(ctx.keys.db(), &target)?;
    let event = if form.is_search() { "geosearchstore" } else { "georadiusstore" };
    ctx.keys.put(&target, SortedSet::of_result(members, &limits), event);
    // Each place counts as a change; `put` has counted one.
    ctx.keys.changed_all((found.len() as u64).saturating_sub(1));
    Ok(ctx.reply.count(found.len()))
}

/// Reads a distance and its unit; the distance in metres.
fn length_m(word: &[u8], unit_m: f64, missing: &'static str) -> Result<f64> {
    Ok(parse_f64(word).ok_or_else(|| CommandError::text(missing))? * unit_m)
}

fn negative(what: &'static str) -> CommandError {
    CommandError::text(format!("ERR {what} cannot be negative"))
}

impl<'a> Wanted<'a> {
    fn of_target(target: Option<Key<'a>>) -> Wanted<'a> {
        Wanted {
            centre: None,
            from_member: false,
            from_point: false,
            shape: None,
            unit_m: 1.0,
            with_distance: false,
            with_hash: false,
            with_point: false,
            any: false,
            count: 0,
            sorting: Sorting::None,
            target,
            stores_distance: false,
        }
    }

    /// Reads all words. Without a set they are judged too.
    fn parse(&mut self, args: &mut Args<'a>, form: Form, set: Option<&SortedSet>) -> Result<()> {
        match form {
            Form::Radius { .. } => {
                self.centre = Some(point(args.bytes()?, args.bytes()?)?);
                self.circle(args)?;
            }
            Form::RadiusByMember { .. } if set.is_none() => {
                // What nothing is looked for with is not judged either.
                for _ in 0..3 {
                    args.bytes()?;
                }
            }
            Form::RadiusByMember { .. } => {
                self.member(args.bytes()?, set)?;
                self.circle(args)?;
            }
            Form::Search | Form::SearchStore => {}
        }
        while args.remaining() > 0 {
            let known = self.parse_shown(args)?
                || self.parse_stored(args, form)?
                || form.is_search() && self.parse_area(args, set)?;
            if !known {
                return Err(CommandError::Syntax);
            }
        }
        Ok(())
    }

    /// How results are chosen and shown.
    fn parse_shown(&mut self, args: &mut Args<'a>) -> Result<bool> {
        if args.take("WITHDIST") {
            self.with_distance = true;
        } else if args.take("WITHHASH") {
            self.with_hash = true;
        } else if args.take("WITHCOORD") {
            self.with_point = true;
        } else if args.take("ANY") {
            self.any = true;
        } else if args.take("ASC") {
            self.sorting = Sorting::Nearest;
        } else if args.take("DESC") {
            self.sorting = Sorting::Farthest;
        } else if args.remaining() > 1 && args.take("COUNT") {
            let count = usize::try_from(args.integer()?).ok().filter(|count| *count > 0);
            self.count = count.ok_or_else(|| CommandError::text("ERR COUNT must be > 0"))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether results are stored, and what of them.
    fn parse_stored(&mut self, args: &mut Args<'a>, form: Form) -> Result<bool> {
        if form == Form::SearchStore && args.take("STOREDIST") {
            self.stores_distance = true;
            return Ok(true);
        }
        if !form.takes_store() || args.remaining() < 2 {
            return Ok(false);
        }
        let stores_distance = args.take("STOREDIST");
        if !stores_distance && !args.take("STORE") {
            return Ok(false);
        }
        self.stores_distance = stores_distance;
        self.target = Some(args.key()?);
        Ok(true)
    }

    /// Where and how far is searched.
    fn parse_area(&mut self, args: &mut Args<'a>, set: Option<&SortedSet>) -> Result<bool> {
        let left = args.remaining();
        let (circle, rectangle) = match self.shape {
            Some(Shape::Circle { .. }) => (true, false),
            Some(Shape::Box { .. }) => (false, true),
            None => (false, false),
        };
        if left > 1 && !self.from_point && args.take("FROMMEMBER") {
            self.member(args.bytes()?, set)?;
            self.from_member = true;
        } else if left > 2 && !self.from_member && args.take("FROMLONLAT") {
            self.centre = Some(point(args.bytes()?, args.bytes()?)?);
            self.from_point = true;
        } else if left > 2 && !rectangle && args.take("BYRADIUS") {
            self.circle(args)?;
        } else if left > 3 && !circle && args.take("BYBOX") {
            self.rectangle(args)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn member(&mut self, member: &[u8], set: Option<&SortedSet>) -> Result<()> {
        if let Some(set) = set {
            let score = set
                .score(member)
                .ok_or_else(|| CommandError::text("ERR could not decode requested zset member"))?;
            self.centre = Some(place_of(score));
        }
        Ok(())
    }

    fn circle(&mut self, args: &mut Args<'a>) -> Result<()> {
        let radius = length_m(args.bytes()?, 1.0, "ERR need numeric radius")?;
        if radius < 0.0 {
            return Err(negative("radius"));
        }
        self.unit_m = unit_m(args.bytes()?)?;
        self.shape = Some(Shape::Circle { radius_m: radius * self.unit_m });
        Ok(())
    }

    fn rectangle(&mut self, args: &mut Args<'a>) -> Result<()> {
        let width = length_m(args.bytes()?, 1.0, "ERR need numeric width")?;
        let height = length_m(args.bytes()?, 1.0, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(negative("height or width"));
        }
        self.unit_m = unit_m(args.bytes()?)?;
        let (width_m, height_m) = (width * self.unit_m, height * self.unit_m);
        self.shape = Some(Shape::Box { width_m, height_m });
        Ok(())
    }

    /// What must be there, and what must not be there together.
    fn check(&self, name: &[u8], form: Form) -> Result<()> {
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_point) {
            let who = if form == Form::SearchStore {
                "GEOSEARCHSTORE"
            } else {
                "STORE option in GEORADIUS"
            };
            return Err(CommandError::text(format!(
                "ERR {who} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        if form.is_search() && !self.from_member && !self.from_point {
            return Err(CommandError::text_with(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ",
                name,
            ));
        }
        if form.is_search() && self.shape.is_none() {
            return Err(CommandError::text_with(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for ",
                name,
            ));
        }
        if self.any && self.count == 0 {
            return Err(CommandError::text("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    /// The places, as many as wanted and in the order wanted.
    fn find(&self, set: &SortedSet) -> Vec<Found> {
        let (Some(centre), Some(shape)) = (self.centre, self.shape) else { return Vec::new() };
        let enough = if self.any { self.count } else { usize::MAX };
        let mut found = Vec::new();
        for cell in shape.cells(centre) {
            let range = ScoreRange {
                min: cell.first() as f64,
                min_open: false,
                max: cell.end() as f64,
                max_open: true,
            };
            for (member, score) in set.iter(set.score_ranks(&range)) {
                if found.len() >= enough {
                    break;
                }
                let point = place_of(score);
                if let Some(distance_m) = shape.distance_within(centre, point) {
                    found.push(Found { member: member.to_vec(), distance_m, score, point });
                }
            }
        }
        let nearest = |a: &Found, b: &Found| a.distance_m.total_cmp(&b.distance_m);
        // The nearest are wanted where only some are, unless any will do.
        match self.sorting {
            Sorting::Farthest => found.sort_by(|a, b| nearest(b, a)),
            Sorting::Nearest => found.sort_by(nearest),
            Sorting::None if self.count > 0 && !self.any => found.sort_by(nearest),
            Sorting::None => {}
        }
        if self.count > 0 {
            found.truncate(self.count);
        }
        found
    }

    fn reply(&self, reply: &mut Reply<'_>, found: &[Found]) {
        let extras = [self.with_distance, self.with_hash, self.with_point];
        let extras = extras.into_iter().filter(|extra| *extra).count();
        reply.array(found.len());
        for place in found {
            if extras > 0 {
                reply.array(1 + extras);
            }
            reply.bulk(&place.member);
            if self.with_distance {
                reply_distance(reply, place.distance_m / self.unit_m);
            }
            if self.with_hash {
                reply.integer(place.score as i64);
            }
            if self.with_point {
                reply_point(reply, place.point);
            }
        }
    }
}

const GEOSEARCH: Command = Command {
    spec: Spec {
        name: "geosearch",
        group: Group::Geo,
        summary: "Finds the places in a circle or a box.",
        since: "6.2.0",
        complexity: "O(N+log(M))",
        arity: -7,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::one_of(
                "from",
                &[
                    Arg::string("member").after("FROMMEMBER"),
                    Arg::block(
                        "longitude_latitude",
                        &[Arg::double("longitude"), Arg::double("latitude")],
                    )
                    .after("FROMLONLAT"),
                ],
            ),
            Arg::one_of(
                "by",
                &[
                    Arg::block(
                        "circle",
                        &[
                            Arg::double("radius").after("BYRADIUS"),
                            Arg::one_of(
                                "unit",
                                &[
                                    Arg::token("m", "M"),
                                    Arg::token("km", "KM"),
                                    Arg::token("ft", "FT"),
                                    Arg::token("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                    Arg::block(
                        "box",
                        &[
                            Arg::double("width").after("BYBOX"),
                            Arg::double("height"),
                            Arg::one_of(
                                "unit",
                                &[
                                    Arg::token("m", "M"),
                                    Arg::token("km", "KM"),
                                    Arg::token("ft", "FT"),
                                    Arg::token("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                ],
            ),
            Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")])
                .optional(),
            Arg::block(
                "count",
                &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional()],
            )
            .optional(),
            Arg::token("withcoord", "WITHCOORD").optional(),
            Arg::token("withdist", "WITHDIST").optional(),
            Arg::token("withhash", "WITHHASH").optional(),
        ],
        history: &[("7.0.0", "Takes names of units in upper case.")],
        ..Spec::EMPTY
    },
    run: geosearch,
    subcommands: &[],
};

const GEOSEARCHSTORE: Command = Command {
    spec: Spec {
        name: "geosearchstore",
        group: Group::Geo,
        summary: "Stores the places in a circle or a box.",
        since: "6.2.0",
        complexity: "O(N+log(M))",
        arity: -8,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::at(1).overwrite(KeyFlags::UPDATE),
            KeySpec::at(2).read_only(KeyFlags::ACCESS),
        ],
        args: &[
            Arg::key("destination"),
            Arg::key("source").spec(1),
            Arg::one_of(
                "from",
                &[
                    Arg::string("member").after("FROMMEMBER"),
                    Arg::block(
                        "longitude_latitude",
                        &[Arg::double("longitude"), Arg::double("latitude")],
                    )
                    .after("FROMLONLAT"),
                ],
            ),
            Arg::one_of(
                "by",
                &[
                    Arg::block(
                        "circle",
                        &[
                            Arg::double("radius").after("BYRADIUS"),
                            Arg::one_of(
                                "unit",
                                &[
                                    Arg::token("m", "M"),
                                    Arg::token("km", "KM"),
                                    Arg::token("ft", "FT"),
                                    Arg::token("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                    Arg::block(
                        "box",
                        &[
                            Arg::double("width").after("BYBOX"),
                            Arg::double("height"),
                            Arg::one_of(
                                "unit",
                                &[
                                    Arg::token("m", "M"),
                                    Arg::token("km", "KM"),
                                    Arg::token("ft", "FT"),
                                    Arg::token("mi", "MI"),
                                ],
                            ),
                        ],
                    ),
                ],
            ),
            Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")])
                .optional(),
            Arg::block(
                "count",
                &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional()],
            )
            .optional(),
            Arg::token("storedist", "STOREDIST").optional(),
        ],
        history: &[("7.0.0", "Takes names of units in upper case.")],
        ..Spec::EMPTY
    },
    run: geosearchstore,
    subcommands: &[],
};

const GEORADIUS: Command = Command {
    spec: Spec {
        name: "georadius",
        group: Group::Geo,
        summary: "Finds the places around a point, and may store them.",
        since: "3.2.0",
        complexity: "O(N+log(M))",
        arity: -6,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        keys: &[
            KeySpec::at(1).read_only(KeyFlags::ACCESS),
            stored_after("STORE", 6),
            stored_after("STOREDIST", 6),
        ],
        args: &[
            Arg::key("key"),
            Arg::double("longitude"),
            Arg::double("latitude"),
            Arg::double("radius"),
            Arg::one_of(
                "unit",
                &[
                    Arg::token("m", "M"),
                    Arg::token("km", "KM"),
                    Arg::token("ft", "FT"),
                    Arg::token("mi", "MI"),
                ],
            ),
            Arg::token("withcoord", "WITHCOORD").optional(),
            Arg::token("withdist", "WITHDIST").optional(),
            Arg::token("withhash", "WITHHASH").optional(),
            Arg::block(
                "count",
                &[
                    Arg::integer("count").after("COUNT"),
                    Arg::token("any", "ANY").since("6.2.0").optional(),
                ],
            )
            .optional(),
            Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")])
                .optional(),
            Arg::key("key").spec(1).after("STORE").optional(),
            Arg::key("key").spec(2).after("STOREDIST").optional(),
        ],
        history: &[
            ("6.2.0", "`COUNT` can take `ANY`."),
            ("7.0.0", "Takes names of units in upper case."),
        ],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
        }),
        ..Spec::EMPTY
    },
    run: georadius,
    subcommands: &[],
};

const GEORADIUS_RO: Command = Command {
    spec: Spec {
        name: "georadius_ro",
        group: Group::Geo,
        summary: "Finds the places around a point.",
        since: "3.2.10",
        complexity: "O(N+log(M))",
        arity: -6,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::double("longitude"),
            Arg::double("latitude"),
            Arg::double("radius"),
            Arg::one_of(
                "unit",
                &[
                    Arg::token("m", "M"),
                    Arg::token("km", "KM"),
                    Arg::token("ft", "FT"),
                    Arg::token("mi", "MI"),
                ],
            ),
            Arg::token("withcoord", "WITHCOORD").optional(),
            Arg::token("withdist", "WITHDIST").optional(),
            Arg::token("withhash", "WITHHASH").optional(),
            Arg::block(
                "count",
                &[
                    Arg::integer("count").after("COUNT"),
                    Arg::token("any", "ANY").since("6.2.0").optional(),
                ],
            )
            .optional(),
            Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")])
                .optional(),
        ],
        history: &[("6.2.0", "`COUNT` can take `ANY`.")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` with the `BYRADIUS` argument",
        }),
        ..Spec::EMPTY
    },
    run: georadius_ro,
    subcommands: &[],
};

const GEORADIUSBYMEMBER: Command = Command {
    spec: Spec {
        name: "georadiusbymember",
        group: Group::Geo,
        summary: "Finds the places around another, and may store them.",
        since: "3.2.0",
        complexity: "O(N+log(M))",
        arity: -5,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
        keys: &[
            KeySpec::at(1).read_only(KeyFlags::ACCESS),
            stored_after("STORE", 5),
            stored_after("STOREDIST", 5),
        ],
        args: &[
            Arg::key("key"),
            Arg::string("member"),
            Arg::double("radius"),
            Arg::one_of(
                "unit",
                &[
                    Arg::token("m", "M"),
                    Arg::token("km", "KM"),
                    Arg::token("ft", "FT"),
                    Arg::token("mi", "MI"),
                ],
            ),
            Arg::token("withcoord", "WITHCOORD").optional(),
            Arg::token("withdist", "WITHDIST").optional(),
            Arg::token("withhash", "WITHHASH").optional(),
            Arg::block(
                "count",
                &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional()],
            )
            .optional(),
            Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")])
                .optional(),
            Arg::key("key").spec(1).after("STORE").optional(),
            Arg::key("key").spec(2).after("STOREDIST").optional(),
        ],
        history: &[("7.0.0", "Takes names of units in upper case.")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        }),
        ..Spec::EMPTY
    },
    run: georadiusbymember,
    subcommands: &[],
};

const GEORADIUSBYMEMBER_RO: Command = Command {
    spec: Spec {
        name: "georadiusbymember_ro",
        group: Group::Geo,
        summary: "Finds the places around another.",
        since: "3.2.10",
        complexity: "O(N+log(M))",
        arity: -5,
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
        args: &[
            Arg::key("key"),
            Arg::string("member"),
            Arg::double("radius"),
            Arg::one_of(
                "unit",
                &[
                    Arg::token("m", "M"),
                    Arg::token("km", "KM"),
                    Arg::token("ft", "FT"),
                    Arg::token("mi", "MI"),
                ],
            ),
            Arg::token("withcoord", "WITHCOORD").optional(),
            Arg::token("withdist", "WITHDIST").optional(),
            Arg::token("withhash", "WITHHASH").optional(),
            Arg::block(
                "count",
                &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional()],
            )
            .optional(),
            Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")])
                .optional(),
        ],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
        }),
        ..Spec::EMPTY
    },
    run: georadiusbymember_ro,
    subcommands: &[],
};

pub(super) const COMMANDS: &[Command] =
    &[GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUS_RO, GEORADIUSBYMEMBER, GEORADIUSBYMEMBER_RO];
