//! GEOSEARCH, GEOSEARCHSTORE: searches around a point or a member, in a circle or a box.

use super::UNIT;
use super::search::{SearchForm, by_shape};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;

fn geosearch(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    by_shape(ctx, args, SearchForm::Search)
}

fn geosearchstore(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    by_shape(ctx, args, SearchForm::SearchStore)
}

const FROM: Arg = Arg::one_of(
    "from",
    &[
        Arg::string("member").after("FROMMEMBER"),
        Arg::block("longitude_latitude", &[Arg::double("longitude"), Arg::double("latitude")])
            .after("FROMLONLAT"),
    ],
);
const BY: Arg = Arg::one_of(
    "by",
    &[
        Arg::block("circle", &[Arg::double("radius").after("BYRADIUS"), UNIT]),
        Arg::block("box", &[Arg::double("width").after("BYBOX"), Arg::double("height"), UNIT]),
    ],
);
const ORDER: Arg =
    Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")]).optional();
const COUNT: Arg = Arg::block(
    "count",
    &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional()],
)
.optional();

/// The common part of both rows.
const ROW: Spec = Spec {
    group: Group::Geo,
    since: "6.2.0",
    complexity: "O(N+log(M)) with N members in the rectangle around the shape, and M members in total.",
    history: &[("7.0.0", "Units can be in upper case.")],
    ..Spec::EMPTY
};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "geosearch",
            summary: "Returns the members within a circle or a box.",
            arity: -7,
            flags: Flags::READONLY,
            keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
            args: &[
                Arg::key("key"),
                FROM,
                BY,
                ORDER,
                COUNT,
                Arg::token("withcoord", "WITHCOORD").optional(),
                Arg::token("withdist", "WITHDIST").optional(),
                Arg::token("withhash", "WITHHASH").optional(),
            ],
            ..ROW
        },
        run: geosearch,
        subcommands: &[],
    },
    Command {
        spec: Spec {
            name: "geosearchstore",
            summary: "Stores the members within a circle or a box under another key.",
            arity: -8,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[
                KeySpec::at(1).overwrite(KeyFlags::UPDATE),
                KeySpec::at(2).read_only(KeyFlags::ACCESS),
            ],
            args: &[
                Arg::key("destination"),
                Arg::key("source").spec(1),
                FROM,
                BY,
                ORDER,
                COUNT,
                Arg::token("storedist", "STOREDIST").optional(),
            ],
            ..ROW
        },
        run: geosearchstore,
        subcommands: &[],
    },
];
