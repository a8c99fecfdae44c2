//! GEOADD, GEODIST, GEOHASH, GEOPOS: members by name.

use super::{UNIT, Unit, place_of_score, point, reply_distance, reply_point};
use crate::base::error::{CommandError, Result};
use crate::call::ctx::{Command, Ctx};
use crate::command::args::Args;
use crate::command::{Arg, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::reply::Outcome;
use crate::types::Edit;
use crate::types::sorted_set::{AddRules, Added, SortedSet};

fn geoadd(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let (mut rules, mut count_changes) = (AddRules::default(), false);
    let first_option = args.position();
    loop {
        if args.take("NX") {
            rules.only_new = true;
        } else if args.take("XX") {
            rules.only_existing = true;
        } else if args.take("CH") {
            count_changes = true;
        } else {
            break;
        }
    }
    let options = first_option..args.position();
    if !args.remaining().is_multiple_of(3) || rules.only_new && rules.only_existing {
        return Err(CommandError::Syntax);
    }
    let mut places = Vec::with_capacity(args.remaining() / 3);
    while args.remaining() > 0 {
        let number = point(args.array()?)?.number();
        places.push((number, args.bytes()?));
    }
    if places.is_empty() {
        return Err(CommandError::Syntax);
    }

    let (added, changed) = ctx.keys.upsert::<SortedSet, _>(&key, |set, limits| {
        let (mut added, mut changed) = (0, 0);
        for (number, member) in &places {
            match set.add(member, *number as f64, &rules, limits)? {
                Added::New(_) => added += 1,
                Added::Changed(_) => changed += 1,
                Added::Refused | Added::Same(_) => {}
            }
        }
        Ok(Edit::new((added, changed), added + changed, "zadd"))
    })?;
    if added + changed > 0 {
        // Propagated as ZADD, so that replicas do not depend on how degrees are parsed.
        ctx.keys.propagate(|| {
            let mut words = vec![b"ZADD".to_vec(), key.bytes.to_vec()];
            words.extend(options.map(|at| args.argument(at).to_vec()));
            for (number, member) in &places {
                words.push(number.to_string().into_bytes());
                words.push(member.to_vec());
            }
            words
        });
    }
    Ok(ctx.reply.integer((added + if count_changes { changed } else { 0 }) as i64))
}

fn geodist(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let (key, first, second) = (args.key()?, args.bytes()?, args.bytes()?);
    if args.remaining() > 1 {
        return Err(CommandError::Syntax);
    }
    let unit = args.optional().map_or(Ok(Unit(1.0)), Unit::parse)?;

    let Some(set) = ctx.keys.open::<SortedSet>(&key)? else { return Ok(ctx.reply.null()) };
    let (Some(first), Some(second)) = (set.score(first), set.score(second)) else {
        return Ok(ctx.reply.null());
    };
    let place = |score: f64| place_of_score(score);
    reply_distance(&mut ctx.reply, place(first).distance_m(place(second)) / unit.0);
    Ok(Outcome::Replied)
}

fn geohash(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(member) = args.optional() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => ctx.reply.bulk(&place_of_score(score).text()),
            None => ctx.reply.null(),
        };
    }
    Ok(Outcome::Replied)
}

fn geopos(ctx: &mut Ctx<'_, '_>, args: &mut Args<'_>) -> Result<Outcome> {
    let key = args.key()?;
    let set = ctx.keys.open::<SortedSet>(&key)?;
    ctx.reply.array(args.remaining());
    while let Some(member) = args.optional() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => reply_point(&mut ctx.reply, place_of_score(score)),
            None => drop(ctx.reply.null_array()),
        }
    }
    Ok(Outcome::Replied)
}

/// The common part of the rows of reading commands.
const READ: Spec = Spec {
    group: Group::Geo,
    since: "3.2.0",
    flags: Flags::READONLY,
    keys: &[KeySpec::at(1).read_only(KeyFlags::ACCESS)],
    ..Spec::EMPTY
};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "geoadd",
            group: Group::Geo,
            summary: "Adds members with a longitude and latitude, or updates their position.",
            since: "3.2.0",
            complexity: "O(log(N)) for each added member, with N members.",
            arity: -5,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::at(1).read_write(KeyFlags::UPDATE)],
            args: &[
                Arg::key("key"),
                Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                    .since("6.2.0")
                    .optional(),
                Arg::token("change", "CH").since("6.2.0").optional(),
                Arg::block(
                    "longitude_latitude_member",
                    &[Arg::double("longitude"), Arg::double("latitude"), Arg::string("member")],
                )
                .multiple(),
            ],
            history: &[("6.2.0", "Accepts the options `CH`, `NX` and `XX`.")],
            ..Spec::EMPTY
        },
        run: geoadd,
        subcommands: &[],
    },
    Command {
        spec: Spec {
            name: "geodist",
            summary: "Returns the distance between two members.",
            complexity: "O(log(N))",
            arity: -4,
            args: &[
                Arg::key("key"),
                Arg::string("member1"),
                Arg::string("member2"),
                UNIT.optional(),
            ],
            ..READ
        },
        run: geodist,
        subcommands: &[],
    },
    Command {
        spec: Spec {
            name: "geohash",
            summary: "Returns the geohash strings of members.",
            complexity: "O(log(N)) for each requested member, with N members.",
            arity: -2,
            args: &[Arg::key("key"), Arg::string("member").multiple()],
            ..READ
        },
        run: geohash,
        subcommands: &[],
    },
    Command {
        spec: Spec {
            name: "geopos",
            summary: "Returns the longitude and latitude of members.",
            complexity: "O(N) in the number of requested members.",
            arity: -2,
            args: &[Arg::key("key"), Arg::string("member").multiple()],
            ..READ
        },
        run: geopos,
        subcommands: &[],
    },
];
