//! GEORADIUS, GEORADIUSBYMEMBER and their read-only forms: the older searches, which are only in a
//! circle.

use super::UNIT;
use super::search::{SearchForm, around_member, around_point, find_store_key};
use crate::base::error::Result;
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{
    Arg, ArgLookup, Begin, Deprecated, Find, Finder, Flags, Group, KeyFlags, KeySpec, Spec,
};
use crate::reply::Outcome;
use std::ops::Range;

fn georadius(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    around_point(ctx, args, SearchForm::Radius)
}

fn georadius_ro(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    around_point(ctx, args, SearchForm::RadiusReadOnly)
}

fn georadiusbymember(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    around_member(ctx, args, SearchForm::Radius)
}

fn georadiusbymember_ro(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    around_member(ctx, args, SearchForm::RadiusReadOnly)
}

/// Index of the first option of GEORADIUS.
const OPTIONS_AT: usize = 6;
/// Index of the first option of GEORADIUSBYMEMBER.
const OPTIONS_BY_MEMBER_AT: usize = 5;

fn store_of_georadius(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    find_store_key(argc, word, OPTIONS_AT, false)
}

fn storedist_of_georadius(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    find_store_key(argc, word, OPTIONS_AT, true)
}

fn store_of_georadiusbymember(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    find_store_key(argc, word, OPTIONS_BY_MEMBER_AT, false)
}

fn storedist_of_georadiusbymember(argc: usize, word: ArgLookup<'_, '_>) -> Option<Range<usize>> {
    find_store_key(argc, word, OPTIONS_BY_MEMBER_AT, true)
}

/// The key after a keyword.
const fn store_key(keyword: &'static str, from: usize, finder: Finder) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword { keyword, from: from as i16 },
        find: Find::Range { last: 0, step: 1, limit: 0 },
        ..KeySpec::at(0).overwrite(KeyFlags::UPDATE).found_by(finder)
    }
}

const SOURCE: KeySpec = KeySpec::at(1).read_only(KeyFlags::ACCESS);
const WITHCOORD: Arg = Arg::token("withcoord", "WITHCOORD").optional();
const WITHDIST: Arg = Arg::token("withdist", "WITHDIST").optional();
const WITHHASH: Arg = Arg::token("withhash", "WITHHASH").optional();
const ANY: Arg = Arg::token("any", "ANY").optional();
const COUNT: Arg =
    Arg::block("count", &[Arg::integer("count").after("COUNT"), ANY.since("6.2.0")]).optional();
const COUNT_BY_MEMBER: Arg =
    Arg::block("count", &[Arg::integer("count").after("COUNT"), ANY]).optional();
const ORDER: Arg =
    Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")]).optional();
const STORE: Arg = Arg::key("key").after("STORE").spec(1).optional();
const STOREDIST: Arg = Arg::key("key").after("STOREDIST").spec(2).optional();
const ANY_CAME: (&str, &str) = ("6.2.0", "Accepts the option `ANY` after `COUNT`.");
const UPPER_CASE: (&str, &str) = ("7.0.0", "Units can be in upper case.");

/// The common part of all rows.
const ROW: Spec = Spec {
    group: Group::Geo,
    since: "3.2.0",
    complexity: "O(N+log(M)) with N members in the square around the circle, and M members in total.",
    ..Spec::EMPTY
};
const STORING: Flags = Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS);

const fn replaced_by(by: &'static str) -> Option<Deprecated> {
    Some(Deprecated { since: "6.2.0", replaced_by: by })
}

const GEORADIUS: Spec = Spec {
    name: "georadius",
    summary: "Returns or stores the members within a given distance of a point.",
    arity: -6,
    flags: STORING,
    keys: &[
        SOURCE,
        store_key("STORE", OPTIONS_AT, store_of_georadius),
        store_key("STOREDIST", OPTIONS_AT, storedist_of_georadius),
    ],
    args: &[
        Arg::key("key"),
        Arg::double("longitude"),
        Arg::double("latitude"),
        Arg::double("radius"),
        UNIT,
        WITHCOORD,
        WITHDIST,
        WITHHASH,
        COUNT,
        ORDER,
        STORE,
        STOREDIST,
    ],
    history: &[ANY_CAME, UPPER_CASE],
    deprecated: replaced_by("`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"),
    ..ROW
};

const GEORADIUS_RO: Spec = Spec {
    name: "georadius_ro",
    summary: "Returns the members within a given distance of a point. Read-only.",
    since: "3.2.10",
    arity: -6,
    flags: Flags::READONLY,
    keys: &[SOURCE],
    args: &[
        Arg::key("key"),
        Arg::double("longitude"),
        Arg::double("latitude"),
        Arg::double("radius"),
        UNIT,
        WITHCOORD,
        WITHDIST,
        WITHHASH,
        COUNT,
        ORDER,
    ],
    history: &[ANY_CAME],
    deprecated: replaced_by("`GEOSEARCH` with the `BYRADIUS` argument"),
    ..ROW
};

const GEORADIUSBYMEMBER: Spec = Spec {
    name: "georadiusbymember",
    summary: "Returns or stores the members within a given distance of a member.",
    arity: -5,
    flags: STORING,
    keys: &[
        SOURCE,
        store_key("STORE", OPTIONS_BY_MEMBER_AT, store_of_georadiusbymember),
        store_key("STOREDIST", OPTIONS_BY_MEMBER_AT, storedist_of_georadiusbymember),
    ],
    args: &[
        Arg::key("key"),
        Arg::string("member"),
        Arg::double("radius"),
        UNIT,
        WITHCOORD,
        WITHDIST,
        WITHHASH,
        COUNT_BY_MEMBER,
        ORDER,
        STORE,
        STOREDIST,
    ],
    history: &[UPPER_CASE],
    deprecated: replaced_by(
        "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
    ),
    ..ROW
};

const GEORADIUSBYMEMBER_RO: Spec = Spec {
    name: "georadiusbymember_ro",
    summary: "Returns the members within a given distance of a member. Read-only.",
    since: "3.2.10",
    arity: -5,
    flags: Flags::READONLY,
    keys: &[SOURCE],
    args: &[
        Arg::key("key"),
        Arg::string("member"),
        Arg::double("radius"),
        UNIT,
        WITHCOORD,
        WITHDIST,
        WITHHASH,
        COUNT_BY_MEMBER,
        ORDER,
    ],
    deprecated: replaced_by("`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
    ..ROW
};

pub(super) const COMMANDS: &[Command] = &[
    Command { spec: GEORADIUS, run: georadius, subcommands: &[] },
    Command { spec: GEORADIUS_RO, run: georadius_ro, subcommands: &[] },
    Command { spec: GEORADIUSBYMEMBER, run: georadiusbymember, subcommands: &[] },
    Command { spec: GEORADIUSBYMEMBER_RO, run: georadiusbymember_ro, subcommands: &[] },
];
